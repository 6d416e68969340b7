"""What holds for everything that wraps a model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from shoal.journal import Journal
from shoal.models.base import Answer, FailureKind, Model, ModelFailed, Question, Usage
from shoal.models.costs import Price, Spending
from shoal.models.middleware.availability import Availability
from shoal.models.middleware.budget import Budget, Budgeted, Purse
from shoal.models.middleware.cached import Cached, open_cache
from shoal.models.middleware.journaled import Journaled
from shoal.models.middleware.limited import Limited, PlainLimit
from shoal.models.middleware.retrying import Retrying
from shoal.models.stack import Stack
from tests.models.fakes import MODEL, FakeClock, Scripted, endpoints, make_failure, question

Wrap = Callable[[Model], Model]


@pytest.fixture(params=["limited", "retrying", "budgeted", "open budget", "cached", "journaled", "stack"])
async def wrap(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Wrap]:
    async with AsyncExitStack() as opened:
        journal = await opened.enter_async_context(Journal.open(tmp_path / "journal.jsonl"))
        cache = await opened.enter_async_context(open_cache(tmp_path / "cache.sqlite"))
        spending = Spending({MODEL: Price(1, 2)})
        wraps: dict[str, Wrap] = {
            "limited": lambda inner: Limited(inner, PlainLimit(2)),
            "retrying": lambda inner: Retrying(inner, 10, 7, spending, FakeClock()),
            "budgeted": lambda inner: Budgeted(inner, Budget(max_calls=1000, max_cost=1.0), spending),
            "open budget": lambda inner: Budgeted(inner, Budget(), spending),
            "cached": lambda inner: Cached(inner, cache, endpoints(), spending),
            "journaled": lambda inner: Journaled(inner, journal),
            "stack": lambda inner: Stack(inner, spending, Availability(spending), Purse(Budget(), spending)),
        }
        yield wraps[request.param]


async def test_an_answer_comes_back_as_it_was_given(wrap: Wrap) -> None:
    given = Answer("I will.", Usage(100, 20, 60), "stop", 12)
    assert await wrap(Scripted(given)).answer(question()) == given


@pytest.mark.parametrize("finish", ["length", "refused"])
async def test_an_answer_says_how_it_ended(wrap: Wrap, finish: str) -> None:
    assert (await wrap(Scripted(Answer("I w", Usage(1, 1), finish))).answer(question())).finish == finish


@pytest.mark.parametrize(
    "kind", [FailureKind.AUTH, FailureKind.QUOTA, FailureKind.FATAL, FailureKind.REFUSED, FailureKind.CONTEXT_TOO_LONG]
)
async def test_a_failure_without_hope_comes_out_as_it_is_after_one_attempt(wrap: Wrap, kind: FailureKind) -> None:
    inner = Scripted(make_failure(kind))
    with pytest.raises(ModelFailed) as caught:
        await wrap(inner).answer(question())
    assert caught.value.failure.kind is kind
    assert len(inner.asked) == 1


async def test_the_next_question_is_answered_after_many_failed(wrap: Wrap) -> None:
    model = wrap(Scripted(*[make_failure(FailureKind.FATAL)] * 10, Answer("yes", Usage(1, 1))))
    results = await asyncio.gather(*(model.answer(question(n)) for n in range(10)), return_exceptions=True)
    assert all(isinstance(result, ModelFailed) for result in results)
    assert (await model.answer(question(99))).text == "yes"


async def test_the_next_question_is_answered_after_many_were_cancelled(wrap: Wrap) -> None:
    gate = asyncio.Event()
    model = wrap(Scripted(gate=gate))
    tasks = [asyncio.create_task(model.answer(question(n))) for n in range(10)]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    assert all(isinstance(end, asyncio.CancelledError) for end in await asyncio.gather(*tasks, return_exceptions=True))
    gate.set()
    assert (await model.answer(question(99))).text == "yes"


class Echo:
    async def answer(self, question: Question) -> Answer:
        await asyncio.sleep(0)
        return Answer(question.messages[-1].content, Usage(5, 5))


async def test_of_many_questions_at_once_each_gets_its_own_answer(wrap: Wrap) -> None:
    model = wrap(Echo())
    answers = await asyncio.gather(*(model.answer(question(number)) for number in range(200)))
    assert [answer.text for answer in answers] == [question(number).messages[-1].content for number in range(200)]
