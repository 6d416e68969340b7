"""Checks against published results: how they are judged, and that the offline mind meets those that are cheap."""

from __future__ import annotations

import os
import subprocess
import sys
from math import inf, nan
from pathlib import Path

import numpy as np
import pytest

from shoal.errors import RunRefused
from shoal.experiments.checks import ALL_CHECKS, CheckVerdict, ValidationCheck, choose_checks
from shoal.experiments.checks.base import Laboratory
from shoal.experiments.checks.opinions import count_camps, spread_word


def make_check(low: float, high: float) -> ValidationCheck:
    return ValidationCheck("made", "a result", "a number", "nobody", lambda _: 0.0, "a figure", low, high)


@pytest.mark.parametrize(
    ("values", "low", "high", "verdict"),
    [
        ([0.5, 0.6, 0.5, 0.6], 0.0, 1.0, CheckVerdict.HOLDS),
        ([1.5, 1.6, 1.5, 1.6], 0.0, 1.0, CheckVerdict.FAILS),
        ([-1.0, 1.0, -1.0, 1.0], 0.0, inf, CheckVerdict.UNCLEAR),
        ([0.1, 0.2, 0.1, 0.3], 0.0, inf, CheckVerdict.HOLDS),
        ([0.0, 0.0, 0.0], 0.0, inf, CheckVerdict.UNCLEAR),
        ([1.0, 1.0], 1.0, 1.05, CheckVerdict.HOLDS),
    ],
)
def test_a_check_holds_if_the_whole_interval_lies_within_the_bounds(
    values: list[float], low: float, high: float, verdict: CheckVerdict
) -> None:
    assert make_check(low, high).judge(values).verdict == verdict


@pytest.mark.parametrize(
    ("values", "mean", "verdict"),
    [
        ([nan, *[0.5, 0.6] * 5], 0.55, CheckVerdict.HOLDS),
        ([nan, nan, *[0.5, 0.6] * 5], 0.55, CheckVerdict.UNCLEAR),
        ([nan, 0.5, 0.6], 0.55, CheckVerdict.UNCLEAR),
        ([nan, nan, 0.5], 0.5, CheckVerdict.UNCLEAR),
        ([nan, nan], nan, CheckVerdict.UNCLEAR),
    ],
)
def test_seeds_that_gave_nothing_to_measure_are_not_counted_as_zero(
    values: list[float], mean: float, verdict: CheckVerdict
) -> None:
    result = make_check(0.0, 1.0).judge(values)
    assert result.mean == pytest.approx(mean, nan_ok=True)
    assert result.verdict == verdict
    assert len(result.values) == len(values)


def test_the_interval_covers_the_true_mean_about_as_often_as_it_says() -> None:
    draws = np.random.default_rng(3).normal(0.2, 1.0, (200, 20))
    results = [make_check(-1, 1).judge(row.tolist()) for row in draws]
    assert 0.88 < np.mean([result.low <= 0.2 <= result.high for result in results]) < 0.98


def test_an_unknown_check_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(RunRefused, match="did you mean 'homophily'"):
        choose_checks(["homophili"], is_offline=True)


def test_results_about_the_offline_model_are_left_out_for_other_minds() -> None:
    assert "deffuant-camps" in [check.id for check in choose_checks([], is_offline=True)]
    assert "deffuant-camps" not in [check.id for check in choose_checks([], is_offline=False)]


def test_camps_are_groups_of_people_without_the_stragglers() -> None:
    assert count_camps(np.array([-0.5] * 10 + [0.5] * 10 + [0.0])) == 2


@pytest.mark.parametrize(
    "check", ["correction", "homophily", "suspension", "inequality-ranked", "luck-shown", "minority"]
)
def test_the_offline_mind_keeps_the_orderings_that_it_was_fitted_to(check: str, tmp_path: Path) -> None:
    values = []
    for seed in (1, 2):
        (folder := tmp_path / str(seed)).mkdir()
        values.append(ALL_CHECKS[check].measure(Laboratory(folder, seed)))
    # As the suite judges: a single seed may be on the other side.
    assert ALL_CHECKS[check].low < np.mean(values) <= ALL_CHECKS[check].high


def test_a_committed_minority_wins_the_naming_game_above_a_share_and_not_below(tmp_path: Path) -> None:
    shares = []
    for number, committed in enumerate((2, 12)):
        (folder := tmp_path / str(number)).mkdir()
        shares.append(spread_word(Laboratory(folder, 3), people=60, committed=committed, rounds=60))
    assert shares[0] < 0.1
    assert shares[1] == 1


def test_a_seed_gives_the_same_figure_again(tmp_path: Path) -> None:
    figures = []
    for name in ("one", "two"):
        (folder := tmp_path / name).mkdir()
        figures.append(ALL_CHECKS["herding-up"].measure(Laboratory(folder, 5)))
    assert figures[0] == figures[1]


WITHOUT_END = """
from shoal.experiments.checks import ALL_CHECKS, run_checks
for each in run_checks([ALL_CHECKS["herding-up"]], 1000, jobs=2):
    print("begun", flush=True)
"""


@pytest.mark.timeout(60)
def test_processes_end_when_the_program_that_started_them_is_killed(tmp_path: Path) -> None:
    command, environ = [sys.executable, "-c", WITHOUT_END], {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"begun\n"
        program.kill()
        # They hold its output, so it ends with the last of them.
        program.communicate()
