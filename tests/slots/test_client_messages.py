"""What a run says to its broker, and what it makes of what it hears."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest

from shoal.slots.client import Slots
from shoal.slots.connection import SocketLink
from shoal.slots.leases import CallEnd, CallOutcome, Lease
from shoal.slots.protocol import (
    BEAT_SECONDS,
    BROKER_SILENCE_SECONDS,
    GREETING,
    Ask,
    Beat,
    BrokerMessage,
    BrokerSilent,
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


class RecordingLink:
    """A link that writes down what is said, in how many pieces."""

    def __init__(self) -> None:
        self.sent: list[Sequence[ClientMessage]] = []

    def send(self, messages: Sequence[ClientMessage]) -> None:
        self.sent.append(messages)

    def messages(self) -> list[ClientMessage]:
        return [message for messages in self.sent for message in messages]

    def close(self) -> None:
        self.sent.append(())


def open_recorded(ceiling: int | None = None, **sizes: int) -> tuple[Slots, RecordingLink]:
    slots, link = Slots("run", weight=1.0, ceiling=ceiling, sizes=sizes), RecordingLink()
    slots.attach(link)
    link.sent.clear()
    return slots, link


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def acquire_granted(slots: Slots, pools: tuple[str, ...] = ONE) -> Lease:
    claim = asyncio.create_task(slots.acquire(pools))
    await settle()
    slots.receive([Grants(list(range(100)))])
    return await claim


class RecordingListener:
    """The end of a link at a run, which writes down what reaches it."""

    def __init__(self) -> None:
        self.received: list[BrokerMessage] = []
        self.lost: list[Exception | None] = []

    def receive(self, replies: Sequence[BrokerMessage]) -> None:
        self.received += replies

    def on_lost(self, why: Exception | None) -> None:
        self.lost.append(why)


class RecordingTransport(asyncio.Transport):
    """A transport that writes down what is sent, and whether it was cut off."""

    def __init__(self, link: SocketLink) -> None:
        super().__init__()
        self._link = link
        self.written = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def abort(self) -> None:
        self._link.connection_lost(None)

    def close(self) -> None:
        self._link.connection_lost(None)


def open_link(clock: Callable[[], float]) -> tuple[SocketLink, RecordingListener]:
    """A link whose broker has greeted."""
    listener = RecordingListener()
    link = SocketLink(listener, clock)
    link.connection_made(RecordingTransport(link))
    link.data_received(GREETING)
    return link, listener


async def test_a_grant_that_came_while_the_run_was_stopped_does_not_hold() -> None:
    now = 0.0
    link, listener = open_link(lambda: now)
    now = 1.0
    link.data_received(encode_frame([Grants([1])]))
    assert listener.received == [Grants([1])]
    now = 30.0
    link.data_received(encode_frame([Grants([2])]))
    assert listener.received == [Grants([1])]
    assert [str(why) for why in listener.lost] == ["this process was stopped for 30.0 seconds"]


async def test_a_broker_that_says_nothing_is_given_up() -> None:
    now = 0.0
    link, listener = open_link(lambda: now)
    while not listener.lost:
        now += BEAT_SECONDS
        link.beat()
    assert isinstance(listener.lost[0], BrokerSilent)
    assert now < 2.0


async def test_a_broker_is_not_blamed_for_a_run_that_was_busy() -> None:
    now = 0.0
    link, listener = open_link(lambda: now)
    now = BROKER_SILENCE_SECONDS + 1.0
    link.beat()
    now += BEAT_SECONDS
    link.data_received(encode_frame([Beat()]))
    link.beat()
    assert listener.lost == []
    link.close()


async def test_everything_of_one_turn_of_the_loop_is_said_at_once() -> None:
    slots, link = open_recorded()
    claims = [asyncio.create_task(slots.acquire(ONE)) for _ in range(3_000)]
    await settle()
    assert [len(messages) for messages in link.sent] == [3_000]
    slots.receive([Grants(list(range(1, 3_001)))])
    await asyncio.gather(*claims)


async def test_a_slot_is_handed_on_within_a_run_without_a_word() -> None:
    slots, link = open_recorded(one=1)
    lease = await acquire_granted(slots)
    link.sent.clear()
    slots.release(lease, OK)
    again = await slots.acquire(ONE)
    await settle()
    assert link.sent == []
    slots.release(again, OK)
    await settle()
    assert link.sent == [[Return(lease.granted_ticket, OK)]]


async def test_a_slot_that_was_held_for_long_goes_back_to_the_broker() -> None:
    slots, link = open_recorded(one=1)
    lease = await acquire_granted(slots)
    lease.granted_at -= 1.0
    link.sent.clear()
    slots.release(lease, OK)
    claim = asyncio.create_task(slots.acquire(ONE))
    await settle()
    assert link.messages() == [Return(lease.granted_ticket, OK), Ask(2, ONE, 0)]
    claim.cancel()


async def test_each_call_in_a_pool_that_learns_is_told_to_it() -> None:
    slots, link = open_recorded()
    lease = await acquire_granted(slots)
    link.sent.clear()
    slots.release(lease, OK)
    claim = asyncio.create_task(slots.acquire(ONE))
    await settle()
    assert link.messages() == [Return(1, OK), Ask(2, ONE, 0)]
    claim.cancel()


async def test_a_lower_ceiling_ends_handing_on() -> None:
    slots, link = open_recorded(ceiling=1, one=1)
    lease = await acquire_granted(slots)
    slots.ceiling = 0
    link.sent.clear()
    slots.release(lease, OK)
    claim = asyncio.create_task(slots.acquire(ONE))
    await settle()
    assert link.sent == [[Return(1, OK)]]
    claim.cancel()


async def test_a_new_broker_is_told_everything_that_counts() -> None:
    slots, _ = open_recorded(one=2)
    held = await acquire_granted(slots)
    over = await acquire_granted(slots, ("two",))
    waiting = asyncio.create_task(slots.acquire(ONE, 7))
    await settle()
    slots.receive([PoolSizes({"one": 2, "other": 5})])
    slots.detach()
    slots.release(over, OK)
    slots.resize("one", 3)
    new = RecordingLink()
    slots.attach(new)
    ((hello, *rest),) = new.sent
    assert isinstance(hello, Hello)
    assert hello.sizes == {"one": 3, "other": 5}
    assert rest == [Resume(held.granted_ticket, ONE, 0), Resize("one", 3), Ask(3, ONE, 7)]
    slots.receive([PoolSizes({"one": 3, "other": 5})])
    slots.attach(third := RecordingLink())
    assert not any(isinstance(message, Resize) for message in third.sent[0])
    waiting.cancel()


async def test_a_grant_that_nobody_waits_for_any_more_changes_nothing() -> None:
    slots, link = open_recorded()
    claim = asyncio.create_task(slots.acquire(ONE))
    await settle()
    claim.cancel()
    await settle()
    slots.receive([Grants([1])])
    assert slots.held == 0
    assert link.sent[-1] == [Return(1, CallOutcome(CallEnd.CANCELLED))]


# the format


@pytest.mark.parametrize("size", [1, 3, 7, 1_000])
def test_messages_come_out_as_they_went_in_however_they_are_cut(size: int) -> None:
    messages: list[ClientMessage] = [Hello("run", 7, 1.5, {"one": 3}), *(Ask(n, ("a", "b"), 10 * n) for n in range(50))]
    data = GREETING + encode_frame(messages[:20]) + encode_frame(messages[20:])
    decoder = FrameDecoder.of_broker()
    received = [message for at in range(0, len(data), size) for message in decoder.feed(data[at : at + size])]
    assert received == messages


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
