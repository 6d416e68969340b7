"""Worlds and minds of somebody's own making, named in a scenario, run like Shoal's own."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import ScenarioInvalid
from shoal.runs.directory import METRICS, RunDirectory
from shoal.runs.operations import create_run
from shoal.runs.state import Status
from shoal.scenario.loading import validate
from tests.runs.harness import branch, check_consistency, go_on, list_asked, read_lines, repeat, start, stop_after

OWN = "tests.contracts.own"
POT: dict[str, Any] = {
    "rounds": 8,
    "population": {"count": 6},
    "worlds": {"pot": {"kind": f"{OWN}:Pot"}},
    "events": [{"broadcast": "The pot is for everybody.", "round": 2}, {"mute": [1], "round": 3, "rounds": 2}],
    "interventions": [{"when": 'total("PUT") > 12', "do": {"broadcast": "So much!"}}],
}
#: The same, asking outside.
ASKING = {**POT, "mind": {"kind": f"{OWN}:Thrifty", "latency": {"median_ms": 1}}}


def test_a_world_of_ones_own_runs_with_the_mind_that_it_names(tmp_path: Path) -> None:
    outcome = start(POT, tmp_path / "run")
    assert (outcome.status, outcome.rounds) == (Status.COMPLETED, 8)
    assert outcome.actions > 40
    check_consistency(tmp_path / "run", finished=True)
    lines = read_lines(tmp_path / "run/pot/actions.jsonl")
    assert {"PUT", "TAKE", "SAY"} <= {line.get("action_type") for line in lines}
    assert {3, 4}.isdisjoint(line["round"] for line in lines if line.get("agent_id") == 1)
    assert [line["content"] for line in lines if line.get("event_type") == "broadcast"][1] == "So much!"
    with closing(sqlite3.connect(tmp_path / "run/pot_simulation.db")) as database:
        assert database.execute("SELECT count(*) FROM coin").fetchone()[0] > 20
        assert database.execute("SELECT count(*) FROM user").fetchone() == (6,)


def test_a_mind_of_ones_own_may_be_named_with_settings(tmp_path: Path) -> None:
    usual = start(POT, tmp_path / "usual")
    same = start({**POT, "mind": f"{OWN}:Thrifty"}, tmp_path / "same")
    greedy = start({**POT, "mind": {"kind": f"{OWN}:Thrifty", "settings": {"enough": 2}}}, tmp_path / "greedy")
    named = {"pot": {"kind": f"{OWN}:Pot", "mind": f"{OWN}:Thrifty"}}
    assert same.digest == usual.digest == start({**POT, "worlds": named}, tmp_path / "named").digest
    assert greedy.digest != usual.digest


def test_it_is_resumed_replayed_and_forked_like_any_world(tmp_path: Path) -> None:
    whole = start(ASKING, tmp_path / "whole")
    assert whole.digest == start(POT, tmp_path / "at-once").digest
    directory = create_run(validate(ASKING), tmp_path / "run")
    stop_after(directory, 4)
    check_consistency(directory.path, finished=False)
    assert go_on(directory).digest == whole.digest
    assert repeat(directory).digest == whole.digest
    child = branch(directory.path, tmp_path / "child", 5, injected=[{"broadcast": "Psst.", "to": [2], "round": 5}])
    assert child.digest != whole.digest
    assert {key.split("/")[1] for key in list_asked(tmp_path / "child")} <= {"5", "6", "7", "8"}


WRONG = [
    ({"worlds": {"pot": {"kind": "nowhere.to:Be"}}},
     "worlds.pot.kind: cannot import 'nowhere.to': No module named 'nowhere'; run from the folder that the module is "
     "in, or install it"),
    ({"worlds": {"pot": {"kind": f"{OWN}:Pott"}}},
     f"worlds.pot.kind: there is no 'Pott' in '{OWN}'; run from the folder that the module is in, or install it"),
    ({"worlds": {"pot": {"kind": "__main__:Pot"}}},
     "worlds.pot.kind: there is no 'Pot' in '__main__'; it was defined in a script or notebook: run that again, or put "
     "the class into a module"),
    ({"worlds": {"pot": {"kind": f"{OWN}:not_a_class"}}}, f"worlds.pot.kind: {OWN}:not_a_class is not a class"),
    ({"worlds": {"pot": {"kind": f"{OWN}:Thrifty"}}},
     f"worlds.pot.kind: {OWN}:Thrifty is not a world; it must be a subclass of shoal.BaseWorld"),
    ({"worlds": {"pot": {"kind": ":Pot"}}}, "worlds.pot.kind: cannot import '': ValueError: Empty module name"),
    ({"worlds": {"pot": {"kind": f"{OWN}:Pot", "mind": f"{OWN}:Pot"}}},
     f"worlds.pot.mind: {OWN}:Pot is not a mind; it must be a subclass of shoal.Mind"),
    ({"mind": {"kind": f"{OWN}:Pot"}}, f"mind.kind: {OWN}:Pot is not a mind; it must be a subclass of shoal.Mind"),
    ({"mind": "nowhere:Be"},
     "mind.kind: cannot import 'nowhere': No module named 'nowhere'; run from the folder that the module is in, or "
     "install it"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), WRONG, ids=[message for _, message in WRONG])
def test_a_class_that_cannot_be_found_is_said_before_there_is_a_run(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ScenarioInvalid) as caught:
        create_run(validate({**POT, **change}), tmp_path / "run")
    assert caught.value.problems == [message]
    assert not (tmp_path / "run").exists()


def test_a_module_that_fails_when_it_is_imported_is_said_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "failing_world.py").write_text("raise RuntimeError('not today')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ScenarioInvalid, match="cannot import 'failing_world': RuntimeError: not today"):
        create_run(validate({**POT, "worlds": {"pot": {"kind": "failing_world:Pot"}}}), tmp_path / "run")


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("Broken", f"worlds.pot.kind: {OWN}:Broken cannot be built: KeyError: 'nothing to build it from'"),
        ("Mindless", "worlds.pot: the heuristic mind knows only Shoal's own worlds; name a class with"),
    ],
)
def test_a_world_that_cannot_be_built_ends_the_run_in_words(kind: str, message: str, tmp_path: Path) -> None:
    directory = create_run(validate({**POT, "worlds": {"pot": {"kind": f"{OWN}:{kind}"}}}), tmp_path / "run")
    with pytest.raises(ScenarioInvalid) as caught:
        go_on(directory)
    assert message in str(caught.value)
    assert directory.read_status() is Status.FAILED


# Metrics of a run


def test_what_was_measured_is_in_the_state_and_in_a_line_for_each_round(tmp_path: Path) -> None:
    start(ASKING, tmp_path / "run")
    lines = read_lines(tmp_path / "run" / METRICS)
    assert [line["mode"] for line in lines] == ["idle", *["parallel"] * 8]
    assert all(line["speedup"] > 0 and line["latency_ms"]["p50"] > 0 for line in lines[1:])
    state = read_state_fields(tmp_path / "run")
    assert (state["measured"]["parallel_steps"], state["measured"]["decisions"]) == (8, 8 * 6 - 2)
    assert state["measured"]["speedup"] > 0
    assert set(state["measured"]["latency_ms"]) == {"p50", "p90", "p99", "max"}


def test_without_metrics_there_are_no_figures_and_no_file(tmp_path: Path) -> None:
    on = start(POT, tmp_path / "on")
    off = start({**POT, "metrics": False}, tmp_path / "off")
    assert on.digest == off.digest
    assert not (tmp_path / "off" / METRICS).exists()
    assert read_state_fields(tmp_path / "off")["measured"] is None


def read_state_fields(run: Path) -> dict[str, Any]:
    state: dict[str, Any] = RunDirectory(run).read_state().to_json()
    return state
