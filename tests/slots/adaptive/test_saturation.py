"""How many calls a server works on at once that queues or slows down instead of refusing."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from shoal.seeds import Draws, derive
from shoal.slots.adaptive.attempts import Attempts
from shoal.slots.adaptive.saturation import Saturation


def draw_seconds(draws: Draws, sigma: float) -> float:
    return math.exp(sigma * math.sqrt(-2 * math.log(1 - draws.random())) * math.cos(2 * math.pi * draws.random()))


def answer_rounds(slow_down: Callable[[int], float], *, most: int, rounds: int, sigma: float, seed: int) -> Saturation:
    """Rounds of so many calls at once, answered one after the other: no call overtakes another."""
    saturation, draws = Saturation(), Draws(derive(seed, "times"))
    for _ in range(rounds):
        for level in range(1, most + 1):
            saturation.add_answer(level, most, 1, slow_down(level) * draw_seconds(draws, sigma))
            if saturation.is_due:
                saturation.fit((), 0.0)
    return saturation


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("workers", [2, 8, 30])
def test_the_capacity_is_where_times_begin_to_grow_with_what_is_in_flight(workers: int, seed: int) -> None:
    found = answer_rounds(lambda n: max(1.0, n / workers), most=4 * workers, rounds=8, sigma=0.6, seed=seed)
    assert 0.75 * workers <= found.capacity <= 1.8 * workers
    assert found.service_seconds == pytest.approx(1.0, abs=0.6)


@pytest.mark.parametrize("seed", range(5))
def test_times_that_do_not_grow_show_no_capacity(seed: int) -> None:
    found = answer_rounds(lambda n: 1.0, most=60, rounds=10, sigma=0.6, seed=seed)
    assert found.capacity == math.inf


def test_equally_long_answers_show_it_after_one_round() -> None:
    found = answer_rounds(lambda n: float(math.ceil(n / 4)), most=12, rounds=1, sigma=0.0, seed=0)
    assert 3 <= found.capacity <= 6


def test_calls_that_are_not_answered_for_long_count_as_slow_ones() -> None:
    """Otherwise only the fast answers of a crowd would be known while it is sent."""
    attempts, saturation = Attempts(), Saturation()
    for _ in range(12):
        saturation.add_answer(4, 4, 1, 1.0)
    for level in (16, 20, 25):
        saturation.add_answer(level, level, 1, 1.0)
    for _ in range(30):
        attempts.begin(0.0, 1)
    saturation.fit(attempts.open, 0.5)
    assert saturation.capacity == math.inf
    saturation.fit(attempts.open, 6.0)
    assert 4 <= saturation.capacity < 16


def test_a_call_that_overtakes_others_shows_that_they_were_in_work_together() -> None:
    """In a queue, a call is answered when at most as many of those before it are left as there are workers."""
    saturation = Saturation()
    saturation.add_answer(20, 20, 17, 0.1)
    assert saturation.at_least == 17


def test_what_an_earlier_run_found_is_where_the_next_begins() -> None:
    saturation = Saturation()
    saturation.remember(10, 0.5)
    assert 8 <= saturation.capacity <= 13
    assert saturation.service_seconds == pytest.approx(0.5, rel=0.3)
