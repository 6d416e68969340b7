"""Whether anybody answers at all."""

from __future__ import annotations

import math

import pytest

from shoal.slots.adaptive.attempts import Attempt, Attempts
from shoal.slots.adaptive.outage import FAILURES, FIRST_SECONDS, LONGEST_SECONDS, OutageDetector


def sent(at: float) -> Attempt:
    return Attempts().begin(at, 100)


@pytest.fixture
def outage() -> OutageDetector:
    return OutageDetector()


def fail(outage: OutageDetector, count: int, now: float = 1.0) -> None:
    for _ in range(count):
        outage.on_failure(sent(now - 1), now, None)


def test_a_few_failures_are_no_outage(outage: OutageDetector) -> None:
    fail(outage, FAILURES - 1)
    assert not outage.is_on
    assert outage.wait(1.0) == 0


def test_an_answer_in_between_makes_them_start_again(outage: OutageDetector) -> None:
    fail(outage, FAILURES - 1)
    assert not outage.on_reply(sent(0.0))
    fail(outage, FAILURES - 1)
    assert not outage.is_on


def test_many_in_a_row_are_one(outage: OutageDetector) -> None:
    fail(outage, FAILURES)
    assert outage.is_on
    assert outage.wait(1.0) == FIRST_SECONDS


def test_one_call_at_a_time_finds_out(outage: OutageDetector) -> None:
    fail(outage, FAILURES)
    outage.begin(sent(1.0 + FIRST_SECONDS))
    assert outage.wait(5.0) == math.inf


def test_tries_come_ever_more_seldom(outage: OutageDetector) -> None:
    fail(outage, FAILURES)
    now, waits = 1.0, []
    for _ in range(6):
        now += outage.wait(now)
        attempt = sent(now)
        outage.begin(attempt)
        outage.on_failure(attempt, now, None)
        waits.append(outage.wait(now))
    assert waits == [0.5, 1.0, 2.0, LONGEST_SECONDS, LONGEST_SECONDS, LONGEST_SECONDS]


def test_a_server_that_says_when_to_come_back_is_not_asked_sooner_but_within_reason(outage: OutageDetector) -> None:
    fail(outage, FAILURES)
    attempt = sent(1.25)
    outage.begin(attempt)
    outage.on_failure(attempt, 1.25, 600.0)
    assert outage.wait(1.25) == LONGEST_SECONDS


def test_failures_of_calls_from_before_change_nothing(outage: OutageDetector) -> None:
    fail(outage, FAILURES + 50)
    assert outage.wait(1.0) == FIRST_SECONDS


def test_an_answer_to_a_call_from_before_does_not_end_it(outage: OutageDetector) -> None:
    fail(outage, FAILURES, now=1.0)
    assert not outage.on_reply(sent(0.5))
    assert outage.is_on


def test_the_first_sensible_reply_ends_it(outage: OutageDetector) -> None:
    fail(outage, FAILURES)
    attempt = sent(1.25)
    outage.begin(attempt)
    assert outage.on_reply(attempt)
    assert outage.wait(1.5) == 0


def test_a_try_that_was_cancelled_is_made_again(outage: OutageDetector) -> None:
    fail(outage, FAILURES)
    attempt = sent(1.25)
    outage.begin(attempt)
    outage.on_end(attempt)
    assert outage.wait(1.3) == 0


def test_a_try_of_an_outage_that_is_over_does_not_hold_up_the_next(outage: OutageDetector) -> None:
    fail(outage, FAILURES)
    attempt = sent(1.25)
    outage.begin(attempt)
    assert outage.on_reply(sent(1.1))  # somebody else was answered first
    fail(outage, FAILURES - 1, now=2.0)
    outage.on_failure(attempt, 2.0, None)
    assert outage.is_on
    assert outage.wait(2.0) == FIRST_SECONDS
