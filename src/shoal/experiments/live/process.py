"""Starts the process that works on an experiment, and stops it. It outlives the one that started it.

The process is the command that users type, so that an experiment which was started here goes on in a terminal, and one
from a terminal goes on here. It is found by the lock that it holds on the folder.
"""

from __future__ import annotations

import asyncio
import shlex
import signal
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from shoal.errors import RunRefused
from shoal.experiments.batch import LOCK
from shoal.experiments.experiment import ExperimentRun
from shoal.experiments.folder import is_experiment, read_experiment_state
from shoal.unix import has_ended, read_lock, send_signal, spawn_session, wait_for_exit

#: The scenario of an experiment that was sent, in its folder.
SCENARIO_FILE = "scenario.yaml"
LOG = "experiment.log"
_ROOT = Path(__file__).parents[3]
# Neither the working directory nor the environment decides which Shoal is started.
_CODE = (
    "import sys; sys.path.append(sys.argv.pop(1)); from importlib import import_module; "
    "sys.exit(import_module('shoal.cli.main').main())"
)
_COMMAND = ["shoal", "experiment"]
_LOOK_SECONDS = 0.02
_MAX_LAST_WORDS = 2_000
#: An experiment writes the results of what has ended, and its report, before it leaves.
_GRACE_SECONDS = 60.0


class ExperimentOptions(msgspec.Struct, frozen=True):
    """How an experiment runs, as the options of the command say it."""

    parallel: int | None = None
    max_simulations: int | None = None
    max_cost: float | None = None
    max_calls: int | None = None
    max_hours: float | None = None
    retry_failed: bool = False

    def list_arguments(self) -> Iterator[str]:
        """Yield the options that are given as parts of a command."""
        for name, value in msgspec.structs.asdict(self).items():
            if value is not None and value is not False:
                yield f"--{name.replace('_', '-')}"
                if value is not True:
                    yield f"{value:g}" if isinstance(value, float) else str(value)


async def start_experiment(folder: Path, options: ExperimentOptions, environ: Mapping[str, str]) -> None:
    """Start the experiment whose scenario is in its folder, and return once it is at work."""
    await _spawn(folder, [*_write_start(folder), *options.list_arguments()], environ)


async def continue_experiment(folder: Path, options: ExperimentOptions, environ: Mapping[str, str]) -> None:
    """Go on with an experiment by the command that it was started with; options that are given replace those of it."""
    if ExperimentRun.is_at_work(folder):
        raise RunRefused(f"{folder} is being worked on already")
    command = shlex.split(read_experiment_state(folder).command)
    if command[:2] != _COMMAND:
        if not (folder / SCENARIO_FILE).is_file():
            raise RunRefused(f"{folder} does not say how it was started; go on with it by `shoal experiment`")
        command = _write_start(folder)
    # The last of two equal options counts.
    await _spawn(folder, [*command, *options.list_arguments()], environ)


async def stop_experiment(folder: Path) -> None:
    """Stop the process that works on an experiment, and wait until it has written how far it came."""
    pid = find_process(folder)
    if pid is None:
        raise RunRefused(f"{folder} is not being worked on, so there is nothing to stop")
    send_signal(pid, signal.SIGTERM)
    async with asyncio.timeout(_GRACE_SECONDS):
        await wait_for_exit(pid)
    has_ended(pid)


def find_process(folder: Path) -> int | None:
    """Return the number of the process that works on an experiment, however it was started."""
    holder = read_lock(folder / LOCK)
    return int(holder) if holder is not None and holder.isdecimal() else None


def _write_start(folder: Path) -> list[str]:
    return [*_COMMAND, str(folder / SCENARIO_FILE), "--out", str(folder)]


async def _spawn(folder: Path, command: list[str], environ: Mapping[str, str]) -> None:
    log = folder / LOG
    written = log.stat().st_size if log.exists() else 0
    pid = spawn_session([sys.executable, "-P", "-c", _CODE, str(_ROOT), *command[1:], "--yes"], environ, log)
    while not (find_process(folder) == pid and is_experiment(folder)):
        code = has_ended(pid)
        if code == 0:
            # It had little to do, and has done it.
            return
        if code is not None:
            raise RunRefused(_read_last_words(log, written) or f"{folder} could not be started")
        await asyncio.sleep(_LOOK_SECONDS)


def _read_last_words(log: Path, since: int) -> str:
    """Return what the process said before it ended: its last lines are the error."""
    with log.open("rb") as file:
        file.seek(since)
        text = file.read()[-_MAX_LAST_WORDS:].decode(errors="replace").strip()
    return text.partition("error: ")[2] or text
