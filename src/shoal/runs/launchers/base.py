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


class WorkerMode(StrEnum):
    """What a worker is started for."""

    #: It works on the run to its end.
    WORK = "work"
    #: It only answers commands, such as interviews, and changes nothing.
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class WorkerProcess:
    """A worker that is alive on a run, or was."""

    run: RunDirectory
    pid: int

    async def wait(self) -> RunOutcome:
        """Wait until the process has ended, and return how far the run came. Nothing of its group is left then."""
        await wait_for_exit(self.pid)
        has_ended(self.pid)
        kill_group(self.pid)
        return read_outcome(self.run)

    async def stop(self, grace_seconds: float = GRACE_SECONDS) -> RunOutcome:
        """Ask the worker to stop, and kill it and its group if it still lives after the grace."""
        send_signal(self.pid, signal.SIGTERM)
        try:
            async with asyncio.timeout(grace_seconds):
                return await self.wait()
        except TimeoutError:
            send_signal(self.pid, signal.SIGKILL)
            return await self.wait()


class Launcher(Protocol):
    """Starts workers. How a run ended is in its directory, wherever the worker was."""

    async def start(self, run: RunDirectory, mode: WorkerMode = WorkerMode.WORK) -> WorkerProcess:
        """Start a worker, and return once it is at work; `WorkerLost` with the reason if it ended before."""
        ...


def find_worker(run: RunDirectory) -> WorkerProcess | None:
    """Find the worker that is alive on a run, however it was started."""
    pid = run.read_worker()
    return None if pid is None else WorkerProcess(run, pid)
