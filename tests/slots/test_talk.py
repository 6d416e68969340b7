"""What a run says to its broker, and what it makes of what it hears."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from shoal.slots.client import Slots
from shoal.slots.leases import CallEnd, CallOutcome, Lease
from shoal.slots.protocol import (
    GREETING,
    Ask,
    ClientMessage,
    FrameDecoder,
    Grants,
    Hello,
    InvalidFrame,
    OtherVersion,
    PoolSizes,
    Resize,
    Resume,
    Return,
    encode_frame,
)

OK = CallOutcome(CallEnd.OK)
ONE = ("one",)


class Ledger:
    """A link that writes down what is said, in how many pieces."""

    def __init__(self) -> None:
        self.said: list[Sequence[ClientMessage]] = []

    def send(self, messages: Sequence[ClientMessage]) -> None:
        self.said.append(messages)

    def messages(self) -> list[ClientMessage]:
        return [message for messages in self.said for message in messages]

    def close(self) -> None:
        self.said.append(())


def talking(ceiling: int | None = None, **sizes: int) -> tuple[Slots, Ledger]:
    slots, ledger = Slots("run", weight=1.0, ceiling=ceiling, sizes=sizes), Ledger()
    slots.attach(ledger)
    ledger.said.clear()
    return slots, ledger


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def granted(slots: Slots, pools: tuple[str, ...] = ONE) -> Lease:
    claim = asyncio.create_task(slots.acquire(pools))
    await settle()
    slots.receive([Grants(list(range(100)))])
    return await claim


async def test_everything_of_one_turn_of_the_loop_is_said_at_once() -> None:
    slots, ledger = talking()
    claims = [asyncio.create_task(slots.acquire(ONE)) for _ in range(3_000)]
    await settle()
    assert [len(messages) for messages in ledger.said] == [3_000]
    slots.receive([Grants(list(range(1, 3_001)))])
    await asyncio.gather(*claims)


async def test_a_slot_is_handed_on_within_a_run_without_a_word() -> None:
    slots, ledger = talking(one=1)
    lease = await granted(slots)
    ledger.said.clear()
    slots.release(lease, OK)
    again = await slots.acquire(ONE)
    await settle()
    assert ledger.said == []
    slots.release(again, OK)
    await settle()
    assert ledger.said == [[Return(lease.granted_ticket, OK)]]


async def test_a_slot_that_was_held_for_long_goes_back_to_the_broker() -> None:
    slots, ledger = talking(one=1)
    lease = await granted(slots)
    lease.granted_at -= 1.0
    ledger.said.clear()
    slots.release(lease, OK)
    claim = asyncio.create_task(slots.acquire(ONE))
    await settle()
    assert ledger.messages() == [Return(lease.granted_ticket, OK), Ask(2, ONE, 0)]
    claim.cancel()


async def test_each_call_in_a_pool_that_learns_is_told_to_it() -> None:
    slots, ledger = talking()
    lease = await granted(slots)
    ledger.said.clear()
    slots.release(lease, OK)
    claim = asyncio.create_task(slots.acquire(ONE))
    await settle()
    assert ledger.messages() == [Return(1, OK), Ask(2, ONE, 0)]
    claim.cancel()


async def test_a_lower_ceiling_ends_handing_on() -> None:
    slots, ledger = talking(ceiling=1, one=1)
    lease = await granted(slots)
    slots.ceiling = 0
    ledger.said.clear()
    slots.release(lease, OK)
    claim = asyncio.create_task(slots.acquire(ONE))
    await settle()
    assert ledger.said == [[Return(1, OK)]]
    claim.cancel()


async def test_a_new_broker_is_told_everything_that_counts() -> None:
    slots, _ = talking(one=2)
    held = await granted(slots)
    over = await granted(slots, ("two",))
    waiting = asyncio.create_task(slots.acquire(ONE, 7))
    await settle()
    slots.receive([PoolSizes({"one": 2, "other": 5})])
    slots.detach()
    slots.release(over, OK)
    slots.resize("one", 3)
    new = Ledger()
    slots.attach(new)
    ((hello, *rest),) = new.said
    assert isinstance(hello, Hello)
    assert hello.sizes == {"one": 3, "other": 5}
    assert rest == [Resume(held.granted_ticket, ONE, 0), Resize("one", 3), Ask(3, ONE, 7)]
    slots.receive([PoolSizes({"one": 3, "other": 5})])
    slots.attach(third := Ledger())
    assert not any(isinstance(message, Resize) for message in third.said[0])
    waiting.cancel()


async def test_a_grant_that_nobody_waits_for_any_more_changes_nothing() -> None:
    slots, ledger = talking()
    claim = asyncio.create_task(slots.acquire(ONE))
    await settle()
    claim.cancel()
    await settle()
    slots.receive([Grants([1])])
    assert slots.held == 0
    assert ledger.said[-1] == [Return(1, CallOutcome(CallEnd.CANCELLED))]


# the format


@pytest.mark.parametrize("size", [1, 3, 7, 1_000])
def test_messages_come_out_as_they_went_in_however_they_are_cut(size: int) -> None:
    messages: list[ClientMessage] = [Hello("run", 7, 1.5, {"one": 3}), *(Ask(n, ("a", "b"), 10 * n) for n in range(50))]
    data = GREETING + encode_frame(messages[:20]) + encode_frame(messages[20:])
    ears = FrameDecoder.of_broker()
    heard = [message for at in range(0, len(data), size) for message in ears.feed(data[at : at + size])]
    assert heard == messages


@pytest.mark.parametrize(
    ("greeting", "told"),
    [(b"shoal slots 999\n", "version 999"), (b"GET / HTTP/1.1\r\n", "another language"), (b"x" * 100, "another")],
)
def test_another_version_is_recognised(greeting: bytes, told: str) -> None:
    with pytest.raises(OtherVersion, match=told):
        FrameDecoder.of_run().feed(greeting)


@pytest.mark.parametrize(
    "data",
    [
        encode_frame([Resize("one", 1)])[:4] + b"\xc1" * 7,
        b"\xff\xff\xff\xff",
        encode_frame([Hello("run", 1, 0.0, {})]),
        encode_frame([Resize("one", -1)]),
        encode_frame([Grants([1])]),
    ],
    ids=["no message", "too long", "no weight", "a negative size", "an answer"],
)
def test_what_makes_no_sense_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidFrame):
        FrameDecoder.of_broker().feed(GREETING + data + b" " * 8)
