"""Refusals that have nothing to do with the load."""

from __future__ import annotations

import pytest

from shoal.slots.adaptive.noise import MOST_TOGETHER, REFUSALS, NoiseDetector
from tests.slots.simulated_calls import simulate


def refuse_one_in(noise: NoiseDetector, calls: int, *, limits: list[float]) -> list[bool]:
    """Refuse one call in so many, each time with another limit; return which of them is taken for noise."""
    verdicts = []
    for number, limit in enumerate(limits):
        for _ in range(calls - 1):
            noise.count(refused=False)
        noise.count(refused=True)
        verdicts.append(noise.explains_refusal(float(number), number + 0.5, limit))
    return verdicts


FALLING = [64.0 - number for number in range(REFUSALS)]


@pytest.fixture
def noise() -> NoiseDetector:
    return NoiseDetector()


def test_what_is_refused_one_by_one_however_low_the_limit_is_noise(noise: NoiseDetector) -> None:
    assert refuse_one_in(noise, 20, limits=FALLING) == [False] * (REFUSALS - 1) + [True]
    assert noise.share == pytest.approx(0.05)


def test_refusals_at_a_limit_that_is_raised_again_and_again_are_none(noise: NoiseDetector) -> None:
    assert not any(refuse_one_in(noise, 20, limits=[64.0, 63.0] * 20))


def test_refusals_that_are_rare_are_none(noise: NoiseDetector) -> None:
    assert not any(refuse_one_in(noise, 100, limits=FALLING))


def test_refusals_of_several_calls_that_were_in_flight_together_are_none(noise: NoiseDetector) -> None:
    for number, limit in enumerate(FALLING * 3):
        for _ in range(10):
            noise.count(refused=False)
        for _ in range(1 + MOST_TOGETHER):
            assert not noise.explains_refusal(float(number), number + 0.5, limit)


def test_in_noise_only_a_crowd_of_refusals_counts(noise: NoiseDetector) -> None:
    refuse_one_in(noise, 20, limits=FALLING)
    verdicts = []
    for _ in range(12):
        noise.count(refused=True)
        verdicts.append(noise.explains_refusal(100.0, 101.0, 50.0))
    assert 3 <= verdicts.index(False) <= 8


def test_noise_that_is_over_is_forgotten(noise: NoiseDetector) -> None:
    refuse_one_in(noise, 20, limits=FALLING)
    for _ in range(1000):
        noise.count(refused=False)
    assert noise.share == 0


@pytest.mark.parametrize("cap", [None, 64])
def test_a_server_that_refuses_one_call_in_twenty_is_not_given_up(cap: int | None) -> None:
    """Reacting to each of them would make it a hundred times slower."""
    played = simulate(4000, limits=0.05, cap=cap)
    assert played.seconds < 120
    assert played.refusals < 0.15 * 4000
