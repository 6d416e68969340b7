"""Stopping rules, declared in advance: an arm stops when its interval is narrow enough, or when it cannot win any more.

What is decided about an arm after some seeds depends on the results of these seeds alone, in their order, and not on
which run ended first. So a repeated or continued experiment decides the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal

import msgspec
from pydantic import Field

from shoal.experiments.declared import ExperimentPart
from shoal.experiments.results import PASS_RATE, RunResult
from shoal.experiments.statistics import bootstrap_mean, compare_paired, estimate_rate
from shoal.scenario import Problem

#: Seeds that an arm has at least before it may stop, if a rule does not say otherwise.
AT_LEAST = 10


class StopRule(ExperimentPart):
    """When an arm stops before all its seeds have been run."""

    #: What the rule looks at: a metric, `pass_rate`, or how one judge judges.
    metric: str | None = None
    judge: str | None = None
    #: Stop when the 95 % interval of the mean is narrower than this.
    narrower: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    #: Stop when another arm is certainly better: the highest mean wins, or the lowest.
    cannot_win: Literal["highest", "lowest"] | None = None
    at_least: Annotated[int, Field(ge=3)] = AT_LEAST

    def find_problems(self) -> Iterator[Problem]:
        """Yield what is wrong across the fields of the rule."""
        if (self.metric is None) == (self.judge is None):
            yield Problem((), expected="one of metric and judge")
        if self.narrower is None and self.cannot_win is None:
            yield Problem((), "nothing to stop for", expected="narrower, cannot_win or both")

    @property
    def is_rate(self) -> bool:
        return self.judge is not None or self.metric == PASS_RATE

    @property
    def subject(self) -> str:
        return str(self.metric or self.judge)

    def read_value(self, result: RunResult) -> float | None:
        """Return what the rule looks at in one run; None where it is not known."""
        if self.judge is None:
            return result.read_figure(str(self.metric))
        if result.status != "completed":
            return None
        verdicts = [each.passed for each in result.judgements if each.judge == self.judge]
        return None if not verdicts or verdicts[0] is None else float(verdicts[0])

    def is_look(self, seeds: int) -> bool:
        """Return whether arms are compared after this many seeds: at first, then each time their number has doubled.

        A comparison after every seed would sooner or later find a difference by chance.
        """
        while seeds > self.at_least and seeds % 2 == 0:
            seeds //= 2
        return seeds == self.at_least


class ArmStop(msgspec.Struct, frozen=True):
    """Why an arm was stopped, and after how many seeds."""

    tier: str
    arm: str
    seeds: int
    reason: str


class TierStops:
    """Decides which arms of a tier stop, seed by seed."""

    def __init__(
        self, tier: str, arms: Sequence[str], seeds: Sequence[int], rules: Sequence[StopRule], control: str | None
    ) -> None:
        self.stops: dict[str, ArmStop] = {}
        self._tier = tier
        self._arms = arms
        self._seeds = seeds
        self._rules = rules
        self._control = control
        #: Seeds of which every arm that goes on has a result.
        self._done = 0

    @property
    def may_stop(self) -> bool:
        return bool(self._rules)

    def advance(self, results: Mapping[str, RunResult]) -> list[ArmStop]:
        """Decide as far as the results go, which are named by tier, arm and seed; return the stops that are new."""
        stopped: list[ArmStop] = []
        while self._rules and self._done < len(self._seeds) - 1:
            seed, going = self._seeds[self._done], [arm for arm in self._arms if arm not in self.stops]
            if not going or any(f"{self._tier}/{arm}/{seed}" not in results for arm in going):
                break
            self._done += 1
            found = {arm: reason for rule in self._rules for arm, reason in self._apply(rule, going, results)}
            if self._control in found and len(found) < len(going):
                # The others are compared with it.
                del found[self._control]
            stopped += [ArmStop(self._tier, arm, self._done, reason) for arm, reason in found.items()]
            self.stops |= {stop.arm: stop for stop in stopped}
        return stopped

    def _apply(
        self, rule: StopRule, going: Sequence[str], results: Mapping[str, RunResult]
    ) -> Iterator[tuple[str, str]]:
        """Yield the arms that a rule stops after the seeds that are done, with the reason."""
        if self._done < rule.at_least:
            return
        values: dict[str, dict[int, float]] = {}
        for arm in going:
            read = {seed: rule.read_value(results[f"{self._tier}/{arm}/{seed}"]) for seed in self._seeds[: self._done]}
            values[arm] = {seed: value for seed, value in read.items() if value is not None}
        if rule.narrower is not None:
            for arm, known in values.items():
                if len(known) < rule.at_least:
                    continue
                every = list(known.values())
                found = estimate_rate(round(sum(every)), len(every)) if rule.is_rate else bootstrap_mean(every)
                if found.high - found.low < rule.narrower:
                    width = f"{found.low:.4g} to {found.high:.4g}"
                    yield arm, f"the interval of {rule.subject}, {width}, is narrower than {rule.narrower:g}"
        if rule.cannot_win is not None and rule.is_look(self._done):
            yield from self._find_losers(rule, values)

    def _find_losers(self, rule: StopRule, values: Mapping[str, Mapping[int, float]]) -> Iterator[tuple[str, str]]:
        """Yield the arms that are certainly not the best. All others are compared with the one that is best so far."""
        sign = 1 if rule.cannot_win == "highest" else -1
        means = {arm: sign * sum(known.values()) / len(known) for arm, known in values.items() if known}
        if not means:
            return
        best = max(means, key=lambda arm: means[arm])
        for arm in means:
            if arm in (best, self._control):
                continue
            effect = compare_paired(values[arm], values[best])
            if effect is not None and max(sign * effect.difference.low, sign * effect.difference.high) < 0:
                ends = f"{effect.difference.low:.4g} to {effect.difference.high:.4g}"
                yield arm, f"it cannot win any more: {rule.subject} differs from that of {best} by {ends}"
