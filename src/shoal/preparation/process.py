"""The process that prepares a simulation for a server, and outlives it: how it is started, and what it does."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from shoal.errors import RunLocked, RunRefused, ShoalError
from shoal.event_loop import run_async
from shoal.preparation.folder import PreparationFolder
from shoal.preparation.work import Prepared, prepare
from shoal.runs import CONFIG, RunResources, create_run
from shoal.scenario import load
from shoal.unix import has_ended, spawn_session

LOOK_SECONDS = 0.01
ROOT = Path(__file__).parents[2]
# Neither the working directory nor the environment decides which Shoal is started.
_CODE = (
    "import sys; sys.path.append(sys.argv[1]); from importlib import import_module; "
    "sys.exit(import_module('shoal.preparation.process').main(sys.argv[2], sys.argv[3]))"
)


async def start_process(folder: PreparationFolder, run: Path, environ: Mapping[str, str]) -> int:
    """Start a process that prepares, and then makes a run of the result. Return its number once it is at work.

    Both paths are whole ones.
    """
    command = [sys.executable, "-P", "-c", _CODE, str(ROOT), str(folder.path), str(run)]
    pid = spawn_session(command, {**environ}, folder.log)
    while not folder.has_worker():
        code = has_ended(pid)
        if code == 0:
            # It had little to do, and has done it.
            break
        if code is not None:
            raise RunRefused(f"the preparation ended before it had begun: {folder.read_last_words()}")
        await asyncio.sleep(LOOK_SECONDS)
    return pid


def main(directory: str, run: str) -> int:
    """Prepare in a folder, and make a run of the result. What it prints goes into the log of the folder."""
    try:
        run_async(_work(PreparationFolder(Path(directory)), Path(run)))
    except RunLocked:
        # Another process is at work, which is as good.
        return 0
    except ShoalError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except asyncio.CancelledError:
        sys.stderr.write("it was asked to stop\n")
        return 1
    return 0


async def _work(folder: PreparationFolder, run: Path) -> None:
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)

    def make_run(prepared: Prepared) -> None:
        if not (run / CONFIG).exists():
            create_run(load(prepared.scenario), run)

    await prepare(folder, RunResources.of_user(os.environ), finish=make_run)
