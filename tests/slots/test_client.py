"""What a run can rely on: the same within one process and across processes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from shoal.slots.broker import Broker
from shoal.slots.client import Slots, open_slots
from shoal.slots.dispatcher import Dispatcher
from shoal.slots.leases import Backoff, CallEnd, CallOutcome, Fixed, Lease
from tests.slots.brokers import temporary_location, view_pool, wait_until

OK = CallOutcome(CallEnd.OK)
ONE = ("one",)
Open = Callable[..., AbstractAsyncContextManager[Slots]]


@pytest.fixture(params=["in one process", "across processes"])
def opening(request: pytest.FixtureRequest) -> Iterator[Open]:
    """Opens slots of one and the same broker."""
    if request.param == "in one process":
        dispatcher = Dispatcher(Broker(lambda name: Fixed(1_000)))
        yield lambda name="run", **options: open_slots(name, dispatcher, **options)
    else:
        with temporary_location() as place:
            yield lambda name="run", **options: open_slots(name, place, **options)


async def take(slots: Slots, count: int, pools: tuple[str, ...] = ONE) -> list[Lease]:
    return await asyncio.gather(*(slots.acquire(pools) for _ in range(count)))


class AgentCounter:
    """Agents of several runs, and how many of them act at the same moment.

    The first ones hold their slots until all slots are taken, so that a slow machine reaches the most as well.
    """

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._full = asyncio.Event()
        self.acting = 0
        self.most = 0
        self.turns = 0

    async def act(self, slots: Slots, turns: int) -> None:
        for _ in range(turns):
            lease = await slots.acquire(ONE)
            self.acting += 1
            self.most = max(self.most, self.acting)
            self.turns += 1
            if self.acting == self._slots:
                self._full.set()
            await self._full.wait()
            await asyncio.sleep(0)
            self.acting -= 1
            slots.release(lease, OK)


async def test_agents_of_several_runs_act_as_many_at_once_as_there_are_slots(opening: Open) -> None:
    counter = AgentCounter(3)
    async with opening("a", sizes={"one": 3}) as a, opening("b") as b:
        await asyncio.gather(*(counter.act(slots, 5) for slots in (a, b) for _ in range(20)))
        assert (counter.turns, counter.most) == (200, 3)
        assert (await wait_until(a, "one", lambda pool: not pool.held)).waiting == 0


async def test_runs_share_evenly_however_many_agents_they_have(opening: Open) -> None:
    order: list[str] = []

    async def act(slots: Slots) -> None:
        lease = await slots.acquire(ONE)
        order.append(slots.name)
        await asyncio.sleep(0.002)  # longer than a run may keep a slot to itself
        slots.release(lease, OK)

    async with opening("large", sizes={"one": 1}) as large, opening("small") as small:
        (held,) = await take(large, 1)
        agents = [asyncio.create_task(act(slots)) for slots, count in ((large, 30), (small, 5)) for _ in range(count)]
        await wait_until(large, "one", lambda pool: pool.waiting == 35)
        large.release(held, OK)
        await asyncio.gather(*agents)
    assert sorted(order[:10]) == ["large"] * 5 + ["small"] * 5


async def test_who_stops_waiting_holds_nothing(opening: Open) -> None:
    async with opening(sizes={"one": 1}) as slots:
        (held,) = await take(slots, 1)
        waiting = asyncio.create_task(slots.acquire(ONE))
        await wait_until(slots, "one", lambda pool: pool.waiting == 1)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert (await view_pool(slots, "one")).waiting == 0
        slots.release(held, OK)
        await take(slots, 1)
        assert slots.held == 1


@pytest.mark.parametrize("steps", [0, 1, 2, 4])
async def test_who_stops_waiting_while_the_grant_is_on_its_way_gives_it_back(opening: Open, steps: int) -> None:
    async with opening("a", sizes={"one": 1}) as a, opening("b") as b:
        (held,) = await take(a, 1)
        waiting = asyncio.create_task(b.acquire(ONE))
        await wait_until(a, "one", lambda pool: pool.waiting == 1)
        a.release(held, OK)
        for _ in range(steps):
            await asyncio.sleep(0)
        waiting.cancel()
        (result,) = await asyncio.gather(waiting, return_exceptions=True)
        if isinstance(result, Lease):  # it was too late to stop
            b.release(result, OK)
        await take(a, 1)
        pool = await wait_until(a, "one", lambda pool: not pool.waiting)
        assert [(view.name, view.held) for view in pool.holders] == [("a", 1)]


async def test_giving_back_twice_does_no_harm(opening: Open) -> None:
    async with opening(sizes={"one": 2}) as slots:
        first, _second = await take(slots, 2)
        slots.release(first, OK)
        slots.release(first, OK)
        third = await slots.acquire(ONE)
        slots.release(first, OK)
        assert third.ticket != first.ticket
        assert (await view_pool(slots, "one")).held == 2


async def test_a_run_that_is_closed_gives_everything_back(opening: Open) -> None:
    async with opening("stays", sizes={"one": 2}) as stays:
        async with opening("leaves") as leaves:
            await take(leaves, 2)
            waiting = asyncio.create_task(leaves.acquire(ONE))
            await wait_until(stays, "one", lambda pool: pool.waiting == 1)
        assert (await asyncio.gather(waiting, return_exceptions=True))[0].__class__ is asyncio.CancelledError
        await take(stays, 2)


async def test_a_claim_of_two_pools_waits_for_both(opening: Open) -> None:
    async with opening(sizes={"one": 1, "two": 2}) as slots:
        (one,) = await take(slots, 1, ONE)
        both = asyncio.create_task(slots.acquire(("two", "one")))
        assert (await wait_until(slots, "two", lambda pool: pool.waiting == 1)).held == 0
        slots.release(one, OK)
        await both
        assert (await view_pool(slots, "two")).held == (await view_pool(slots, "one")).held == 1


# sizes


async def test_a_size_changes_for_everybody_while_it_is_in_use(opening: Open) -> None:
    async with opening("a", sizes={"one": 1}) as a, opening("b") as b:
        assert len(await take(a, 1)) == 1
        waiting = asyncio.create_task(take(a, 3))
        b.resize("one", 4)
        assert len(await waiting) == 3
        assert (a.sizes["one"], b.sizes["one"]) == (4, 4)


async def test_what_a_run_declares_does_not_overrule_what_somebody_said(opening: Open) -> None:
    async with opening("a", sizes={"one": 6}) as a:
        a.resize("one", 2)
        await view_pool(a, "one")
        async with opening("b", sizes={"one": 6}) as b:
            await view_pool(b, "one")
            assert b.sizes["one"] == 2


async def test_a_size_below_zero_makes_no_sense(opening: Open) -> None:
    async with opening() as slots:
        with pytest.raises(ValueError, match="-1 slots"):
            slots.resize("one", -1)


# the run's own ceiling


async def test_claims_above_the_ceiling_are_not_even_sent(opening: Open) -> None:
    async with opening(sizes={"one": 100}, ceiling=3) as slots:
        first = asyncio.create_task(take(slots, 10))
        pool = await wait_until(slots, "one", lambda pool: pool.held == 3)
        assert (pool.waiting, slots.waiting) == (0, 7)
        slots.ceiling = 5
        pool = await wait_until(slots, "one", lambda pool: pool.held == 5)
        slots.ceiling = None
        assert len(await first) == 10


async def test_a_lower_ceiling_lets_running_ones_end_first(opening: Open) -> None:
    async with opening(sizes={"one": 100}, ceiling=4) as slots:
        held = await take(slots, 4)
        slots.ceiling = 2
        waiting = [asyncio.create_task(slots.acquire(ONE)) for _ in range(2)]
        await asyncio.sleep(0)
        slots.release(held.pop(), OK)
        slots.release(held.pop(), OK)
        assert (await wait_until(slots, "one", lambda pool: pool.held == 2)).waiting == 0
        assert not any(task.done() for task in waiting)
        slots.release(held.pop(), OK)
        slots.release(held.pop(), OK)
        await asyncio.gather(*waiting)


async def test_who_stops_waiting_below_the_ceiling_is_forgotten(opening: Open) -> None:
    async with opening(sizes={"one": 100}, ceiling=1) as slots:
        (held,) = await take(slots, 1)
        waiting = [asyncio.create_task(slots.acquire(ONE)) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.gather(waiting[0], return_exceptions=True)
        slots.release(held, OK)
        slots.release(await waiting[1], OK)
        await waiting[2]
        assert (slots.held, slots.waiting) == (1, 0)


# to look at


async def test_a_look_shows_all_runs_and_what_they_will_try_again(opening: Open) -> None:
    async with opening("a", sizes={"one": 1}) as a, opening("b", weight=2.5) as b:
        await take(a, 1)
        waiting = asyncio.create_task(b.acquire(ONE))
        b.back_off("q1", Backoff("one", "rate limit", 3, time.monotonic() + 3600))
        b.back_off("q2", Backoff("one", "overload", 1, time.monotonic() + 1))
        b.back_off("q2", None)
        await wait_until(b, "one", lambda pool: pool.waiting == 1)
        seen = await a.request_snapshot()
        (pool,) = seen.pools
        assert [(view.name, view.weight, view.held, view.waiting) for view in pool.holders] == [
            ("a", 1.0, 1, 0),
            ("b", 2.5, 0, 1),
        ]
        (backoff,) = seen.backoffs
        assert (backoff.holder, backoff.label, backoff.kind, backoff.attempt) == ("b", "q1", "rate limit", 3)
        assert 3000 < backoff.seconds_left <= 3600
        waiting.cancel()


async def test_a_pool_that_nobody_has_sized_learns(opening: Open) -> None:
    async with opening() as slots:
        lease = await slots.acquire(("model",), 500)
        slots.release(lease, CallOutcome(CallEnd.OK, seconds=0.5, tokens=480))
        assert (await wait_until(slots, "model", lambda pool: not pool.held)).waiting == 0


async def test_thousands_of_claims_at_once_are_all_served(opening: Open) -> None:
    async with opening(sizes={"one": 5_000}) as slots:
        leases = await take(slots, 5_000)
        assert (await view_pool(slots, "one")).held == 5_000
        for lease in leases:
            slots.release(lease, OK)
        await wait_until(slots, "one", lambda pool: not pool.held)


def test_slots_of_one_run_need_no_broker_process() -> None:
    async def main() -> Any:
        async with open_slots("alone", sizes={"one": 1}) as slots:
            await take(slots, 1)
            return slots.is_shared, (await slots.request_snapshot()).pools[0].held

    assert asyncio.run(main()) == (False, 1)
