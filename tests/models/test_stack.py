"""All of it together, against a server on this machine."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import orjson
import pytest

from shoal.errors import BudgetReached, ProviderRefused, RunRefused
from shoal.journal import Journal, read_journal
from shoal.models.base import FailureKind, ModelFailed
from shoal.models.costs import Price, Spending
from shoal.models.http.messages import HttpReply
from shoal.models.http.pool import FakeTransport
from shoal.models.middleware.limited import PlainLimit
from shoal.models.openai.endpoints import Endpoint
from shoal.models.stack import StackSettings, open_stack
from tests.models.fakes import KEY, MODEL, SCHEMA, completion, endpoints, question, reply_with
from tests.models.servers import ChatReply, serve_chat

REPLY = HttpReply(200, {}, orjson.dumps(completion('{"mood": "fine"}')))


def settings(**changes: Any) -> StackSettings:
    return StackSettings(**{"endpoints": endpoints(), "limit": PlainLimit(8), "seed": 5, **changes})


async def run(path: Path, chosen: StackSettings, transport: FakeTransport | None, numbers: range) -> Spending:
    """Ask all questions at once, in one session of a run."""
    async with Journal.open(path) as journal, open_stack(chosen, journal, transport) as stack:
        async with asyncio.TaskGroup() as group:
            for number in numbers:
                group.create_task(stack.answer(question(number, schema=SCHEMA, max_tokens=20)))
        return stack.spending


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


async def test_what_was_spent_is_known(path: Path) -> None:
    spending = await run(path, settings(), FakeTransport(lambda _: REPLY), range(10))
    assert (spending.calls, spending.total.input, spending.total.cached) == (10, 500, 300)
    assert spending.cost == pytest.approx(10 * (20 * 0.4 + 30 * 0.1 + 5 * 1.6) / 1e6)


async def test_nothing_is_paid_for_twice_when_a_run_goes_on(path: Path) -> None:
    server = FakeTransport(lambda _: REPLY)
    await run(path, settings(), server, range(10))
    spending = await run(path, settings(), server, range(15))
    assert len(server.requests) == spending.calls == 15
    assert len(read_journal(path)[0]) == 15


async def test_another_run_pays_nothing_where_there_is_a_cache(path: Path, tmp_path: Path) -> None:
    server, chosen = FakeTransport(lambda _: REPLY), settings(cache=tmp_path / "cache.sqlite")
    await run(path, chosen, server, range(10))
    spending = await run(tmp_path / "other.jsonl", chosen, server, range(10))
    assert (len(server.requests), spending.calls, spending.cache_hits, spending.cost) == (10, 0, 10, 0)
    again = await run(tmp_path / "other.jsonl", chosen, server, range(10))
    assert (again.calls, again.cache_hits) == (0, 0)


@pytest.mark.parametrize("limit", [{"max_calls": 4}, {"max_cost": 0.0003}, {"max_tokens": 600}], ids=str)
async def test_a_budget_holds_over_all_sessions_and_loses_nothing(path: Path, limit: dict[str, Any]) -> None:
    server = FakeTransport(lambda _: REPLY)
    for _ in range(3):
        with pytest.raises(ExceptionGroup) as caught:
            await run(path, settings(**limit), server, range(50))
        assert caught.group_contains(BudgetReached)
    assert 0 < len(server.requests) < 50
    assert len(read_journal(path)[0]) == len(server.requests)
    if "max_calls" in limit:
        assert len(server.requests) == 4
    spending = await run(path, settings(), server, range(50))
    assert len(server.requests) == spending.calls == 50


async def test_a_limit_in_dollars_without_a_price_is_refused_before_anything_is_asked(path: Path) -> None:
    own = {"vllm/mine": Endpoint(model="mine", base_url="https://models.example/v1")}
    server = FakeTransport(lambda _: REPLY)
    with pytest.raises(RunRefused, match="the price of vllm/mine is not known"):
        await run(path, settings(endpoints=own, max_cost=1.0), server, range(1))
    assert server.requests == []


async def test_the_scenarios_price_counts_more_than_the_tables(path: Path) -> None:
    at = Endpoint(model="m", base_url="http://localhost/v1", price=Price(100, 100))
    spending = await run(path, settings(endpoints={MODEL: at}), FakeTransport(lambda _: REPLY), range(1))
    assert spending.cost == pytest.approx(55 * 100 / 1e6)


async def test_a_server_that_fails_now_and_then_is_asked_again_and_each_failure_is_counted(path: Path) -> None:
    # The server names the waits, so that the test need not wait.
    busy = HttpReply(503, {"retry-after-ms": "0"}, b"overloaded")
    slow = HttpReply(429, {"retry-after-ms": "0"}, b"requests per minute")
    script = iter([busy, slow, REPLY])
    async with (
        Journal.open(path) as journal,
        open_stack(settings(deadline_seconds=60), journal, FakeTransport(lambda _: next(script))) as stack,
    ):
        await stack.answer(question())
    spending = stack.spending
    assert spending.failures == {FailureKind.OVERLOAD: 1, FailureKind.REQUEST_RATE: 1}
    assert (spending.retries, spending.calls, dict(spending.unanswered)) == (2, 1, {})


async def test_a_hang_is_cut_in_time_for_a_second_attempt(path: Path) -> None:
    asked: list[dict[str, Any]] = []

    async def handle(body: dict[str, Any], _: asyncio.StreamWriter) -> ChatReply:
        asked.append(body)
        if len(asked) == 1:
            await asyncio.Event().wait()
        return ChatReply(completion())

    async with serve_chat(handle) as base_url:
        spending = await run(path, settings(endpoints=endpoints(base_url), deadline_seconds=4), None, range(1))
    assert spending.failures == {FailureKind.TRANSIENT: 1}
    assert spending.calls == 1


async def test_the_key_is_in_no_artefact(path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever happens, and whatever the server says."""
    caplog.set_level(logging.DEBUG)
    echo = {"error": {"message": f"bad key {KEY}"}}
    # The second answer is that to the control question, which shows that the 400 is the question's own.
    handler, _ = reply_with((200, completion("{}")), (400, echo), (200, completion("{}")), (401, echo))
    async with serve_chat(handler) as base_url:
        chosen = settings(endpoints=endpoints(base_url), cache=tmp_path / "cache.sqlite")
        async with Journal.open(path) as journal, open_stack(chosen, journal) as stack:
            await stack.answer(question(1))
            with pytest.raises(ModelFailed) as caught:
                await stack.answer(question(2))
            with pytest.raises(ProviderRefused) as refused:
                await stack.answer(question(3))
            shown = [repr(caught.value), str(caught.value.failure), repr(refused.value)]
        shown += [repr(chosen), str(stack.spending.as_dict()), caplog.text]
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert len(files) >= 2
    assert not any(KEY.encode() in file.read_bytes() for file in files)
    assert not any(KEY in text for text in shown)
