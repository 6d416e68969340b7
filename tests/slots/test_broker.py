"""The broker by itself: who gets which slot, and when. Time is a number here."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from shoal.slots.broker import SHOWN_BACKOFFS, Broker
from shoal.slots.leases import Backoff, CallEnd, CallOutcome, Control, Holder, SlotClaim

OK = CallOutcome(CallEnd.OK)
ONE = ("one",)


class Paced:
    """One a second."""

    def __init__(self) -> None:
        self.next_at = 0.0
        self.outcomes: list[CallEnd] = []

    def wait(self, now: float, tokens: int, waiting: int) -> float:
        return max(0.0, self.next_at - now)

    def begin(self, now: float, tokens: int) -> Any:
        self.next_at = now + 1.0
        return now

    def end(self, now: float, sent: Any, outcome: CallOutcome) -> None:
        self.outcomes.append(outcome.end)

    def resume(self, now: float, tokens: int) -> Any:
        return now

    def describe(self, now: float) -> dict[str, Any]:
        return {"kind": "paced"}


class Table:
    """A broker, with tickets that count themselves."""

    def __init__(self, learn: Any = None, **sizes: int) -> None:
        self.broker = Broker(learn or self._unknown)
        self.broker.declare(sizes)
        self.now = 0.0
        self._tickets = 0

    def _unknown(self, name: str) -> Control:
        raise AssertionError(f"nobody has sized {name}")

    def holder(self, name: str, weight: float = 1.0) -> Holder:
        holder = Holder(name, weight)
        self.broker.enter(holder)
        return holder

    def ask(self, holder: Holder, pools: tuple[str, ...] = ONE, times: int = 1, tokens: int = 0) -> list[int]:
        tickets = list(range(self._tickets, self._tickets + times))
        self._tickets += times
        for ticket in tickets:
            self.broker.ask(holder, ticket, pools, tokens, self.now)
        return tickets

    def grants(self) -> list[SlotClaim]:
        return self.broker.grant_claims(self.now)

    def names(self) -> list[str]:
        return [claim.holder.name for claim in self.grants()]

    def end(self, *claims: SlotClaim) -> None:
        for claim in claims:
            self.broker.end(claim.holder, claim.ticket, OK, self.now)

    def turns(self, count: int, *holders: Holder, pools: tuple[str, ...] = ONE) -> Counter[str]:
        """Who is served when everybody always wants more, and leases last as long as one turn."""
        served: Counter[str] = Counter()
        for holder in holders:
            self.ask(holder, pools, times=10 * count)
        for _ in range(count):
            claims = self.grants()
            served.update(claim.holder.name for claim in claims)
            self.end(*claims)
        return served


def tickets(claims: Iterable[SlotClaim]) -> list[int]:
    return [claim.ticket for claim in claims]


# how many


def test_no_more_are_granted_than_there_are_slots() -> None:
    table = Table(one=2)
    asked = table.ask(table.holder("a"), times=3)
    assert tickets(table.grants()) == asked[:2]
    assert table.grants() == []


def test_a_slot_that_is_given_back_goes_to_whoever_waits_longest() -> None:
    table = Table(one=1)
    asked = table.ask(table.holder("a"), times=3)
    for ticket in asked:
        (claim,) = table.grants()
        assert claim.ticket == ticket
        table.end(claim)


def test_a_pool_that_grows_lets_more_begin_at_once() -> None:
    table = Table(one=1)
    table.ask(table.holder("a"), times=5)
    table.grants()
    table.broker.resize("one", 4)
    assert len(table.grants()) == 3


def test_a_pool_that_shrinks_lets_running_ones_end_and_nobody_begin_before() -> None:
    table = Table(one=3)
    table.ask(table.holder("a"), times=5)
    first, second, third = table.grants()
    table.broker.resize("one", 1)
    table.end(first, second)
    assert table.grants() == []
    table.end(third)
    assert len(table.grants()) == 1


def test_a_pool_without_slots_stops_everybody_until_it_has_some_again() -> None:
    table = Table(one=0)
    table.ask(table.holder("a"))
    assert table.grants() == []
    table.broker.resize("one", 1)
    assert len(table.grants()) == 1


def test_a_size_that_is_declared_does_not_overrule_one_that_was_given() -> None:
    table = Table(one=3)
    table.broker.declare({"one": 6, "two": 2})
    assert table.broker.sizes() == {"one": 3, "two": 2}


def test_a_pool_that_learns_gets_a_fixed_size_while_it_is_in_use() -> None:
    table = Table(learn=lambda name: Paced())
    table.ask(table.holder("a"), times=3)
    (claim,) = table.grants()
    table.broker.resize("one", 2)
    assert len(table.grants()) == 1
    table.end(claim)
    assert len(table.grants()) == 1


def test_the_broker_says_when_to_ask_again() -> None:
    table = Table(learn=lambda name: Paced())
    table.ask(table.holder("a"), times=2)
    table.now = 5.0
    assert len(table.grants()) == 1
    assert table.broker.wake_at == 6.0
    table.now = 6.0
    assert len(table.grants()) == 1
    assert table.broker.wake_at == math.inf


# who


def test_holders_take_turns() -> None:
    table = Table(one=1)
    a, b = table.holder("a"), table.holder("b")
    assert table.turns(20, a, b) == {"a": 10, "b": 10}


def test_whoever_holds_least_comes_first() -> None:
    table = Table(one=3)
    a, b = table.holder("a"), table.holder("b")
    table.ask(a, times=9)
    claims = table.grants()
    table.ask(b, times=9)
    table.end(*claims[:2])
    assert table.names()[0] == "b"


@pytest.mark.parametrize("size", [1, 3, 9])
def test_a_holder_of_twice_the_weight_gets_twice_as_much(size: int) -> None:
    table = Table(one=size)
    a, b = table.holder("a", weight=2.0), table.holder("b")
    served = table.turns(300, a, b)
    assert served["a"] / served["b"] == pytest.approx(2.0, rel=0.02)


def test_slots_that_are_held_long_are_shared_by_weight() -> None:
    table = Table(one=9)
    table.ask(table.holder("a", weight=2.0), times=9)
    table.ask(table.holder("b"), times=9)
    assert Counter(table.names()) == {"a": 6, "b": 3}


def test_who_comes_back_after_a_pause_has_saved_up_nothing() -> None:
    table = Table(one=1)
    a, b = table.holder("a"), table.holder("b")
    table.turns(1, a, b)
    table.turns(100, b)
    assert table.turns(20, a, b) == {"a": 10, "b": 10}


def test_who_had_long_leases_is_not_ahead_for_ever() -> None:
    table = Table(one=2)
    a, b = table.holder("a"), table.holder("b")
    table.ask(a, times=100)
    table.ask(b, times=1_000)
    claims = {claim.holder.name: claim for claim in table.grants()}
    for _ in range(500):
        table.end(claims["b"])
        (claims["b"],) = table.grants()
    c = table.holder("c")
    table.ask(c, times=100)
    table.broker.resize("one", 1)
    table.end(*claims.values())
    served: Counter[str] = Counter()
    for _ in range(30):
        (claim,) = table.grants()
        served[claim.holder.name] += 1
        table.end(claim)
    assert min(served["a"], served["b"], served["c"]) >= 9


# who leaves


def test_who_is_gone_gives_everything_back_and_waits_no_longer() -> None:
    table = Table(one=2)
    a, b = table.holder("a"), table.holder("b")
    table.ask(a, times=4)
    table.grants()
    table.ask(b, times=2)
    table.broker.leave(a, table.now)
    assert table.names() == ["b", "b"]
    assert table.broker.pools["one"].waiting == 0


def test_a_claim_that_is_given_up_waits_no_longer_and_nothing_is_learned_from_a_dead_holder() -> None:
    paced = Paced()
    table = Table(learn=lambda name: paced)
    a = table.holder("a")
    first, second = table.ask(a, times=2)
    table.grants()
    table.broker.end(a, second, OK, table.now)
    table.now = 10.0
    assert table.grants() == []
    table.broker.leave(a, table.now)
    assert paced.outcomes == [CallEnd.CANCELLED]
    assert first not in a.claims


def test_ending_what_is_over_changes_nothing() -> None:
    table = Table(one=1)
    a = table.holder("a")
    table.ask(a, times=3)
    (claim,) = table.grants()
    table.end(claim, claim)
    assert len(table.grants()) == 1


def test_a_ticket_that_is_in_use_is_refused() -> None:
    table = Table(one=1)
    a = table.holder("a")
    table.broker.ask(a, 1, ONE, 0, 0.0)
    with pytest.raises(ValueError, match="twice"):
        table.broker.resume(a, 1, ONE, 0, 0.0)


# leases from a broker that died


def test_a_resumed_lease_counts_even_if_that_is_one_too_many() -> None:
    table = Table(one=1)
    a, b = table.holder("a"), table.holder("b")
    table.broker.resume(a, 1, ONE, 0, 0.0)
    table.broker.resume(b, 1, ONE, 0, 0.0)
    table.ask(b)
    assert table.broker.pools["one"].held == 2
    table.broker.end(a, 1, OK, 0.0)
    assert table.grants() == []
    table.broker.end(b, 1, OK, 0.0)
    assert len(table.grants()) == 1


# several pools


def test_a_claim_of_two_pools_gets_both_or_nothing() -> None:
    table = Table(model=1, all=1)
    a, b = table.holder("a"), table.holder("b")
    table.ask(a, ("all",))
    (held,) = table.grants()
    table.ask(b, ("model", "all"))
    assert table.grants() == []
    assert table.broker.pools["model"].held == 0
    table.end(held)
    assert table.names() == ["b"]
    assert (table.broker.pools["model"].held, table.broker.pools["all"].held) == (1, 1)


def test_a_claim_that_needs_nothing_begins_at_once() -> None:
    table = Table()
    table.ask(table.holder("a"), ())
    (claim,) = table.grants()
    table.end(claim)


def test_a_pool_that_is_named_twice_is_taken_once() -> None:
    table = Table(one=2)
    table.ask(table.holder("a"), ("one", "one"))
    table.end(*table.grants())
    assert table.broker.pools["one"].held == 0


def test_a_model_that_makes_wait_does_not_stop_the_others() -> None:
    table = Table(slow=1, fast=5, all=6)
    a = table.holder("a")
    table.ask(a, ("slow", "all"), times=5)
    table.ask(a, ("fast", "all"), times=5)
    assert sorted(claim.pools[0] for claim in table.grants()) == ["fast"] * 5 + ["slow"]


@pytest.mark.parametrize("turned", [False, True])
def test_holders_that_share_only_one_of_their_pools_take_turns_in_it(turned: bool) -> None:
    table = Table(red=9, blue=9, all=1)
    a, b = table.holder("a"), table.holder("b")
    wants = [(a, ("red", "all")), (b, ("all", "blue"))]
    for holder, pools in reversed(wants) if turned else wants:
        table.ask(holder, pools, times=20)
    served: Counter[str] = Counter()
    for _ in range(20):
        claims = table.grants()
        served.update(claim.holder.name for claim in claims)
        table.end(*claims)
    assert served == {"a": 10, "b": 10}


def test_claims_of_one_holder_at_different_gates_begin_in_the_order_in_which_they_came() -> None:
    table = Table(red=9, blue=9, all=1)
    a = table.holder("a")
    order = []
    for number in range(6):
        table.now = float(number)
        table.ask(a, ("red" if number % 2 else "blue", "all"))
        order.append("red" if number % 2 else "blue")
    found = []
    for _ in range(6):
        (claim,) = table.grants()
        found.append(claim.pools[0])
        table.end(claim)
    assert found == order


def test_a_claim_of_two_busy_pools_gets_its_turn() -> None:
    """Their slots never come free at the same moment, unless others let one be for a while."""
    table = Table(left=1, right=1)
    a, b, both = table.holder("a"), table.holder("b"), table.holder("both")
    table.ask(a, ("left",), times=1_000)
    table.ask(b, ("right",), times=1_000)
    held = {claim.pools[0]: claim for claim in table.grants()}
    table.now = 1.0
    table.ask(both, ("left", "right"))
    for turn in range(200):
        side = ("left", "right")[turn % 2]
        if side in held:
            table.end(held.pop(side))
        claims = table.grants()
        if any(claim.holder is both for claim in claims):
            return
        held.update((claim.pools[0], claim) for claim in claims)
    pytest.fail("it never got both")


def test_a_closed_pool_does_not_stop_those_who_do_not_want_it() -> None:
    table = Table(closed=0, all=1)
    a, b = table.holder("a"), table.holder("b")
    table.ask(b, ("closed", "all"))
    table.now = 1.0
    assert table.turns(100, a, pools=("all",)) == {"a": 100}


# to look at


def test_a_look_tells_who_holds_and_who_waits_for_how_long() -> None:
    table = Table(one=2, other=1)
    a, b = table.holder("a"), table.holder("b", weight=2.0)
    table.ask(a, times=3)
    table.grants()
    table.now = 3.0
    table.ask(b)
    seen = table.broker.take_snapshot(5.0, pid=7, since=1.0)
    assert (seen.pid, seen.up_seconds) == (7, 4.0)
    one, other = seen.pools
    assert (one.name, one.held, one.waiting, one.control["size"]) == ("one", 2, 2, 2)
    assert [(view.name, view.held, view.waiting, view.oldest_wait_seconds) for view in one.holders] == [
        ("a", 2, 1, 5.0),
        ("b", 0, 1, 2.0),
    ]
    assert other.holders == ()


def test_the_oldest_claim_is_told_of_also_where_another_was_let_to_the_front() -> None:
    table = Table(one=0)
    a = table.holder("a")
    table.ask(a)
    table.broker.ask(a, 99, ONE, 0, 4.0, first=True)
    assert table.broker.take_snapshot(5.0, pid=7, since=1.0).pools[0].holders[0].oldest_wait_seconds == 5.0


def test_a_look_shows_the_backoffs_that_are_due_first_and_how_many_there_are() -> None:
    table = Table(one=1)
    a = table.holder("a")
    for number in range(SHOWN_BACKOFFS + 50):
        backoff = Backoff(pool="one", kind="rate limit", attempt=2, until=1_000.0 - number)
        table.broker.back_off(a, f"q{number}", backoff)
    table.broker.back_off(a, "q0", None)
    seen = table.broker.take_snapshot(600.0, pid=1, since=0.0)
    assert seen.backoffs_total == SHOWN_BACKOFFS + 49
    assert len(seen.backoffs) == SHOWN_BACKOFFS
    first = seen.backoffs[0]
    assert (first.label, first.seconds_left, first.attempt) == (f"q{SHOWN_BACKOFFS + 49}", 51.0, 2)


def test_a_line_of_many_claims_costs_no_more_per_claim_than_a_short_one() -> None:
    """Giving up from the back, and serving from the front, both find their claim at once."""
    table = Table(one=1)
    a = table.holder("a")
    asked = table.ask(a, times=20_000)
    for ticket in reversed(asked[1:]):
        table.broker.end(a, ticket, OK, 0.0)
    assert tickets(table.grants()) == asked[:1]
