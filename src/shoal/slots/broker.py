"""Hands out slots fairly: pools, the claims that wait for them, and the leases on them.

Pure: no sockets, and time is a parameter. The same object serves one run within its process, and all runs of a machine
from a separate process (`server.py`).

Claims of the same pools wait in the same `PoolQueue`, and each holder has one `HolderQueue` in it. A slot goes to the
holder that holds least of the pool for its weight, and of equals to the one that was served least. For a claim of
several pools, the pool in which its holder is best off decides; between two queues, only pools that both want count.
A queue whose first claim cannot begin does not stop other queues, so that a provider that makes one model wait does not
make the others wait.
"""

from __future__ import annotations

import heapq
import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter

import msgspec

from shoal.slots.leases import (
    CANCELLED,
    Backoff,
    BackoffView,
    CallOutcome,
    Control,
    Fixed,
    Holder,
    HolderView,
    Learnable,
    PoolView,
    SlotClaim,
    Snapshot,
)

#: How many backoffs a snapshot shows.
SHOWN_BACKOFFS = 300
#: How often a claim of two pools is overtaken before the others leave a slot free for a moment.
_MAX_OVERTAKEN = 16


class HolderShare:
    """What one holder holds of one pool, and how much of it the holder was served so far."""

    __slots__ = ("cost", "held", "key", "load", "pool", "served", "waiting")

    def __init__(self, pool: SlotPool, weight: float) -> None:
        self.pool = pool
        #: What one slot counts: half as much for twice the weight.
        self.cost = 1 / weight
        self.held = 0
        self.waiting = 0
        #: What it holds and what it was served so far, both by weight. The holder with the smallest key goes first.
        self.load = 0.0
        self.served = 0.0
        self.key = (0.0, 0.0)

    def queue(self) -> None:
        if not self.waiting and self.served < self.pool.served:
            # A holder that pauses saves nothing up.
            self.served = self.pool.served
            self.key = (self.load, self.served)
        self.waiting += 1
        self.pool.waiting += 1

    def unqueue(self) -> None:
        self.waiting -= 1
        self.pool.waiting -= 1

    def serve(self) -> None:
        # A holder of long leases, which is served seldom, may be behind, but not so far that others pay for it later.
        served = max(self.served, self.pool.served - self.cost)
        self.pool.served = max(self.pool.served, served)
        self.served = served + self.cost
        self.hold(+1)

    def hold(self, change: int) -> None:
        self.held += change
        self.pool.held += change
        self.load = self.held * self.cost
        self.key = (self.load, self.served)

    def rank(self) -> tuple[float, float]:
        """Return the key in a form that is comparable between pools: how far this holder is ahead of its turn."""
        return self.load, self.served - self.pool.served


class SlotPool:
    """The slots of one kind and their holders."""

    def __init__(self, name: str, control: Control) -> None:
        self.name = name
        self.control = control
        self.shares: dict[Holder, HolderShare] = {}
        self.held = 0
        self.waiting = 0
        #: How much the holders that got slots lately had been served: the virtual time of fair queueing.
        self.served = 0.0

    def share(self, holder: Holder) -> HolderShare:
        share = self.shares.get(holder)
        if share is None:
            share = self.shares[holder] = HolderShare(self, holder.weight)
        return share


class HolderQueue:
    """The claims of one holder in one queue, oldest first."""

    __slots__ = ("claims", "share", "shares")

    def __init__(self, shares: tuple[HolderShare, ...]) -> None:
        self.shares = shares
        #: The only share, where the queue is for one pool.
        self.share = shares[0] if shares else None
        self.claims: OrderedDict[int, SlotClaim] = OrderedDict()

    def rank(self) -> tuple[float, float]:
        return max(map(HolderShare.rank, self.shares), default=(0.0, 0.0))


_key_in_one_pool = attrgetter("share.key")


class PoolQueue:
    """The claims that wait for the same pools."""

    def __init__(self, pools: tuple[SlotPool, ...]) -> None:
        self.pools = pools
        self._pools = frozenset(pools)
        self._order = _key_in_one_pool if len(pools) == 1 else HolderQueue.rank
        #: Of all holders that ever waited here, and of those that wait now.
        self._known: dict[Holder, HolderQueue] = {}
        self.holders: dict[Holder, HolderQueue] = {}
        #: The claim whose turn it is, and in how many seconds: 0 is now, infinity is not before a lease ends.
        self.next_holder: HolderQueue
        self.next_claim: SlotClaim
        self.wait = math.inf
        #: How often other queues were served first because this one waited for another pool.
        self.overtaken = 0

    def add(self, claim: SlotClaim, *, first: bool) -> None:
        holder = claim.holder
        waiting = self._known.get(holder)
        if waiting is None:
            waiting = self._known[holder] = HolderQueue(tuple(pool.share(holder) for pool in self.pools))
        if not waiting.claims:
            self.holders[holder] = waiting
        waiting.claims[claim.ticket] = claim
        if first:
            waiting.claims.move_to_end(claim.ticket, last=False)
        for share in waiting.shares:
            share.queue()

    def remove(self, claim: SlotClaim) -> None:
        waiting = self.holders[claim.holder]
        del waiting.claims[claim.ticket]
        for share in waiting.shares:
            share.unqueue()
        if not waiting.claims:
            del self.holders[claim.holder]

    def forget(self, holder: Holder) -> None:
        self._known.pop(holder, None)

    def select(self, now: float) -> None:
        """Find the claim whose turn it is. At least one must be waiting."""
        self.next_holder = min(self.holders.values(), key=self._order)
        self.next_claim = claim = next(iter(self.next_holder.claims.values()))
        wait = 0.0
        for pool in self.pools:
            wait = max(wait, pool.control.wait(now, claim.tokens, pool.waiting))
        self.wait = wait

    def precedes(self, other: PoolQueue) -> bool:
        """Return whether it is this queue's turn in the pools that both want; among equals the older claim's."""
        common = self._pools & other._pools
        return bool(common) and self._rank_in(common) < other._rank_in(common)

    def _rank_in(self, pools: frozenset[SlotPool]) -> tuple[float, float, float]:
        claim = self.next_claim
        return (*max(pool.shares[claim.holder].rank() for pool in pools), claim.asked_at)

    def overlaps(self, other: PoolQueue) -> bool:
        """Return whether both want slots of the same pool."""
        return not self._pools.isdisjoint(other.pools)


class Broker:
    """All pools. After each change, `grant_claims` grants slots, and `wake_at` is when to call it again at the latest.

    `learn` makes the control of a pool that was given no size.
    """

    def __init__(self, learn: Callable[[str], Control]) -> None:
        self._learn = learn
        self.pools: dict[str, SlotPool] = {}
        self.holders: dict[Holder, None] = {}
        self.wake_at = math.inf
        self._queues: dict[tuple[str, ...], PoolQueue] = {}
        #: Queues with waiting claims, and those of them that leave a slot free until the next lease ends.
        self._waiting: dict[PoolQueue, None] = {}
        self._yielded: set[PoolQueue] = set()

    # holders and their claims

    def enter(self, holder: Holder) -> None:
        self.holders[holder] = None

    def leave(self, holder: Holder, now: float) -> None:
        """Take back everything from a holder that is gone."""
        self.holders.pop(holder, None)
        for ticket in list(holder.claims):
            self.end(holder, ticket, CANCELLED, now)
        for queue in self._queues.values():
            queue.forget(holder)
        for pool in self.pools.values():
            pool.shares.pop(holder, None)

    def ask(
        self, holder: Holder, ticket: int, pools: tuple[str, ...], tokens: int, now: float, *, first: bool = False
    ) -> None:
        """Queue a claim of a slot of each of these pools, before the holder's other claims if `first`."""
        claim, queue = self._add_claim(holder, ticket, pools, tokens, now)
        queue.add(claim, first=first)
        self._waiting[queue] = None

    def resume(self, holder: Holder, ticket: int, pools: tuple[str, ...], tokens: int, now: float) -> None:
        """Count a lease that a holder had from a broker that is gone, even if that is one too many."""
        claim, queue = self._add_claim(holder, ticket, pools, tokens, now)
        claim.sent = tuple(pool.control.resume(now, tokens) for pool in queue.pools)
        for pool in queue.pools:
            pool.share(holder).hold(+1)

    def _add_claim(
        self, holder: Holder, ticket: int, pools: tuple[str, ...], tokens: int, now: float
    ) -> tuple[SlotClaim, PoolQueue]:
        if ticket in holder.claims:
            raise ValueError(f"{holder.name} uses ticket {ticket} twice")
        claim = holder.claims[ticket] = SlotClaim(holder, ticket, pools, tokens, now)
        queue = self._queues.get(pools)
        if queue is None:
            for name in pools:
                if name not in self.pools:
                    self.pools[name] = SlotPool(name, self._learn(name))
            queue = self._queues[pools] = PoolQueue(tuple(self.pools[name] for name in dict.fromkeys(pools)))
        return claim, queue

    def end(self, holder: Holder, ticket: int, outcome: CallOutcome, now: float) -> None:
        """Take a lease back, or drop a claim that still waits."""
        claim = holder.claims.pop(ticket, None)
        if claim is None:
            return
        queue = self._queues[claim.pools]
        if claim.sent is None:
            self._remove(queue, claim)
            return
        for pool, sent in zip(queue.pools, claim.sent, strict=True):
            pool.control.end(now, sent, outcome)
            pool.shares[holder].hold(-1)
        self._yielded.clear()

    def _remove(self, queue: PoolQueue, claim: SlotClaim) -> None:
        queue.remove(claim)
        if not queue.holders:
            del self._waiting[queue]

    def back_off(self, holder: Holder, label: str, backoff: Backoff | None) -> None:
        """Note for display that a question waits for its next attempt; None: not any more."""
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
        """Return the size of each pool that has a fixed one."""
        return {name: pool.control.size for name, pool in self.pools.items() if isinstance(pool.control, Fixed)}

    # granting

    def grant_claims(self, now: float) -> list[SlotClaim]:
        """Turn claims into leases, as many as may begin now, and return them."""
        for queue in self._waiting:
            queue.select(now)
        granted = []
        while (chosen := self._choose_queue()) is not None:
            claim, shares = chosen.next_claim, chosen.next_holder.shares
            granted.append(claim)
            self._remove(chosen, claim)
            claim.sent = tuple([share.pool.control.begin(now, claim.tokens) for share in shares])
            for share in shares:
                share.serve()
            chosen.overtaken = 0
            for queue in self._waiting:
                if queue is chosen or queue.overlaps(chosen):
                    queue.select(now)
        self.wake_at = now + min((queue.wait for queue in self._waiting), default=math.inf)
        return granted

    def _choose_queue(self) -> PoolQueue | None:
        """Return the queue whose turn it is, of those whose first claim may begin."""
        ready = [queue for queue in self._waiting if not queue.wait and queue not in self._yielded]
        while ready:
            first = ready[0]
            for _ in ready[1:]:
                # Queues that have no pool in common can go in any order.
                better = next((queue for queue in ready if queue.precedes(first)), None)
                if better is None:
                    break
                first = better
            if len(self._waiting) == 1 or not self._must_yield(first):
                return first
            self._yielded.add(first)
            ready.remove(first)
        return None

    def _must_yield(self, queue: PoolQueue) -> bool:
        """Return whether this queue has overtaken another often enough that needs more pools and whose turn it was.

        Otherwise a claim of two pools, each busy with others, might never find a slot of both at the same moment.
        """
        must_yield = False
        for other in self._waiting:
            if other.wait == math.inf and other.precedes(queue):
                other.overtaken += 1
                # A closed pool does not open when a lease ends: nothing is gained by waiting for it.
                must_yield |= other.overtaken % _MAX_OVERTAKEN == 0 and any(pool.held for pool in other.pools)
        return must_yield

    # for display

    def take_snapshot(self, now: float, pid: int, since: float) -> Snapshot:
        """Return the state of all pools; `pid` is the process that has handed out slots `since` then."""
        return Snapshot(
            pid=pid,
            up_seconds=now - since,
            pools=tuple(self._view_pools(now)),
            backoffs=tuple(_view_backoffs(self.holders, now)),
            backoffs_total=sum(len(holder.backoffs) for holder in self.holders),
        )

    def _view_pools(self, now: float) -> Iterable[PoolView]:
        oldest: dict[tuple[SlotPool, Holder], float] = {}
        for queue in self._waiting:
            for holder, waiting in queue.holders.items():
                # The oldest claim need not be the first: a refused one comes back to the front.
                asked_at = min(claim.asked_at for claim in waiting.claims.values())
                for pool in queue.pools:
                    oldest[pool, holder] = min(asked_at, oldest.get((pool, holder), math.inf))
        for pool in self.pools.values():
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
            control = pool.control
            learned = msgspec.to_builtins(control.get_learned()) if isinstance(control, Learnable) else None
            yield PoolView(pool.name, control.describe(now), pool.held, pool.waiting, tuple(views), learned)


def _view_backoffs(holders: Iterable[Holder], now: float) -> Iterable[BackoffView]:
    everything = ((holder, label, backoff) for holder in holders for label, backoff in holder.backoffs.items())
    for holder, label, backoff in heapq.nsmallest(SHOWN_BACKOFFS, everything, key=lambda each: each[2].until):
        left = max(0.0, backoff.until - now)
        yield BackoffView(holder.name, holder.pid, label, backoff.pool, backoff.kind, backoff.attempt, left)
