"""The figures of a report: of every arm with its interval, of tiers and of the whole experiment, and effects."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import NamedTuple

from shoal.experiments.metrics import find_bounds
from shoal.experiments.report.reading import ArmColumns, ExperimentColumns, JudgeCounts, RunLine, TierColumns
from shoal.experiments.results import PASS_RATE
from shoal.experiments.statistics import (
    Effect,
    Interval,
    bootstrap_mean,
    compare_paired,
    compare_rates,
    correct_holm,
    describe_power,
    estimate_cost_of_pass,
    estimate_rate,
)
from shoal.experiments.stopping import ArmStop

SIGNIFICANT = 0.05
#: The mean of what people think of a claim, or of the topic.
_OPINION = re.compile(r"(^|\.)mean\(.+\)$")


class MetricFigure(NamedTuple):
    """The mean of a metric over the runs of an arm that have it."""

    mean: Interval
    runs: int

    @classmethod
    def of(cls, name: str, values: Sequence[float]) -> MetricFigure:
        bounds = find_bounds(name, min(values), max(values))
        return cls(bootstrap_mean(values).clip(*bounds), len(values))


@dataclass(frozen=True, slots=True)
class ArmEffect:
    """An effect against the control of the tier."""

    effect: Effect
    #: Corrected by Holm for all arms of the experiment that are compared in the same outcome.
    corrected_p: float | None

    @property
    def is_found(self) -> bool:
        return self.corrected_p is not None and self.corrected_p < SIGNIFICANT


@dataclass(frozen=True, slots=True)
class Totals:
    """How runs ended, and what they took: of an arm, a tier or an experiment."""

    runs: int
    completed: int
    failed: int
    stopped: int
    #: Runs of which it is known whether they passed.
    judged: int
    passed: int
    #: None where the cost of a run is not known.
    cost: float | None
    calls: int
    tokens: int
    seconds: float

    @classmethod
    def of(cls, runs: Sequence[RunLine]) -> Totals:
        costs = [run.cost for run in runs]
        return cls(
            runs=len(runs),
            completed=sum(run.status == "completed" for run in runs),
            failed=sum(run.status == "failed" for run in runs),
            stopped=sum(run.status == "stopped" for run in runs),
            judged=sum(run.passed is not None for run in runs),
            passed=sum(run.passed is True for run in runs),
            cost=None if None in costs else sum(cost for cost in costs if cost is not None),
            calls=sum(run.calls for run in runs),
            tokens=sum(run.tokens for run in runs),
            seconds=sum(run.seconds for run in runs),
        )

    @classmethod
    def join(cls, parts: Iterable[Totals]) -> Totals:
        each = list(parts)
        costs = [part.cost for part in each]
        return cls(
            runs=sum(part.runs for part in each),
            completed=sum(part.completed for part in each),
            failed=sum(part.failed for part in each),
            stopped=sum(part.stopped for part in each),
            judged=sum(part.judged for part in each),
            passed=sum(part.passed for part in each),
            cost=None if None in costs else sum(cost for cost in costs if cost is not None),
            calls=sum(part.calls for part in each),
            tokens=sum(part.tokens for part in each),
            seconds=sum(part.seconds for part in each),
        )

    @property
    def pass_rate(self) -> Interval | None:
        """The rate of passing among the runs that were judged; None where none was."""
        return estimate_rate(self.passed, self.judged) if self.judged else None


@dataclass(frozen=True)
class ArmReport:
    """One arm: its runs, its figures and its effects."""

    record: ArmColumns
    is_control: bool
    totals: Totals
    #: What a run costs on average; None where that is not known.
    cost: Interval | None
    metrics: Mapping[str, MetricFigure]
    #: Outcome -> effect against the control; none for the control itself.
    effects: Mapping[str, ArmEffect] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.record.name

    @cached_property
    def cost_of_pass(self) -> Interval | None:
        """Mean cost over pass rate of the runs that were judged; None where no judge did or the cost is not known."""
        judged = [(run.cost, run.passed) for run in self.record.runs if run.passed is not None and run.cost is not None]
        if not judged or len(judged) < self.totals.judged:
            return None
        return estimate_cost_of_pass([cost for cost, _ in judged], [passed for _, passed in judged])

    def read_outcome(self, outcome: str) -> Interval | None:
        if outcome == PASS_RATE:
            return self.totals.pass_rate
        return self.metrics[outcome].mean if outcome in self.metrics else None


@dataclass(frozen=True, slots=True)
class TierReport:
    """One tier with its arms."""

    record: TierColumns
    arms: Sequence[ArmReport]
    totals: Totals

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def control(self) -> ArmReport | None:
        return next((arm for arm in self.arms if arm.is_control), None)

    @property
    def best_arm(self) -> ArmReport | None:
        """The arm whose pass costs least; None where no cost of a pass is known."""
        known = [(each.value, arm) for arm in self.arms if (each := arm.cost_of_pass) is not None]
        return min(known, key=lambda pair: pair[0])[1] if known else None

    @property
    def power(self) -> str | None:
        """What so few seeds cannot find."""
        seeds = [effect.effect.seeds for arm in self.arms for effect in arm.effects.values()]
        return describe_power(min(seeds)) if seeds else None


@dataclass(frozen=True, slots=True)
class ExperimentReport:
    """All figures of an experiment."""

    record: ExperimentColumns
    tiers: Sequence[TierReport]
    totals: Totals
    #: What the experiment is about: a metric, or `pass_rate`; None where nothing was measured.
    outcome: str | None
    #: Why it is this outcome.
    outcome_reason: str
    #: Every metric that at least one run has, in the order of the results.
    metrics: Sequence[str]

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def stops(self) -> Sequence[ArmStop]:
        return self.record.state.stops

    @property
    def best_arm(self) -> ArmReport | None:
        found = [arm for tier in self.tiers if (arm := tier.best_arm) is not None]
        return min(found, key=lambda arm: inf if arm.cost_of_pass is None else arm.cost_of_pass.value, default=None)

    @property
    def judges(self) -> dict[str, JudgeCounts]:
        """What each judge said of all runs."""
        parts: dict[str, list[JudgeCounts]] = {}
        for arm in self.record.list_arms():
            for name, counts in arm.judges.items():
                parts.setdefault(name, []).append(counts)
        return {name: JudgeCounts.join(each) for name, each in parts.items()}

    def list_arms(self) -> list[ArmReport]:
        return [arm for tier in self.tiers for arm in tier.arms]

    def list_commands(self) -> list[tuple[str, str]]:
        """Return what makes the first run of each arm again, with the arm."""
        arms = self.record.list_arms()
        return [(arm.folder, arm.runs[0].command) for arm in arms if arm.runs and arm.runs[0].command]

    def list_lost(self) -> list[RunLine]:
        """Return the runs that did not complete or could not be judged."""
        return [run for arm in self.record.list_arms() for run in arm.runs if run.error or run.status != "completed"]


def report_experiment(record: ExperimentColumns) -> ExperimentReport:
    """Compute all figures of an experiment from its results."""
    metrics = list(dict.fromkeys(name for arm in record.list_arms() for name in arm.metrics))
    comparisons = _compare_arms(record, metrics)
    # Each outcome is corrected for the number of arms that are compared in it, over all tiers.
    corrected: dict[tuple[str, str, str], float] = {}
    for about in dict.fromkeys(about for _, _, about in comparisons):
        keys = [key for key, effect in comparisons.items() if key[2] == about and effect.p is not None]
        values = correct_holm([p for key in keys if (p := comparisons[key].p) is not None])
        corrected |= dict(zip(keys, values, strict=True))
    effects = {key: ArmEffect(effect, corrected.get(key)) for key, effect in comparisons.items()}
    tiers = []
    for tier in record.tiers.values():
        arms = []
        for name, arm in tier.arms.items():
            costs = [run.cost for run in arm.runs if run.cost is not None]
            figures = {each: list(arm.read_metric(each).values()) for each in arm.metrics}
            measured = {each: MetricFigure.of(each, read) for each, read in figures.items() if read}
            arms.append(
                ArmReport(
                    record=arm,
                    is_control=name == tier.control,
                    totals=Totals.of(arm.runs),
                    cost=bootstrap_mean(costs) if costs and len(costs) == len(arm.runs) else None,
                    metrics=measured,
                    effects={about: found for (*of, about), found in effects.items() if of == [arm.tier, arm.name]},
                )
            )
        tiers.append(TierReport(tier, arms, Totals.join(arm.totals for arm in arms)))
    totals = Totals.join(tier.totals for tier in tiers)
    outcome, reason = _choose_outcome(record, metrics, totals.judged > 0)
    return ExperimentReport(record, tiers, totals, outcome, reason, metrics)


def _choose_outcome(record: ExperimentColumns, metrics: Sequence[str], is_judged: bool) -> tuple[str | None, str]:
    """Choose what the report is about by what was declared, never by what was found."""
    wanted = record.design.outcome
    if wanted is not None and wanted in (*metrics, *([PASS_RATE] if is_judged else [])):
        return wanted, "the declared outcome"
    if is_judged:
        return PASS_RATE, "what the judges decide"
    for tier in record.tiers.values():
        inherits = tier.inherits or {}
        if found := [name for name in metrics if name in (inherits.get("highest"), inherits.get("lowest"))]:
            return found[0], "what decides which arm is inherited"
    if not metrics:
        return None, "nothing was measured"
    opinions = sorted((name for name in metrics if _OPINION.search(name)), key=lambda name: name.endswith("(topic)"))
    if opinions:
        return opinions[0], "the first opinion that was measured, as no outcome is declared"
    return metrics[0], "the first metric, as no outcome is declared"


Comparisons = dict[tuple[str, str, str], Effect]


def _compare_arms(record: ExperimentColumns, metrics: Sequence[str]) -> Comparisons:
    """Compare every arm with the control of its tier in every outcome: tier, arm, outcome -> effect."""
    found: Comparisons = {}
    for tier in record.tiers.values():
        control = tier.arms.get(tier.control)
        if control is None:
            continue
        values = {name: control.read_metric(name) for name in metrics}
        for arm in tier.arms.values():
            if arm is control:
                continue
            effects = {PASS_RATE: compare_rates(arm.read_verdicts(), control.read_verdicts())}
            effects |= {name: compare_paired(arm.read_metric(name), values[name]) for name in metrics}
            found |= {(tier.name, arm.name, name): effect for name, effect in effects.items() if effect is not None}
    return found
