"""Experiments whose runs are worked on in this process, one after the other or side by side."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from shoal.errors import ShoalError
from shoal.experiments import BatchSettings, BudgetLimits, ExperimentRun, load_experiment
from shoal.runs import RunDirectory, RunOutcome, RunResources, read_outcome, work_on_run
from shoal.runs.launchers import WorkerMode, WorkerProcess


class EndedWorker(WorkerProcess):
    """A worker whose run has ended."""

    async def wait(self) -> RunOutcome:
        return read_outcome(self.run)


@dataclass
class InlineLauncher:
    """Works on runs in this process."""

    resources: RunResources = field(default_factory=RunResources)
    #: The runs that were started, in order.
    started: list[str] = field(default_factory=list)

    async def start(self, run: RunDirectory, mode: WorkerMode = WorkerMode.WORK) -> WorkerProcess:
        self.started.append("/".join(run.path.parts[-3:]))
        with suppress(ShoalError):
            await work_on_run(run, asyncio.Event(), resources=self.resources)
        return EndedWorker(run, 0)


def write_study(folder: Path, text: str) -> Path:
    path = folder / "study.yaml"
    path.write_text(text)
    return path


def make_study(
    folder: Path,
    text: str,
    budget: BudgetLimits | None = None,
    *,
    at_once: int = 2,
    accept_changes: bool = False,
) -> ExperimentRun:
    """An experiment in `folder/results`, as the text declares it."""
    experiment = load_experiment(write_study(folder, text))
    settings = BatchSettings(max_simulations=at_once)
    return ExperimentRun(experiment, folder / "results", settings, budget, accept_changes=accept_changes)
