"""Calls the worker of a run, and revives one where none is alive."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from shoal.errors import RunLocked
from shoal.runs.commands.files import CommandFiles, CommandResponse, CommandType
from shoal.runs.directory import RunDirectory
from shoal.runs.launchers import Launcher, WorkerProcess, find_worker, revive_worker


async def call_worker(
    run: RunDirectory,
    launcher: Launcher | None,
    command_type: CommandType,
    args: dict[str, Any],
    timeout_seconds: float,
) -> Any:
    """Let the worker carry out a command, and return its result; TimeoutError where that takes too long.

    Where no worker is alive, one is started that only answers commands; without a launcher that is RunLocked.
    QueryFailed where the command is wrong, RunRefused where the run cannot do it now.
    """
    deadline = time.monotonic() + timeout_seconds
    while True:
        left = max(deadline - time.monotonic(), 0.0)
        async with asyncio.timeout(left):
            worker = find_worker(run)
            if worker is None:
                if launcher is None:
                    raise RunLocked(f"no worker is alive on {run.path}")
                worker = await revive_worker(run, launcher)
        left = max(deadline - time.monotonic(), 0.0)
        response = await _call(worker, command_type, args, left)
        if response is not None:
            return response.unwrap()


async def _call(
    worker: WorkerProcess, command_type: CommandType, args: dict[str, Any], seconds: float
) -> CommandResponse | None:
    """Send a command to a worker; None where the worker ended before it answered."""
    sending = asyncio.create_task(CommandFiles(worker.run.path).send(command_type, args, seconds))
    ending = asyncio.create_task(worker.wait())
    try:
        await asyncio.wait({sending, ending}, return_when=asyncio.FIRST_COMPLETED)
        return sending.result() if sending.done() else None
    finally:
        sending.cancel()
        ending.cancel()
        await asyncio.gather(sending, ending, return_exceptions=True)
