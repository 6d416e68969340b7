from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import BudgetReached, RunRefused, Stopped
from shoal.journal import JournalLine
from shoal.models.base import Answer, FailureKind, Message, ModelFailed, ModelFailure, Question, Usage
from shoal.models.costs import Price, Spending
from shoal.models.middleware.budget import Budget, Budgeted, CallSize, UsageEstimator
from tests.models.fakes import MODEL, Scripted, make_failure, question

PRICE = Price(input=1.0, output=4.0, cached=0.25)


class Frugal:
    """Uses a share of what it may, after letting others begin."""

    def __init__(self, share: float = 1.0) -> None:
        self._share = share
        self.at_once = 0
        self.most_at_once = 0
        self.done = 0

    async def answer(self, question: Question) -> Answer:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        for _ in range(3):
            await asyncio.sleep(0)
        self.at_once -= 1
        self.done += 1
        return Answer("yes", Usage(10, int((question.max_tokens or 0) * self._share)))


async def ask_many(budget: Budget, inner: Frugal, count: int) -> tuple[list[object], Spending]:
    spending = Spending({MODEL: PRICE})
    model = Budgeted(inner, budget, spending)
    asked = (model.answer(question(number, max_tokens=100)) for number in range(count))
    return await asyncio.gather(*asked, return_exceptions=True), spending


@pytest.mark.parametrize("at_once", [1, 7, 300])
async def test_calls_at_once_do_not_overshoot_the_number_of_calls(at_once: int) -> None:
    inner = Frugal()
    ends, spending = await ask_many(Budget(max_calls=5), inner, at_once)
    assert inner.done == spending.calls == min(5, at_once)
    assert sum(isinstance(end, BudgetReached) for end in ends) == at_once - inner.done


UNREADABLE = ModelFailed(ModelFailure(FailureKind.UNREADABLE, "garbage", usage=Usage(10, 20)))


async def test_a_reply_that_cannot_be_read_is_charged_and_asked_once_more() -> None:
    spending = Spending({MODEL: PRICE})
    inner = Scripted(UNREADABLE, Answer("yes", Usage(1, 2)))
    assert (await Budgeted(inner, Budget(), spending).answer(question())).text == "yes"
    assert (spending.calls, spending.total.tokens, spending.retries) == (2, 33, 1)
    assert not spending.unanswered
    inner = Scripted(UNREADABLE)
    with pytest.raises(ModelFailed):
        await Budgeted(inner, Budget(), spending).answer(question())
    assert len(inner.asked) == 2
    assert spending.unanswered == {FailureKind.UNREADABLE: 1}


@pytest.mark.parametrize("at_once", [1, 7, 40])
async def test_replies_that_cannot_be_read_do_not_overshoot_the_number_of_calls(at_once: int) -> None:
    inner, spending = Scripted(UNREADABLE), Spending({MODEL: PRICE})
    model = Budgeted(inner, Budget(max_calls=5), spending)
    await asyncio.gather(*(model.answer(question(n)) for n in range(at_once)), return_exceptions=True)
    assert len(inner.asked) == spending.calls == min(5, 2 * at_once)


def test_an_odd_count_of_tokens_in_an_old_journal_does_no_harm() -> None:
    line = JournalLine("town/1/0/decide/0", usage={"input": 1.5, "output": -3}, reply={"model": MODEL})
    assert Spending({MODEL: PRICE}, [line]).total.tokens == 1


def test_what_could_not_be_read_is_charged_in_later_sessions_too() -> None:
    before = Spending({MODEL: PRICE})
    before.charge_unreadable(MODEL, Usage(10, 20))
    before.estimated = 3
    later = Spending({MODEL: PRICE})
    later.add_earlier(before.as_dict())
    assert (later.total, later.estimated) == (before.total, 3)


@given(limit=st.integers(0, 5000), share=st.floats(0, 1), count=st.integers(1, 60))
def test_calls_at_once_overshoot_neither_tokens_nor_cost(limit: int, share: float, count: int) -> None:
    _, spending = asyncio.run(ask_many(Budget(max_tokens=limit), Frugal(share), count))
    assert spending.total.tokens <= limit
    dollars = limit * 4 / 1_000_000
    _, spending = asyncio.run(ask_many(Budget(max_cost=dollars), Frugal(share), count))
    assert spending.cost is not None
    assert spending.cost <= dollars


async def test_what_was_set_aside_and_not_used_serves_others() -> None:
    inner = Frugal(share=0.01)
    _, spending = await ask_many(Budget(max_tokens=1000), inner, 60)
    # Each call might take 100 of output and takes 1: far more fit than 1000 / 100.
    assert spending.calls > 40
    assert inner.most_at_once < 10


async def test_the_budget_is_reached_only_when_no_call_is_under_way() -> None:
    under_way = []
    inner = Frugal()
    model = Budgeted(inner, Budget(max_calls=3), Spending({}))

    async def ask(number: int) -> None:
        try:
            await model.answer(question(number))
        except BudgetReached:
            under_way.append(inner.at_once)

    await asyncio.gather(*map(ask, range(10)))
    assert under_way == [0] * 7


async def test_reaching_it_says_what_is_spent_and_how_to_go_on() -> None:
    ends, _ = await ask_many(Budget(max_cost=0.0005), Frugal(), 10)
    reached = next(end for end in ends if isinstance(end, BudgetReached))
    assert isinstance(reached, Stopped)
    assert reached.setting == "max_cost"
    assert "of max_cost $0.0005 is spent" in str(reached)
    assert "`shoal resume` the run with a larger --max-cost" in str(reached)


async def test_what_a_failed_call_set_aside_is_free_again() -> None:
    spending = Spending({MODEL: PRICE})
    model = Budgeted(
        Scripted(make_failure(FailureKind.FATAL), Answer("yes", Usage(5, 5))), Budget(max_calls=1), spending
    )
    with pytest.raises(ModelFailed):
        await model.answer(question())
    assert (await model.answer(question())).text == "yes"
    assert spending.calls == 1


async def test_a_call_that_stops_waiting_holds_up_no_other() -> None:
    gate = asyncio.Event()
    model = Budgeted(Scripted(Answer("yes", Usage(1, 1)), gate=gate), Budget(max_tokens=400), Spending({}))
    asked = [asyncio.create_task(model.answer(question(n, max_tokens=300))) for n in range(3)]
    for _ in range(3):
        await asyncio.sleep(0)
    asked[1].cancel()
    gate.set()
    assert (await asked[2]).text == "yes"


def test_a_limit_in_dollars_needs_prices() -> None:
    with pytest.raises(RunRefused, match="the price of town/llama is not known") as refused:
        Budget(max_cost=1).check({MODEL: PRICE, "town/llama": None})
    assert "limit max_tokens instead" in str(refused.value)
    Budget(max_tokens=1).check({"town/llama": None})


# estimates


def test_the_first_estimate_is_on_the_safe_side_in_every_alphabet() -> None:
    english, chinese = "The rumour spreads quickly. " * 100, "谣言传播得很快。" * 100
    for text, most_tokens in ((english, len(english) / 4), (chinese, len(chinese))):
        assert UsageEstimator().estimate(CallSize.of(question(messages=(Message("user", text),)))).input >= most_tokens


def test_estimates_follow_what_the_server_counts() -> None:
    estimator, asked = UsageEstimator(), CallSize.of(question(messages=(Message("user", "x" * 6000),)))
    estimator.learn(asked, Usage(1000, 5))
    assert 1000 < estimator.estimate(asked).input < 1200


def test_a_question_without_a_maximum_may_be_as_long_as_the_longest_so_far() -> None:
    estimator = UsageEstimator()
    estimator.learn(CallSize.of(question()), Usage(10, 9000))
    assert estimator.estimate(CallSize.of(question())).output == 9000
    assert estimator.estimate(CallSize.of(question(max_tokens=50))).output == 50
