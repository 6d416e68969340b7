import pytest

from shoal.experiments.statistics import compare_paired, correct_holm, describe_power


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
