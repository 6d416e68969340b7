"""Whatever happens in whatever order: never more than there are, nothing lost, everybody gets a turn."""

from __future__ import annotations

import math
from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from shoal.slots.broker import Broker
from shoal.slots.leases import CallEnd, CallOutcome, Control, Fixed, Holder, SlotClaim

OK = CallOutcome(CallEnd.OK)
POOLS = ("red", "blue", "all")
WANTS = st.sampled_from([("red",), ("blue",), ("all",), ("red", "all"), ("blue", "all"), ("all", "red", "blue"), ()])
SIZES = st.integers(min_value=0, max_value=4)


def refuse_unknown(name: str) -> Control:
    raise AssertionError(f"nobody has sized {name}")


class BrokerMachine(RuleBasedStateMachine):
    """A broker's life, beside a plain list of who should hold what."""

    def __init__(self) -> None:
        super().__init__()
        self.broker = Broker(refuse_unknown)
        self.holders: list[Holder] = []
        self.held: list[SlotClaim] = []
        self.resumed: list[tuple[Holder, int, tuple[str, ...]]] = []
        self.waiting = 0
        self.ticket = 0
        self.now = 0.0

    @initialize(sizes=st.tuples(SIZES, SIZES, SIZES))
    def begin(self, sizes: tuple[int, int, int]) -> None:
        self.broker.declare(dict(zip(POOLS, sizes, strict=True)))

    @rule(weight=st.sampled_from([0.5, 1.0, 1.0, 3.0]))
    def enter(self, weight: float) -> None:
        self.holders.append(Holder(f"h{len(self.holders)}", weight))
        self.broker.enter(self.holders[-1])

    @precondition(lambda self: self.holders)
    @rule(data=st.data(), pools=WANTS, times=st.integers(1, 5))
    def ask(self, data: st.DataObject, pools: tuple[str, ...], times: int) -> None:
        holder = data.draw(st.sampled_from(self.holders))
        for _ in range(times):
            self.ticket += 1
            self.broker.ask(holder, self.ticket, pools, 0, self.now)

    @precondition(lambda self: self.holders)
    @rule(data=st.data(), pools=WANTS)
    def resume(self, data: st.DataObject, pools: tuple[str, ...]) -> None:
        holder = data.draw(st.sampled_from(self.holders))
        self.ticket += 1
        self.broker.resume(holder, self.ticket, pools, 0, self.now)
        self.held.append(holder.claims[self.ticket])

    @rule()
    def grant(self) -> None:
        before = Counter(pool for claim in self.held for pool in claim.pools)
        claims = self.broker.grant_claims(self.now)
        self.held += claims
        after = Counter(pool for claim in self.held for pool in claim.pools)
        for pool in POOLS:
            assert after[pool] <= max(before[pool], self.size(pool))

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        claim = data.draw(st.sampled_from(self.held))
        self.held.remove(claim)
        self.broker.end(claim.holder, claim.ticket, OK, self.now)

    @precondition(lambda self: self.holders)
    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        waits = [claim for holder in self.holders for claim in holder.claims.values() if claim.sent is None]
        if waits:
            claim = data.draw(st.sampled_from(waits))
            self.broker.end(claim.holder, claim.ticket, OK, self.now)

    @precondition(lambda self: self.holders)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        holder = data.draw(st.sampled_from(self.holders))
        self.holders.remove(holder)
        self.held = [claim for claim in self.held if claim.holder is not holder]
        self.broker.leave(holder, self.now)

    @rule(pool=st.sampled_from(POOLS), size=SIZES)
    def resize(self, pool: str, size: int) -> None:
        self.broker.resize(pool, size)

    @rule()
    def tick(self) -> None:
        self.now += 1.0

    @invariant()
    def the_books_agree(self) -> None:
        held = Counter(pool for claim in self.held for pool in claim.pools)
        waits = [claim for holder in self.holders for claim in holder.claims.values() if claim.sent is None]
        waiting = Counter(pool for claim in waits for pool in claim.pools)
        for name, pool in self.broker.pools.items():
            assert isinstance(pool.control, Fixed)
            assert pool.held == pool.control.held == held[name]
            assert pool.waiting == waiting[name]
        assert self.broker.wake_at == math.inf

    def size(self, pool: str) -> int:
        return self.broker.sizes()[pool]

    def teardown(self) -> None:
        """From wherever it is: if leases end, everybody who waits begins."""
        if not self.broker.pools:
            return
        for pool in POOLS:
            self.broker.resize(pool, max(1, self.size(pool)))
        while self.held or any(holder.claims for holder in self.holders):
            self.held += self.broker.grant_claims(self.now)
            assert self.held, "somebody waits, and nobody holds anything"
            claim = self.held.pop(0)
            self.broker.end(claim.holder, claim.ticket, OK, self.now)
        assert all(pool.held == pool.waiting == 0 for pool in self.broker.pools.values())


BrokerMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestBrokerMachine = BrokerMachine.TestCase
