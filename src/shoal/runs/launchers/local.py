"""Starts workers as processes of this machine, each in a new session."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path

from shoal.errors import WorkerLost
from shoal.runs.directory import LOG, RunDirectory
from shoal.runs.launchers.base import IDLE_VARIABLE, MODE_VARIABLE, WorkerMode, WorkerProcess
from shoal.unix import has_ended, spawn_session

#: How long a worker waits for commands after its run, and after the last command.
IDLE_SECONDS = 300.0
LOOK_SECONDS = 0.01
ROOT = Path(__file__).parents[3]
# Neither the working directory nor the environment decides which Shoal is started.
_CODE = (
    "import sys; sys.path.append(sys.argv[1]); from importlib import import_module; "
    "sys.exit(import_module('shoal.runs.launchers.process').main(sys.argv[2]))"
)


class LocalLauncher:
    """Starts workers with this Python, this environment and this working directory."""

    def __init__(self, environ: Mapping[str, str], idle_seconds: float = IDLE_SECONDS) -> None:
        self._environ = {**environ, IDLE_VARIABLE: str(idle_seconds)}
        #: Workers whose end has not been seen yet.
        self._children: set[int] = set()

    async def start(self, run: RunDirectory, mode: WorkerMode = WorkerMode.WORK) -> WorkerProcess:
        """Start a worker, and return once it is at work; WorkerLost with the reason if it ended before."""
        self._children = {pid for pid in self._children if has_ended(pid) is None}
        command = [sys.executable, "-P", "-c", _CODE, str(ROOT), str(run.path.absolute())]
        pid = spawn_session(command, {**self._environ, MODE_VARIABLE: mode}, run.file(LOG))
        while run.read_env_pid() != pid:
            code = has_ended(pid)
            if code == 0:
                # It had little to do, and has done it.
                return WorkerProcess(run, pid)
            if code is not None:
                raise WorkerLost(run.path, run.read_last_words())
            await asyncio.sleep(LOOK_SECONDS)
        self._children.add(pid)
        return WorkerProcess(run, pid)
