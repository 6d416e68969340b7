"""MiroFish's pages as clients: their calls, in the order of their timers, and the fields that they read."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from shoal.python.rehearsal import rehearse
from shoal.runs.state import RunState, Status, WorldState
from shoal.server.api.last_looks import LastLooks
from tests.scenario.importers.mirofish_directory import FIRST_POST, PEOPLE, write_directory
from tests.server.conftest import Answer, RunningServer, Serve, wait_until

ORIGIN = "http://localhost:3000"
SIMULATION = "sim_0123456789ab"
#: Seconds between two looks at the state, and between two looks at the actions.
STATUS_SECONDS, DETAIL_SECONDS = 2, 3
#: How long such a second takes here. A page that never waited would keep the run's worker from its work.
SECOND_SECONDS = 0.02
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
    # The page has timers, these tests have not: on a busy machine they ask more often than anybody may.
    return serve(origins=frozenset({ORIGIN}), requests_at_once=10**9)


def start(page: Page, **more: object) -> Any:
    """Start as the run page does whenever it is opened or refreshed."""
    body = {"simulation_id": SIMULATION, "platform": "parallel", "force": True, "enable_graph_memory_update": True}
    return page.post("/api/simulation/start", {**body, **more})


def ticks() -> Iterator[str]:
    """Yield what the run page asks for, in the order of its two timers."""
    second = 0
    while True:
        second += 1
        time.sleep(SECOND_SECONDS)
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


@pytest.mark.parametrize(("missing", "left"), [("twitter", "reddit"), ("reddit", "twitter")])
def test_the_run_page_follows_a_simulation_of_one_platform(serve: Serve, missing: str, left: str) -> None:
    server = serve_pages(serve)
    server.folder.mkdir(exist_ok=True)
    write_directory(server.folder / SIMULATION, {f"{missing}_config": None})
    page = Page(server)
    start(page, max_rounds=3)
    status, seen = watch(page)
    assert {action["platform"] for action in seen.values()} == {left}
    assert (status[f"{left}_current_round"], status[f"{left}_completed"]) == (3, True)
    assert (status[f"{missing}_actions_count"], status[f"{missing}_running"]) == (0, False)


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


def test_only_the_origin_that_was_allowed_may_ask(serve: Serve) -> None:
    server = serve_pages(serve)
    prepare(server)
    for origin in ("http://localhost:3001", "https://localhost:3000", "http://127.0.0.1:3000", "null"):
        for method in ("OPTIONS", "GET"):
            refused = server.request(method, f"/api/simulation/{SIMULATION}", headers={"Origin": origin})
            assert refused.status == 403
            assert "access-control-allow-origin" not in refused.headers


def test_actions_that_were_refused_are_not_shown_as_done(serve: Serve) -> None:
    server = serve_pages(serve)
    page = prepare(server)
    start(page, max_rounds=2)
    watch(page)
    stream = server.folder / SIMULATION / "twitter" / "actions.jsonl"
    lines = stream.read_text().splitlines(keepends=True)
    first = next(number for number, line in enumerate(lines) if '"success":true' in line)
    lines[first] = lines[first].replace('"success":true', '"success":false')
    stream.write_text("".join(lines))
    path = f"/api/simulation/{SIMULATION}/run-status/detail"
    shown = {action["id"] for action in page.get(path)["all_actions"]}
    everything = {action["id"] for action in server.request("GET", path).json["data"]["all_actions"]}
    assert everything - shown == {json.loads(lines[first])["id"]}


# the graph panel, every 30 seconds


def test_the_graph_panel_shows_the_people_before_they_act_and_grows_with_the_run(serve: Serve) -> None:
    page = prepare(serve_pages(serve))
    before = read_graph(page)
    assert {(node["name"], node["labels"][1]) for node in before["nodes"]} == set(PEOPLE)
    assert before["edges"] == []
    start(page, max_rounds=4)
    watch(page)
    after = read_graph(page)
    assert {node["uuid"] for node in before["nodes"]} < {node["uuid"] for node in after["nodes"]}
    ends = {node["uuid"] for node in after["nodes"]}
    assert after["edges"]
    for edge in after["edges"]:
        assert {edge["source_node_uuid"], edge["target_node_uuid"]} <= ends
        assert edge["fact"]
        assert edge["fact_type"] == edge["name"]
        for when in (edge["created_at"], edge["valid_at"]):
            assert datetime.fromisoformat(when) > datetime(2026, 1, 1, tzinfo=UTC)
        assert all(isinstance(episode, str) for episode in edge["episodes"])


def read_graph(page: Page) -> Any:
    """Ask as the run page does: the simulation names its project, the project its graph."""
    simulation = page.get(f"/api/simulation/{SIMULATION}")
    assert page.get(f"/api/simulation/{SIMULATION}/config")["time_config"]["minutes_per_round"] == 60
    project = page.get(f"/api/graph/project/{simulation['project_id']}")
    graph = page.get(f"/api/graph/data/{project['graph_id']}")
    for node in graph["nodes"]:
        assert node["uuid"]
        assert node["summary"]
        assert node["labels"]
        assert isinstance(node["attributes"], dict)
    return graph


# the report page, and the pages behind it


def test_the_report_page_is_complete_at_its_first_look(serve: Serve) -> None:
    page = prepare(serve_pages(serve))
    start(page, max_rounds=4)
    watch(page)
    report = page.post("/api/report/generate", {"simulation_id": SIMULATION, "force_regenerate": True})["report_id"]
    steps = page.get(f"/api/report/{report}/agent-log?from_line=0")
    assert steps["from_line"] == 0
    actions = [step["action"] for step in steps["logs"]]
    assert (actions[0], actions[-1]) == ("report_start", "report_complete")
    outline = next(step for step in steps["logs"] if step["action"] == "planning_complete")["details"]["outline"]
    written = {step["section_index"]: step for step in steps["logs"] if step["action"] == "section_complete"}
    assert [written[number + 1]["section_title"] for number in range(len(outline["sections"]))] == [
        section["title"] for section in outline["sections"]
    ]
    assert all(step["details"]["content"] for step in written.values())
    assert {step["action"] for step in steps["logs"]} >= {"planning_start", "section_start"}
    again = page.get(f"/api/report/{report}/agent-log?from_line={steps['total_lines']}")
    assert again["logs"] == []
    console = page.get(f"/api/report/{report}/console-log?from_line=0")
    assert all(isinstance(line, str) for line in console["logs"])


def test_the_chat_page_finds_its_simulation_through_the_report_and_asks_about_it(serve: Serve) -> None:
    page = prepare(serve_pages(serve))
    start(page, max_rounds=4)
    watch(page)
    report = page.get(f"/api/report/report_{SIMULATION}")
    assert (report["simulation_id"], report["status"]) == (SIMULATION, "completed")
    history = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Yes?"}]
    question = {"simulation_id": SIMULATION, "message": "What did Mayor Berg say?", "chat_history": history}
    told = page.post("/api/report/chat", question)
    assert FIRST_POST in told["response"]
    assert told["sources"]


def test_what_people_write_is_no_html_in_pages_that_would_take_it_for_that(serve: Serve) -> None:
    server = serve_pages(serve)
    page = prepare(server)
    write_directory(server.folder / SIMULATION, {"event_config.initial_posts.0.content": "<img src=x onerror=a()>"})
    start(page, max_rounds=2)
    watch(page)
    question = {"simulation_id": SIMULATION, "message": "Mayor Berg", "chat_history": []}
    told = page.post("/api/report/chat", question)["response"]
    assert "&lt;img" in told
    steps = page.get(f"/api/report/report_{SIMULATION}/agent-log")["logs"]
    assert all("<img" not in json.dumps(part) for part in (told, steps))


def test_the_chat_and_survey_pages_ask_people_through_the_servers_model(serve: Serve) -> None:
    with rehearse(seed=3) as model:
        environ = {**os.environ, "OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "rehearsal"}
        server = serve(origins=frozenset({ORIGIN}), model="openai/gpt-4.1-mini", environ=environ)
        page = prepare(server)
        start(page, max_rounds=2)
        watch(page)
        profiles = page.get(f"/api/simulation/{SIMULATION}/profiles/realtime?platform=reddit")["profiles"]
        assert [(each["username"], each["profession"]) for each in profiles][2] == ("user_2", "student")
        assert all(each["bio"] and each["name"] for each in profiles)
        interviews = [{"agent_id": number, "prompt": "Do you support it?"} for number in range(len(profiles))]
        body = {"simulation_id": SIMULATION, "interviews": interviews}
        results = page.post("/api/simulation/interview/batch", body)["result"]["results"]
        # The page looks for the reply on Reddit first, then for that on Twitter.
        for number in range(len(profiles)):
            assert results.get(f"reddit_{number}", results.get(f"twitter_{number}"))["response"]


def test_going_back_from_the_run_page_closes_the_worker_or_stops_it(serve: Serve) -> None:
    page = prepare(serve_pages(serve))
    start(page, max_rounds=2)
    watch(page)
    named = {"simulation_id": SIMULATION}
    # The run is over a moment before its worker waits for commands.
    wait_until(lambda: page.post("/api/simulation/env-status", named)["env_alive"])
    page.post("/api/simulation/close-env", {**named, "timeout": 10})
    assert page.post("/api/simulation/env-status", named)["env_alive"] is False
    assert page.get(f"/api/simulation/{SIMULATION}")["status"] == "completed"


def test_the_first_page_lists_simulations_with_their_reports(serve: Serve) -> None:
    page = prepare(serve_pages(serve))
    (card,) = page.get("/api/simulation/history?limit=20")
    assert (card["report_id"], card["current_round"], card["project_id"]) == (None, 0, "proj_1")
    assert card["simulation_requirement"]
    assert isinstance(card["files"], list)
    start(page, max_rounds=2)
    watch(page)
    (card,) = page.get("/api/simulation/history?limit=20")
    assert (card["report_id"], card["current_round"], card["total_rounds"]) == (f"report_{SIMULATION}", 2, 2)
