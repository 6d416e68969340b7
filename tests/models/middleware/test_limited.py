from __future__ import annotations

import asyncio

import pytest

from shoal.models.base import Answer, FailureKind, ModelFailed, ModelFailure, Question
from shoal.models.costs import Spending
from shoal.models.middleware.limited import Limited, PlainLimit
from shoal.models.middleware.retrying import Retrying
from tests.models.fakes import FakeClock, Scripted, make_failure, question


class Watching:
    """A limit that writes down what it sees."""

    def __init__(self) -> None:
        self.inside = 0
        self.outcomes: list[Answer | ModelFailure | None] = []

        self.backoffs: list[tuple[FailureKind, int]] = []

    async def enter(self, question: Question) -> str:
        self.inside += 1
        return question.key

    def leave(self, slot: str, question: Question, outcome: Answer | ModelFailure | None, seconds: float) -> None:
        assert slot == question.key
        assert seconds >= 0
        self.inside -= 1
        self.outcomes.append(outcome)

    def back_off(self, question: Question, failure: ModelFailure, attempt: int, seconds: float) -> float:
        self.backoffs.append((failure.kind, attempt))
        return seconds


async def test_no_more_than_the_limit_are_asked_at_once() -> None:
    inner = Scripted()
    model = Limited(inner, PlainLimit(3))
    await asyncio.gather(*(model.answer(question(n)) for n in range(20)))
    assert inner.most_at_once == 3


async def test_the_limit_sees_how_every_attempt_ended() -> None:
    limit = Watching()
    inner = Scripted(make_failure(FailureKind.OVERLOAD), make_failure(FailureKind.REQUEST_RATE), Answer("yes"))
    await Retrying(Limited(inner, limit), 60, 1, Spending({}), FakeClock(), limit).answer(question())
    assert limit.backoffs == [(FailureKind.OVERLOAD, 1), (FailureKind.REQUEST_RATE, 2)]
    kinds = [end.kind if isinstance(end, ModelFailure) else end for end in limit.outcomes]
    assert kinds == [FailureKind.OVERLOAD, FailureKind.REQUEST_RATE, Answer("yes")]


async def test_the_limit_sees_that_an_attempt_was_cancelled() -> None:
    limit = Watching()
    task = asyncio.create_task(Limited(Scripted(gate=asyncio.Event()), limit).answer(question()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert limit.outcomes == [None]


async def test_a_backoff_holds_no_slot() -> None:
    limit, inside = Watching(), []

    class Peeking(FakeClock):
        async def sleep(self, seconds: float) -> None:
            inside.append(limit.inside)
            await super().sleep(seconds)

    model = Retrying(Limited(Scripted(make_failure(FailureKind.OVERLOAD)), limit), 60, 1, Spending({}), Peeking())
    with pytest.raises(ModelFailed):
        await model.answer(question())
    assert inside
    assert set(inside) == {0}
