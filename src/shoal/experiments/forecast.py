"""Predicts what an experiment takes: calls, cost and time of each arm and in all, before anything runs."""

from __future__ import annotations

import os

import msgspec

from shoal.agents import LanguageSettings
from shoal.experiments.design import Experiment, TierSettings
from shoal.runs import LimitSettings, describe_servers
from shoal.runs.planning import plan_run, time_rounds
from shoal.types import Versioned

#: A worker takes about this long to start and to end.
_WORKER_SECONDS = 0.5


class ArmForecast(msgspec.Struct, frozen=True):
    """What the runs of one arm will probably take."""

    tier: str
    arm: str
    runs: int
    #: Of all its runs.
    calls: int
    #: Dollars of all its runs, at the most; None where a price is not known.
    cost: float | None
    #: Of one run; None where its worlds or minds are the user's own.
    seconds: float | None
    seconds_per_call: float = 0.0


class Forecast(msgspec.Struct, frozen=True):
    """What an experiment will probably take."""

    experiment: str
    simulations: int
    max_simulations: int
    parallel: int | None
    arms: tuple[ArmForecast, ...]
    calls: int
    cost: float | None
    #: The whole time; None where that of an arm is not known.
    seconds: float | None
    #: Tiers that are planned without what they will inherit.
    inheriting: tuple[str, ...]
    #: Sentences about budgets that will be used up before the end.
    short: tuple[str, ...]


async def forecast_experiment(experiment: Experiment, limits: LimitSettings, at_once: int) -> Forecast:
    """Predict an experiment with this number of simulations at once. No model is asked, and nothing is written."""
    known: dict[str, ArmForecast] = {}
    arms = [
        await _forecast_arm(experiment, tier, arm, limits, known)
        for tier in experiment.tiers
        for arm in experiment.arms[tier.name]
    ]
    cost = None if any(each.cost is None for each in arms) else sum(each.cost or 0.0 for each in arms)
    calls = sum(each.calls for each in arms)
    return Forecast(
        experiment=experiment.name,
        simulations=experiment.runs,
        max_simulations=at_once,
        parallel=limits.parallel,
        arms=tuple(arms),
        calls=calls,
        cost=cost,
        seconds=_add_times(experiment, arms, limits.parallel, at_once),
        inheriting=tuple(tier.name for tier in experiment.tiers if tier.inherits is not None),
        short=tuple(_find_shortages(experiment, arms)),
    )


async def _forecast_arm(
    experiment: Experiment, tier: TierSettings, arm: str, limits: LimitSettings, known: dict[str, ArmForecast]
) -> ArmForecast:
    """Predict one arm. Arms with the same scenario are planned once."""
    scenario, runs = experiment.make_scenario(tier, arm), len(experiment.list_seeds(tier))
    content = repr(scenario)
    if content not in known:
        if isinstance(scenario.mind, LanguageSettings):
            budget, servers = limits.apply_to(scenario.budget), describe_servers(scenario, os.environ)
            plan = await plan_run(Versioned(scenario), budget=budget, servers=servers)
            total, slots = plan.total, min(limits.parallel or plan.max_workers, plan.max_workers)
            seconds: float | None = max(plan.seconds, total.calls / slots * plan.seconds_per_call)
            one = ArmForecast("", "", 1, total.calls, total.cost_uncached, seconds, plan.seconds_per_call)
        else:
            one = ArmForecast("", "", 1, 0, 0.0, await time_rounds(scenario))
        known[content] = one
    one = known[content]
    cost = None if one.cost is None else one.cost * runs
    return msgspec.structs.replace(one, tier=tier.name, arm=arm, runs=runs, calls=one.calls * runs, cost=cost)


def _add_times(experiment: Experiment, arms: list[ArmForecast], parallel: int | None, at_once: int) -> float | None:
    """Return the time of all: bounded by simulations and agents at once, and by tiers that wait for one another."""
    if any(arm.seconds is None for arm in arms):
        return None
    work = sum(arm.runs * ((arm.seconds or 0.0) + _WORKER_SECONDS) for arm in arms) / at_once
    calls = sum(arm.calls * arm.seconds_per_call for arm in arms) / parallel if parallel else 0.0
    longest: dict[str, float] = {}
    for tier in experiment.tiers:
        before = 0.0 if tier.inherits is None else longest[tier.inherits.tier]
        longest[tier.name] = before + max(
            (arm.seconds or 0.0) + _WORKER_SECONDS for arm in arms if arm.tier == tier.name
        )
    return max(work, calls, *longest.values())


def _find_shortages(experiment: Experiment, arms: list[ArmForecast]) -> list[str]:
    budgets = {"the experiment": ("", experiment.settings.budget)}
    budgets |= {f"tier {tier.name}": (tier.name, tier.budget) for tier in experiment.tiers}
    found = []
    for owner, (tier, budget) in budgets.items():
        of_owner = [arm for arm in arms if not tier or arm.tier == tier]
        cost, calls = sum(arm.cost or 0.0 for arm in of_owner), sum(arm.calls for arm in of_owner)
        if budget.max_cost is not None and cost > budget.max_cost:
            found.append(f"max_cost of {owner} is ${budget.max_cost:,.2f}, and up to ${cost:,.2f} are expected")
        if budget.max_calls is not None and calls > budget.max_calls:
            found.append(f"max_calls of {owner} is {budget.max_calls:,}, and {calls:,} are expected")
    return found
