"""The worker process of a run, wherever it was started, and what starts one.

Nothing about a worker is kept in memory: it is found by the lock that it holds on the run's directory. So a server that
was restarted, a second server and the terminal all find the same worker.
"""

from __future__ import annotations

import asyncio
import signal
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from shoal.runs.directory import RunDirectory, read_outcome
from shoal.runs.state import RunOutcome
from shoal.unix import has_ended, kill_group, send_signal, wait_for_exit

#: A worker that is asked to stop waits this long for decisions under way, and writes how far it came.
GRACE_SECONDS = 10.0
#: Variables that a launcher sets for the worker: what it is started for, and how long it waits for commands.
MODE_VARIABLE = "SHOAL_WORKER_MODE"
IDLE_VARIABLE = "SHOAL_WORKER_IDLE_SECONDS"
#: How often to look whether a worker still holds the lock of its run, and how long its process may take to end then.
_LOOK_SECONDS = 0.05
_END_SECONDS = 2.0


class WorkerMode(StrEnum):
    """What a worker is started for."""

    #: It works on the run to its end.
    WORK = "work"
    #: It only answers commands, such as interviews, and changes nothing.
    WAIT = "wait"
    #: It keeps what a worker on another machine writes, and passes commands on.
    RECEIVE = "receive"


@dataclass(frozen=True, slots=True)
class WorkerProcess:
    """A worker that is alive on a run, or was."""

    run: RunDirectory
    pid: int
    #: Whether its process may go on with another run after this one, so that it is left alone once this one is over.
    may_go_on: bool = False

    async def wait(self) -> RunOutcome:
        """Wait until the worker is done with the run, and return how far the run came.

        Nothing of the group of a process that has ended is left then.
        """
        ending = asyncio.create_task(wait_for_exit(self.pid))
        try:
            while self.may_go_on and self.is_at_work() and not ending.done():
                await asyncio.wait({ending}, timeout=_LOOK_SECONDS)
            # The lock is released shortly before the process ends.
            await asyncio.wait({ending}, timeout=_END_SECONDS if self.may_go_on else None)
            if not ending.done():
                return read_outcome(self.run)
        finally:
            ending.cancel()
        has_ended(self.pid)
        kill_group(self.pid)
        return read_outcome(self.run)

    async def stop(self, grace_seconds: float = GRACE_SECONDS) -> RunOutcome:
        """Ask the worker to stop, and kill it and its group if it still lives after the grace."""
        self._signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(grace_seconds):
                return await self.wait()
        except TimeoutError:
            self._signal(signal.SIGKILL)
            return await self.wait()

    def is_at_work(self) -> bool:
        """Return whether the process still holds the lock of the run."""
        return self.run.read_worker() == self.pid

    def _signal(self, number: int) -> None:
        # One that has gone on with another run must not be stopped in that one.
        if not self.may_go_on or self.is_at_work():
            send_signal(self.pid, number)


class Launcher(Protocol):
    """Starts workers. How a run ended is in its directory, wherever the worker was."""

    async def start(self, run: RunDirectory, mode: WorkerMode = WorkerMode.WORK) -> WorkerProcess:
        """Start a worker, and return once it is at work; `WorkerLost` with the reason if it ended before."""
        ...


def find_worker(run: RunDirectory) -> WorkerProcess | None:
    """Find the worker that is alive on a run, however it was started."""
    pid = run.read_worker()
    return None if pid is None else WorkerProcess(run, pid, may_go_on=True)
