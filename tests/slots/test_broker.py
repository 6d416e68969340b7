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


class OneASecond:
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


class BrokerDriver:
    """A broker, with tickets that count themselves."""

    def __init__(self, learn: Any = None, **sizes: int) -> None:
        self.broker = Broker(learn or self._refuse_unknown)
        self.broker.declare(sizes)
        self.now = 0.0
        self._tickets = 0

    def _refuse_unknown(self, name: str) -> Control:
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

    def grant_claims(self) -> list[SlotClaim]:
        return self.broker.grant_claims(self.now)

    def names(self) -> list[str]:
        return [claim.holder.name for claim in self.grant_claims()]

    def end(self, *claims: SlotClaim) -> None:
        for claim in claims:
            self.broker.end(claim.holder, claim.ticket, OK, self.now)

    def turns(self, count: int, *holders: Holder, pools: tuple[str, ...] = ONE) -> Counter[str]:
        """Who is served when everybody always wants more, and leases last as long as one turn."""
        served: Counter[str] = Counter()
        for holder in holders:
            self.ask(holder, pools, times=10 * count)
        for _ in range(count):
            claims = self.grant_claims()
            served.update(claim.holder.name for claim in claims)
            self.end(*claims)
        return served


def tickets(claims: Iterable[SlotClaim]) -> list[int]:
    return [claim.ticket for claim in claims]


# how many


def test_no_more_are_granted_than_there_are_slots() -> None:
    driver = BrokerDriver(one=2)
    asked = driver.ask(driver.holder("a"), times=3)
    assert tickets(driver.grant_claims()) == asked[:2]
    assert driver.grant_claims() == []


def test_a_slot_that_is_given_back_goes_to_whoever_waits_longest() -> None:
    driver = BrokerDriver(one=1)
    asked = driver.ask(driver.holder("a"), times=3)
    for ticket in asked:
        (claim,) = driver.grant_claims()
        assert claim.ticket == ticket
        driver.end(claim)


def test_a_pool_that_grows_lets_more_begin_at_once() -> None:
    driver = BrokerDriver(one=1)
    driver.ask(driver.holder("a"), times=5)
    driver.grant_claims()
    driver.broker.resize("one", 4)
    assert len(driver.grant_claims()) == 3


def test_a_pool_that_shrinks_lets_running_ones_end_and_nobody_begin_before() -> None:
    driver = BrokerDriver(one=3)
    driver.ask(driver.holder("a"), times=5)
    first, second, third = driver.grant_claims()
    driver.broker.resize("one", 1)
    driver.end(first, second)
    assert driver.grant_claims() == []
    driver.end(third)
    assert len(driver.grant_claims()) == 1


def test_a_pool_without_slots_stops_everybody_until_it_has_some_again() -> None:
    driver = BrokerDriver(one=0)
    driver.ask(driver.holder("a"))
    assert driver.grant_claims() == []
    driver.broker.resize("one", 1)
    assert len(driver.grant_claims()) == 1


def test_a_size_that_is_declared_does_not_overrule_one_that_was_given() -> None:
    driver = BrokerDriver(one=3)
    driver.broker.declare({"one": 6, "two": 2})
    assert driver.broker.sizes() == {"one": 3, "two": 2}


def test_a_pool_that_learns_gets_a_fixed_size_while_it_is_in_use() -> None:
    driver = BrokerDriver(learn=lambda name: OneASecond())
    driver.ask(driver.holder("a"), times=3)
    (claim,) = driver.grant_claims()
    driver.broker.resize("one", 2)
    assert len(driver.grant_claims()) == 1
    driver.end(claim)
    assert len(driver.grant_claims()) == 1


def test_the_broker_says_when_to_ask_again() -> None:
    driver = BrokerDriver(learn=lambda name: OneASecond())
    driver.ask(driver.holder("a"), times=2)
    driver.now = 5.0
    assert len(driver.grant_claims()) == 1
    assert driver.broker.wake_at == 6.0
    driver.now = 6.0
    assert len(driver.grant_claims()) == 1
    assert driver.broker.wake_at == math.inf


# who


def test_holders_take_turns() -> None:
    driver = BrokerDriver(one=1)
    a, b = driver.holder("a"), driver.holder("b")
    assert driver.turns(20, a, b) == {"a": 10, "b": 10}


def test_whoever_holds_least_comes_first() -> None:
    driver = BrokerDriver(one=3)
    a, b = driver.holder("a"), driver.holder("b")
    driver.ask(a, times=9)
    claims = driver.grant_claims()
    driver.ask(b, times=9)
    driver.end(*claims[:2])
    assert driver.names()[0] == "b"


@pytest.mark.parametrize("size", [1, 3, 9])
def test_a_holder_of_twice_the_weight_gets_twice_as_much(size: int) -> None:
    driver = BrokerDriver(one=size)
    a, b = driver.holder("a", weight=2.0), driver.holder("b")
    served = driver.turns(300, a, b)
    assert served["a"] / served["b"] == pytest.approx(2.0, rel=0.02)


def test_slots_that_are_held_long_are_shared_by_weight() -> None:
    driver = BrokerDriver(one=9)
    driver.ask(driver.holder("a", weight=2.0), times=9)
    driver.ask(driver.holder("b"), times=9)
    assert Counter(driver.names()) == {"a": 6, "b": 3}


def test_who_comes_back_after_a_pause_has_saved_up_nothing() -> None:
    driver = BrokerDriver(one=1)
    a, b = driver.holder("a"), driver.holder("b")
    driver.turns(1, a, b)
    driver.turns(100, b)
    assert driver.turns(20, a, b) == {"a": 10, "b": 10}


def test_who_had_long_leases_is_not_ahead_for_ever() -> None:
    driver = BrokerDriver(one=2)
    a, b = driver.holder("a"), driver.holder("b")
    driver.ask(a, times=100)
    driver.ask(b, times=1_000)
    claims = {claim.holder.name: claim for claim in driver.grant_claims()}
    for _ in range(500):
        driver.end(claims["b"])
        (claims["b"],) = driver.grant_claims()
    c = driver.holder("c")
    driver.ask(c, times=100)
    driver.broker.resize("one", 1)
    driver.end(*claims.values())
    served: Counter[str] = Counter()
    for _ in range(30):
        (claim,) = driver.grant_claims()
        served[claim.holder.name] += 1
        driver.end(claim)
    assert min(served["a"], served["b"], served["c"]) >= 9


# who leaves


def test_who_is_gone_gives_everything_back_and_waits_no_longer() -> None:
    driver = BrokerDriver(one=2)
    a, b = driver.holder("a"), driver.holder("b")
    driver.ask(a, times=4)
    driver.grant_claims()
    driver.ask(b, times=2)
    driver.broker.leave(a, driver.now)
    assert driver.names() == ["b", "b"]
    assert driver.broker.pools["one"].waiting == 0


def test_a_claim_that_is_given_up_waits_no_longer_and_nothing_is_learned_from_a_dead_holder() -> None:
    paced = OneASecond()
    driver = BrokerDriver(learn=lambda name: paced)
    a = driver.holder("a")
    first, second = driver.ask(a, times=2)
    driver.grant_claims()
    driver.broker.end(a, second, OK, driver.now)
    driver.now = 10.0
    assert driver.grant_claims() == []
    driver.broker.leave(a, driver.now)
    assert paced.outcomes == [CallEnd.CANCELLED]
    assert first not in a.claims


def test_ending_what_is_over_changes_nothing() -> None:
    driver = BrokerDriver(one=1)
    a = driver.holder("a")
    driver.ask(a, times=3)
    (claim,) = driver.grant_claims()
    driver.end(claim, claim)
    assert len(driver.grant_claims()) == 1


def test_a_ticket_that_is_in_use_is_refused() -> None:
    driver = BrokerDriver(one=1)
    a = driver.holder("a")
    driver.broker.ask(a, 1, ONE, 0, 0.0)
    with pytest.raises(ValueError, match="twice"):
        driver.broker.resume(a, 1, ONE, 0, 0.0)


# leases from a broker that died


def test_a_resumed_lease_counts_even_if_that_is_one_too_many() -> None:
    driver = BrokerDriver(one=1)
    a, b = driver.holder("a"), driver.holder("b")
    driver.broker.resume(a, 1, ONE, 0, 0.0)
    driver.broker.resume(b, 1, ONE, 0, 0.0)
    driver.ask(b)
    assert driver.broker.pools["one"].held == 2
    driver.broker.end(a, 1, OK, 0.0)
    assert driver.grant_claims() == []
    driver.broker.end(b, 1, OK, 0.0)
    assert len(driver.grant_claims()) == 1


# several pools


def test_a_claim_of_two_pools_gets_both_or_nothing() -> None:
    driver = BrokerDriver(model=1, all=1)
    a, b = driver.holder("a"), driver.holder("b")
    driver.ask(a, ("all",))
    (held,) = driver.grant_claims()
    driver.ask(b, ("model", "all"))
    assert driver.grant_claims() == []
    assert driver.broker.pools["model"].held == 0
    driver.end(held)
    assert driver.names() == ["b"]
    assert (driver.broker.pools["model"].held, driver.broker.pools["all"].held) == (1, 1)


def test_a_claim_that_needs_nothing_begins_at_once() -> None:
    driver = BrokerDriver()
    driver.ask(driver.holder("a"), ())
    (claim,) = driver.grant_claims()
    driver.end(claim)


def test_a_pool_that_is_named_twice_is_taken_once() -> None:
    driver = BrokerDriver(one=2)
    driver.ask(driver.holder("a"), ("one", "one"))
    driver.end(*driver.grant_claims())
    assert driver.broker.pools["one"].held == 0


def test_a_model_that_makes_wait_does_not_stop_the_others() -> None:
    driver = BrokerDriver(slow=1, fast=5, all=6)
    a = driver.holder("a")
    driver.ask(a, ("slow", "all"), times=5)
    driver.ask(a, ("fast", "all"), times=5)
    assert sorted(claim.pools[0] for claim in driver.grant_claims()) == ["fast"] * 5 + ["slow"]


@pytest.mark.parametrize("turned", [False, True])
def test_holders_that_share_only_one_of_their_pools_take_turns_in_it(turned: bool) -> None:
    driver = BrokerDriver(red=9, blue=9, all=1)
    a, b = driver.holder("a"), driver.holder("b")
    wants = [(a, ("red", "all")), (b, ("all", "blue"))]
    for holder, pools in reversed(wants) if turned else wants:
        driver.ask(holder, pools, times=20)
    served: Counter[str] = Counter()
    for _ in range(20):
        claims = driver.grant_claims()
        served.update(claim.holder.name for claim in claims)
        driver.end(*claims)
    assert served == {"a": 10, "b": 10}


def test_claims_of_one_holder_at_different_gates_begin_in_the_order_in_which_they_came() -> None:
    driver = BrokerDriver(red=9, blue=9, all=1)
    a = driver.holder("a")
    order = []
    for number in range(6):
        driver.now = float(number)
        driver.ask(a, ("red" if number % 2 else "blue", "all"))
        order.append("red" if number % 2 else "blue")
    found = []
    for _ in range(6):
        (claim,) = driver.grant_claims()
        found.append(claim.pools[0])
        driver.end(claim)
    assert found == order


def test_a_claim_of_two_busy_pools_gets_its_turn() -> None:
    """Their slots never come free at the same moment, unless others let one be for a while."""
    driver = BrokerDriver(left=1, right=1)
    a, b, both = driver.holder("a"), driver.holder("b"), driver.holder("both")
    driver.ask(a, ("left",), times=1_000)
    driver.ask(b, ("right",), times=1_000)
    held = {claim.pools[0]: claim for claim in driver.grant_claims()}
    driver.now = 1.0
    driver.ask(both, ("left", "right"))
    for turn in range(200):
        side = ("left", "right")[turn % 2]
        if side in held:
            driver.end(held.pop(side))
        claims = driver.grant_claims()
        if any(claim.holder is both for claim in claims):
            return
        held.update((claim.pools[0], claim) for claim in claims)
    pytest.fail("it never got both")


def test_a_closed_pool_does_not_stop_those_who_do_not_want_it() -> None:
    driver = BrokerDriver(closed=0, all=1)
    a, b = driver.holder("a"), driver.holder("b")
    driver.ask(b, ("closed", "all"))
    driver.now = 1.0
    assert driver.turns(100, a, pools=("all",)) == {"a": 100}


# to look at


def test_a_look_tells_who_holds_and_who_waits_for_how_long() -> None:
    driver = BrokerDriver(one=2, other=1)
    a, b = driver.holder("a"), driver.holder("b", weight=2.0)
    driver.ask(a, times=3)
    driver.grant_claims()
    driver.now = 3.0
    driver.ask(b)
    seen = driver.broker.take_snapshot(5.0, pid=7, since=1.0)
    assert (seen.pid, seen.up_seconds) == (7, 4.0)
    one, other = seen.pools
    assert (one.name, one.held, one.waiting, one.control["size"]) == ("one", 2, 2, 2)
    assert [(view.name, view.held, view.waiting, view.oldest_wait_seconds) for view in one.holders] == [
        ("a", 2, 1, 5.0),
        ("b", 0, 1, 2.0),
    ]
    assert other.holders == ()


def test_the_oldest_claim_is_told_of_also_where_another_was_let_to_the_front() -> None:
    driver = BrokerDriver(one=0)
    a = driver.holder("a")
    driver.ask(a)
    driver.broker.ask(a, 99, ONE, 0, 4.0, first=True)
    assert driver.broker.take_snapshot(5.0, pid=7, since=1.0).pools[0].holders[0].oldest_wait_seconds == 5.0


def test_a_look_shows_the_backoffs_that_are_due_first_and_how_many_there_are() -> None:
    driver = BrokerDriver(one=1)
    a = driver.holder("a")
    for number in range(SHOWN_BACKOFFS + 50):
        backoff = Backoff(pool="one", kind="rate limit", attempt=2, until=1_000.0 - number)
        driver.broker.back_off(a, f"q{number}", backoff)
    driver.broker.back_off(a, "q0", None)
    seen = driver.broker.take_snapshot(600.0, pid=1, since=0.0)
    assert seen.backoffs_total == SHOWN_BACKOFFS + 49
    assert len(seen.backoffs) == SHOWN_BACKOFFS
    first = seen.backoffs[0]
    assert (first.label, first.seconds_left, first.attempt) == (f"q{SHOWN_BACKOFFS + 49}", 51.0, 2)


def test_a_line_of_many_claims_costs_no_more_per_claim_than_a_short_one() -> None:
    """Giving up from the back, and serving from the front, both find their claim at once."""
    driver = BrokerDriver(one=1)
    a = driver.holder("a")
    asked = driver.ask(a, times=20_000)
    for ticket in reversed(asked[1:]):
        driver.broker.end(a, ticket, OK, 0.0)
    assert tickets(driver.grant_claims()) == asked[:1]
