from __future__ import annotations

import pytest

from shoal.slots.adaptive.noise import CALLS, HUNDREDS, LATELY, NoiseDetector
from tests.slots.simulated_calls import simulate


def hundred(noise: NoiseDetector, now: float, seconds: float, refused: int) -> float | None:
    """A hundred calls, the refused ones spread evenly."""
    found = None
    for number in range(CALLS):
        is_refused = refused > 0 and number % (CALLS // refused) == 0
        found = noise.count(now + number * seconds / CALLS, 64.0, refused=is_refused) or found
    return found


def test_what_is_refused_however_little_is_sent_is_noise() -> None:
    noise = NoiseDetector()
    found = [hundred(noise, 100.0 * number, 2.0 * 1.3**number, refused=5) for number in range(HUNDREDS)]
    assert found[-1] == 64
    assert noise.share == pytest.approx(0.05)


def test_a_share_that_stays_while_as_much_is_sent_is_none() -> None:
    noise = NoiseDetector()
    assert [hundred(noise, 2.0 * number, 2.0, refused=5) for number in range(20)] == [None] * 20


def test_refusals_that_become_fewer_are_none() -> None:
    noise = NoiseDetector()
    for number, refused in enumerate((20, 4, 1, 0, 0, 1, 0)):
        assert hundred(noise, 100.0 * number, 2.0 * 1.3**number, refused) is None
    assert noise.is_surprising


def test_in_noise_only_a_crowd_of_refusals_is_a_surprise() -> None:
    noise = NoiseDetector()
    for number in range(HUNDREDS):
        hundred(noise, 100.0 * number, 2.0 * 1.3**number, refused=5)
    surprises = []
    for _ in range(LATELY):
        noise.count(1000.0, 64.0, refused=True)
        surprises.append(noise.is_surprising)
    assert surprises.index(True) in (3, 4)


def test_noise_that_is_over_is_forgotten() -> None:
    noise = NoiseDetector()
    for number in range(HUNDREDS):
        hundred(noise, 100.0 * number, 2.0 * 1.3**number, refused=5)
    for number in range(10):
        hundred(noise, 1000.0 + number, 1.0, refused=0)
    assert noise.share == 0


@pytest.mark.parametrize("cap", [None, 64])
def test_a_server_that_refuses_one_call_in_twenty_is_not_given_up(cap: int | None) -> None:
    """Reacting to each of them would make it a hundred times slower."""
    played = simulate(4000, limits=0.05, cap=cap)
    assert played.seconds < 120
    assert played.refusals < 0.15 * 4000
