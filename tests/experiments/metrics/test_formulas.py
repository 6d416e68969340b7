"""The formulas of metrics, on numbers whose result was worked out by hand."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from shoal.engine import measure_polarisation
from shoal.experiments.metrics.formulas import (
    measure_alienation,
    measure_assortativity,
    measure_balance,
    measure_bimodality,
    measure_reciprocity,
    measure_virality,
)
from shoal.worlds import measure_inequality


def numbers(*values: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array(values, np.float64)


def places(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.array(values, np.int32)


def test_balance_is_the_entropy_of_turns_over_the_largest() -> None:
    assert measure_balance([3, 3, 3]) == pytest.approx(1.0)
    assert measure_balance([5, 0, 0]) == 0.0
    # -(2/4 ln 2/4 + 2 * 1/4 ln 1/4) / ln 3 = (ln 2 / 2 + ln 4 / 2) / ln 3 = 1.5 ln 2 / ln 3
    assert measure_balance([2, 1, 1]) == pytest.approx(1.5 * log(2) / log(3))
    assert measure_balance([4]) is None
    assert measure_balance([0, 0]) is None


def test_bimodality_is_that_of_sarle() -> None:
    # -1, -1, 1, 1: skewness 0, and m4 / m2² - 3 = -2, corrected 3 / (2 * 1) * (5 * -2 + 6) = -6.
    # (0 + 1) / (-6 + 3 * 9 / 2) = 1 / 7.5
    assert measure_bimodality(numbers(-1, -1, 1, 1)) == pytest.approx(1 / 7.5)
    many = np.repeat([-1.0, 1.0], 5000)
    assert measure_bimodality(many) == pytest.approx(1.0, abs=1e-3)
    assert measure_bimodality(np.linspace(-1, 1, 10_001)) == pytest.approx(5 / 9, abs=1e-3)
    assert measure_bimodality(numbers(0.5, 0.5, 0.5, 0.5)) is None
    assert measure_bimodality(numbers(0, 1, 0.5)) is None


def test_alienation_is_1_with_half_at_each_end_and_0_where_all_agree() -> None:
    assert measure_alienation(numbers(-1, 1)) == pytest.approx(1.0)
    assert measure_alienation(numbers(0.3, 0.3)) == 0.0
    # 2^1.6 (π₁^2.6 π₂ + π₂^2.6 π₁) |y₁ - y₂| with shares 3/4 and 1/4, and opinions 0 and 1
    by_hand = 2**1.6 * (0.75**2.6 * 0.25 + 0.25**2.6 * 0.75)
    assert measure_alienation(numbers(0, 0, 0, 1)) == pytest.approx(by_hand)
    assert measure_alienation(numbers()) is None


def test_assortativity_correlates_both_ends_of_ties() -> None:
    opinions = numbers(1, 1, -1, -1)
    assert measure_assortativity(opinions, places(0, 2), places(1, 3)) == pytest.approx(1.0)
    assert measure_assortativity(opinions, places(0, 2), places(3, 1)) == pytest.approx(-1.0)
    # Ends (1, 1), (1, -1), (-1, -1): means 1/3 and -1/3; Σ (x - 1/3)(y + 1/3) = 8/9 - 4/9 + 8/9 = 12/9, of variances
    # 24/9 each: 1/2.
    assert measure_assortativity(opinions, places(0, 0, 2), places(1, 2, 3)) == pytest.approx(0.5)
    assert measure_assortativity(numbers(1, 1, np.nan), places(0, 0), places(1, 2)) is None
    assert measure_assortativity(opinions, places(0), places(1)) is None


def test_reciprocity_is_the_share_of_ties_that_go_both_ways() -> None:
    # 0 <-> 1, 0 -> 2, and 3 -> 3, which is no tie; 0 -> 2 twice.
    assert measure_reciprocity(places(0, 1, 0, 0, 3), places(1, 0, 2, 2, 3)) == pytest.approx(2 / 3)
    assert measure_reciprocity(places(), places()) is None


def test_virality_is_the_mean_distance_in_the_tree() -> None:
    # A star of four: 3 pairs at distance 1 and 3 at distance 2.
    assert measure_virality([-1, 0, 0, 0]) == pytest.approx(9 / 6)
    # A chain of four: distances 1, 1, 1, 2, 2, 3.
    assert measure_virality([-1, 0, 1, 2]) == pytest.approx(10 / 6)
    assert measure_virality([-1]) is None


def test_formulas_that_worlds_record_are_theirs() -> None:
    # Gini of 0, 0, 0, 4: 2 * 4 * 4 / 4 - 5 = 3, over 4.
    assert measure_inequality([0, 0, 0, 4]) == pytest.approx(0.75)
    assert measure_polarisation(numbers(-1, 1)) == pytest.approx(1.0)
    # Two for at 0.5, one against at -1, one undecided: (1 - 1/4) * 1.5 / 2
    assert measure_polarisation(numbers(0.5, 0.5, -1, 0)) == pytest.approx(0.75 * 0.75)
