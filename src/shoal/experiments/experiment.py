"""Runs an experiment in its folder: every run of its tiers through the scheduler of batches, and a result for each.

The tree is `TIER/ARM/SEED`, each a run directory. As with a batch, nothing is kept in memory alone, so the same call
after a kill repeats no run that has ended.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from shoal.errors import ExperimentBudgetReached, Stopped
from shoal.experiments.batch import LOCK, RESULTS, BatchResult, BatchSettings
from shoal.experiments.budgets import BudgetLimits
from shoal.experiments.design import Experiment
from shoal.experiments.folder import STATE, ExperimentState, check_design, freeze_design, read_experiment_state
from shoal.experiments.report import write_report
from shoal.experiments.results import RunResult, write_results
from shoal.experiments.scheduling import ExperimentBatch
from shoal.runs import RunResources, Status, replace_json, wall_clock
from shoal.runs.launchers import Launcher
from shoal.unix import try_lock

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
        #: Owner of a budget -> hours of work so far.
        self._hours: dict[str, float] = {}
        self._settings = settings
        #: What judges may use; `check` gives it.
        self._resources = RunResources(limits=settings.limits)
        self._accept_changes = accept_changes
        self._command = command
        limits = experiment.settings.budget
        self.budget = limits if budget is None else limits.replace_with(budget)
        self.batch = ExperimentBatch(experiment, folder, settings, self.budget, self._judge)

    @staticmethod
    def is_at_work(folder: Path) -> bool:
        """Return whether a process works on the experiment in a folder."""
        try:
            handle = os.open(folder / LOCK, os.O_RDWR)
        except OSError:
            return False
        try:
            return not try_lock(handle)
        finally:
            os.close(handle)

    @property
    def results_file(self) -> Path:
        return self.folder / RESULTS

    def check(self, resources: RunResources) -> None:
        """Refuse models that cannot be asked, and a folder with another design, before anything runs."""
        check_design(self.experiment, self.folder, accept_changes=self._accept_changes)
        self.batch.check_models(resources)
        self._resources = replace(resources, limits=self._settings.limits)
        self.experiment.judging.check_models(self._resources, self.experiment.base)

    async def run(self, launcher: Launcher, stop: asyncio.Event) -> list[RunResult]:
        """Run all tiers, and return a result for each run; `Stopped` where it was asked to, or a budget is used up.

        Tiers that inherit nothing run side by side. One that inherits starts when the tier that it inherits from ends.
        """
        with self.batch.lock():
            self.batch.check_known()
            freeze_design(self.experiment, self.folder, accept_changes=self._accept_changes)
            self._hours = dict(read_experiment_state(self.folder).hours)
            if not (self.folder / STATE).exists():
                # Whoever looks after an early kill finds the command to go on.
                self._write_state(self.make_state(), sync=False)
            reason: str | None = "it was ended from outside"
            try:
                await self._work(launcher, stop)
                reason = None
            except Stopped as error:
                reason = str(error)
                raise
            finally:
                self._write_end(reason)
        return self.batch.list_judged()

    async def _work(self, launcher: Launcher, stop: asyncio.Event) -> None:
        halt = asyncio.Event()
        try:
            async with self._count_hours(stop, halt):
                await self.batch.work(launcher, halt)
        except Stopped as error:
            if self.batch.spent and not stop.is_set() and not isinstance(error, ExperimentBudgetReached):
                # What ran when the hours were over has been stopped.
                raise self.batch.describe_shortage() from None
            raise

    def _write_end(self, reason: str | None) -> None:
        """Write the results and the report. An experiment has completed once its report is there, too."""
        write_results(self.results_file, self.batch.list_judged())
        self._write_state(self.make_state(), sync=False)
        write_report(self.folder)
        self._write_state(self.make_state("completed" if reason is None else "stopped", reason))

    @asynccontextmanager
    async def _count_hours(self, stop: asyncio.Event, halt: asyncio.Event) -> AsyncIterator[None]:
        """Count the hours of work and keep the state; stop when a user wants it, or when the hours are over."""
        # Hours that earlier calls have used up leave none for a single run.
        self._end_used_hours(halt)
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
        while self.batch.spent.get("") != "max_hours":
            await asyncio.sleep(_TICK_SECONDS)
            now = time.monotonic()
            working = {"", *(name.partition("/")[0] for name in self.batch.progress.running)}
            for owner in working:
                self._hours[owner] = self._hours.get(owner, 0.0) + (now - last) / 3600
            last = now
            self._end_used_hours(halt)
            if now - written >= _STATE_SECONDS:
                written = now
                self._write_state(self.make_state(), sync=False)

    def _end_used_hours(self, halt: asyncio.Event) -> None:
        """Start nothing more where the hours are used up, and stop everything where those of the experiment are."""
        budgets = {"": self.budget, **{tier.name: tier.budget for tier in self.experiment.tiers}}
        for owner, budget in budgets.items():
            is_over = budget.max_hours is not None and self._hours.get(owner, 0.0) >= budget.max_hours
            if is_over and owner not in self.batch.spent:
                self.batch.end_budget(owner, "max_hours")
                if not owner:
                    halt.set()

    async def _judge(self, result: BatchResult) -> RunResult:
        """Measure and judge a run that has ended."""
        described = describe_result(result, self._write_command(result))
        return await self.experiment.judging.judge(described, self._resources)

    def _write_command(self, result: BatchResult) -> str:
        """Write the command that makes a run again: from the file, or else from its journal."""
        tier, arm, seed = result.id.split("/")
        changes = {**self.batch.inherited[tier], **self.experiment.arms[tier][arm]}
        command = self.experiment.write_command(changes, int(seed))
        return command or shlex.join(["shoal", "replay", result.run])

    def make_state(self, status: str = "running", reason: str | None = None) -> ExperimentState:
        """Say how far it is, also for a thread that draws it while more is added."""
        batch, progress, results = self.batch, self.batch.progress, self.batch.list_judged()
        return ExperimentState(
            status=status,
            reason=reason,
            runs=progress.total,
            ended=len(results),
            failed=sum(result.status == Status.FAILED for result in results),
            cost=progress.cost,
            calls=sum(each.calls for each in progress.list_results()),
            hours=dict(self._hours),
            starts=dict(batch.starts),
            stops=batch.stops,
            skipped=dict(batch.skipped),
            spent=dict(batch.spent),
            uncounted=batch.count_uncounted(),
            notes=list(progress.notes),
            command=self._command,
            updated_at=wall_clock(),
        )

    def _write_state(self, state: ExperimentState, *, sync: bool = True) -> None:
        replace_json(self.folder / STATE, state, sync=sync)


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
        cached_calls=result.cached_calls,
        command=command,
    )
