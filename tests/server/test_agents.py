"""One agent over HTTP: who it is, what it saw and decided, and what it remembers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from shoal.runs import RunDirectory
from shoal.runs.reports import open_world
from tests.runs.harness import start
from tests.runs.rerun.test_explain import SCRIPTED
from tests.server.conftest import RunningServer, Serve

RECORDED = Path(__file__).parents[2] / "examples" / "recorded" / "town-twitter"


def read(server: RunningServer, path: str) -> Any:
    answered = server.get(path)
    assert answered.status == 200, answered.body
    return answered.json["data"]


@pytest.fixture
def recorded(tmp_path: Path) -> str:
    """The id of a run whose agents have a language model, as it was recorded."""
    shutil.copytree(RECORDED, tmp_path / "runs" / "recorded")
    return "recorded"


def test_a_biography_has_the_opinions_of_all_rounds(serve: Serve, finished: str) -> None:
    server = serve()
    agent = read(server, f"{finished}/agent/3")
    assert agent["mind"] == "heuristic"
    assert agent["model"] is None
    assert agent["name"] in agent["persona"]
    assert [world["world"] for world in agent["worlds"]] == ["twitter", "reddit"]
    with open_world(RunDirectory.open(server.folder / finished), "twitter") as database:
        assert database is not None
        rows = database.execute("SELECT round, value FROM opinion_change WHERE agent_id = 3 AND about = 'topic'")
        assert agent["worlds"][0]["opinions"]["topic"] == [list(row) for row in rows]


def test_a_turn_shows_what_was_seen_and_what_came_of_it(serve: Serve, finished: str) -> None:
    server = serve()
    action = next(
        one
        for one in read(server, f"{finished}/actions?platform=twitter&limit=200")["actions"]
        if one["action_type"] == "LIKE_POST" and one["success"]
    )
    agent, round = action["agent_id"], action["round_num"]
    (turn,) = read(server, f"{finished}/explain?agent={agent}&round={round}&world=twitter")
    assert turn["absence"] is None
    assert any(line["text"] == action["action_args"]["post_content"] for row in turn["saw"] for line in row["lines"])
    assert {"action": "LIKE_POST", "success": True}.items() <= turn["actions"][0].items()
    assert turn["rests_on"]["mind"] == "heuristic"
    assert (turn["prompt"], turn["reply"]) == ([], None)


def test_the_exact_prompt_and_reply_of_a_language_model_are_shown(serve: Serve, recorded: str) -> None:
    server = serve()
    (turn,) = read(server, f"{recorded}/explain?agent=0&round=1")
    assert [message["role"] for message in turn["prompt"]] == ["system", "user"]
    assert "You are Ana Reyes." in turn["prompt"][1]["content"]
    assert turn["reply"]["matches"] is True
    assert json.loads(turn["reply"]["text"]).keys() == {"thought", "actions"}
    assert turn["reply"]["input_tokens"] > turn["reply"]["output_tokens"] > 0


def test_a_turn_says_why_an_action_was_refused(serve: Serve, tmp_path: Path) -> None:
    start(SCRIPTED, tmp_path / "runs" / "scripted")
    (turn,) = read(serve(), "scripted/explain?agent=1&round=2")
    (liked,) = turn["actions"]
    assert (liked["action"], liked["success"]) == ("LIKE_POST", False)
    assert "99" in liked["result"]


def test_an_absence_is_explained_with_the_nearest_turns(serve: Serve, finished: str) -> None:
    (turn, _) = read(serve(), f"{finished}/explain?agent=1&round=0")
    assert turn["absence"].startswith("nobody has a turn in round 0")
    assert turn["before"] is None
    assert turn["after"] >= 1


def test_memory_is_that_of_the_round_that_is_asked_for(serve: Serve, finished: str) -> None:
    server = serve()
    early, late = (read(server, f"{finished}/agent/2/memory?round={round}") for round in (1, 6))
    assert (early["round"], late["round"]) == (1, 6)
    assert late["turns"][: len(early["turns"])] == early["turns"]
    assert len(late["turns"]) > len(early["turns"])
    assert read(server, f"{finished}/agent/2/memory") == late


def test_what_does_not_exist_is_not_found(serve: Serve, finished: str) -> None:
    server = serve()
    for path in (
        "nobody/agent/0",
        f"{finished}/agent/12",
        f"{finished}/agent/12/memory",
        "nobody/explain?agent=0&round=1",
    ):
        assert server.get(path).status == 404, path
    assert server.get(f"{finished}/explain?agent=12&round=1").status == 404
    for query in ("agent=1&round=7", "agent=1&round=1&world=mars"):
        assert server.get(f"{finished}/explain?{query}").status == 400
    refused = server.get(f"{finished}/explain?agent=1")
    assert (refused.status, refused.json["field"]) == (400, "round")


def test_a_rerun_that_takes_too_long_is_ended_and_says_so(serve: Serve, finished: str) -> None:
    server = serve()
    server.context.reruns.seconds = 0.0
    late = server.get(f"{finished}/explain?agent=1&round=6")
    assert late.status == 504
    assert "took longer than 0 s" in late.json["error"]
