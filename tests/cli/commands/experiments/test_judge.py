"""The command judge, as users type it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.terminal import call

STUDY = """\
name: town
population: [{count: 6}]
rounds: 2
worlds: [twitter]
experiment:
  seeds: 2
  judges: {active: participation > 0}
  tiers: [{name: size, arms: {small: {}}}]
"""


def test_runs_and_experiments_are_judged_again(folder: Path) -> None:
    (folder / "town.yaml").write_text(STUDY)
    assert call("experiment", "town.yaml", "--quiet").exit_code == 0
    (folder / "strict.yaml").write_text("judges:\n  all: participation == 1\n  none: {expression: participation < 0}\n")
    result = call("judge", "results/town", "--judge", "strict.yaml")
    assert result.exit_code == 0, result.stderr
    assert "participation is" in result.stdout
    assert "0 of 2 runs passed" in result.stdout
    assert "results  results/town/judged/strict" in result.stdout
    one = call("judge", "results/town/size/small/1", "--judge", "participation > 0", "--json")
    assert json.loads(one.stdout)["results"][0]["judgements"][0]["passed"] is True
    again = call("judge", "results/town", "--judge", "participation > 2", "--name", "strict")
    assert again.exit_code == 3
    assert "--name NAME" in again.stderr


def test_what_cannot_be_judged_is_said(folder: Path) -> None:
    assert "is neither a file nor an expression" in call("judge", "runs/a", "--judge", "nonsense").stderr
    assert "there is no run in runs/a" in call("judge", "runs/a", "--judge", "reach > 1").stderr
    (folder / "empty.yaml").write_text("judges: {}\n")
    assert "there are no judges in it" in call("judge", "runs/a", "--judge", "empty.yaml").stderr
