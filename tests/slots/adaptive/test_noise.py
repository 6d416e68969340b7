"""Refusals that have nothing to do with the load."""

from __future__ import annotations

import pytest

from shoal.slots.adaptive.noise import ENOUGH, IN_A_ROW, OVER_CALLS, NoiseDetector
from tests.slots.simulated_calls import simulate


def refuse_one_in(noise: NoiseDetector, calls: int, *, times: int) -> None:
    """Refuse one call in so many."""
    for _ in range(times):
        for _ in range(calls - 1):
            noise.count(refused=False)
        noise.count(refused=True)


@pytest.fixture
def noise() -> NoiseDetector:
    return NoiseDetector()


def test_a_few_refusals_one_by_one_that_nothing_explains_are_noise(noise: NoiseDetector) -> None:
    refuse_one_in(noise, 20, times=4)
    assert not noise.explains_refusal
    assert noise.suspect(in_a_row=1)
    assert noise.explains_refusal
    assert noise.share == pytest.approx(0.05, abs=0.02)


def test_many_refusals_are_none(noise: NoiseDetector) -> None:
    refuse_one_in(noise, 5, times=20)
    assert not noise.suspect(in_a_row=1)


def test_refusals_one_after_another_are_none(noise: NoiseDetector) -> None:
    refuse_one_in(noise, 20, times=4)
    assert not noise.suspect(in_a_row=IN_A_ROW)


def test_the_first_refusals_of_a_server_are_none(noise: NoiseDetector) -> None:
    refuse_one_in(noise, ENOUGH - 1, times=1)
    assert not noise.may_be(in_a_row=1)


def test_in_noise_only_a_crowd_of_refusals_counts() -> None:
    noise = NoiseDetector(share=0.05)
    refuse_one_in(noise, 20, times=4)
    verdicts = []
    for _ in range(12):
        noise.count(refused=True)
        verdicts.append(noise.explains_refusal)
    assert 2 <= verdicts.index(False) <= 8


def test_noise_that_is_over_is_forgotten() -> None:
    noise = NoiseDetector(share=0.05)
    for _ in range(OVER_CALLS + 1):
        noise.count(refused=False)
    assert noise.share == 0


@pytest.mark.parametrize("cap", [None, 64])
def test_a_server_that_refuses_one_call_in_twenty_is_not_given_up(cap: int | None) -> None:
    """Reacting to each of them would make it a hundred times slower."""
    played = simulate(4000, limits=0.05, cap=cap)
    assert played.seconds < 60
    assert played.refusals < 0.15 * 4000
