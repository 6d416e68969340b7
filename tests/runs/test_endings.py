"""Worlds that end before their last round: by themselves, or because they were told to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import RunRefused
from shoal.runs.directory import RunDirectory
from shoal.runs.operations import extend_run
from shoal.runs.state import Status
from shoal.scenario.loading import override
from tests.engine.harness import village
from tests.runs.harness import branch, check_consistency, go_on, read_lines, repeat, start

PEOPLE = ["Ada", "Ben", "Cid", "Dan"]
STOPPED = village(PEOPLE, rounds=9, events=[{"stop": "that is all", "round": 5}])
#: A room that nobody speaks in empties.
QUIET: dict[str, Any] = {
    "population": [{"name": name} for name in PEOPLE],
    "rounds": 9,
    "worlds": {"room": {"quiet_rounds": 5}},
    "mind": {"kind": "scripted", "turns": []},
}
FULL: dict[str, Any] = {
    "population": [{"name": name} for name in PEOPLE],
    "rounds": 99,
    "worlds": {"pot": {"kind": "tests.contracts.own:Pot", "settings": {"full": 5}}},
}
ENDING = pytest.mark.parametrize("scenario", [STOPPED, QUIET, FULL], ids=["stop", "quiet room", "own world"])


@ENDING
def test_a_world_that_ends_early_is_a_complete_run(scenario: dict[str, Any], tmp_path: Path) -> None:
    outcome = start(scenario, tmp_path / "run")
    assert outcome.status is Status.COMPLETED
    assert 0 < outcome.rounds < scenario["rounds"]
    check_consistency(tmp_path / "run", finished=True)
    state = json.loads((tmp_path / "run/run_state.json").read_text())
    assert (state["progress_percent"], state["resumable"]) == (100.0, False)
    name = next(iter(scenario["worlds"]))
    assert (state["worlds"][name]["completed"], state["worlds"][name]["running"]) == (True, False)
    last = read_lines(tmp_path / f"run/{name}/actions.jsonl")[-1]
    assert (last["event_type"], last["total_rounds"]) == ("simulation_end", outcome.rounds)


@ENDING
def test_resuming_it_does_nothing_and_replaying_it_is_whole(scenario: dict[str, Any], tmp_path: Path) -> None:
    outcome = start(scenario, tmp_path / "run")
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("actions.jsonl")}
    assert go_on(RunDirectory(tmp_path / "run")) == outcome
    again = repeat(RunDirectory(tmp_path / "run"))
    assert (again.status, again.digest, again.rounds) == (Status.COMPLETED, outcome.digest, outcome.rounds)
    assert {path: path.read_bytes() for path in before} == before


@ENDING
def test_it_cannot_be_made_to_go_on(scenario: dict[str, Any], tmp_path: Path) -> None:
    start(scenario, tmp_path / "run")
    directory = RunDirectory(tmp_path / "run")
    with pytest.raises(RunRefused, match="came to its own end in round"):
        extend_run(directory, override(directory.scenario_versions.first, ["rounds=120"]))


def test_a_fork_before_the_end_may_do_without_it(tmp_path: Path) -> None:
    start(STOPPED, tmp_path / "parent")
    assert branch(tmp_path / "parent", tmp_path / "child", 3, ["events=[]"]).rounds == 9


def test_worlds_of_one_run_end_each_for_itself(tmp_path: Path) -> None:
    scenario = village(PEOPLE, rounds=6, events=[{"stop": "closed", "round": 2, "world": "reddit"}])
    start({**scenario, "worlds": ["twitter", "reddit"]}, tmp_path / "run")
    state = RunDirectory(tmp_path / "run").read_state()
    assert {name: world.current_round for name, world in state.worlds.items()} == {"twitter": 6, "reddit": 2}
    assert state.progress_percent == 100.0
    check_consistency(tmp_path / "run", finished=True)
    directory = RunDirectory(tmp_path / "run")
    extend_run(directory, override(directory.scenario_versions.first, ["rounds=8"]))
    assert go_on(directory).rounds == 8
    assert {name: world.current_round for name, world in directory.read_state().worlds.items()} == {
        "twitter": 8,
        "reddit": 2,
    }
    assert repeat(directory).status is Status.COMPLETED


@pytest.mark.parametrize("visibility", [2, 4])
def test_rounds_in_flight_before_a_stop_are_still_committed(visibility: int, tmp_path: Path) -> None:
    scenario = {**STOPPED, "mind": {"latency": {"median_ms": 1}}, "worlds": {"twitter": {"visibility": visibility}}}
    outcome = start(scenario, tmp_path / "run")
    assert outcome.rounds == 5
    check_consistency(tmp_path / "run", finished=True)
    assert repeat(RunDirectory(tmp_path / "run")).digest == outcome.digest


def test_a_stop_does_not_take_back_what_happens_in_the_same_round(tmp_path: Path) -> None:
    events = [{"post": "One more thing.", "by": "Ada", "round": 3}, {"stop": "closed", "round": 3}]
    start(village(PEOPLE, rounds=6, events=events), tmp_path / "run")
    last = [line for line in read_lines(tmp_path / "run/twitter/actions.jsonl") if line.get("round") == 3]
    assert [line.get("event_type") or line["action_type"] for line in last] == [
        "round_start", "stop", "CREATE_POST", "round_end",
    ]  # fmt: skip
