"""What a run claims slots with. Where the broker is makes no difference to it, nor that a broker dies."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import count

import msgspec

from shoal.errors import SlotsRefused
from shoal.slots.adaptive.limiter import Adaptive
from shoal.slots.broker import Broker
from shoal.slots.connection import Link, LocalLink, dial
from shoal.slots.dispatcher import Dispatcher
from shoal.slots.leases import CANCELLED, Backoff, CallOutcome, Control, Lease, Snapshot
from shoal.slots.location import BrokerLocation
from shoal.slots.protocol import (
    Ask,
    BackOff,
    BrokerMessage,
    ClientMessage,
    Garbled,
    Granted,
    Hello,
    Resize,
    Resume,
    Return,
    Seen,
    Sized,
    SnapshotRequest,
)
from shoal.slots.start import NoBroker

_log = logging.getLogger(__name__)
#: For so long may a run hand a slot on among its own claims before it must give it back to whoever else waits. Calls
#: to a model take longer; without it, what takes microseconds would mostly wait for the broker.
_SLICE_SECONDS = 0.001
#: Makes the control of a pool that nobody has given a size.
Learn = Callable[[str], Control]


def _adaptive(pool: str) -> Control:
    return Adaptive()


class _PendingClaim(msgspec.Struct, frozen=True, eq=False):
    lease: Lease
    granted: asyncio.Future[None]


class Slots:
    """The slots of one run.

    Everything a broker needs to know is kept here as well, so that a new one can be told all of it: `attach` is the
    same for the first broker and for one that takes the place of another.
    """

    def __init__(self, name: str, *, weight: float, ceiling: int | None, sizes: Mapping[str, int]) -> None:
        self.name = name
        self.weight = weight
        #: Pools of a fixed size, as far as the broker said.
        self.sizes = dict(sizes)
        self._ceiling = ceiling
        self._tickets = count(1)
        #: Claims above the ceiling, claims that wait at the broker, and leases.
        self._unsaid: OrderedDict[int, _PendingClaim] = OrderedDict()
        self._asked: dict[int, _PendingClaim] = {}
        self._held: dict[int, Lease] = {}
        #: Slots given back in this turn of the loop, which the run's next claim may have.
        self._spare: dict[tuple[str, ...], tuple[Lease, CallOutcome]] = {}
        self._backoffs: dict[str, Backoff] = {}
        self._resized: dict[str, int] = {}
        self._looking: list[asyncio.Future[Snapshot]] = []
        self._link: Link | None = None
        self._outbox: list[ClientMessage] = []
        self._flushing = False

    # what a run does

    async def acquire(self, pools: tuple[str, ...], tokens: int = 0, *, first: bool = False) -> Lease:
        """Wait for a slot of each of these pools, before this run's other claims if `first`.

        Who stops waiting holds nothing.
        """
        lease = Lease(next(self._tickets), pools, tokens, first=first)
        wish = _PendingClaim(lease, asyncio.get_running_loop().create_future())
        if self._unsaid or not self._has_room():
            self._unsaid[lease.ticket] = wish
            if first:
                self._unsaid.move_to_end(lease.ticket, last=False)
        else:
            self._ask(wish)
        try:
            await wish.granted
        except BaseException:
            self._give_up(lease)
            raise
        return lease

    def release(self, lease: Lease, outcome: CallOutcome) -> None:
        """Give a lease back, and say how it went. Doing so twice does no harm."""
        if self._held.pop(lease.ticket, None) is None:
            return
        if self._may_hand_on(lease):
            self._spare[lease.pools] = (lease, outcome)
            self._flush_soon()
        else:
            self._say(Return(lease.granted, outcome))
        self._advance()

    def back_off(self, label: str, backoff: Backoff | None) -> None:
        """Let people see that something is tried again later, on the clock `time.monotonic`; None: not any more."""
        if backoff is None:
            self._backoffs.pop(label, None)
        else:
            self._backoffs[label] = backoff
        self._say(BackOff(label, backoff))

    def resize(self, pool: str, size: int) -> None:
        """Give a pool a fixed size, for everybody. Where it is lowered, those that run may end; 0 lets nobody begin."""
        if size < 0:
            raise ValueError(f"a pool cannot have {size} slots")
        self.sizes[pool] = self._resized[pool] = size
        self._say(Resize(pool, size))

    async def look(self) -> Snapshot:
        """Everything the broker knows, of all runs."""
        seen: asyncio.Future[Snapshot] = asyncio.get_running_loop().create_future()
        self._looking.append(seen)
        self._say(SnapshotRequest())
        return await seen

    @property
    def held(self) -> int:
        return len(self._held)

    @property
    def backing_off(self) -> int:
        return len(self._backoffs)

    @property
    def waiting(self) -> int:
        return len(self._asked) + len(self._unsaid)

    @property
    def is_shared(self) -> bool:
        """Whether other processes take part: not, where a run keeps to itself, or where no broker could be started."""
        return not isinstance(self._link, LocalLink)

    @property
    def ceiling(self) -> int | None:
        """How many this run may have at once, whatever the pools allow; None: as many as it gets."""
        return self._ceiling

    @ceiling.setter
    def ceiling(self, ceiling: int | None) -> None:
        self._ceiling = ceiling
        self._advance()

    # claims

    def _has_room(self) -> bool:
        return self._ceiling is None or len(self._asked) + len(self._held) < self._ceiling

    def _ask(self, wish: _PendingClaim) -> None:
        lease = wish.lease
        spare = self._spare.pop(lease.pools, None)
        if spare is not None:
            self._hold(wish, spare[0].granted, spare[0].granted_at)
        else:
            self._asked[lease.ticket] = wish
            self._say(Ask(lease.ticket, lease.pools, lease.tokens, lease.first))

    def _hold(self, wish: _PendingClaim, granted: int, now: float) -> None:
        lease = wish.lease
        lease.granted, lease.granted_at = granted, now
        self._held[lease.ticket] = lease
        if not wish.granted.done():
            wish.granted.set_result(None)

    def _may_hand_on(self, lease: Lease) -> bool:
        """Only where nothing is learned from how it went, and not so long that others have to wait for it."""
        return (
            self._link is not None
            and lease.pools not in self._spare
            and time.monotonic() - lease.granted_at < _SLICE_SECONDS
            and all(pool in self.sizes for pool in lease.pools)
        )

    def _advance(self) -> None:
        while self._unsaid and self._has_room():
            self._ask(self._unsaid.popitem(last=False)[1])

    def _give_up(self, lease: Lease) -> None:
        ticket = lease.ticket
        if self._unsaid.pop(ticket, None) is not None:
            return
        if self._asked.pop(ticket, None) is not None:
            # If the grant is on its way, this gives it back.
            self._say(Return(ticket, CANCELLED))
            self._advance()
        else:
            self.release(lease, CANCELLED)

    # what the broker says

    def hear(self, replies: Sequence[BrokerMessage]) -> None:
        for reply in replies:
            if isinstance(reply, Granted):
                self._grant(reply.tickets)
            elif isinstance(reply, Sized):
                self.sizes.update(reply.sizes)
                self._resized = {pool: size for pool, size in self._resized.items() if reply.sizes.get(pool) != size}
            elif isinstance(reply, Seen):
                self._show(reply.snapshot)

    def _grant(self, tickets: Sequence[int]) -> None:
        now = time.monotonic()
        for ticket in tickets:
            wish = self._asked.pop(ticket, None)
            # Who gave up in the meantime has told the broker.
            if wish is not None:
                self._hold(wish, ticket, now)

    def _show(self, snapshot: Snapshot) -> None:
        looking, self._looking = self._looking, []
        for seen in looking:
            if not seen.done():
                seen.set_result(snapshot)

    # talking

    def _say(self, message: ClientMessage) -> None:
        """With everything else that is said in this turn of the loop. Without a broker: it will be told everything."""
        if self._link is not None:
            self._outbox.append(message)
            self._flush_soon()

    def _flush_soon(self) -> None:
        if not self._flushing:
            self._flushing = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing = False
        outbox = [*self._outbox, *(Return(lease.granted, outcome) for lease, outcome in self._spare.values())]
        self._outbox = []
        self._spare.clear()
        if self._link is not None and outbox:
            self._link.say(outbox)

    def attach(self, link: Link) -> None:
        """Tell a broker everything. What is held comes first, so that nobody else gets it."""
        self._link, self._outbox = link, []
        self._spare.clear()
        held, asked = self._held.values(), [wish.lease for wish in self._asked.values()]
        link.say(
            [
                Hello(self.name, os.getpid(), self.weight, self.sizes),
                *(Resume(lease.granted, lease.pools, lease.tokens) for lease in held),
                *(Resize(pool, size) for pool, size in self._resized.items()),
                *(Ask(lease.ticket, lease.pools, lease.tokens, lease.first) for lease in asked),
                *(BackOff(label, backoff) for label, backoff in self._backoffs.items()),
                *(SnapshotRequest() for _ in self._looking[:1]),
            ]
        )

    def detach(self) -> None:
        """The broker is gone. Leases go on, claims wait, and what is said meanwhile is told the next one."""
        self._link, self._outbox = None, []
        self._spare.clear()

    def close(self) -> None:
        """Say what there is to say, and give everything back."""
        self._flush()
        link, self._link = self._link, None
        for wish in (*self._unsaid.values(), *self._asked.values()):
            wish.granted.cancel()
        for seen in self._looking:
            seen.cancel()
        if link is not None:
            link.close()


class _Connected:
    """Keeps the slots of a run connected to a broker, whichever it is."""

    def __init__(self, slots: Slots, place: BrokerLocation, learn: Learn) -> None:
        self._slots = slots
        self._place = place
        self._learn = learn
        self._searching: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Whoever starts a run can act on what is refused; that there is no broker must not stop the run."""
        try:
            self._slots.attach(await dial(self._place, self, time.monotonic))
        except NoBroker as error:
            self._go_alone(error)

    def hear(self, replies: Sequence[BrokerMessage]) -> None:
        self._slots.hear(replies)

    def lost(self, why: Exception | None) -> None:
        self._slots.detach()
        if isinstance(why, Garbled):
            self._go_alone(why)  # another try would end the same way
        else:
            self._searching = asyncio.get_running_loop().create_task(self._search())

    async def _search(self) -> None:
        try:
            self._slots.attach(await dial(self._place, self, time.monotonic))
        except (NoBroker, SlotsRefused) as error:
            self._go_alone(error)

    def _go_alone(self, why: Exception) -> None:
        _log.warning(
            "%s: no broker at %s (%s): limits hold only within this run", self._slots.name, self._place.socket, why
        )
        self._slots.attach(LocalLink(Dispatcher(Broker(self._learn)), self._slots.hear))

    async def close(self) -> None:
        if self._searching is not None:
            self._searching.cancel()
            await asyncio.wait([self._searching])


@asynccontextmanager
async def open_slots(
    name: str,
    where: BrokerLocation | Dispatcher | None = None,
    *,
    weight: float = 1.0,
    ceiling: int | None = None,
    sizes: Mapping[str, int] | None = None,
    learn: Learn = _adaptive,
) -> AsyncIterator[Slots]:
    """The slots of a run: from the broker at a place, from a desk in this process, or from one of its own (None).

    `sizes` are pools of a fixed size, unless somebody said otherwise before; what has no size learns its limit.
    """
    slots = Slots(name, weight=weight, ceiling=ceiling, sizes=sizes or {})
    connected = _Connected(slots, where, learn) if isinstance(where, BrokerLocation) else None
    try:
        if connected is not None:
            await connected.open()
        else:
            desk = where if isinstance(where, Dispatcher) else Dispatcher(Broker(learn))
            slots.attach(LocalLink(desk, slots.hear))
        yield slots
    finally:
        if connected is not None:
            await connected.close()
        slots.close()
