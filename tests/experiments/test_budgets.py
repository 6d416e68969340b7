"""Budgets over many runs: shares never add up to more than there is."""

from __future__ import annotations

from random import Random

import pytest

from shoal.experiments.budgets import BudgetLimits, BudgetShares
from shoal.scenario import BudgetSettings

NO_LIMIT = BudgetSettings()


def make_shares(*, planned: float = 1.0, **budgets: float) -> BudgetShares:
    """Budgets in dollars of the experiment (`whole`) and of tiers."""
    limits = {"" if owner == "whole" else owner: BudgetLimits(max_cost=cost) for owner, cost in budgets.items()}
    return BudgetShares(limits, {"a": {"max_cost": planned}, "b": {"max_cost": planned}})


def read_cost(shares: BudgetShares, run: str, free: int) -> float | None:
    share = shares.take_share(run, NO_LIMIT, free)
    return None if share.limits is None else share.limits.max_cost


def test_as_many_runs_start_as_will_probably_come_to_their_end() -> None:
    shares = make_shares(whole=10.0)
    costs = [read_cost(shares, f"a/arm/{seed}", free=16 - seed) for seed in range(16)]
    given = [cost for cost in costs if cost is not None]
    # A run is planned with one dollar, and has half as much more at hand.
    assert given == [1.5] * 6
    shares.settle("a/arm/0", 0.8, 4, is_complete=True)
    # Others of its tier took 0.8 dollars at most, so that is known better now: 10 - 5 * 1.5 - 0.8 are left.
    assert read_cost(shares, "a/arm/20", free=1) == pytest.approx(1.7)


def test_the_last_run_gets_what_is_left_and_then_the_budget_is_used_up() -> None:
    shares = make_shares(whole=1.2)
    assert read_cost(shares, "a/arm/1", free=4) == pytest.approx(1.2)
    assert shares.take_share("a/arm/2", NO_LIMIT, 3) == shares.take_share("a/arm/2", NO_LIMIT, 3)
    assert shares.take_share("a/arm/2", NO_LIMIT, 3).spent is None
    shares.settle("a/arm/1", 1.2, 9, is_complete=True)
    assert shares.take_share("a/arm/2", NO_LIMIT, 3).spent == ("", "max_cost")


def test_a_run_whose_share_was_too_small_waits_for_more_and_is_not_started_again_in_vain() -> None:
    shares = make_shares(planned=0.1, whole=2.0)
    first, second = (read_cost(shares, f"a/arm/{seed}", free=2 - seed) for seed in range(2))
    assert (first, second) == (1.0, 1.0)
    shares.note_shortage("a/arm/0")
    shares.settle("a/arm/0", 0.99, 9)
    assert shares.take_share("a/arm/0", NO_LIMIT, 1).limits is None
    shares.settle("a/arm/1", 0.2, 9, is_complete=True)
    assert read_cost(shares, "a/arm/0", free=1) == pytest.approx(1.8)
    shares.note_shortage("a/arm/0")
    shares.settle("a/arm/0", 1.79, 9)
    assert shares.take_share("a/arm/0", NO_LIMIT, 1).spent == ("", "max_cost")


def test_a_tier_keeps_to_its_own_budget_and_others_go_on() -> None:
    shares = make_shares(whole=100.0, a=1.0)
    assert read_cost(shares, "a/arm/1", free=1) == pytest.approx(1.0)
    shares.settle("a/arm/1", 1.0, 9, is_complete=True)
    assert shares.take_share("a/arm/2", NO_LIMIT, 1).spent == ("a", "max_cost")
    assert read_cost(shares, "b/arm/1", free=1) == pytest.approx(99.0)


def test_a_run_that_has_a_budget_of_its_own_gets_no_more_than_that() -> None:
    shares = make_shares(whole=10.0)
    share = shares.take_share("a/arm/1", BudgetSettings(max_cost=0.5), 1)
    assert share.limits is not None
    assert share.limits.max_cost == 0.5
    assert not shares.has_imposed("a/arm/1", "max_cost", 0.5)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_runs_cost_the_budget_is_never_exceeded(seed: int) -> None:
    draw, budget = Random(seed), 20.0
    shares = make_shares(planned=draw.uniform(0.1, 3), whole=budget)
    needs = {f"a/arm/{number}": draw.uniform(0.1, 4) for number in range(40)}
    spent, queue = dict.fromkeys(needs, 0.0), list(needs)
    running: dict[str, float] = {}
    done: set[str] = set()
    for _ in range(2000):
        for name in list(queue):
            if len(running) < 6 and (cost := read_cost(shares, name, 6 - len(running))) is not None:
                running[name] = cost
                queue.remove(name)
        if not running:
            break
        assert sum(running.values()) + sum(spent[name] for name in needs if name not in running) <= budget + 1e-9
        name = draw.choice(list(running))
        limit = running.pop(name)
        spent[name] = min(needs[name], limit)
        if is_complete := spent[name] == needs[name]:
            done.add(name)
        else:
            shares.note_shortage(name)
            queue.insert(0, name)
        shares.settle(name, spent[name], 1, is_complete=is_complete)
    assert not running
    assert sum(spent.values()) <= budget + 1e-9
    # What is left could not have paid for the run that stopped last.
    assert budget - sum(spent.values()) < max(needs.values()) * 1.1
    assert len(done) >= 3
