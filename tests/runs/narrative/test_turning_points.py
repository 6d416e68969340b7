"""Rounds in which a figure changed its course."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shoal.runs.narrative.turning_points import find_turning_points


def draw(*slopes: tuple[int, float], noise: float = 0.0) -> dict[int, float]:
    """A figure of straight courses: rounds and change per round of each."""
    random = np.random.default_rng(3)
    values: dict[int, float] = {}
    value = 0.0
    for rounds, slope in slopes:
        for _ in range(rounds):
            values[len(values)] = value + noise * float(random.normal())
            value += slope
    return values


def test_a_rise_that_becomes_a_fall_turns_once_where_it_does() -> None:
    (turn,) = find_turning_points(draw((10, 0.02), (15, -0.03)), least=0.05)
    assert abs(turn.round - 10) <= 1
    assert turn.before == pytest.approx(0.02, abs=0.002)
    assert turn.after == pytest.approx(-0.03, abs=0.002)


def test_noise_does_not_hide_a_turn() -> None:
    (turn,) = find_turning_points(draw((20, 0.02), (20, -0.02), noise=0.01), least=0.05)
    assert abs(turn.round - 20) <= 2


@pytest.mark.parametrize("slope", [0.0, 0.05, -0.2])
def test_a_straight_course_has_no_turn(slope: float) -> None:
    assert find_turning_points(draw((40, slope)), least=0.01) == []


def test_noise_alone_is_rarely_a_turn() -> None:
    random = np.random.default_rng(11)
    found = [find_turning_points(dict(enumerate(random.normal(0.0, 0.01, 40).tolist())), least=0.04) for _ in range(50)]
    assert sum(map(bool, found)) <= 5


def test_a_turn_that_matters_too_little_is_not_told() -> None:
    assert find_turning_points(draw((10, 0.001), (10, -0.001)), least=0.05) == []


@pytest.mark.parametrize("rounds", [0, 1, 5])
def test_too_few_rounds_tell_nothing(rounds: int) -> None:
    assert find_turning_points(draw((rounds, 1.0)), least=0.01) == []


def test_long_runs_are_read_too() -> None:
    turns = find_turning_points({round: math.sin(round / 400) for round in range(2_000)}, least=0.2)
    assert 1 <= len(turns) <= 3
