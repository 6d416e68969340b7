"""What attempts prove about a cap, whatever the order in which they reached the server."""

from __future__ import annotations

import math
import tracemalloc

import pytest

from shoal.slots.adaptive.attempts import (
    AMONG_CALLS,
    CONTRADICTIONS,
    PROOF_SECONDS,
    STALL_SECONDS,
    Attempt,
    Attempts,
)

REFUSAL_SECONDS = 0.02
#: How long it takes until a call counts as accepted.
PROOF = REFUSAL_SECONDS + PROOF_SECONDS + 3 * STALL_SECONDS


class Clock:
    """Begins, ends and proves calls, and lets time pass in small steps as on a machine that is not stalled."""

    def __init__(self) -> None:
        self.attempts = Attempts()
        self.now = 0.0

    def begin(self, count: int = 1) -> list[Attempt]:
        return [self.attempts.begin(self.now, 100) for _ in range(count)]

    def refuse(self, refused: list[Attempt]) -> list[int]:
        self.now += REFUSAL_SECONDS
        return [self.attempts.refuse(each, self.now, REFUSAL_SECONDS) for each in refused]

    def let_pass(self, seconds: float) -> list[Attempt]:
        proven: list[Attempt] = []
        for _ in range(math.ceil(seconds / STALL_SECONDS)):
            self.now += STALL_SECONDS
            proven += self.attempts.take_proven(self.now)
        return proven

    def end(self, ended: list[Attempt]) -> None:
        for each in ended:
            self.attempts.answer(each, 1.0)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_of_calls_that_were_sent_at_once_the_refused_ones_show_how_many_were_accepted(clock: Clock) -> None:
    """Of 32, 8 are refused: a cap is at most 24, whichever they are."""
    sent = clock.begin(32)
    clock.refuse(sent[1::4])
    assert clock.attempts.at_most == 24


def test_those_that_are_still_out_show_that_a_cap_is_at_least_as_many(clock: Clock) -> None:
    sent = clock.begin(32)
    clock.refuse(sent[1::4])
    clock.let_pass(PROOF)
    assert clock.attempts.at_least == clock.attempts.at_most == 24


def test_a_call_that_ended_during_a_refusal_may_have_been_in_work(clock: Clock) -> None:
    first, second = clock.begin(2)
    (refused,) = clock.begin()
    clock.end([first])
    assert clock.refuse([refused]) == [2]
    clock.end([second])


def test_a_call_counts_as_accepted_when_a_refusal_would_long_have_come(clock: Clock) -> None:
    clock.refuse(clock.begin())
    (sent,) = clock.begin()
    assert clock.let_pass(REFUSAL_SECONDS) == []
    assert clock.let_pass(PROOF) == [sent]
    assert clock.let_pass(1.0) == []


def test_without_a_refusal_time_proves_nothing(clock: Clock) -> None:
    clock.begin()
    assert clock.let_pass(100.0) == []


def test_time_in_which_the_machine_stood_still_proves_nothing(clock: Clock) -> None:
    """The refusal may have come long ago, and is only not read yet."""
    clock.refuse(clock.begin())
    clock.begin()
    clock.now += 10.0
    assert list(clock.attempts.take_proven(clock.now)) == []


def test_a_cap_that_stays_never_contradicts_itself(clock: Clock) -> None:
    under_way = clock.begin(5)
    for _ in range(200):
        under_way += clock.begin()
        clock.refuse([under_way.pop()])
        clock.let_pass(PROOF)
        clock.end([under_way.pop(0)])
        under_way += clock.begin()
        clock.let_pass(PROOF)
    assert not clock.attempts.contradict_a_cap
    assert (clock.attempts.at_least, clock.attempts.at_most) == (5, 5)


def refuse_below(clock: Clock, accepted: int, below: int) -> None:
    """Let so many be accepted together, let them end, and refuse a call among fewer."""
    under_way = clock.begin(accepted)
    clock.let_pass(PROOF)
    clock.end(under_way[below:])
    clock.refuse(clock.begin())
    clock.end(under_way[:below])


def test_calls_that_are_refused_among_fewer_than_were_accepted_again_and_again_are_no_cap(clock: Clock) -> None:
    clock.refuse(clock.begin())
    for _ in range(CONTRADICTIONS):
        assert not clock.attempts.contradict_a_cap
        refuse_below(clock, 10, 4)
    assert clock.attempts.contradict_a_cap


def test_a_cap_that_changes_now_and_then_is_still_a_cap(clock: Clock) -> None:
    clock.refuse(clock.begin())
    for _ in range(5):
        refuse_below(clock, 10, 4)
        for _ in range(AMONG_CALLS):
            clock.end(clock.begin())
        assert not clock.attempts.contradict_a_cap


def test_a_cap_that_came_down_contradicts_what_was_seen_once_however_many_calls_are_refused(clock: Clock) -> None:
    clock.refuse(clock.begin())
    under_way = clock.begin(40)
    clock.let_pass(PROOF)
    while len(under_way) > 10:
        clock.end(under_way[-3:])
        del under_way[-3:]
        clock.now += REFUSAL_SECONDS
        clock.refuse(clock.begin())
        clock.let_pass(PROOF)
    assert not clock.attempts.contradict_a_cap
    assert clock.attempts.at_most == 10


def test_what_was_accepted_before_a_refusal_is_counted(clock: Clock) -> None:
    clock.begin(3)
    (refused,) = clock.begin()
    clock.begin(2)
    clock.refuse([refused])
    mark = clock.attempts.mark(refused)
    assert (mark.requests, mark.tokens) == (3, 300)


def test_means_follow_what_calls_take(clock: Clock) -> None:
    for _ in range(200):
        clock.attempts.answer(clock.begin()[0], 3.0)
    clock.refuse(clock.begin())
    assert clock.attempts.round_trip == pytest.approx(3.0)
    assert clock.attempts.refusal_seconds == pytest.approx(REFUSAL_SECONDS)


def test_a_long_run_does_not_fill_the_memory() -> None:
    attempts = Attempts()
    tracemalloc.start()
    for number in range(20_000):
        attempts.answer(attempts.begin(number * 0.01, 100), 0.01)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used < 100_000


def test_calls_that_are_left_of_those_before_are_counted_exactly_or_from_below(clock: Clock) -> None:
    first, second, third, fourth = clock.begin(4)
    clock.end([fourth, first])
    assert clock.attempts.count_before(third, exactly=True) == 1
    assert clock.attempts.count_before(third, exactly=False) == 0
    assert clock.attempts.count_before(second, exactly=True) == 0


def test_of_a_burst_of_refusals_only_the_first_size_counts(clock: Clock) -> None:
    """When nothing is left, calls of all sizes are refused."""
    large = clock.attempts.begin(clock.now, 900)
    clock.refuse([large, *clock.begin(5)])
    assert clock.attempts.mean_refused_size == 900
    assert clock.attempts.are_few_refused
