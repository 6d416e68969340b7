"""The worker process: works on the run in a directory, then waits a while for commands."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from shoal.errors import ShoalError, Stopped
from shoal.event_loop import run_async
from shoal.runs.commands.serving import RunServing
from shoal.runs.directory import RunDirectory
from shoal.runs.launchers.base import IDLE_VARIABLE, MODE_VARIABLE, WorkerMode
from shoal.runs.remote.receiver import receive_run
from shoal.runs.resources import RunResources
from shoal.runs.state import Status


class WorkerEnd(StrEnum):
    """How a worker's process ended its work on a run."""

    DONE = "done"
    #: It was asked to stop, and the caller waits for its end.
    STOPPED = "stopped"
    FAILED = "failed"

    @property
    def exit_code(self) -> int:
        return 1 if self is WorkerEnd.FAILED else 0


def main(directory: str) -> int:
    """Become the worker of a run. What it prints goes into the run's log."""
    return work_as_process(directory).exit_code


def work_as_process(directory: str) -> WorkerEnd:
    """Do everything that the process of a worker does."""
    # Users' own worlds and minds are also looked for in the folder that the worker was started from.
    if "" not in sys.path:
        sys.path.append("")
    mode = WorkerMode(os.environ.get(MODE_VARIABLE, WorkerMode.WORK))
    idle_seconds = float(os.environ.get(IDLE_VARIABLE, "0"))
    try:
        return run_async(_work(RunDirectory.open(Path(directory)), mode, idle_seconds))
    except ShoalError as error:
        sys.stderr.write(f"{error}\n")
        return WorkerEnd.FAILED


async def _work(run: RunDirectory, mode: WorkerMode, idle_seconds: float) -> WorkerEnd:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if mode is WorkerMode.RECEIVE:
        await receive_run(run, stop, os.environ)
        return WorkerEnd.STOPPED if stop.is_set() else WorkerEnd.DONE
    serving = RunServing(run, resources=RunResources.of_user(os.environ), idle_seconds=idle_seconds)
    try:
        await (serving.work(stop) if mode is WorkerMode.WORK else serving.wait(stop))
    except Stopped:
        pass
    except Exception as error:
        record_failure(run, error)
        raise
    return WorkerEnd.STOPPED if stop.is_set() else WorkerEnd.DONE


def record_failure(run: RunDirectory, error: Exception) -> None:
    """Write down why the run failed, where its worker could not. A run that is not this worker's is left alone."""
    with suppress(ShoalError), run.lock():
        state = run.read_state()
        if state.runner_status is not Status.FAILED:
            state.process_pid = None
            state.become(Status.FAILED, str(error))
            run.write_state(state)
