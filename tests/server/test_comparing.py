"""Two runs compared over HTTP."""

from __future__ import annotations

from pathlib import Path

from tests.runs.harness import start
from tests.server.conftest import SCENARIO, Serve


def test_two_runs_are_compared_up_to_where_they_part(serve: Serve, tmp_path: Path, finished: str) -> None:
    events = [{"post": "It will be torn down!", "by": "random", "round": 2}]
    start({**SCENARIO, "events": events}, tmp_path / "runs" / "other")
    server = serve()
    found = server.get(f"compare?one={finished}&other=other").json["data"]
    assert (found["one"]["id"], found["other"]["id"], found["people"]) == (finished, "other", 12)
    assert "events.0.post" in [change["path"] for change in found["declared"]]
    twitter = next(world for world in found["worlds"] if world["world"] == "twitter")
    first = twitter["first"]
    assert first["round"] == 2
    assert first["changes"][0]["one"] != first["changes"][0]["other"]
    assert twitter["by_round"][0]["round"] == first["round"]
    assert twitter["reached_count"] == len(twitter["reached"]) > 0
    assert server.get(f"compare?one={finished}&other=other").json["data"] == found


def test_a_run_is_the_same_as_itself(serve: Serve, finished: str) -> None:
    found = serve().get(f"compare?one={finished}&other={finished}").json["data"]
    assert found["is_same"]
    assert [world["first"] for world in found["worlds"]] == [None, None]


def test_only_runs_are_compared(serve: Serve, finished: str) -> None:
    server = serve()
    assert server.get(f"compare?one={finished}&other=nobody").status == 404
    assert server.get(f"compare?one={finished}").status == 400
    assert server.get(f"compare?one={finished}&other={finished}&rounds=-1").status == 400
    identity = server.post("create", {"scenario": SCENARIO}).json["data"]["simulation_id"]
    unstarted = server.get(f"compare?one={finished}&other={identity}")
    assert (unstarted.status, "no round" in unstarted.json["error"]) == (400, True)
