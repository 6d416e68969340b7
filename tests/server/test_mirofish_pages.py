"""MiroFish's pages as clients: their calls, in the order of their timers, and the fields that they read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from shoal.runs.state import RunState, Status, WorldState
from shoal.server.api.last_looks import LastLooks
from tests.scenario.importers.mirofish_directory import write_directory
from tests.server.conftest import Answer, RunningServer, Serve

ORIGIN = "http://localhost:3000"
SIMULATION = "sim_0123456789ab"
#: Seconds between two looks at the state, and between two looks at the actions.
STATUS_SECONDS, DETAIL_SECONDS = 2, 3
ENVELOPE = {"success", "data"}


class Page:
    """A page of another origin in a browser: it asks before it posts, and takes no answer without leave."""

    def __init__(self, server: RunningServer) -> None:
        self._server = server

    def get(self, path: str) -> Any:
        return self._read(self._server.request("GET", path, headers={"Origin": ORIGIN}))

    def post(self, path: str, body: object) -> Any:
        asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
        leave = self._server.request("OPTIONS", path, headers={"Origin": ORIGIN, **asked})
        assert leave.status == 204
        assert "POST" in leave.headers["access-control-allow-methods"]
        assert "content-type" in leave.headers["access-control-allow-headers"]
        return self._read(self._server.request("POST", path, body, {"Origin": ORIGIN}))

    def _read(self, answer: Answer) -> Any:
        assert answer.headers["access-control-allow-origin"] == ORIGIN
        assert answer.status == 200, answer.body
        assert answer.json["success"] is True
        return answer.json["data"]


def prepare(server: RunningServer) -> Page:
    server.folder.mkdir(exist_ok=True)
    write_directory(server.folder / SIMULATION)
    return Page(server)


def serve_pages(serve: Serve) -> RunningServer:
    return serve(origins=frozenset({ORIGIN}))


def start(page: Page, **more: object) -> Any:
    """Start as the run page does whenever it is opened or refreshed."""
    body = {"simulation_id": SIMULATION, "platform": "parallel", "force": True, "enable_graph_memory_update": True}
    return page.post("/api/simulation/start", {**body, **more})


def ticks() -> Iterator[str]:
    """Yield what the run page asks for, in the order of its two timers."""
    second = 0
    while True:
        second += 1
        if second % STATUS_SECONDS == 0:
            yield "status"
        if second % DETAIL_SECONDS == 0:
            yield "detail"


def watch(page: Page) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Follow a run as the run page does, to the moment in which it says that the run is over."""
    seen: dict[str, dict[str, Any]] = {}
    status: dict[str, Any] = {}
    for tick in ticks():
        if tick == "detail":
            for action in page.get(f"/api/simulation/{SIMULATION}/run-status/detail")["all_actions"]:
                seen.setdefault(action["id"], action)
            continue
        status = page.get(f"/api/simulation/{SIMULATION}/run-status")
        assert status["runner_status"] in ("running", "completed"), status
        if is_over(status):
            break
    return status, seen


def is_over(status: dict[str, Any]) -> bool:
    """Decide as the page does: by the state, or because every platform that does something has completed."""
    if status["runner_status"] in ("completed", "stopped"):
        return True
    used = [
        name
        for name in ("twitter", "reddit")
        if status[f"{name}_actions_count"] > 0 or status[f"{name}_running"] or status[f"{name}_completed"]
    ]
    return bool(used) and all(status[f"{name}_completed"] for name in used)


def test_the_run_page_shows_every_action_of_a_run_however_fast_it_was(serve: Serve) -> None:
    page = prepare(serve_pages(serve))
    started = start(page)
    assert started["force_restarted"] is True
    assert started["process_pid"] is None or started["process_pid"] > 0
    status, seen = watch(page)
    counts = {name: status[f"{name}_actions_count"] for name in ("twitter", "reddit")}
    assert {name: sum(a["platform"] == name for a in seen.values()) for name in counts} == counts
    for name in counts:
        assert status[f"{name}_current_round"] == status["total_rounds"]
        assert status[f"{name}_simulated_hours"] == status["total_simulation_hours"]
    assert sum(counts.values()) > 0


def test_a_page_hears_of_the_end_of_a_run_when_it_has_seen_all_of_it(serve: Serve) -> None:
    server = serve_pages(serve)
    page = prepare(server)
    start(page, max_rounds=2)
    with server.client() as client:
        list(client.events(SIMULATION))
        assert client.status(SIMULATION).runner_status == "completed"
    held = page.get(f"/api/simulation/{SIMULATION}/run-status")
    assert (held["runner_status"], held["twitter_completed"], held["reddit_running"]) == ("running", False, True)
    page.get(f"/api/simulation/{SIMULATION}/run-status/detail")
    told = page.get(f"/api/simulation/{SIMULATION}/run-status")
    assert (told["runner_status"], told["twitter_completed"], told["reddit_running"]) == ("completed", True, False)


def test_a_page_that_does_not_ask_for_actions_hears_of_the_end_after_a_while() -> None:
    times = iter([1_000.0, 1_009.0, 1_011.0])
    looks = LastLooks(patience_seconds=10, now=lambda: next(times))
    looks.note_start("a")
    for expected in (Status.RUNNING, Status.COMPLETED):
        state = RunState("a", {"twitter": WorldState(completed=True)}, runner_status=Status.COMPLETED)
        state.completed_at = datetime.fromtimestamp(900, UTC).isoformat()
        looks.hold_end("a", state)
        assert (state.runner_status, state.worlds["twitter"].completed) == (expected, expected is Status.COMPLETED)


def test_refreshing_the_run_page_starts_over_and_keeps_the_old_run(serve: Serve) -> None:
    server = serve_pages(serve)
    page = prepare(server)
    for rounds in (2, 3):
        assert start(page, max_rounds=rounds)["max_rounds_applied"] == rounds
        status, _ = watch(page)
        assert (status["total_rounds"], status["twitter_current_round"]) == (rounds, rounds)
    start(page)
    status, _ = watch(page)
    assert status["total_rounds"] > 3
    archived = sorted((server.folder / SIMULATION / "archive").glob("*/twitter/actions.jsonl"))
    assert [last_round(path) for path in archived] == [2, 3]


def last_round(stream: Path) -> int:
    rounds: list[int] = [json.loads(line).get("round", 0) for line in stream.read_text().splitlines()]
    return max(rounds)
