"""The command experiment, as users type it."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from shoal.experiments import read_experiment_state
from tests.cli.terminal import call, last_object, shoal, start_command, wait_until

STUDY = """\
name: town
topic: the old bridge
population: {count: 20}
rounds: 4
worlds: [twitter]
experiment:
  seeds: 2
  tiers:
    - {name: size, control: base, sweep: {population.count: [30]}}
    - {name: length, inherits: {tier: size, highest: activity}, arms: {short: {rounds: 2}}}
"""
LONG = STUDY.replace("rounds: 4", "rounds: 100000").replace("seeds: 2", "seeds: 1")


@pytest.fixture
def study(folder: Path) -> Path:
    (folder / "study.yaml").write_text(STUDY)
    return folder


def read_digests(path: Path) -> dict[str, Any]:
    results = [json.loads(line) for line in path.read_text().splitlines()]
    return {"/".join(map(str, (each["tier"], each["arm"], each["seed"]))): each["digest"] for each in results}


def test_a_dry_run_shows_each_arm_and_writes_nothing(study: Path) -> None:
    shown = call("experiment", "study.yaml", "--dry-run")
    assert shown.exit_code == 0, shown.output
    assert "count-30" in shown.stdout
    assert "length is planned without what it will inherit" in shown.stdout
    assert "nothing was run" in shown.stdout
    plan = last_object(call("experiment", "study.yaml", "--dry-run", "--json", "--max-simulations", "3").stdout)
    assert [(arm["tier"], arm["arm"], arm["runs"]) for arm in plan["arms"]] == [
        ("size", "base", 2),
        ("size", "count-30", 2),
        ("length", "short", 2),
    ]
    assert plan["seconds"] > 0
    assert (plan["simulations"], plan["max_simulations"], plan["cost"]) == (6, 3, 0.0)
    assert not (study / "results").exists()


def test_an_experiment_runs_is_shown_again_and_repeats_nothing(study: Path) -> None:
    done = shoal("experiment", "study.yaml", "--max-simulations", "2", cwd=study)
    assert done.returncode == 0, done.stderr
    assert "6/6 done" in done.stderr
    assert "length starts from size/" in done.stdout
    again = shoal("experiment", "study.yaml", "--json", cwd=study)
    found = last_object(again.stdout)
    assert (found["status"], found["simulations"], found["completed"], found["left"]) == ("completed", 6, 6, 0)
    shown = call("experiment", "results/town")
    assert shown.exit_code == 0
    assert "completed" in shown.stdout
    assert call("experiment", "results/town", "--quiet").stdout == "results/town\n"


def test_an_interrupt_stops_it_and_the_command_that_it_names_goes_on(study: Path) -> None:
    (study / "study.yaml").write_text(LONG)
    process = start_command("experiment", "study.yaml", "--max-simulations", "2", cwd=study)
    wait_until((study / "results/town/size/base/1/twitter/actions.jsonl").exists)
    process.send_signal(signal.SIGINT)
    shown, _ = process.communicate()
    assert process.returncode == 130
    assert "3 simulations left; nothing is lost" in shown
    assert "shoal experiment study.yaml --max-simulations 2" in shown
    assert read_experiment_state(study / "results/town").status == "stopped"


def test_a_kill_at_any_moment_and_the_same_command_again_give_the_same_results(study: Path) -> None:
    assert call("experiment", "study.yaml", "--out", "whole", "--quiet").exit_code == 0
    process = start_command("experiment", "study.yaml", "--max-simulations", "1", cwd=study)
    wait_until((study / "results/town/results.jsonl").exists)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    shown = last_object(call("experiment", "results/town", "--json").stdout)
    assert shown["status"] in ("killed", "completed")
    recorded = (study / "results/town/runs.jsonl").read_bytes()
    done = shoal("experiment", "study.yaml", cwd=study)
    assert done.returncode == 0, done.stderr
    assert (study / "results/town/runs.jsonl").read_bytes().startswith(recorded.rpartition(b"\n")[0])
    assert read_digests(study / "results/town/results.jsonl") == read_digests(study / "whole/results.jsonl")


def test_simulations_that_fail_end_the_command_with_1_and_the_others_go_on(study: Path) -> None:
    (study / "frail.py").write_text(
        "from shoal import Mind\n\nclass Frail(Mind):\n    outside = True\n\n"
        "    async def decide(self, observation):\n        raise ValueError('no idea')\n"
    )
    section = "experiment: {seeds: 1, tiers: [{name: a, arms: {good: {}, bad: {mind: {kind: 'frail:Frail'}}}}]}\n"
    (study / "study.yaml").write_text(STUDY.partition("experiment:")[0] + section)
    done = shoal("experiment", "study.yaml", "--json", cwd=study)
    assert done.returncode == 1
    assert "of 2 simulations, 1 failed; --retry-failed tries them again" in done.stderr
    found = last_object(done.stdout)
    assert (found["completed"], found["failed"], found["left"]) == (1, 1, 0)


def test_a_wrong_file_a_changed_design_and_a_plain_folder_end_as_they_should(study: Path) -> None:
    (study / "wrong.yaml").write_text(STUDY.replace("inherits:", "inherit:"))
    wrong = call("experiment", "wrong.yaml")
    assert wrong.exit_code == 2
    assert (
        "wrong.yaml:10:22: experiment.tiers.1.inherit: unknown field 'inherit'; did you mean 'inherits'?"
        in wrong.stderr
    )
    assert call("experiment", ".").exit_code == 3
    assert call("experiment", "study.yaml", "--quiet").exit_code == 0
    (study / "study.yaml").write_text(STUDY.replace("seeds: 2", "seeds: 3"))
    changed = call("experiment", "study.yaml")
    assert changed.exit_code == 3
    assert "tier size, seeds: was [1,2], is [1,2,3] now" in changed.stderr
