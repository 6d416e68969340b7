"""The slots of one run. Works the same with a broker in this process or in another one, and survives its death."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import count

from shoal.errors import SlotsRefused
from shoal.slots.adaptive.limiter import Adaptive, Learned
from shoal.slots.adaptive.store import LimitStore
from shoal.slots.broker import Broker
from shoal.slots.connection import Link, connect
from shoal.slots.dispatcher import BrokerSession, Dispatcher
from shoal.slots.leases import CANCELLED, Backoff, CallOutcome, Control, Lease, Snapshot
from shoal.slots.location import BrokerLocation, RemoteBroker
from shoal.slots.protocol import (
    Ask,
    BackOff,
    BrokerMessage,
    BrokerSilent,
    ClientMessage,
    Grants,
    Hello,
    InvalidFrame,
    PoolSizes,
    Resize,
    Resume,
    Return,
    SnapshotReply,
    SnapshotRequest,
)
from shoal.slots.server import NoBroker

_log = logging.getLogger(__name__)
#: How long a run may hand a slot on among its own claims before it must go back to the broker. Calls to a model take
#: longer; without it, things that take microseconds would mostly wait for the broker.
_SLICE_SECONDS = 0.001
#: Makes the control of a pool that was given no size.
Learn = Callable[[str], Control]


def remember_limits(place: BrokerLocation | RemoteBroker, snapshot: Snapshot, pools: Iterable[str]) -> None:
    """Keep in this user's memory what was learned about pools, unless the broker keeps it there itself."""
    if isinstance(place, RemoteBroker) or snapshot.memory == str(place.memory):
        return
    now, wanted = time.time(), set(pools)
    store = LimitStore(place.memory, now)
    for pool in snapshot.pools:
        if pool.name in wanted and pool.learned is not None:
            store.put(pool.name, pool.learned, now)


class Slots:
    """The slots of one run.

    Everything a broker needs to know is kept here as well, so that `attach` is the same for the first broker and for
    one that replaces another.
    """

    def __init__(self, name: str, *, weight: float, ceiling: int | None, sizes: Mapping[str, int]) -> None:
        self.name = name
        self.weight = weight
        #: Sizes of fixed pools, as the broker announced them.
        self.sizes = dict(sizes)
        self._ceiling = ceiling
        self._tickets = count(1)
        #: Claims above the ceiling, claims that wait at the broker, and leases.
        self._queued: OrderedDict[int, Lease] = OrderedDict()
        self._asked: dict[int, Lease] = {}
        self._held: dict[int, Lease] = {}
        #: Slots given back in this turn of the loop, which the run's next claim may have.
        self._spare: dict[tuple[str, ...], tuple[Lease, CallOutcome]] = {}
        self._backoffs: dict[str, Backoff] = {}
        self._resized: dict[str, int] = {}
        self._snapshots: list[asyncio.Future[Snapshot]] = []
        self._link: Link | None = None
        self._outbox: list[ClientMessage] = []
        self._is_flushing = False

    # for the run

    async def acquire(self, pools: tuple[str, ...], tokens: int = 0, *, first: bool = False) -> Lease:
        """Wait for a slot of each of these pools, before this run's other claims if `first`.

        If it is cancelled, nothing is held.
        """
        lease = Lease(next(self._tickets), pools, tokens, first, asyncio.get_running_loop().create_future())
        if self._queued or not self._has_room():
            self._queued[lease.ticket] = lease
            if first:
                self._queued.move_to_end(lease.ticket, last=False)
        else:
            self._ask(lease)
        try:
            await lease.granted
        except BaseException:
            self._cancel(lease)
            raise
        return lease

    def release(self, lease: Lease, outcome: CallOutcome) -> None:
        """Give a lease back with its outcome. Doing so twice does no harm."""
        if self._held.pop(lease.ticket, None) is None:
            return
        # Hand on only where nothing is learned from the outcome, and not for longer than other runs should wait.
        if (
            self._link is not None
            and lease.pools not in self._spare
            and time.monotonic() - lease.granted_at < _SLICE_SECONDS
            and all(pool in self.sizes for pool in lease.pools)
        ):
            self._spare[lease.pools] = (lease, outcome)
            self._schedule_flush()
        else:
            self._send(Return(lease.granted_ticket, outcome))
        self._ask_queued()

    def back_off(self, label: str, backoff: Backoff | None) -> None:
        """Show that a question waits for its next attempt, on the clock `time.monotonic`; None: not any more."""
        if backoff is None:
            self._backoffs.pop(label, None)
        else:
            self._backoffs[label] = backoff
        self._send(BackOff(label, backoff))

    def resize(self, pool: str, size: int) -> None:
        """Give a pool a fixed size for all runs. Leases above it run to their end; 0 lets none begin."""
        if size < 0:
            raise ValueError(f"a pool cannot have {size} slots")
        self.sizes[pool] = self._resized[pool] = size
        self._send(Resize(pool, size))

    async def request_snapshot(self) -> Snapshot:
        """Ask the broker for its state, which covers all runs."""
        snapshot: asyncio.Future[Snapshot] = asyncio.get_running_loop().create_future()
        self._snapshots.append(snapshot)
        self._send(SnapshotRequest())
        return await snapshot

    @property
    def held(self) -> int:
        return len(self._held)

    @property
    def backing_off(self) -> int:
        return len(self._backoffs)

    @property
    def waiting(self) -> int:
        return len(self._asked) + len(self._queued)

    @property
    def is_shared(self) -> bool:
        """Whether other processes take part: not with a broker of the run's own."""
        return not isinstance(self._link, BrokerSession)

    @property
    def ceiling(self) -> int | None:
        """How many slots this run may have at once, whatever the pools allow; None: no such limit."""
        return self._ceiling

    @ceiling.setter
    def ceiling(self, ceiling: int | None) -> None:
        self._ceiling = ceiling
        self._ask_queued()

    # claims

    def _has_room(self) -> bool:
        return self._ceiling is None or len(self._asked) + len(self._held) < self._ceiling

    def _ask(self, lease: Lease) -> None:
        spare = self._spare.pop(lease.pools, None)
        if spare is not None:
            self._hold(lease, spare[0].granted_ticket, spare[0].granted_at)
        else:
            self._asked[lease.ticket] = lease
            self._send(Ask(lease.ticket, lease.pools, lease.tokens, lease.first))

    def _ask_queued(self) -> None:
        while self._queued and self._has_room():
            self._ask(self._queued.popitem(last=False)[1])

    def _hold(self, lease: Lease, granted_ticket: int, now: float) -> None:
        lease.granted_ticket, lease.granted_at = granted_ticket, now
        self._held[lease.ticket] = lease
        if not lease.granted.done():
            lease.granted.set_result(None)

    def _cancel(self, lease: Lease) -> None:
        ticket = lease.ticket
        if self._queued.pop(ticket, None) is not None:
            return
        if self._asked.pop(ticket, None) is not None:
            # If the grant is in flight, this gives it back.
            self._send(Return(ticket, CANCELLED))
            self._ask_queued()
        else:
            self.release(lease, CANCELLED)

    # talking to the broker

    def receive(self, replies: Sequence[BrokerMessage]) -> None:
        """Take in what the broker sent."""
        for reply in replies:
            if isinstance(reply, Grants):
                now = time.monotonic()
                for ticket in reply.tickets:
                    lease = self._asked.pop(ticket, None)
                    # The broker knows of a claim that was cancelled in the meantime.
                    if lease is not None:
                        self._hold(lease, ticket, now)
            elif isinstance(reply, PoolSizes):
                self.sizes.update(reply.sizes)
                self._resized = {pool: size for pool, size in self._resized.items() if reply.sizes.get(pool) != size}
            elif isinstance(reply, SnapshotReply):
                snapshots, self._snapshots = self._snapshots, []
                for snapshot in snapshots:
                    if not snapshot.done():
                        snapshot.set_result(reply.snapshot)

    def _send(self, message: ClientMessage) -> None:
        """Send a message with all others of this turn of the loop. Without a broker, `attach` covers it later."""
        if self._link is not None:
            self._outbox.append(message)
            self._schedule_flush()

    def _schedule_flush(self) -> None:
        if not self._is_flushing:
            self._is_flushing = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._is_flushing = False
        outbox = [*self._outbox, *(Return(lease.granted_ticket, outcome) for lease, outcome in self._spare.values())]
        self._outbox = []
        self._spare.clear()
        if self._link is not None and outbox:
            self._link.send(outbox)

    def attach(self, link: Link) -> None:
        """Use this broker and tell it everything. Leases come first, so that no other run gets their slots."""
        self.detach()
        self._link = link
        link.send(
            [
                Hello(self.name, os.getpid(), self.weight, self.sizes),
                *(Resume(lease.granted_ticket, lease.pools, lease.tokens) for lease in self._held.values()),
                *(Resize(pool, size) for pool, size in self._resized.items()),
                *(Ask(lease.ticket, lease.pools, lease.tokens, lease.first) for lease in self._asked.values()),
                *(BackOff(label, backoff) for label, backoff in self._backoffs.items()),
                *(SnapshotRequest() for _ in self._snapshots[:1]),
            ]
        )

    def attach_locally(self, dispatcher: Dispatcher) -> None:
        """Use a broker in this process."""
        self.attach(BrokerSession(dispatcher, self.receive))

    def detach(self) -> None:
        """Go on without a broker: leases stay valid and claims wait for the next one."""
        self._link, self._outbox = None, []
        self._spare.clear()

    def close(self) -> None:
        """Send what is still to be sent, and give everything back."""
        self._flush()
        link, self._link = self._link, None
        for lease in (*self._queued.values(), *self._asked.values()):
            lease.granted.cancel()
        for snapshot in self._snapshots:
            snapshot.cancel()
        if link is not None:
            link.close()


class _SharedConnection:
    """Keeps the slots of a run connected to the broker of a place, also when that one is replaced by another."""

    def __init__(self, slots: Slots, place: BrokerLocation | RemoteBroker) -> None:
        self._slots = slots
        self._place = place
        self._reconnecting: asyncio.Task[None] | None = None

    async def open(self, *, was_silent: bool = False) -> None:
        """Connect. A refusal is an error of the user's; that there is no broker must not stop the run."""
        try:
            self._slots.attach(await connect(self._place, self, time.monotonic, was_silent=was_silent))
        except NoBroker as error:
            self._use_local_broker(error)

    def receive(self, replies: Sequence[BrokerMessage]) -> None:
        self._slots.receive(replies)

    def on_lost(self, why: Exception | None) -> None:
        self._slots.detach()
        if isinstance(why, InvalidFrame):
            self._use_local_broker(why)  # another try would end the same way
        else:
            reconnecting = self._reconnect(was_silent=isinstance(why, BrokerSilent))
            self._reconnecting = asyncio.get_running_loop().create_task(reconnecting)

    async def _reconnect(self, *, was_silent: bool) -> None:
        try:
            await self.open(was_silent=was_silent)
        except SlotsRefused as error:
            self._use_local_broker(error)

    def _use_local_broker(self, why: Exception) -> None:
        if isinstance(self._place, RemoteBroker):
            # The limits of the other machine must hold, so nothing goes on without its broker.
            raise why
        _log.warning(
            "%s: no broker at %s (%s): limits hold only within this run", self._slots.name, self._place.socket, why
        )
        limits = LimitStore(self._place.memory, time.time())
        self._slots.attach_locally(Dispatcher(Broker(lambda pool: Adaptive(limits.of(pool, Learned)))))

    async def close(self) -> None:
        if self._reconnecting is not None:
            self._reconnecting.cancel()
            await asyncio.wait([self._reconnecting])


@asynccontextmanager
async def open_slots(
    name: str,
    where: BrokerLocation | RemoteBroker | Dispatcher | None = None,
    *,
    weight: float = 1.0,
    ceiling: int | None = None,
    sizes: Mapping[str, int] | None = None,
    learn: Learn = lambda pool: Adaptive(),
) -> AsyncIterator[Slots]:
    """Open the slots of a run: from the broker at a place, a dispatcher of this process, or a new one (None).

    `sizes` are pools of a fixed size, unless the broker has other sizes for them; pools without a size learn theirs.
    """
    slots = Slots(name, weight=weight, ceiling=ceiling, sizes=sizes or {})
    connection = _SharedConnection(slots, where) if isinstance(where, BrokerLocation | RemoteBroker) else None
    try:
        if connection is not None:
            await connection.open()
        else:
            slots.attach_locally(where if isinstance(where, Dispatcher) else Dispatcher(Broker(learn)))
        yield slots
    finally:
        if connection is not None:
            await connection.close()
        slots.close()
