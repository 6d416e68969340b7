"""Which runs of an experiment start, and when: tiers that inherit, stopping rules, budgets, and a shared past."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from shoal.agents import LanguageSettings
from shoal.errors import BudgetReached, ExperimentBudgetReached, RunRefused
from shoal.experiments.batch import RESULTS, Batch, BatchResult, BatchSettings
from shoal.experiments.batch_rows import BatchRow
from shoal.experiments.budgets import BudgetLimits, BudgetShares, Share
from shoal.experiments.design import Experiment, TierSettings
from shoal.experiments.results import RunResult, measure_arm, read_results
from shoal.experiments.stopping import ArmStop, TierStops
from shoal.models import Budget
from shoal.runs import (
    CONFIG,
    LimitSettings,
    RunDirectory,
    RunOutcome,
    RunResources,
    Status,
    check_models,
    describe_servers,
    storage_errors,
)
from shoal.runs.planning import plan_run
from shoal.types import Versioned

#: What the scheduler of batches records: how each run ended, before it is judged.
RUNS_FILE = "runs.jsonl"

#: Measures and judges a run that has ended.
JudgeRun = Callable[[BatchResult], Awaitable[RunResult]]


class ExperimentBatch(Batch):
    """The runs of an experiment in its tree `TIER/ARM/SEED`."""

    def __init__(
        self, experiment: Experiment, folder: Path, settings: BatchSettings, budget: BudgetLimits, judge: JudgeRun
    ) -> None:
        super().__init__(experiment.base, [], folder, settings)
        self.experiment = experiment
        self.budget = budget
        #: The results of all runs that have ended and are judged.
        self.judged: dict[str, RunResult] = {}
        #: Tier -> what its runs change on top of the base scenario, once that is known.
        self.inherited: dict[str, Mapping[str, Any]] = {}
        #: Tier -> the arm of an earlier tier that it starts from.
        self.starts: dict[str, str] = {}
        #: Tier -> why it cannot be run.
        self.skipped: dict[str, str] = {}
        #: Tiers whose budget is used up -> which limit of it; an empty name is the whole experiment.
        self.spent: dict[str, str] = {}
        self._judge = judge
        #: Tiers that are queued -> their stopping rules.
        self._rules: dict[str, TierStops] = {}
        #: Tier -> results of it, also of those that do not count.
        self._ended: Counter[str] = Counter()
        self._followers: dict[str, frozenset[str]] = {}
        self._shares = BudgetShares({}, {})
        self._granted: dict[str, LimitSettings] = {}
        self.progress.total = experiment.runs

    @property
    def results_file(self) -> Path:
        return self.folder / RUNS_FILE

    @property
    def runs_folder(self) -> Path:
        return self.folder

    def check_models(self, resources: RunResources) -> None:
        """Refuse arms whose models cannot be asked, or whose cost cannot be limited, before anything runs."""
        checked: set[str] = set()
        for tier in self.experiment.tiers:
            is_priced = self.budget.max_cost is not None or tier.budget.max_cost is not None
            for arm in self.experiment.arms[tier.name]:
                scenario = self.experiment.make_scenario(tier, arm)
                if (models := repr((scenario.mind, scenario.worlds, is_priced))) not in checked:
                    checked.add(models)
                    check_models(scenario, resources)
                    if is_priced:
                        servers = describe_servers(scenario, resources.environ)
                        Budget(max_cost=1.0).check({name: server.price for name, server in servers.items()})

    # How far it is

    @property
    def stops(self) -> list[ArmStop]:
        return [stop for rules in list(self._rules.values()) for stop in list(rules.stops.values())]

    def list_needed(self, tier: TierSettings) -> list[str]:
        """Name the runs of a tier that count: those of arms that were stopped only up to their stop."""
        seeds = self.experiment.list_seeds(tier)
        counts = self._count_seeds(tier)
        return [f"{tier.name}/{arm}/{seed}" for arm, count in counts.items() for seed in seeds[:count]]

    def count_needed(self, tier: TierSettings) -> int:
        return sum(self._count_seeds(tier).values())

    def _count_seeds(self, tier: TierSettings) -> dict[str, int]:
        """Return how many seeds of each arm count."""
        seeds = len(self.experiment.list_seeds(tier))
        stops = self._rules[tier.name].stops if tier.name in self._rules else {}
        return {arm: stops[arm].seeds if arm in stops else seeds for arm in self.experiment.arms[tier.name]}

    def list_judged(self) -> list[RunResult]:
        """Return the results that count in the order of tiers, arms and seeds."""
        tiers = self.experiment.tiers
        return [self.judged[name] for tier in tiers for name in self.list_needed(tier) if name in self.judged]

    def count_uncounted(self) -> int:
        """Count the runs that have ended after their arm was stopped."""
        ended = self.progress.results
        return sum(
            f"{stop.tier}/{stop.arm}/{seed}" in ended
            for stop in self.stops
            for seed in self.experiment.list_seeds(self.experiment.find_tier(stop.tier))[stop.seeds :]
        )

    def count_left(self) -> int:
        """Count the runs that have not ended, without those of skipped tiers."""
        tiers = [tier for tier in self.experiment.tiers if tier.name not in self.skipped]
        return sum(name not in self.judged for tier in tiers for name in self.list_needed(tier))

    # What the scheduler asks

    async def begin(self) -> None:
        """Take in what is known from earlier calls, and queue the tiers that can be run."""
        await self._open_budgets()
        known = {result.id: result for result in read_results(self.folder / RESULTS)}
        while tiers := [tier for tier in self.experiment.tiers if self._is_ready(tier)]:
            for tier in tiers:
                await self._add_tier(tier, known)

    def choose_row(self) -> BatchRow | None:
        """Take the first row that may start: its tier has budget left, and the past that it shares has been run."""
        waiting: set[str] = set()
        for number, row in enumerate(self._queue):
            tier = row.id.partition("/")[0]
            if self.spent.keys() & {"", tier} or tier in waiting or self._shares_open_past(row.id):
                continue
            share = self._take_share(row)
            if share.spent is not None:
                self.end_budget(*share.spent)
            elif share.limits is None:
                waiting.add(tier)
            else:
                del self._queue[number]
                self._granted[row.id] = share.limits
                return row
        if self._queue and not self.progress.running:
            raise self.describe_shortage()
        return None

    def will_start(self, row: BatchRow) -> bool:
        """Return whether neither a budget nor a stopping rule, nor a past that is still to come, can hold it up."""
        rules = self._rules[row.id.partition("/")[0]]
        return not (self._shares.budgets or self.spent or rules.may_stop or self._shares_open_past(row.id))

    def limit_run(self, row: BatchRow, run: RunDirectory) -> None:
        """Set what a run may use in place of what it was given before: its share of the budgets may have changed."""
        run.replace_limits(self._settings.limits.replace_with(self._granted.pop(row.id)))

    def refuse_changed(self, row: BatchRow) -> RunRefused:
        """Say that a run of an arm was made with another scenario before."""
        arm = row.id.rpartition("/")[0]
        return RunRefused(
            f"{self.folder} holds runs of {arm} with another scenario.\n"
            "Choose another folder with --out, or give the changed arm another name."
        )

    def check_known(self) -> None:
        """Refuse arms that were changed since they were run. What others inherit is known only later."""
        for tier in self.experiment.tiers:
            if tier.inherits is None:
                self._read_results(self.experiment.list_rows(tier, {}))

    def goes_on(self, row: BatchRow, run: RunDirectory, outcome: RunOutcome) -> bool:
        """Return whether a run was stopped by its share of a budget. It goes on once there is more."""
        setting = BudgetReached.read_setting(run.read_state().error or "")
        tier, arm, _ = row.id.split("/")
        if outcome.status is not Status.STOPPED or setting is None or arm in self._rules[tier].stops:
            return False
        own = getattr(run.scenario.budget, setting)
        if not self._shares.has_imposed(row.id, setting, own):
            return False
        self._shares.note_shortage(row.id)
        self._shares.settle(row.id, outcome.cost, outcome.calls)
        return True

    async def conclude(self, result: BatchResult) -> None:
        """Judge a run that has ended, and decide what follows from it."""
        self._shares.settle(result.id, result.cost, result.calls, is_complete=result.status is Status.COMPLETED)
        tier, arm, _ = result.id.split("/")
        if arm in self._rules[tier].stops:
            # It was under way when its arm was stopped, and does not count.
            return
        judged = await self._judge(result)
        self._append(judged)
        self._take_judged(judged)
        for each in self.experiment.tiers:
            if self._is_ready(each):
                await self._add_tier(each, {})

    # Tiers

    def _is_ready(self, tier: TierSettings) -> bool:
        """Return whether a tier can be queued now; one that never can be is skipped."""
        if tier.name in self._rules or tier.name in self.skipped:
            return False
        if (inherits := tier.inherits) is None:
            return True
        if inherits.tier in self.skipped:
            self._skip(tier, f"tier {inherits.tier} was not run")
            return False
        earlier = self.experiment.find_tier(inherits.tier)
        if inherits.tier not in self._rules or self._ended[inherits.tier] < self.count_needed(earlier):
            return False
        return all(name in self.judged for name in self.list_needed(earlier))

    async def _add_tier(self, tier: TierSettings, known: Mapping[str, RunResult]) -> None:
        """Queue the runs of a tier, and take in those that have ended, seed by seed."""
        best = None if tier.inherits is None else self._find_best(tier)
        if tier.name in self.skipped:
            return
        inherited = {} if best is None else {**self.inherited[best[0]], **self.experiment.arms[best[0]][best[1]]}
        self.inherited[tier.name] = inherited
        self._followers[tier.name] = self.experiment.list_followers(tier, inherited)
        arms, seeds = list(self.experiment.arms[tier.name]), self.experiment.list_seeds(tier)
        rules = TierStops(tier.name, arms, seeds, self.experiment.list_rules(tier), tier.control)
        self._rules[tier.name] = rules
        rows = self.experiment.list_rows(tier, inherited)
        self.add_rows(rows)
        self._settle_begun(rows)
        results = {row.id: result for row in rows if (result := self.progress.results.get(row.id)) is not None}
        # What an earlier call said of the very same runs.
        judged = {
            name: known[name]
            for name, result in results.items()
            if name in known and (known[name].digest, known[name].status) == (result.digest, result.status)
        }
        # Judges whose servers did not answer are asked side by side: each may have to wait.
        pending = [name for name, before in judged.items() if any(each.is_pending for each in before.judgements)]
        again = await asyncio.gather(*(self._judge_again(results[name]) for name in pending))
        judged |= {result.id: result for result in again}
        for name, result in results.items():
            if name.split("/")[1] not in rules.stops:
                before = judged.get(name)
                if before is None or not (name in pending or self.experiment.judging.is_current(before)):
                    before = await self._judge_again(result)
                self._take_judged(before)

    async def _judge_again(self, result: BatchResult) -> RunResult:
        """Judge a run that had ended when an earlier call was killed."""
        judged = await self._judge(result)
        self._append(judged)
        return judged

    def _find_best(self, tier: TierSettings) -> tuple[str, str] | None:
        """Find the best arm of the tier that this one inherits from; without one, the tier is skipped."""
        assert tier.inherits is not None
        inherits, earlier = tier.inherits, self.experiment.find_tier(tier.inherits.tier)
        results: dict[str, list[RunResult]] = {}
        for name in self.list_needed(earlier):
            results.setdefault(name.split("/")[1], []).append(self.judged[name])
        found = {arm: measure_arm(each, inherits.figure) for arm, each in results.items()}
        means = {arm: value for arm, value in found.items() if value is not None}
        if not means:
            self._skip(tier, f"no run of tier {earlier.name} has {inherits.figure}, so no arm of it is the best")
            return None
        best = (max if inherits.highest else min)(means, key=lambda arm: means[arm])
        self.starts[tier.name] = f"{earlier.name}/{best}"
        self.progress.add_note(f"tier {tier.name} starts from {best}, whose {inherits.figure} is {means[best]:.4g}")
        return earlier.name, best

    def _skip(self, tier: TierSettings, why: str) -> None:
        self.skipped[tier.name] = why
        self.progress.add_note(f"tier {tier.name} is skipped: {why}")

    def _take_judged(self, judged: RunResult) -> None:
        """Take in a result, and leave out what needs not be run any more."""
        self.judged[judged.id] = judged
        self._ended[judged.tier] += 1
        rules = self._rules[judged.tier]
        for stop in rules.advance(self.judged):
            self.progress.add_note(f"{stop.tier}/{stop.arm} stops after {stop.seeds} seeds: {stop.reason}")
            kept = [row for row in self._queue if not row.id.startswith(f"{stop.tier}/{stop.arm}/")]
            self._queue.clear()
            self._queue.extend(kept)
        self.progress.total = sum(self.count_needed(tier) for tier in self.experiment.tiers)

    def _append(self, judged: RunResult) -> None:
        path = self.folder / RESULTS
        with storage_errors(path), path.open("ab", buffering=0) as file:
            file.write(msgspec.json.encode(judged) + b"\n")

    # A shared past

    def _shares_open_past(self, name: str) -> bool:
        """Return whether the control, whose past this run shares, is still to come to its end."""
        tier, arm, seed = name.split("/")
        if arm not in self._followers[tier]:
            return False
        return f"{tier}/{self.experiment.find_tier(tier).control}/{seed}" not in self.progress.results

    # Budgets

    async def _open_budgets(self) -> None:
        """Find out what a run of each tier will probably use, where money or calls are limited."""
        budgets = {"": self.budget, **{tier.name: tier.budget for tier in self.experiment.tiers}}
        planned: dict[str, Mapping[str, float]] = {}
        for tier in self.experiment.tiers:
            scenario = self.experiment.make_scenario(tier, next(iter(self.experiment.arms[tier.name])))
            is_counted = self.budget.is_counted or tier.budget.is_counted
            if is_counted and isinstance(scenario.mind, LanguageSettings):
                total = (await plan_run(Versioned(scenario), servers=describe_servers(scenario, os.environ))).total
                planned[tier.name] = {"max_cost": total.cost_uncached or 0.0, "max_calls": total.calls}
        self._shares = BudgetShares(budgets, planned)

    def _settle_begun(self, rows: list[BatchRow]) -> None:
        """Take in what runs have used in earlier calls."""
        if not self._shares.budgets:
            return
        for row in rows:
            if (result := self.progress.results.get(row.id)) is not None:
                is_complete = result.status is Status.COMPLETED
                self._shares.settle(row.id, result.cost, result.calls, is_complete=is_complete)
            elif (self._find_folder(row) / CONFIG).exists():
                state = RunDirectory(self._find_folder(row)).read_state()
                self._shares.settle(row.id, state.cost, state.calls)

    def _take_share(self, row: BatchRow) -> Share:
        if not self._shares.budgets:
            return Share(LimitSettings())
        scenario = row.apply_to(self.experiment.base)
        if not isinstance(scenario.mind, LanguageSettings):
            return Share(LimitSettings())
        free = min(self.progress.at_once - len(self.progress.running), len(self._queue))
        return self._shares.take_share(row.id, scenario.budget, free)

    def end_budget(self, owner: str, setting: str) -> None:
        """Start no further run of a tier, or of the whole experiment, whose budget is used up."""
        self.spent[owner] = setting
        self.progress.add_note(f"the budget of {_describe_owner(owner)} is used up: {setting}")

    def describe_shortage(self) -> ExperimentBudgetReached:
        """Say which budgets are used up, and how many runs are left because of it."""
        spent = {_describe_owner(owner): setting for owner, setting in self.spent.items()}
        return ExperimentBudgetReached(spent, self.count_left())


def _describe_owner(owner: str) -> str:
    return f"tier {owner}" if owner else "the experiment"
