"""So much per time."""

from __future__ import annotations

from collections import deque

import pytest

from shoal.rate_limits import RateLimit
from shoal.slots.adaptive.attempts import Attempt, Attempts, Mark
from shoal.slots.adaptive.rate import (
    CONTRADICTIONS,
    FALL,
    LONGEST_WAIT_SECONDS,
    MARGIN,
    MARK_SECONDS,
    Pace,
    Unit,
    rate_of,
)

SIZE = 100


def pace(rate: float = 10.0, burst: float = 5.0, unit: Unit = Unit.REQUESTS) -> Pace:
    return Pace(unit, rate, 0.0, burst=burst)


def marks(*moments: tuple[float, float]) -> deque[Mark]:
    """Refusals: when, and how many requests had been let in."""
    return deque(Mark(at, requests, requests * SIZE) for at, requests in moments)


def sent(at: float, tokens: int = SIZE) -> Attempt:
    return Attempts().begin(at, tokens)


def begin_as_allowed(limited: Pace, seconds: float) -> int:
    now, begun = 0.0, 0
    while (wait := limited.wait(now, SIZE)) + now < seconds:
        now += wait
        if not wait:
            limited.take(now, SIZE)
            begun += 1
    return begun


def test_calls_begin_at_the_rate() -> None:
    assert begin_as_allowed(pace(10.0), 20.0) == pytest.approx(200, abs=2)


def test_tokens_count_by_their_number() -> None:
    assert begin_as_allowed(pace(10.0 * SIZE, 5 * SIZE, Unit.TOKENS), 20.0) == pytest.approx(200, abs=2)


def test_what_was_not_used_is_saved_up_to_the_burst() -> None:
    limited = pace(10.0, burst=5.0)
    for _ in range(5):
        assert limited.wait(100.0, SIZE) == 0
        limited.take(100.0, SIZE)
    assert limited.wait(100.0, SIZE) == pytest.approx(0.1)


def test_a_call_larger_than_the_burst_waits_for_a_full_bucket() -> None:
    limited = pace(100.0, burst=50.0, unit=Unit.TOKENS)
    assert limited.wait(0.0, 5000) == pytest.approx(0.5)
    assert limited.wait(1.0, 5000) == 0


def test_the_rate_is_what_flowed_in_between_two_refusals() -> None:
    assert rate_of(Unit.REQUESTS, marks((10.0, 100), (12.0, 130), (20.0, 500))) == pytest.approx(40)
    assert rate_of(Unit.TOKENS, marks((10.0, 100), (20.0, 500))) == pytest.approx(40 * SIZE)


def test_too_little_flowed_in_to_tell() -> None:
    assert rate_of(Unit.REQUESTS, marks()) is None
    assert rate_of(Unit.REQUESTS, marks((10.0, 100))) is None
    assert rate_of(Unit.REQUESTS, marks((10.0, 100), (20.0, 102))) is None
    assert rate_of(Unit.REQUESTS, marks((10.0, 100), (10.01, 200))) is None


def test_old_refusals_do_not_count() -> None:
    late = 100.0 + MARK_SECONDS
    assert rate_of(Unit.REQUESTS, marks((10.0, 0), (late - 10, 5000), (late, 5100))) == pytest.approx(10)


def test_a_refusal_measures_the_rate_and_stays_a_little_below() -> None:
    limited = pace(60.0)
    limited.on_refusal(sent(20.0), marks((10.0, 100), (20.0, 500)), 20.02, is_fall=False)
    assert limited.rate == pytest.approx(40 * MARGIN)
    assert limited.is_sure


def test_several_refusals_at_once_count_as_one() -> None:
    limited = pace(60.0)
    seen = marks((20.0, 100))
    for _ in range(10):
        limited.on_refusal(sent(20.0), seen, 20.02, is_fall=False)
    assert limited.rate == pytest.approx(60 * FALL)


def test_a_rate_creeps_up_only_while_it_is_what_calls_wait_for() -> None:
    limited = pace(10.0)
    for _ in range(100):
        limited.creep()
    assert limited.rate == 10.0
    for tick in range(100, 200):
        while limited.wait(tick / 10, SIZE) == 0:
            limited.take(tick / 10, SIZE)
        limited.creep()
    assert limited.rate > 10.0


def test_refusals_one_after_another_make_it_fall_but_never_stop() -> None:
    limited = pace(40.0)
    for n in range(1, 60):
        limited.on_refusal(sent(float(n)), marks((float(n), 100)), n + 0.02, is_fall=True)
    assert limited.rate == pytest.approx(1 / LONGEST_WAIT_SECONDS)


def test_when_a_closed_window_opens_the_rate_is_what_it_was() -> None:
    limited = pace(60.0)
    limited.on_refusal(sent(20.0), marks((10.0, 100), (20.0, 500)), 20.02, is_fall=False)
    measured = limited.rate
    for n in range(5):
        limited.on_refusal(sent(21.0 + n), marks((21.0 + n, 500)), 21.02 + n, is_fall=True)
    assert limited.rate < 0.3 * measured
    limited.reopen()
    assert limited.rate == measured


def test_a_measurement_over_few_calls_lowers_a_sure_rate_by_little() -> None:
    limited = pace(60.0)
    limited.on_refusal(sent(20.0), marks((10.0, 100), (20.0, 700)), 20.02, is_fall=False)
    sure = limited.rate
    limited.on_refusal(sent(21.0), marks((20.0, 700), (21.0, 705)), 21.02, is_fall=False)
    assert 0.85 * sure < limited.rate < sure


def test_what_was_accepted_while_the_bucket_was_full_does_not_measure_the_rate() -> None:
    """Between two rounds the bucket fills up and overflows: less was accepted than flowed in."""
    limited = pace(60.0, burst=5.0)
    limited.on_refusal(sent(20.0), marks((10.0, 100), (20.0, 700)), 20.02, is_fall=False)
    sure = limited.rate
    assert limited.wait(30.0, SIZE) == 0
    limited.on_refusal(sent(30.0), marks((20.0, 700), (30.0, 800)), 30.02, is_fall=False)
    assert limited.rate == pytest.approx(sure * MARGIN)


# what is published


def test_what_a_server_publishes_is_taken_over() -> None:
    limited = pace(1.0)
    limited.publish(RateLimit(600.0, 3, 2.0), sent(1.0), 1.5, since=0)
    assert limited.rate == pytest.approx(10.0)
    assert limited.burst == pytest.approx(3 + 2.0 * 10)
    assert limited.is_published


def test_there_is_no_more_left_than_was_published() -> None:
    limited = pace(10.0, burst=50.0)
    limited.level(100.0)
    limited.publish(RateLimit(600.0, 3, 4.7), sent(100.0), 100.0, since=0)
    assert limited.level(100.0) == pytest.approx(3)


def test_a_published_rate_does_not_creep() -> None:
    limited = pace(1.0)
    limited.publish(RateLimit(600.0), sent(1.0), 1.5, since=0)
    limited.wait(1.5, 1000)
    limited.creep()
    assert limited.rate == pytest.approx(10.0)


def test_one_refusal_does_not_make_a_published_rate_wrong() -> None:
    limited = pace(1.0)
    limited.publish(RateLimit(600.0), sent(1.0), 1.5, since=0)
    limited.on_refusal(sent(20.0), marks((10.0, 100), (20.0, 200)), 20.02, is_fall=False)
    assert limited.rate == pytest.approx(10.0)
    assert not limited.is_contradicted


def test_a_published_rate_that_is_never_reached_is_no_longer_believed() -> None:
    limited = pace(1.0)
    for n in range(CONTRADICTIONS):
        limited.publish(RateLimit(6000.0), sent(1.0), 1.5, since=0)
        assert not limited.is_contradicted
        limited.on_refusal(sent(20.0 + n), marks((10.0, 100), (20.0 + n, 200)), 20.02 + n, is_fall=False)
    assert limited.is_contradicted
