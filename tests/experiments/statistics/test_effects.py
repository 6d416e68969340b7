from math import inf

import numpy as np
import pytest

from shoal.experiments.statistics import Effect, compare_paired, compare_rates, correct_holm, describe_power


def test_only_common_seeds_are_compared() -> None:
    effect = compare_paired({1: 2.0, 2: 3.0, 9: 100.0}, {1: 1.0, 2: 1.0, 3: 50.0})
    assert effect is not None
    assert (effect.seeds, effect.difference.value) == (2, 1.5)
    assert compare_paired({1: 2.0}, {2: 2.0}) is None


def test_the_chance_of_a_difference_is_exact_for_few_seeds() -> None:
    effect = compare_paired(dict.fromkeys(range(5), 1.0), dict.fromkeys(range(5), 0.0))
    assert effect is not None
    # Of 32 ways to flip five signs, two are as far from zero: all and none.
    assert effect.p == pytest.approx(2 / 32)
    assert effect.standardised is None


def test_an_arm_like_the_control_has_no_effect() -> None:
    effect = compare_paired({1: 1.0, 2: 2.0}, {1: 1.0, 2: 2.0})
    assert effect is not None
    assert (effect.difference.value, effect.p) == (0.0, 1.0)


def test_comparisons_are_corrected_for_their_number() -> None:
    assert correct_holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert correct_holm([]) == []


def test_too_few_seeds_are_noted() -> None:
    assert "13 seeds" in (describe_power(4) or "")
    assert describe_power(13) is None


def agree(effect: Effect | None) -> bool:
    assert effect is not None
    assert effect.p is not None
    return (effect.p < 0.05) == (not effect.difference.low <= 0 <= effect.difference.high)


def test_p_and_interval_never_disagree() -> None:
    draw = np.random.default_rng(3)
    for _ in range(300):
        seeds = range(int(draw.integers(2, 20)))
        control = dict.fromkeys(seeds, 0.0)
        # Rounded, so that differences are equal or nothing now and then.
        assert agree(compare_paired({seed: round(draw.normal(0.6, 1), 1) for seed in seeds}, control))
        passed = {seed: bool(draw.random() < 0.8) for seed in seeds}
        assert agree(compare_rates(passed, {seed: bool(draw.random() < 0.4) for seed in seeds}))


def test_an_interval_holds_what_flipped_signs_leave_possible() -> None:
    effect = compare_paired(dict(enumerate([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])), dict.fromkeys(range(6), 0.0))
    assert effect is not None
    # 2 of 64 ways are as far as all signs alike. The only subset that refutes less is the smallest value alone.
    assert effect.p == 2 / 64
    assert effect.difference.low <= 1.0 < 6.0 <= effect.difference.high


def test_an_effect_in_few_seeds_is_covered_as_often_as_it_says() -> None:
    draw = np.random.default_rng(8)
    covered = 0
    for _ in range(400):
        arm = draw.normal(0, 0.3, 8) + draw.exponential(1.0, 8)
        effect = compare_paired(dict(enumerate(arm.tolist())), dict.fromkeys(range(8), 0.0))
        covered += effect is not None and effect.difference.low <= 1.0 <= effect.difference.high
    assert covered / 400 >= 0.93


def test_few_seeds_are_compared_as_by_student() -> None:
    effect = compare_paired({1: 2.0, 2: 4.0, 3: 9.0}, {1: 1.0, 2: 1.0, 3: 1.0})
    assert effect is not None
    # Computed with scipy.stats.ttest_1samp.
    assert effect.test == "t"
    assert effect.p == pytest.approx(0.19461, abs=1e-4)
    assert effect.difference.low == pytest.approx(-4.95669, abs=1e-4)


def test_few_seeds_that_differ_alike_leave_the_interval_open() -> None:
    effect = compare_paired(dict.fromkeys(range(4), 2.0), dict.fromkeys(range(4), 1.0))
    assert effect is not None
    assert (effect.p, effect.difference.low) == (0.125, -inf)


def test_rates_are_compared_as_by_mcnemar() -> None:
    # One pair of 44 differs, either way by chance: the mid-p of McNemar.
    arm = {seed: seed < 43 for seed in range(44)}
    effect = compare_rates(arm, dict.fromkeys(range(44), True))
    assert effect is not None
    assert effect.difference.value == pytest.approx(-1 / 44)
    assert effect.p == pytest.approx(0.5, abs=0.01)


def test_idle_arms_are_seldom_found_to_differ() -> None:
    draw = np.random.default_rng(4)
    found = 0
    for _ in range(400):
        control = dict(enumerate(draw.lognormal(0, 1, 10).tolist()))
        effects = [compare_paired(dict(enumerate(draw.lognormal(0, 1, 10).tolist())), control) for _ in range(3)]
        found += min(correct_holm([effect.p for effect in effects if effect and effect.p])) < 0.05
    assert found / 400 <= 0.07
