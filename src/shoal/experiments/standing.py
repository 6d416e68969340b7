"""Where each arm of an experiment stands, while it runs and afterwards."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from shoal.experiments.batch import RESULTS
from shoal.experiments.design import Design, TierSettings
from shoal.experiments.folder import ExperimentState, open_design, read_experiment_state
from shoal.experiments.results import RunResult, read_results


class ArmStanding(msgspec.Struct):
    """How far one arm is."""

    tier: str
    arm: str
    #: Runs that count: fewer than were planned where the arm was stopped.
    runs: int
    ended: int = 0
    running: int = 0
    failed: int = 0
    #: Stopped by their own budget, or because a server did not answer.
    stopped: int = 0
    #: Runs that all judges passed, of those that were judged.
    passed: int = 0
    judged: int = 0
    #: Dollars; None where a price is not known.
    cost: float | None = 0.0
    calls: int = 0
    #: What it waits for, or why it goes on no more.
    note: str = ""

    def add(self, result: RunResult) -> None:
        self.ended += 1
        self.failed += result.status == "failed"
        self.stopped += result.status == "stopped"
        self.passed += result.passed is True
        self.judged += result.passed is not None
        self.cost = None if self.cost is None or result.cost is None else self.cost + result.cost
        self.calls += result.calls


@dataclass(frozen=True, slots=True)
class ExperimentStanding:
    """How far an experiment is."""

    arms: list[ArmStanding]
    state: ExperimentState

    @property
    def runs(self) -> int:
        return sum(arm.runs for arm in self.arms)

    @property
    def ended(self) -> int:
        return sum(arm.ended for arm in self.arms)

    def count(self, name: str) -> int:
        return sum(getattr(arm, name) for arm in self.arms)

    @property
    def cost(self) -> float | None:
        costs = [arm.cost for arm in self.arms]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    @property
    def expected_cost(self) -> float | None:
        """Dollars of all runs, if those that are left cost what others of their tier did; None: not known."""
        total, whole = self.cost, 0.0
        if total is None or not self.ended:
            return None
        for arm in self.arms:
            others = [each for each in self.arms if each.tier == arm.tier and each.ended] or self.arms
            mean = sum(each.cost or 0.0 for each in others) / sum(each.ended for each in others)
            whole += (arm.cost or 0.0) + mean * (arm.runs - arm.ended)
        return whole

    @property
    def seconds_left(self) -> float | None:
        """How long the runs that are left take, if they go on as those before; None where none has ended."""
        worked = self.state.hours.get("", 0.0) * 3600
        return worked / self.ended * (self.runs - self.ended) if self.ended and worked else None


def take_standing(
    design: Design, results: Iterable[RunResult], state: ExperimentState, running: Iterable[str] = ()
) -> ExperimentStanding:
    """Count what has ended in each arm. `running` names the runs that are under way."""
    stops = {(stop.tier, stop.arm): stop for stop in state.stops}
    arms: dict[tuple[str, str], ArmStanding] = {}
    for tier in design.tiers:
        note = _describe_tier(tier, state)
        for arm in tier.list_arms():
            stop = stops.get((tier.name, arm))
            runs = len(design.list_seeds(tier)) if stop is None else stop.seeds
            text = note if stop is None else f"stopped after {stop.seeds} seeds: {stop.reason}"
            arms[tier.name, arm] = ArmStanding(tier.name, arm, runs, note=text)
    for result in results:
        arms[result.tier, result.arm].add(result)
    for name in running:
        tier_name, arm, _ = name.split("/")
        arms[tier_name, arm].running += 1
    return ExperimentStanding(list(arms.values()), state)


def read_standing(folder: Path) -> ExperimentStanding:
    """Read how far the experiment in a folder is; RunMissing if it holds none."""
    design = open_design(folder)
    planned = {(tier.name, arm) for tier in design.tiers for arm in tier.list_arms()}
    results = {each.id: each for each in read_results(folder / RESULTS) if (each.tier, each.arm) in planned}
    return take_standing(design, results.values(), read_experiment_state(folder))


def _describe_tier(tier: TierSettings, state: ExperimentState) -> str:
    if tier.name in state.skipped:
        return f"skipped: {state.skipped[tier.name]}"
    if setting := state.spent.get(tier.name) or state.spent.get(""):
        return f"its budget is used up: {setting}" if tier.name in state.spent else f"budget used up: {setting}"
    if tier.inherits is not None and tier.name not in state.starts:
        return f"waits for {tier.inherits.tier}"
    return ""
