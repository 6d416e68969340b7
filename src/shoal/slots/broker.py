"""Hands out slots fairly: pools, who waits for them, who holds them. Pure: no sockets, and time is a parameter.

The same object serves one run within its process, and all runs of a machine from a process of its own (`server.py`).

Who wants the same pools waits at the same *gate*, and each holder has one line there. A slot goes to the holder that
has least of the pool for its weight, and of those that have as much, to the one that was served least. Where a claim
needs several pools, the one in which its holder is best off decides; between two gates, only pools to which both lead.
A gate whose first claim cannot begin stops nobody at other gates, so that a provider that makes one model wait does not
make the others wait.
"""

from __future__ import annotations

import heapq
import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter

from shoal.slots.leases import (
    CANCELLED,
    Backoff,
    BackoffView,
    CallOutcome,
    Control,
    Fixed,
    Holder,
    HolderView,
    PoolView,
    SlotClaim,
    Snapshot,
)

#: How many backoffs a snapshot shows.
SHOWN_BACKOFFS = 300
#: How often a claim that waits for two pools is passed by before others let a slot be for a moment.
_PATIENCE = 16


class HolderShare:
    """What one holder has of one pool."""

    __slots__ = ("held", "key", "load", "one", "pool", "served", "waiting")

    def __init__(self, pool: SlotPool, weight: float) -> None:
        self.pool = pool
        #: What one slot means to it: half as much to whom is to get twice as many.
        self.one = 1 / weight
        self.held = 0
        self.waiting = 0
        #: What it holds, and what it was given so far, for its weight; and both together: whoever has least goes first.
        self.load = 0.0
        self.served = 0.0
        self.key = (0.0, 0.0)

    def queue(self) -> None:
        if not self.waiting and self.served < self.pool.level:
            # Who comes back after a pause has saved up nothing.
            self.served = self.pool.level
            self.key = (self.load, self.served)
        self.waiting += 1
        self.pool.waiting += 1

    def unqueue(self) -> None:
        self.waiting -= 1
        self.pool.waiting -= 1

    def serve(self) -> None:
        # Who had long leases and so was served seldom may be behind, but not so far that others pay for it later.
        level = self.pool.level
        begins = max(self.served, level - self.one)
        self.pool.level = max(level, begins)
        self.served = begins + self.one
        self.hold(+1)

    def hold(self, change: int) -> None:
        self.held += change
        self.pool.held += change
        self.load = self.held * self.one
        self.key = (self.load, self.served)

    def rank(self) -> tuple[float, float]:
        """As the key, but comparable over pools: how far this holder is ahead of its turn."""
        return self.load, self.served - self.pool.level


class SlotPool:
    """The slots of one kind, and who has them."""

    def __init__(self, name: str, control: Control) -> None:
        self.name = name
        self.control = control
        self.shares: dict[Holder, HolderShare] = {}
        self.held = 0
        self.waiting = 0
        #: How much those had been served so far who got slots lately.
        self.level = 0.0

    def share(self, holder: Holder) -> HolderShare:
        share = self.shares.get(holder)
        if share is None:
            share = self.shares[holder] = HolderShare(self, holder.weight)
        return share


class HolderQueue:
    """The claims of one holder at one gate, oldest first."""

    __slots__ = ("claims", "share", "shares")

    def __init__(self, shares: tuple[HolderShare, ...]) -> None:
        self.shares = shares
        #: The first of them, which is the only one where the gate leads to one pool.
        self.share = shares[0] if shares else None
        self.claims: OrderedDict[int, SlotClaim] = OrderedDict()

    def rank(self) -> tuple[float, float]:
        return max(map(HolderShare.rank, self.shares), default=(0.0, 0.0))


_key_in_one_pool = attrgetter("share.key")


class PoolQueue:
    """Where those wait who want the same pools."""

    def __init__(self, pools: tuple[SlotPool, ...]) -> None:
        self.pools = pools
        self._pools = frozenset(pools)
        self._order = _key_in_one_pool if len(pools) == 1 else HolderQueue.rank
        #: Of everybody who ever waited here, and of those who do now.
        self._lines: dict[Holder, HolderQueue] = {}
        self.lines: dict[Holder, HolderQueue] = {}
        #: Whose turn it is, and in how many seconds: 0 is now, infinity is not before a lease ends.
        self.line: HolderQueue
        self.claim: SlotClaim
        self.wait = math.inf
        #: How often others were let in first, because this gate waited for another pool.
        self.passed = 0

    def add(self, claim: SlotClaim, *, first: bool) -> None:
        holder = claim.holder
        line = self._lines.get(holder)
        if line is None:
            line = self._lines[holder] = HolderQueue(tuple(pool.share(holder) for pool in self.pools))
        if not line.claims:
            self.lines[holder] = line
        line.claims[claim.ticket] = claim
        if first:
            line.claims.move_to_end(claim.ticket, last=False)
        for share in line.shares:
            share.queue()

    def remove(self, claim: SlotClaim) -> None:
        line = self.lines[claim.holder]
        del line.claims[claim.ticket]
        for share in line.shares:
            share.unqueue()
        if not line.claims:
            del self.lines[claim.holder]

    def forget(self, holder: Holder) -> None:
        self._lines.pop(holder, None)

    def look_ahead(self, now: float) -> None:
        """Find out whose turn it is. Somebody must be waiting."""
        self.line = line = min(self.lines.values(), key=self._order)
        self.claim = claim = next(iter(line.claims.values()))
        wait = 0.0
        for pool in self.pools:
            wait = max(wait, pool.control.wait(now, claim.tokens, pool.waiting))
        self.wait = wait

    def goes_before(self, other: PoolQueue) -> bool:
        """Whether it is this gate's turn, in the pools that both want; of claims that are even, the older one's."""
        common = self._pools & other._pools
        return bool(common) and self._rank_in(common) < other._rank_in(common)

    def _rank_in(self, pools: frozenset[SlotPool]) -> tuple[float, float, float]:
        return (*max(pool.shares[self.claim.holder].rank() for pool in pools), self.claim.asked_at)

    def meets(self, other: PoolQueue) -> bool:
        """Whether both want slots of some pool."""
        return not self._pools.isdisjoint(other.pools)


class Broker:
    """All pools. After each change, `grants` says who may begin, and `wake` when to ask again at the latest."""

    def __init__(self, learn: Callable[[str], Control]) -> None:
        #: Makes the control of a pool that nobody has given a size.
        self._learn = learn
        self.pools: dict[str, SlotPool] = {}
        self.holders: dict[Holder, None] = {}
        self.wake = math.inf
        self._gates: dict[tuple[str, ...], PoolQueue] = {}
        #: Gates at which somebody waits, and those that let a slot be until the next lease ends.
        self._busy: dict[PoolQueue, None] = {}
        self._polite: set[PoolQueue] = set()

    # who is there

    def enter(self, holder: Holder) -> None:
        self.holders[holder] = None

    def leave(self, holder: Holder, now: float) -> None:
        """Take back everything from somebody who is gone."""
        self.holders.pop(holder, None)
        for ticket in list(holder.claims):
            self.end(holder, ticket, CANCELLED, now)
        for gate in self._gates.values():
            gate.forget(holder)
        for pool in self.pools.values():
            pool.shares.pop(holder, None)

    # slots

    def ask(
        self, holder: Holder, ticket: int, pools: tuple[str, ...], tokens: int, now: float, *, first: bool = False
    ) -> None:
        """Wait for a slot of each of these pools, before the holder's other claims if `first`."""
        claim = _claim(holder, ticket, pools, tokens, now)
        gate = self._gate(pools)
        gate.add(claim, first=first)
        self._busy[gate] = None

    def resume(self, holder: Holder, ticket: int, pools: tuple[str, ...], tokens: int, now: float) -> None:
        """A lease that a holder had from a broker that is gone; it counts, even if that is one too many."""
        claim = _claim(holder, ticket, pools, tokens, now)
        gate = self._gate(pools)
        claim.sent = tuple(pool.control.resume(now, tokens) for pool in gate.pools)
        for pool in gate.pools:
            pool.share(holder).hold(+1)

    def end(self, holder: Holder, ticket: int, outcome: CallOutcome, now: float) -> None:
        """Give a lease back, or no longer wait for one."""
        claim = holder.claims.pop(ticket, None)
        if claim is None:
            return
        gate = self._gates[claim.pools]
        if claim.sent is None:
            self._remove(gate, claim)
            return
        for pool, sent in zip(gate.pools, claim.sent, strict=True):
            pool.control.end(now, sent, outcome)
            pool.shares[holder].hold(-1)
        self._polite.clear()

    def back_off(self, holder: Holder, label: str, backoff: Backoff | None) -> None:
        """Note that something is tried again later, for people to see; None: not any more."""
        if backoff is None:
            holder.backoffs.pop(label, None)
        else:
            holder.backoffs[label] = backoff

    # sizes

    def resize(self, name: str, size: int) -> None:
        """Give a pool a fixed size, also while it is in use."""
        pool = self.pools.get(name)
        if pool is None:
            self.pools[name] = SlotPool(name, Fixed(size))
        elif isinstance(pool.control, Fixed):
            pool.control.size = size
        else:
            pool.control = Fixed(size, pool.held)

    def declare(self, sizes: Mapping[str, int]) -> None:
        """Give pools a fixed size that have none yet."""
        known = self.sizes()
        for name, size in sizes.items():
            if name not in known:
                self.resize(name, size)

    def sizes(self) -> dict[str, int]:
        """All pools of a fixed size."""
        return {name: pool.control.size for name, pool in self.pools.items() if isinstance(pool.control, Fixed)}

    # whose turn it is

    def grants(self, now: float) -> list[SlotClaim]:
        """Claims that become leases now."""
        for gate in self._busy:
            gate.look_ahead(now)
        granted = []
        while (chosen := self._next(self._busy)) is not None:
            granted.append(chosen.claim)
            self._begin(chosen, now)
            for gate in self._busy:
                if gate is chosen or gate.meets(chosen):
                    gate.look_ahead(now)
        self.wake = now + min((gate.wait for gate in self._busy), default=math.inf)
        return granted

    def _next(self, gates: Iterable[PoolQueue]) -> PoolQueue | None:
        """Of the gates at which somebody may begin, the one whose turn it is."""
        ready = [gate for gate in gates if not gate.wait and gate not in self._polite]
        if not ready:
            return None
        gate = _first(ready)
        if len(self._busy) > 1 and self._goes_too_far(gate):
            self._polite.add(gate)
            return self._next(ready)
        return gate

    def _goes_too_far(self, gate: PoolQueue) -> bool:
        """Whether this gate has taken slots long enough from another whose turn it was, but which needs more than one.

        Otherwise a claim of two pools, each busy with others, might never find a slot of both at the same moment.
        """
        wronged = False
        for other in self._busy:
            if other.wait == math.inf and other.goes_before(gate):
                other.passed += 1
                # A pool that is closed will not open when a lease ends: nothing is gained by waiting for it.
                wronged |= other.passed % _PATIENCE == 0 and any(pool.held for pool in other.pools)
        return wronged

    def _begin(self, gate: PoolQueue, now: float) -> None:
        claim, shares = gate.claim, gate.line.shares
        self._remove(gate, claim)
        claim.sent = tuple([share.pool.control.begin(now, claim.tokens) for share in shares])
        for share in shares:
            share.serve()
        gate.passed = 0

    def _remove(self, gate: PoolQueue, claim: SlotClaim) -> None:
        gate.remove(claim)
        if not gate.lines:
            del self._busy[gate]

    def _gate(self, names: tuple[str, ...]) -> PoolQueue:
        gate = self._gates.get(names)
        if gate is None:
            gate = self._gates[names] = PoolQueue(tuple(map(self._pool, dict.fromkeys(names))))
        return gate

    def _pool(self, name: str) -> SlotPool:
        pool = self.pools.get(name)
        if pool is None:
            pool = self.pools[name] = SlotPool(name, self._learn(name))
        return pool

    # to look at

    def look(self, now: float, pid: int, since: float) -> Snapshot:
        """Everything as it is now, in this process, which hands out slots since then."""
        oldest = self._oldest()
        return Snapshot(
            pid=pid,
            up_seconds=now - since,
            pools=tuple(_pool_view(pool, oldest, now) for pool in self.pools.values()),
            backoffs=tuple(_backoff_views(self.holders, now)),
            backoffs_total=sum(len(holder.backoffs) for holder in self.holders),
        )

    def _oldest(self) -> dict[tuple[SlotPool, Holder], float]:
        """Since when the oldest claim waits, of each pool and holder."""
        found: dict[tuple[SlotPool, Holder], float] = {}
        for gate in self._busy:
            for holder, line in gate.lines.items():
                # Not the first of them: who was refused comes back to the front.
                asked_at = min(claim.asked_at for claim in line.claims.values())
                for pool in gate.pools:
                    found[pool, holder] = min(asked_at, found.get((pool, holder), math.inf))
        return found


def _first(gates: Sequence[PoolQueue]) -> PoolQueue:
    """The one that goes before the others it meets. Gates that never meet can go in any order."""
    first = gates[0]
    for _ in gates[1:]:
        better = next((gate for gate in gates if gate.goes_before(first)), None)
        if better is None:
            break
        first = better
    return first


def _claim(holder: Holder, ticket: int, pools: tuple[str, ...], tokens: int, now: float) -> SlotClaim:
    if ticket in holder.claims:
        raise ValueError(f"{holder.name} uses ticket {ticket} twice")
    claim = holder.claims[ticket] = SlotClaim(holder, ticket, pools, tokens, now)
    return claim


def _pool_view(pool: SlotPool, oldest: Mapping[tuple[SlotPool, Holder], float], now: float) -> PoolView:
    views = [
        HolderView(
            holder.name,
            holder.pid,
            holder.weight,
            share.held,
            share.waiting,
            max(0.0, now - oldest.get((pool, holder), now)),
        )
        for holder, share in pool.shares.items()
        if share.held or share.waiting
    ]
    views.sort(key=lambda view: (-view.held, -view.waiting, view.name))
    return PoolView(pool.name, pool.control.look(now), pool.held, pool.waiting, tuple(views))


def _backoff_views(holders: Iterable[Holder], now: float) -> Iterable[BackoffView]:
    everything = ((holder, label, backoff) for holder in holders for label, backoff in holder.backoffs.items())
    for holder, label, backoff in heapq.nsmallest(SHOWN_BACKOFFS, everything, key=lambda each: each[2].until):
        left = max(0.0, backoff.until - now)
        yield BackoffView(holder.name, holder.pid, label, backoff.pool, backoff.kind, backoff.attempt, left)
