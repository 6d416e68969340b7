"""Runs an experiment in its folder: every run of its tiers through the scheduler of batches, and a result for each.

The tree is `TIER/ARM/SEED`, each a run directory. As with a batch, nothing is kept in memory alone, so the same call
after a kill repeats no run that has ended.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from shoal.errors import ExperimentBudgetReached, Stopped
from shoal.experiments.batch import RESULTS, BatchResult, BatchSettings
from shoal.experiments.budgets import BudgetLimits
from shoal.experiments.design import Experiment
from shoal.experiments.folder import STATE, ExperimentState, check_design, freeze_design, read_experiment_state
from shoal.experiments.results import RunResult
from shoal.experiments.scheduling import ExperimentBatch
from shoal.runs import RunResources, Status, replace_json, storage_errors, wall_clock
from shoal.runs.launchers import Launcher

#: How often time is counted, and how often the state is written meanwhile.
_TICK_SECONDS = 1.0
_STATE_SECONDS = 5.0


class ExperimentRun:
    """An experiment in its folder. `run` works through all runs that have no result yet."""

    def __init__(
        self,
        experiment: Experiment,
        folder: Path,
        settings: BatchSettings,
        budget: BudgetLimits | None = None,
        *,
        accept_changes: bool = False,
        command: str = "",
    ) -> None:
        """`budget` holds limits in place of those in the file; `command` is what users type to go on."""
        self.experiment = experiment
        self.folder = folder
        self.state = ExperimentState()
        self._accept_changes = accept_changes
        self._command = command
        limits = experiment.settings.budget
        self.budget = limits if budget is None else limits.replace_with(budget)
        self.batch = ExperimentBatch(experiment, folder, settings, self.budget, self._judge)
        self.batch.prepare = self._begin
        self._has_begun = False

    @property
    def results_file(self) -> Path:
        return self.folder / RESULTS

    def check(self, resources: RunResources) -> None:
        """Refuse models that cannot be asked, and a folder with another design, before anything runs."""
        check_design(self.experiment, self.folder, accept_changes=self._accept_changes)
        self.batch.check_models(resources)

    async def run(self, launcher: Launcher, stop: asyncio.Event) -> list[RunResult]:
        """Run all tiers, and return a result for each run; `Stopped` where it was asked to, or a budget is used up.

        Tiers that inherit nothing run side by side. One that inherits starts when the tier that it inherits from ends.
        """
        halt = asyncio.Event()
        reason: str | None = "it was ended from outside"
        try:
            async with self._count_hours(stop, halt):
                await self.batch.run(launcher, halt)
            reason = None
        except Stopped as error:
            if self.batch.spent and not stop.is_set() and not isinstance(error, ExperimentBudgetReached):
                # What ran when the hours were over has been stopped.
                error = self.batch.describe_shortage()
            reason = str(error)
            raise error from None
        finally:
            if self._has_begun:
                self._write_results()
                self._write_state(reason)
        return self.batch.list_judged()

    def _begin(self) -> None:
        """Freeze the design. From now on nobody else works on this folder."""
        freeze_design(self.experiment, self.folder, accept_changes=self._accept_changes)
        self.state.hours = read_experiment_state(self.folder).hours
        self._has_begun = True

    @asynccontextmanager
    async def _count_hours(self, stop: asyncio.Event, halt: asyncio.Event) -> AsyncIterator[None]:
        """Count the hours of work and keep the state; stop when a user wants it, or when the hours are over."""
        counting, stopping = asyncio.create_task(self._tick(halt)), asyncio.create_task(stop.wait())
        stopping.add_done_callback(lambda _: halt.set())
        try:
            yield
        finally:
            for task in (counting, stopping):
                task.cancel()
            await asyncio.wait((counting, stopping))

    async def _tick(self, halt: asyncio.Event) -> None:
        last = written = time.monotonic()
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            now = time.monotonic()
            if not self._has_begun:
                continue
            working = {"", *(name.partition("/")[0] for name in self.batch.progress.running)}
            for owner in working:
                self.state.hours[owner] = self.state.hours.get(owner, 0.0) + (now - last) / 3600
            last = now
            for owner, most in self._list_hours():
                if self.state.hours.get(owner, 0.0) >= most and owner not in self.batch.spent:
                    self.batch.end_budget(owner, "max_hours")
                    if not owner:
                        halt.set()
                        return
            if now - written >= _STATE_SECONDS:
                written = now
                self._write_state("")

    def _list_hours(self) -> list[tuple[str, float]]:
        """Return the limits of time."""
        budgets = [("", self.budget), *((tier.name, tier.budget) for tier in self.experiment.tiers)]
        return [(owner, budget.max_hours) for owner, budget in budgets if budget.max_hours is not None]

    async def _judge(self, result: BatchResult) -> RunResult:
        """Measure and judge a run that has ended."""
        return describe_result(result, self._write_command(result.id))

    def _write_command(self, name: str) -> str:
        tier, arm, seed = name.split("/")
        changes = {**self.batch.inherited[tier], **self.experiment.arms[tier][arm]}
        return self.experiment.write_command(changes, int(seed))

    def _write_results(self) -> None:
        """Write all results in the order of tiers, arms and seeds."""
        beside = self.results_file.with_name(f".{RESULTS}")
        with storage_errors(self.results_file):
            beside.write_bytes(b"".join(msgspec.json.encode(result) + b"\n" for result in self.batch.list_judged()))
            beside.replace(self.results_file)

    def _write_state(self, reason: str | None) -> None:
        """Write how far it is; an empty reason says that it goes on."""
        batch, results, state = self.batch, self.batch.list_judged(), self.state
        state.status = {None: "completed", "": "running"}.get(reason, "stopped")
        state.reason = reason or None
        state.runs = batch.progress.total
        state.ended = len(results)
        state.failed = sum(result.status == Status.FAILED for result in results)
        state.uncounted = len(batch.progress.results) - len(results)
        state.cost, state.calls = batch.progress.cost, sum(each.calls for each in batch.progress.list_results())
        state.starts, state.stops, state.skipped, state.spent = batch.starts, batch.stops, batch.skipped, batch.spent
        state.notes, state.command, state.updated_at = batch.progress.notes, self._command, wall_clock()
        replace_json(self.folder / STATE, state, sync=bool(reason))


def describe_result(result: BatchResult, command: str) -> RunResult:
    """Describe how a run ended, before it is measured and judged."""
    tier, arm, seed = result.id.split("/")
    return RunResult(
        tier=tier,
        arm=arm,
        seed=int(seed),
        status=str(result.status),
        error=result.error,
        cost=result.cost,
        calls=result.calls,
        input_tokens=result.input_tokens,
        output_tokens=result.output_tokens,
        seconds=result.seconds,
        metrics=result.metrics,
        judgements=(),
        run=result.run,
        digest=result.digest,
        scenario_digest=result.scenario_digest,
        command=command,
    )
