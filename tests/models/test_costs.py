from __future__ import annotations

import pytest

from shoal.journal import JournalLine
from shoal.models.base import FailureKind, Usage
from shoal.models.costs import Price, Spending, find_price
from tests.models.fakes import MODEL


def test_cached_input_has_its_own_price() -> None:
    usage = Usage(input=1_000_000, output=500_000, cached=400_000)
    assert Price(1.0, 4.0, 0.25).of(usage) == pytest.approx(0.6 + 0.1 + 2.0)
    assert Price(1.0, 4.0).of(usage) == pytest.approx(3.0)


def test_a_known_model_has_a_price_as_its_provider_publishes_it() -> None:
    assert find_price("openai/gpt-4.1-mini") == Price(0.4, 1.6, 0.1)
    assert find_price("gpt-4.1-mini") == find_price("openai/gpt-4.1-mini")


def test_a_price_that_rises_with_the_prompt_is_that_of_a_usual_one() -> None:
    assert find_price("gemini/gemini-2.5-pro") == Price(1.25, 10.0, 0.125)


def test_embeddings_cost_only_what_is_put_in() -> None:
    assert find_price("openai/text-embedding-3-small") == Price(0.02, 0.0)


@pytest.mark.parametrize("model", ["openai/nothing-like-it", "acme/gpt-4.1-mini", "ollama/llama3.2"])
def test_an_unknown_model_has_none(model: str) -> None:
    assert find_price(model) is None


def test_what_has_no_price_does_not_cost_0() -> None:
    spending = Spending({MODEL: Price(1, 1), "vllm/mine": None})
    spending.charge(MODEL, Usage(1000, 0))
    assert spending.cost == pytest.approx(0.001)
    spending.charge("vllm/mine", Usage(1000, 0))
    spending.charge(MODEL, Usage(1000, 0))
    assert spending.cost is None
    assert spending.by_model[MODEL].cost == pytest.approx(0.002)
    assert spending.as_dict()["cost"] is None


def test_nothing_spent_is_0() -> None:
    assert Spending({"vllm/mine": None}).cost == 0


def test_what_the_journal_holds_is_spent_already() -> None:
    usage = {"input": 1000, "output": 10, "cached": 500}
    reply = {"text": "yes", "finish": "stop", "model": MODEL}
    lines = [
        JournalLine("town/1/1/decide/0", "a", reply=reply, usage=usage),
        JournalLine("town/1/2/decide/0", "b", reply=reply),
        JournalLine("town/1/3/decide/0", "c", reply=reply, usage=usage, inherited="parent"),
        JournalLine("town/1/4/decide/0", "d", outcome="timeout"),
        JournalLine("town/1/inject/0", event={"what": "rain"}),
    ]
    total = Spending({"other/model": Price(9, 9), MODEL: Price(1, 1)}, lines).total
    assert (total.calls, total.input, total.output, total.cached) == (1, 1000, 10, 500)
    assert total.cost == pytest.approx(0.00101)


def test_the_journal_also_says_what_was_cut_off_and_refused() -> None:
    lines = [
        JournalLine(
            f"town/1/{agent}/decide/0", "a", reply={"text": "", "finish": finish, "model": MODEL}, usage={"input": 1}
        )
        for agent, finish in enumerate(("stop", "length", "refused", "refused"))
    ]
    spending = Spending({MODEL: None}, lines)
    assert (spending.cut_off, spending.refused) == (1, 2)


def test_what_no_journal_holds_is_taken_over_from_earlier_sessions() -> None:
    earlier, later = Spending({}), Spending({})
    for spending in (earlier, later):
        spending.failures[FailureKind.OVERLOAD] += 2
        spending.unanswered[FailureKind.TRANSIENT] += 1
        spending.retries += 3
        spending.cache_hits += 4
    later.add_earlier(earlier.as_dict())
    told = later.as_dict()
    assert (told["failures"], told["unanswered"]) == ({"overload": 4}, {"transient": 2})
    assert (told["retries"], told["cache_hits"]) == (6, 8)


def test_it_reads_as_plain_values() -> None:
    spending = Spending({})
    spending.failures[FailureKind.OVERLOAD] += 2
    spending.cache_hits += 1
    shown = spending.as_dict()
    assert shown["failures"] == {"overload": 2}
    assert (shown["calls"], shown["cache_hits"], shown["unanswered"]) == (0, 1, {})
