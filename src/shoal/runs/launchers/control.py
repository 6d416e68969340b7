"""Starts, restarts, stops and closes runs, also when many callers do so at once.

Each holds the run's control lock meanwhile. So there is never more than one worker, and what is archived is never
being written to.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from shoal.errors import RunLocked, RunRefused
from shoal.journal import JournalLine, read_journal, write_lines
from shoal.runs.directory import CONTROL_LOCK, RunDirectory, read_outcome
from shoal.runs.files import storage_errors
from shoal.runs.launchers.base import GRACE_SECONDS, Launcher, WorkerMode, WorkerProcess, find_worker
from shoal.runs.state import RunOutcome, Status
from shoal.unix import read_lock, try_lock, write_lock

#: How long to wait for others who start or stop the same run.
_PATIENCE_SECONDS = 60.0
_FIRST_LOOK_SECONDS = 0.01
_LONGEST_LOOK_SECONDS = 0.2


async def start_run(run: RunDirectory, launcher: Launcher) -> WorkerProcess:
    """Start a worker on a run that is new or was interrupted; RunLocked where one is at work already."""
    async with _control(run, Status.STARTING):
        await make_room(run)
        return await launcher.start(run)


async def restart_run(
    run: RunDirectory,
    launcher: Launcher,
    grace_seconds: float = GRACE_SECONDS,
    change: Callable[[RunDirectory], object] | None = None,
) -> WorkerProcess:
    """Start a run over. Its worker is stopped first, and what it has written is moved to `archive/N/`.

    `change` gets the run as it was made, before its worker starts, for example to make it shorter.
    """
    async with _control(run, Status.STARTING):
        if (worker := find_worker(run)) is not None:
            await worker.stop(grace_seconds)
        with run.lock():
            run.archive()
            lines = [line for line in read_journal(run.journal)[0] if _is_declared(line)]
            written = run.journal.with_name(f".{run.journal.name}.{os.getpid()}")
            written.unlink(missing_ok=True)
            write_lines(written, lines)
            with storage_errors(run.journal):
                written.replace(run.journal)
        if change is not None:
            await asyncio.to_thread(change, RunDirectory.open(run.path))
        return await launcher.start(RunDirectory.open(run.path))


async def revive_worker(run: RunDirectory, launcher: Launcher) -> WorkerProcess:
    """Find the worker of a run, or start one that only answers commands."""
    async with _control(run, Status.STARTING):
        return find_worker(run) or await launcher.start(run, WorkerMode.WAIT)


async def stop_run(run: RunDirectory, grace_seconds: float = GRACE_SECONDS) -> RunOutcome:
    """Stop the worker of a run, which can be started again then; RunRefused if it has none."""
    async with _control(run, Status.STOPPING):
        worker = find_worker(run)
        if worker is None:
            raise RunRefused(f"{run.path} is not running: it is {run.read_state().runner_status}")
        await worker.stop(grace_seconds)
        with run.lock():
            state = run.read_state()
            if state.runner_status.is_working:
                # It had to be killed, and could not write that it was stopped.
                state.process_pid = state.waiting = None
                state.become(Status.STOPPED)
                run.write_state(state)
    return read_outcome(run)


async def make_room(run: RunDirectory) -> None:
    """End a worker that only waits for commands; RunLocked where it works on the run, or is about to."""
    worker = find_worker(run)
    if worker is None:
        return
    if run.read_env_pid() != worker.pid or run.read_state().runner_status.is_working:
        raise RunLocked(f"{run.path} is being worked on by process {worker.pid} already.\nStop it first.")
    await worker.stop()


@asynccontextmanager
async def _control(run: RunDirectory, status: Status) -> AsyncIterator[None]:
    """Be the only one who starts or stops this run. The lock ends with the process, however that ends."""
    path, deadline = run.file(CONTROL_LOCK), time.monotonic() + _PATIENCE_SECONDS
    with storage_errors(path):
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        pause = _FIRST_LOOK_SECONDS
        while not try_lock(handle):
            if time.monotonic() > deadline:
                raise RunLocked(f"{run.path} is {read_lock(path)} for too long; try again later")
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_LOOK_SECONDS)
        write_lock(handle, status)
        yield
    finally:
        os.close(handle)


def _is_declared(line: JournalLine) -> bool:
    """Return whether a line belongs to the run's input: to the past of a fork, or to the events it was made with."""
    return line.inherited is not None or (line.event is not None and not line.is_continuation and line.reason is None)
