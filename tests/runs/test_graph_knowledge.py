"""What the graph memory knows, in the prompts of agents: of what they can see, and the same in every repetition."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import ScenarioInvalid
from shoal.runs import RunDirectory
from shoal.runs.rerun.explain import explain_turn
from shoal.scenario import validate
from tests.runs.harness import repeat
from tests.runs.test_language_runs import MODEL, PEOPLE, run_to_end

HEADING = "# What is known of the people you see"
VIEW = "Ada supports “the old bridge closes”, since round 0"


def make_town(visibility: int = 1, memory: Any = "graph", **more: Any) -> dict[str, Any]:
    return {
        "topic": "the old bridge",
        "claims": [{"id": "closing", "text": "the old bridge closes"}],
        "rounds": 6,
        "time": {"daily_rhythm": False},
        "population": [{"name": name, "activity": 1.0, "active_hours": "0-23"} for name in PEOPLE],
        "worlds": {"twitter": {"visibility": visibility}},
        "mind": {"kind": "language", "model": MODEL, "memory": memory},
        "events": [{"round": 0, "post": "It closes for good.", "by": "Ada", "supports": "closing"}],
        **more,
    }


def read_prompt(run: Path, agent: str, round: int) -> str:
    (turn,) = asyncio.run(explain_turn(RunDirectory.open(run), agent, round)).explanations
    return "\n".join(message["content"] for message in turn.rests_on["prompt"])


def test_agents_are_given_what_the_graph_knows_of_those_they_see(tmp_path: Path) -> None:
    run_to_end(make_town(), tmp_path / "run")
    assert f"{HEADING}\n- {VIEW}" in read_prompt(tmp_path / "run", "Bea", 1)


def test_without_the_word_nothing_of_it_is_there(tmp_path: Path) -> None:
    run_to_end(make_town(memory={}), tmp_path / "run")
    assert HEADING not in read_prompt(tmp_path / "run", "Bea", 1)


def test_nobody_knows_what_nobody_can_see_yet(tmp_path: Path) -> None:
    run_to_end(make_town(visibility=3), tmp_path / "run")
    rounds = {round: HEADING in read_prompt(tmp_path / "run", "Bea", round) for round in (1, 2, 3, 4)}
    assert rounds == {1: False, 2: False, 3: True, 4: True}


@pytest.mark.parametrize("visibility", [1, 3])
def test_a_replay_builds_the_same_prompts(tmp_path: Path, visibility: int) -> None:
    outcome = run_to_end(make_town(visibility), tmp_path / "run")
    assert repeat(RunDirectory.open(tmp_path / "run")).digest == outcome.digest


def test_a_word_that_is_not_known_is_refused() -> None:
    with pytest.raises(ScenarioInvalid, match=r"mind\.memory"):
        validate(make_town(memory="everything"))
