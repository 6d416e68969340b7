"""Posts of a scenario that begin with votes, and feeds that show no counts."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import ScenarioInvalid
from shoal.runs.directory import RunDirectory
from shoal.scenario import validate
from tests.runs.harness import repeat, start

SCENARIO: dict[str, Any] = {
    "rounds": 2,
    "population": [{"name": "Ada"}, {"name": "Ben"}, {"name": "Cleo"}],
    "worlds": ["reddit"],
    "mind": {"kind": "scripted", "turns": []},
    "events": [{"post": "What now?", "by": "Ada", "liked_by": ["Ben", 2], "disliked_by": ["Ada"]}],
}


def test_votes_of_the_scenario_are_actions_of_the_people_it_names(tmp_path: Path) -> None:
    start(SCENARIO, tmp_path / "run")
    with sqlite3.connect(tmp_path / "run/reddit_simulation.db") as database:
        assert database.execute("SELECT num_likes, num_dislikes FROM post").fetchall() == [(2, 1)]
        assert database.execute('SELECT user_id FROM "like" ORDER BY 1').fetchall() == [(1,), (2,)]
    lines = [json.loads(line) for line in (tmp_path / "run/reddit/actions.jsonl").read_text().splitlines()]
    done = [
        (line["agent_name"], line["action_type"]) for line in lines if line.get("round") == 0 and "agent_id" in line
    ]
    assert done == [("Ada", "CREATE_POST"), ("Ben", "LIKE_POST"), ("Cleo", "LIKE_POST"), ("Ada", "DISLIKE_POST")]
    repeat(RunDirectory(tmp_path / "run"))


def test_a_vote_that_the_platform_does_not_allow_is_refused_with_the_reason(tmp_path: Path) -> None:
    start({**SCENARIO, "worlds": {"reddit": {"kind": "reddit", "self_rating": False}}}, tmp_path / "run")
    lines = [json.loads(line) for line in (tmp_path / "run/reddit/actions.jsonl").read_text().splitlines()]
    [refused] = [line for line in lines if line.get("action_type") == "DISLIKE_POST"]
    assert not refused["success"]
    assert "rate their own" in refused["result"]


def test_a_voter_who_is_not_there_is_a_mistake_of_the_scenario() -> None:
    event = {**SCENARIO["events"][0], "liked_by": ["Bem"]}
    with pytest.raises(ScenarioInvalid, match="Ben"):
        validate({**SCENARIO, "events": [event]})
