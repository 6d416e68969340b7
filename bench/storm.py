"""Many callers at once who start, stop and restart one run."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path

from shoal.errors import RunRefused
from shoal.runs.directory import RunDirectory
from shoal.runs.launchers import Launcher, find_worker, restart_run, start_run, stop_run


async def storm_run(path: Path, launcher: Launcher, callers: int, commands: int, weights: Sequence[int]) -> int:
    """Let the callers send commands to the run in a folder, drawn with weights for start, stop and restart.

    Returns the number of restarts. The run is stopped in the end.
    """
    run, restarts = RunDirectory.open(path), 0
    verbs = random.Random(15).choices(["start", "stop", "restart"], weights, k=commands)

    async def send(verbs: list[str]) -> None:
        nonlocal restarts
        mine = RunDirectory.open(path)
        for verb in verbs:
            try:
                if verb == "start":
                    await start_run(mine, launcher)
                elif verb == "stop":
                    await stop_run(mine)
                else:
                    await restart_run(mine, launcher)
                    restarts += 1
            except RunRefused:
                pass

    await asyncio.gather(*(send(verbs[first::callers]) for first in range(callers)))
    if find_worker(run) is None:
        await start_run(run, launcher)
    await stop_run(run)
    return restarts
