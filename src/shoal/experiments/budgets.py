"""Budgets of an experiment and of its tiers, kept over all processes.

Each run that is started is given a share of what is left, which its own worker does not exceed. What it does not use
is free again when it ends. A run whose share was too small goes on from its journal once there is more, so that
nothing is paid for twice and no budget is ever exceeded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from shoal.experiments.declared import ExperimentPart
from shoal.runs import LimitSettings
from shoal.scenario import BudgetSettings

#: What runs are counted by, beside time.
_COUNTED = ("max_cost", "max_calls")
#: What is left is no share if it is less than this.
_SMALLEST = {"max_cost": 1e-9, "max_calls": 1.0}
#: How much more than planned, or than others of its tier took, a run has at hand when it starts.
_PLANNED_MARGIN, _KNOWN_MARGIN = 1.5, 1.1

Amount = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class BudgetLimits(ExperimentPart):
    """What an experiment or a tier may use, at most."""

    #: US dollars.
    max_cost: Amount | None = None
    max_calls: Annotated[int, Field(ge=1)] | None = None
    #: Hours of work on it, over all calls together.
    max_hours: Amount | None = None

    def replace_with(self, given: BudgetLimits) -> BudgetLimits:
        """Return these limits, except for those that are given anew."""
        return self.model_copy(update=given.model_dump(exclude_none=True))

    def list_counted(self) -> list[tuple[str, float]]:
        """Return the limits of money and calls."""
        return [(name, most) for name in _COUNTED if (most := getattr(self, name)) is not None]

    @property
    def is_counted(self) -> bool:
        """Whether money or calls are limited, and not time alone."""
        return bool(self.list_counted())


@dataclass(frozen=True, slots=True)
class Share:
    """What a run may use: limits, or nothing before another run ends, or nothing at all."""

    limits: LimitSettings | None = None
    #: The budget that is used up: a tier, or nothing for the experiment; and which of its limits.
    spent: tuple[str, str] | None = None

    @classmethod
    def wait(cls) -> Share:
        return cls()


@dataclass(slots=True)
class _Account:
    """What one run used so far, and how much it may use while it runs."""

    used: Mapping[str, float]
    #: Empty while it does not run.
    limit: Mapping[str, float]
    is_complete: bool = False


class BudgetShares:
    """Divides what is left of the budgets among the runs that are under way.

    A budget belongs to a tier, or to the experiment, whose name here is empty.
    """

    def __init__(self, budgets: Mapping[str, BudgetLimits], planned: Mapping[str, Mapping[str, float]]) -> None:
        self.budgets = {owner: budget for owner, budget in budgets.items() if budget.is_counted}
        #: Tier -> what one run of it will probably use.
        self._planned = planned
        self._accounts: dict[str, _Account] = {}
        #: Runs that were stopped by their share -> the limits that were too small.
        self._short: dict[str, Mapping[str, float]] = {}

    def settle(self, run: str, cost: float | None, calls: int, *, is_complete: bool = False) -> None:
        """Take in what a run used that is not under way any more."""
        self._accounts[run] = _Account({"max_cost": cost or 0.0, "max_calls": calls}, {}, is_complete)

    def note_shortage(self, run: str) -> None:
        """Take in that the share of a run was too small, before it is settled."""
        self._short[run] = self._accounts[run].limit

    def has_imposed(self, run: str, setting: str, own: float | None) -> bool:
        """Return whether the limit of a run under way was its share, and not its own budget."""
        limit = self._accounts[run].limit.get(setting)
        return limit is not None and (own is None or limit < own)

    def take_share(self, run: str, own: BudgetSettings, free: int) -> Share:
        """Return the share of a run that is to start, while this number may start."""
        tier = run.partition("/")[0]
        used = self._accounts[run].used if run in self._accounts else dict.fromkeys(_COUNTED, 0.0)
        limit: dict[str, float] = {}
        for owner in ("", tier):
            for setting, most in self.budgets.get(owner, BudgetLimits()).list_counted():
                others = [each for name, each in self._accounts.items() if name != run and _belongs(name, owner)]
                taken = sum(each.limit.get(setting, each.used[setting]) for each in others)
                left = most - taken - used[setting]
                wanted = self._find_wanted(run, tier, setting, used[setting])
                if left < wanted and any(each.limit for each in others):
                    return Share.wait()
                before = self._short.get(run, {}).get(setting, 0.0)
                if left < _SMALLEST[setting] or used[setting] + left <= before:
                    return Share(spent=(owner, setting))
                share = min(max(left / max(free, 1), wanted), left)
                limit[setting] = min(limit.get(setting, share + used[setting]), share + used[setting])
        limit = {setting: min(share, getattr(own, setting) or share) for setting, share in limit.items()}
        if limit:
            self._accounts[run] = _Account(used, limit)
        calls = limit.get("max_calls")
        return Share(LimitSettings(max_cost=limit.get("max_cost"), max_calls=None if calls is None else int(calls)))

    def _find_wanted(self, run: str, tier: str, setting: str, used: float) -> float:
        """Return what a run should have at hand, so that it probably comes to its end."""
        complete = [each for name, each in self._accounts.items() if each.is_complete and _belongs(name, tier)]
        expected = self._planned.get(tier, {}).get(setting, 0.0) * _PLANNED_MARGIN
        if complete:
            expected = max(each.used[setting] for each in complete) * _KNOWN_MARGIN
        before = self._short.get(run, {}).get(setting, 0.0) * _KNOWN_MARGIN
        return max(expected - used, before - used, 0.0)


def _belongs(run: str, owner: str) -> bool:
    return not owner or run.startswith(f"{owner}/")
