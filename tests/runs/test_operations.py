from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import ArgumentInvalid, RunRefused, ScenarioInvalid
from shoal.runs.directory import RunDirectory
from shoal.runs.operations import create_run, extend_run, fork_run, plan_fork, plan_resume, truncate_scenario
from shoal.scenario.loading import override, validate
from tests.runs.harness import go_on, start, stop_after

SCENARIO = {
    "name": "town",
    "rounds": 4,
    "population": {"count": 5},
    "worlds": {"twitter": {}, "reddit": {}},
    "events": [{"round": 2, "broadcast": "There will be rain."}, {"round": 4, "broadcast": "It rains."}],
}

#: Runs a command, and counts how often the config and the journal of any run are read from their start. What was added
#: to a journal is read as often as somebody looks, so it depends on how long the command takes.
COUNTED = """
import json, os, sys
from collections import Counter
from pathlib import Path
from click.testing import CliRunner
from shoal import journal
from shoal.cli.main import cli

opened = Counter()
read_whole_lines = journal._read_whole_lines

def read(path, offset=0):
    opened[f"{path.parent.name}/{path.name}"] -= offset > 0
    return read_whole_lines(path, offset)

journal._read_whole_lines = read

def count(event, args):
    if event == "open" and isinstance(args[0], str | os.PathLike):
        path, mode, flags = Path(args[0]), args[1], args[2]
        is_read = mode is not None and "r" in mode and "+" not in mode or mode is None and not flags & os.O_WRONLY
        if path.name in ("simulation_config.json", "journal.jsonl") and is_read:
            opened[f"{path.parent.name}/{path.name}"] += 1

sys.addaudithook(count)
result = CliRunner().invoke(cli, sys.argv[1:])
print(json.dumps([result.exit_code, opened]))
"""


@pytest.fixture
def complete(tmp_path: Path) -> RunDirectory:
    start(SCENARIO, tmp_path / "run")
    return RunDirectory(tmp_path / "run")


def test_a_command_reads_the_config_once_and_the_journal_from_its_start_at_most_twice(tmp_path: Path) -> None:
    mind = {"kind": "heuristic", "latency": {"median_ms": 1}}
    (tmp_path / "town.json").write_text(json.dumps({**SCENARIO, "mind": mind}))

    def call(*args: str) -> dict[str, int]:
        command = [sys.executable, "-c", COUNTED, *args]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        exit_code, opened = json.loads(done.stdout)
        assert exit_code == 0
        return dict(opened)

    config, journal = "simulation_config.json", "journal.jsonl"
    assert call("run", "town.json", "--out", "run") == {f"run/{journal}": 2}
    assert call("resume", "run", "--rounds", "6") == {f"run/{config}": 1, f"run/{journal}": 2}
    assert call("replay", "run") == {f"run/{config}": 1, f"run/{journal}": 2}
    forked = call("fork", "run", "--at", "2", "--out", "fork")
    assert forked == {f"run/{config}": 1, f"run/{journal}": 2, f"fork/{journal}": 2}


def test_a_shorter_scenario_leaves_out_what_would_happen_later() -> None:
    turns: list[Any] = [{"round": round, "agent": 0, "action": "DO_NOTHING"} for round in (1, 4)]
    scenario = validate({**SCENARIO, "mind": {"kind": "scripted", "turns": turns}})
    short = truncate_scenario(scenario, 3)
    assert [event.round for event in short.events] == [2]
    assert [turn.round for turn in short.mind.turns] == [1]  # type: ignore[union-attr]


def test_a_run_may_be_planned_to_go_on_as_it_was_planned(complete: RunDirectory) -> None:
    assert plan_resume(complete).is_over
    assert plan_resume(complete, 4).is_over
    longer = plan_resume(complete, 6)
    assert (longer.is_over, longer.versions.latest.rounds, longer.done) == (False, 6, {"twitter": 4, "reddit": 4})
    assert plan_resume(complete).is_over, "planning changes nothing"


def test_a_stopped_run_may_be_planned_to_end_sooner(tmp_path: Path) -> None:
    run = create_run(validate(SCENARIO), tmp_path / "run")
    stop_after(run, 2)
    assert not plan_resume(run).is_over
    sooner = plan_resume(run, 3).extension
    assert sooner is not None
    assert [event.round for event in sooner.events] == [2]
    extend_run(run, sooner)
    assert go_on(run).rounds == 3


def test_a_run_does_not_go_on_to_a_round_that_it_has_already(complete: RunDirectory) -> None:
    with pytest.raises(ArgumentInvalid, match="has 4 rounds already; give more than that") as error:
        plan_resume(complete, 3)
    assert error.value.argument == "rounds"


@pytest.mark.parametrize("at", [-1, 5])
def test_a_fork_begins_in_a_round_of_its_parent(complete: RunDirectory, at: int) -> None:
    with pytest.raises(ArgumentInvalid, match=f"^{at} is not a round of this run; it has rounds 0 to 4") as error:
        plan_fork(complete, at)
    assert error.value.argument == "at"


def test_a_fork_does_not_end_before_it_begins(complete: RunDirectory) -> None:
    with pytest.raises(ArgumentInvalid, match="3 is after the last round of the fork, 2"):
        plan_fork(complete, 3, changes=["rounds=2", "events=[]"])


def test_a_fork_shares_all_replies_only_if_nothing_but_its_length_differs(complete: RunDirectory) -> None:
    assert plan_fork(complete, 2).shared == {"twitter": 4, "reddit": 4}
    assert plan_fork(complete, 2, changes=["rounds=9"]).shared == {"twitter": 4, "reddit": 4}
    assert plan_fork(complete, 2, changes=["mind.persuasion=0.5"]).shared == {"twitter": 1, "reddit": 1}
    assert plan_fork(complete, 2, events=[{"broadcast": "Psst."}]).shared == {"twitter": 1, "reddit": 1}


def test_events_of_a_fork_are_checked_and_happen_in_its_round(complete: RunDirectory, tmp_path: Path) -> None:
    plan = plan_fork(complete, 3, events=[{"broadcast": "Psst."}])
    assert [event["round"] for event in plan.events] == [3]
    child = fork_run(plan, tmp_path / "child")
    go_on(child)
    assert [notice.content for notice in child.open_stream("twitter").read_notices(event_type="broadcast")] == [
        "There will be rain.",
        "Psst.",
        "It rains.",
    ]
    with pytest.raises(ScenarioInvalid, match="round 3 or later, where the fork begins, found 1"):
        plan_fork(complete, 3, events=[{"broadcast": "Psst.", "round": 1}])
    with pytest.raises(ScenarioInvalid, match=r"events\.0"):
        plan_fork(complete, 3, events=[{"shout": "Psst."}])


def test_a_fork_is_made_beside_its_parent(complete: RunDirectory) -> None:
    paths = [fork_run(plan_fork(complete, 2)).path.name for _ in range(2)]
    assert paths == ["run-fork-1", "run-fork-2"]


def test_what_is_fixed_cannot_change_in_the_middle_of_a_run(complete: RunDirectory) -> None:
    with pytest.raises(ScenarioInvalid, match="from round 2 on: seed: this cannot change in the middle of a run"):
        plan_fork(complete, 2, changes=["seed=7"])
    assert plan_fork(complete, 0, changes=["seed=7"]).versions.first.seed == 7
    with pytest.raises(ScenarioInvalid, match="from round 5 on: seed: this cannot change"):
        extend_run(complete, override(complete.scenario, ["rounds=9", "seed=7"]))
    with pytest.raises(RunRefused, match="has 4 rounds already; 3 rounds would not be going on"):
        extend_run(complete, truncate_scenario(complete.scenario, 3).model_copy(update={"rounds": 3}))
