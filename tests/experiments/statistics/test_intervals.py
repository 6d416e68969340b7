from math import inf, isinf

import numpy as np
import pytest

from shoal.experiments.statistics import bootstrap_mean, estimate_cost_of_pass, estimate_rate

_TRIALS = 600


def test_the_interval_of_a_mean_covers_the_truth_as_often_as_it_says() -> None:
    draw = np.random.default_rng(5)
    intervals = [bootstrap_mean(draw.normal(0.3, 0.1, 12).tolist(), 1000) for _ in range(_TRIALS)]
    assert 0.93 <= np.mean([each.low <= 0.3 <= each.high for each in intervals]) <= 0.97


def test_the_interval_of_the_cost_of_a_pass_covers_the_truth_as_often_as_it_says() -> None:
    draw = np.random.default_rng(6)
    covered = 0
    for _ in range(_TRIALS):
        passed = draw.random(20) < 0.6
        costs = np.where(passed, 0.5, 0.3) * draw.gamma(16, 1 / 16, 20)
        interval = estimate_cost_of_pass(costs.tolist(), passed.tolist(), 1000)
        covered += interval.low <= 0.42 / 0.6 <= interval.high
    assert 0.93 <= covered / _TRIALS <= 0.97


def test_a_rate_has_the_published_interval_of_wilson() -> None:
    interval = estimate_rate(8, 10)
    assert (interval.value, round(interval.low, 4), round(interval.high, 4)) == (0.8, 0.4902, 0.9433)


def test_nothing_passed_costs_infinitely_much_but_at_least_something() -> None:
    interval = estimate_cost_of_pass([0.5] * 8, [False] * 8)
    assert interval.value == interval.high == inf
    assert 0.5 < interval.low < inf


def test_everything_passed_costs_what_a_run_costs() -> None:
    interval = estimate_cost_of_pass([0.4, 0.6], [True, True])
    assert interval.value == pytest.approx(0.5)
    assert not isinf(interval.high)


def test_one_value_leaves_everything_possible_and_equal_values_nothing_else() -> None:
    assert bootstrap_mean([2.0]).low == -inf
    assert bootstrap_mean([2.0, 2.0, 2.0]).high == 2.0


def test_the_same_values_have_the_same_interval() -> None:
    assert bootstrap_mean([1.0, 2.0, 4.0]) == bootstrap_mean([1.0, 2.0, 4.0])


def test_three_values_have_the_interval_of_student() -> None:
    interval = bootstrap_mean([1.0, 2.0, 6.0])
    # Computed with scipy.stats.t.interval.
    assert interval.low == pytest.approx(-3.5724, abs=1e-4)
    assert interval.high == pytest.approx(9.5724, abs=1e-4)


def test_few_values_of_which_most_are_alike_have_no_endless_interval() -> None:
    interval = bootstrap_mean([0.5, 0.5001, 0.5002, 0.5003, 1.0])
    assert -0.5 < interval.low < 0.5 < interval.high < 2.0


def test_skewed_values_are_covered_too() -> None:
    draw = np.random.default_rng(7)
    intervals = [bootstrap_mean(draw.exponential(1.0, 20).tolist(), 1000) for _ in range(_TRIALS)]
    assert 0.93 <= np.mean([each.low <= 1.0 <= each.high for each in intervals]) <= 0.97
