"""What a server tells about runs: their state, and what happened in them, page by page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shoal.runs.directory import RunDirectory
from shoal.runs.reports.pages import ActionFilter, PageReader
from shoal.types import Event
from tests.server.conftest import SCENARIO, Serve


def list_events(folder: Path) -> list[tuple[str, Event]]:
    run = RunDirectory(folder)
    return [(world, event) for world in run.worlds for event in run.open_stream(world).read_actions()]


def test_the_status_of_a_run_has_the_fields_that_clients_read(serve: Serve, finished: str) -> None:
    status = serve().get(f"{finished}/run-status").json
    assert status["success"] is True
    data = status["data"]
    assert data["runner_status"] == "completed"
    assert data["twitter_completed"] is data["reddit_completed"] is True
    assert data["current_round"] == data["total_rounds"] == data["twitter_current_round"] == 6
    assert data["total_actions_count"] == data["twitter_actions_count"] + data["reddit_actions_count"] > 0
    assert data["twitter_simulated_hours"] == 6.0


def test_pages_hold_every_action_once_and_the_newest_first(serve: Serve, finished: str) -> None:
    server = serve()
    with server.client() as client:
        pages = [client.actions(finished, limit=7)]
        while pages[-1].next_cursor is not None:
            pages.append(client.actions(finished, limit=7, cursor=pages[-1].next_cursor))
    found = [action for page in pages for action in page.actions]
    expected = list_events(server.folder / finished)
    assert sorted(action.id for action in found) == sorted(event.id for _, event in expected)
    rounds = [action.round_num for action in found]
    assert rounds == sorted(rounds, reverse=True)
    assert all(len(page.actions) == 7 for page in pages[:-1])


@pytest.mark.parametrize(
    ("wanted", "holds"),
    [
        ({"world": "reddit"}, lambda world, event: world == "reddit"),
        ({"agent": 3}, lambda world, event: event.agent_id == 3),
        ({"round": 2}, lambda world, event: event.round == 2),
        ({"round": 0}, lambda world, event: event.round == 0),
        ({"world": "twitter", "agent": 1, "round": 4}, lambda w, e: (w, e.agent_id, e.round) == ("twitter", 1, 4)),
    ],
)
def test_actions_are_filtered(serve: Serve, finished: str, wanted: dict[str, Any], holds: Any) -> None:
    server = serve()
    with server.client() as client:
        found = {action.id for action in client.all_actions(finished, **wanted)}
    assert found == {event.id for world, event in list_events(server.folder / finished) if holds(world, event)}


def test_an_offset_skips_the_newest_actions(serve: Serve, finished: str) -> None:
    server = serve()
    all_of_them = server.get(f"{finished}/actions?limit=40").json["data"]["actions"]
    assert server.get(f"{finished}/actions?limit=10&offset=25").json["data"]["actions"] == all_of_them[25:35]


def test_a_line_that_is_being_written_is_left_for_the_next_page(serve: Serve, finished: str) -> None:
    server = serve()
    before = server.get(f"{finished}/actions?limit=3").json["data"]["actions"]
    stream = server.folder / finished / "reddit" / "actions.jsonl"
    with stream.open("ab") as file:
        file.write(b'{"round":7,"agent_id":1,"agent_na')
    assert server.get(f"{finished}/actions?limit=3").json["data"]["actions"] == before


def test_the_newest_page_of_a_long_run_is_read_from_its_end(tmp_path: Path) -> None:
    line = b'{"round":%d,"agent_id":%d,"agent_name":"A","action_type":"X","action_args":{},"success":true,"id":"%d"}\n'
    run = tmp_path / "runs" / "long"
    (run / "twitter").mkdir(parents=True)
    (run / "simulation_config.json").write_text(json.dumps({"scenario": {"worlds": {"twitter": {}}}}))
    (run / "twitter" / "actions.jsonl").write_bytes(b"".join(line % (n // 100, n % 50, n) for n in range(300_000)))

    class Counted(RunDirectory):
        worlds = ("twitter",)

    page = PageReader(Counted(run)).read(ActionFilter(), limit=100)
    assert [json.loads(action)["id"] for action in page.actions] == [str(299_999 - n) for n in range(100)]
    rare = PageReader(Counted(run)).read(ActionFilter(agent=49), limit=3)
    assert [json.loads(action)["agent_id"] for action in rare.actions] == [49, 49, 49]


def test_the_detail_of_a_run_is_its_state_and_its_newest_actions(serve: Serve, finished: str) -> None:
    data = serve().get(f"{finished}/run-status/detail?limit=20").json["data"]
    assert len(data["all_actions"]) == 20
    assert len(data["twitter_actions"]) + len(data["reddit_actions"]) == 20
    assert {action["round_num"] for action in data["recent_actions"]} == {6}
    assert data["rounds_count"] == 6
    assert data["next_cursor"]


def test_the_timeline_counts_the_actions_of_each_round(serve: Serve, finished: str) -> None:
    server = serve()
    data = server.get(f"{finished}/timeline").json["data"]
    done = [event for _, event in list_events(server.folder / finished) if event.success]
    assert sum(entry["total_actions"] for entry in data["timeline"]) == len(done)
    page = server.get(f"{finished}/timeline?start_round=2&limit=2").json["data"]
    assert [entry["round_num"] for entry in page["timeline"]] == [2, 3]
    assert page["next_round"] == 4


def test_agents_are_counted_and_the_most_active_is_first(serve: Serve, finished: str) -> None:
    stats = serve().get(f"{finished}/agent-stats").json["data"]
    assert stats["agents_count"] == len(stats["stats"]) > 5
    assert all(entry["first_action_time"] <= entry["last_action_time"] for entry in stats["stats"])


def test_posts_and_comments_are_rows_of_their_tables(serve: Serve, finished: str) -> None:
    server = serve()
    posts = server.get(f"{finished}/posts?platform=twitter&limit=3").json["data"]
    assert posts["count"] == 3 <= posts["total"]
    assert posts["posts"][0]["post_id"] > posts["posts"][1]["post_id"]
    comments = server.get(f"{finished}/comments?platform=reddit").json["data"]
    assert comments["count"] == len(comments["comments"])


def test_simulations_are_listed_with_what_they_are(serve: Serve, finished: str) -> None:
    server = serve()
    (entry,) = server.get("list").json["data"]
    assert entry["simulation_id"] == finished
    assert entry["status"] == "completed"
    assert entry["enable_twitter"] is entry["enable_reddit"] is True
    assert server.get("history").json["data"][0]["runner_status"] == "completed"
    assert server.get(f"{finished}").json["data"]["profiles_count"] == 12
    assert server.get(f"{finished}/config").json["data"]["scenario"]["seed"] == SCENARIO["seed"]
    profiles = server.get(f"{finished}/profiles?limit=5").json["data"]
    assert (profiles["count"], profiles["total"]) == (5, 12)


def test_a_run_that_never_ran_is_idle_and_has_no_actions(serve: Serve) -> None:
    server = serve()
    with server.client() as client:
        made = client.create(SCENARIO)
        assert (made.status, client.status(made.simulation_id).runner_status) == ("ready", "idle")
        assert client.actions(made.simulation_id).actions == []
        assert client.posts(made.simulation_id).total == 0
        assert client.environment(made.simulation_id).env_alive is False
    prepared = server.post("prepare", {"simulation_id": made.simulation_id}).json["data"]
    assert (prepared["status"], prepared["already_prepared"]) == ("ready", True)
    assert server.post("prepare/status", {"simulation_id": made.simulation_id}).json["data"]["progress"] == 100
