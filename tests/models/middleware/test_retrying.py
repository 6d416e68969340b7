from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.models.base import Answer, FailureKind, ModelFailed, ModelFailure, Question
from shoal.models.costs import Spending
from shoal.models.middleware.limited import Limited
from shoal.models.middleware.retrying import BACKOFF_POLICIES, Retry, Retrying, decide_retry
from tests.models.fakes import FakeClock, Scripted, make_failure, question

HOPELESS = [kind for kind in FailureKind if kind not in BACKOFF_POLICIES]


def retrying(inner: Scripted, deadline: float = 1000, seed: int = 1) -> tuple[Retrying, FakeClock, Spending]:
    clock, spending = FakeClock(), Spending({})
    return Retrying(inner, deadline, seed, spending, clock), clock, spending


# the decision


@pytest.mark.parametrize("kind", HOPELESS)
def test_what_cannot_get_better_is_not_tried_again(kind: FailureKind) -> None:
    assert decide_retry(ModelFailure(kind, "no"), 1, 100, 0.5) == Retry.no()


def test_exactly_these_kinds_have_no_hope() -> None:
    assert set(HOPELESS) == {
        FailureKind.QUOTA,
        FailureKind.AUTH,
        FailureKind.ADDRESS,
        FailureKind.FATAL,
        FailureKind.CONTEXT_TOO_LONG,
        FailureKind.REFUSED,
        FailureKind.UNREADABLE,
    }


@pytest.mark.parametrize("kind", BACKOFF_POLICIES)
def test_every_kind_is_given_up_at_some_time(kind: FailureKind) -> None:
    assert decide_retry(ModelFailure(kind, "no"), BACKOFF_POLICIES[kind].attempts, 1e9, 0.5) == Retry.no()


@pytest.mark.parametrize("kind", BACKOFF_POLICIES)
def test_the_bound_doubles_up_to_its_longest(kind: FailureKind) -> None:
    patience = BACKOFF_POLICIES[kind]
    bounds = [patience.bound(failures) for failures in range(1, 40)]
    assert bounds[:2] == [patience.first_seconds, 2 * patience.first_seconds]
    assert bounds[-1] == patience.longest_seconds


@given(draw=st.floats(0, 1, exclude_max=True), asked=st.floats(0, 1e6), left=st.floats(0, 1e6))
def test_no_retry_comes_before_the_servers_moment_nor_after_the_deadline(
    draw: float, asked: float, left: float
) -> None:
    retry = decide_retry(ModelFailure(FailureKind.REQUEST_RATE, "slow down", retry_after=asked), 1, left, draw)
    assert retry.seconds is None or asked <= retry.seconds < left


def test_a_wait_longer_than_what_is_left_is_not_begun() -> None:
    assert decide_retry(ModelFailure(FailureKind.REQUEST_RATE, "tomorrow", retry_after=3600), 1, 200, 0.5) == Retry.no()


# asking again


async def test_it_asks_until_there_is_an_answer() -> None:
    inner = Scripted(*[make_failure(FailureKind.TRANSIENT)] * 4, Answer("at last"))
    model, clock, spending = retrying(inner)
    assert (await model.answer(question())).text == "at last"
    assert len(clock.slept) == spending.retries == 4


async def test_the_same_failure_is_not_tried_for_ever() -> None:
    inner = Scripted(make_failure(FailureKind.TRANSIENT))
    model, _, _ = retrying(inner, deadline=1e9)
    with pytest.raises(ModelFailed, match="a transient failure"):
        await model.answer(question())
    assert len(inner.asked) == BACKOFF_POLICIES[FailureKind.TRANSIENT].attempts


async def test_no_attempt_begins_so_late_that_it_could_not_end_in_time() -> None:
    model, clock, _ = retrying(Scripted(make_failure(FailureKind.CONCURRENCY)), deadline=20)
    with pytest.raises(ModelFailed):
        await model.answer(question())
    assert 12 < clock.now() < 13


async def test_the_time_that_attempts_take_counts() -> None:
    class Slow(Scripted):
        async def answer(self, question: Question) -> Answer:
            self.asked.append(question)
            raise ModelFailed(make_failure(FailureKind.TRANSIENT).failure, seconds=45)

    inner = Slow()
    model, _, _ = retrying(inner, deadline=100)
    with pytest.raises(ModelFailed):
        await model.answer(question())
    # 45 s twice: a third attempt would begin too late to end in time.
    assert len(inner.asked) == 2


async def test_the_time_spent_waiting_for_a_slot_does_not_count() -> None:
    clock = FakeClock()

    class Crowd:
        """A slot is to be had only after an hour."""

        async def enter(self, question: Question) -> None:
            await clock.sleep(3600)

        def leave(self, slot: None, question: Question, outcome: object, seconds: float) -> None: ...

        def back_off(self, question: Question, failure: ModelFailure, attempt: int, seconds: float) -> float:
            return seconds

    inner = Scripted(make_failure(FailureKind.TRANSIENT), make_failure(FailureKind.TRANSIENT), Answer("at last"))
    model = Retrying(Limited(inner, Crowd()), 60, 1, Spending({}), clock)
    assert (await model.answer(question())).text == "at last"


async def test_waits_are_drawn_from_the_seed_and_the_question() -> None:
    async def waits(seed: int, number: int) -> list[float]:
        model, clock, _ = retrying(Scripted(*[make_failure(FailureKind.OVERLOAD)] * 3, Answer("yes")), seed=seed)
        await model.answer(question(number))
        return clock.slept

    assert await waits(1, 1) == await waits(1, 1)
    assert await waits(1, 1) != await waits(2, 1)
    assert await waits(1, 1) != await waits(1, 2)


async def test_many_that_fail_together_do_not_come_back_together() -> None:
    slept = []
    for number in range(50):
        model, clock, _ = retrying(Scripted(make_failure(FailureKind.REQUEST_RATE, retry_after=5), Answer("yes")))
        await model.answer(question(number))
        slept += clock.slept
    assert len({round(seconds, 2) for seconds in slept}) > 25
    assert all(5 <= seconds <= 6 for seconds in slept)
