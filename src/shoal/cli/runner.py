"""Works on one run from the terminal: shows its progress, stops it on signals, and reports its end."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

import click

from shoal.cli import errors
from shoal.cli.views.display import ProgressDisplay, show_progress
from shoal.cli.views.output import echo, echo_json
from shoal.errors import ShoalError, Stopped
from shoal.event_loop import run_async
from shoal.models.local import ModelStore, find_table
from shoal.runs import RunDirectory, RunOutcome, Status, read_outcome
from shoal.runs.reports import Verdict, assess_run

#: Gets the event that asks it to stop; it raises `Stopped` when it has.
Operation = Callable[[asyncio.Event], Awaitable[RunOutcome]]

_STOPPING = (signal.SIGINT, signal.SIGTERM)
#: The live view hides the cursor.
_SHOW_CURSOR = b"\x1b[?25h\n"


@dataclass(frozen=True, slots=True)
class OutputMode:
    """What a command prints."""

    json: bool
    quiet: bool
    #: Whether the quality of the run decides how the command ends.
    requires_quality: bool = False

    @property
    def plain(self) -> bool:
        """Whether it prints for a person."""
        return not (self.json or self.quiet)


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How work on a run ended: well, with an error, or because of a signal."""

    outcome: RunOutcome
    error: Exception | None = None
    signal: int | None = None


def run_operation(directory: RunDirectory, operation: Operation, display: ProgressDisplay) -> CommandResult:
    """Carry out an operation on a run to its end, and show its progress."""

    async def supervise() -> CommandResult:
        stop = asyncio.Event()
        with stop_on_signals(stop, display) as received:
            try:
                return CommandResult(await operation(stop))
            except Stopped as error:
                return CommandResult(_read_left(directory, Status.STOPPED), error, received[0] if received else None)
            except Exception as error:
                return CommandResult(_read_left(directory, Status.FAILED), error)

    with show_progress(display):
        return run_async(supervise())


def _read_left(directory: RunDirectory, status: Status) -> RunOutcome:
    """Read how far a run came that did not end well. It may be `running`: another worker goes on with it."""
    outcome = read_outcome(directory)
    return outcome if outcome.status.is_working else replace(outcome, status=status)


@contextmanager
def stop_on_signals(stop: asyncio.Event, display: ProgressDisplay) -> Iterator[list[int]]:
    """Set the event on Ctrl-C, termination and the end of the terminal; a second one ends the process at once.

    The handlers are those of the process and not of the loop, which would wait for a long computation to end.
    """
    loop = asyncio.get_running_loop()
    received: list[int] = []

    def receive(number: int, _: FrameType | None) -> None:
        if received:
            # What is journaled and committed is on disk already: there is nothing to wait for.
            if os.isatty(2):
                os.write(2, _SHOW_CURSOR)
            os._exit(128 + number)
        received.append(number)
        if number == signal.SIGHUP:
            _leave_terminal()
        loop.call_soon_threadsafe(display.show_stopping)
        loop.call_soon_threadsafe(stop.set)

    # A command that was started with nohup must not end with the terminal.
    numbers = [*_STOPPING, *([signal.SIGHUP] if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN else [])]
    before = {number: signal.signal(number, receive) for number in numbers}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave_terminal() -> None:
    """Write nowhere what would go to a terminal that is gone: to write there fails."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        if stat.S_ISCHR(os.fstat(number).st_mode):
            os.dup2(null, number)
    os.close(null)


def end_command(result: CommandResult, mode: OutputMode, *, is_logged: bool = True, again: str = "") -> None:
    """Print the last line of a command, and exit as its result says. `again` is how to go on after an error."""
    if mode.json:
        echo_json(result.outcome)
    elif mode.quiet and result.error is None:
        echo(result.outcome.run)
    if result.signal is not None:
        raise click.exceptions.Exit(128 + result.signal)
    if isinstance(result.error, ShoalError):
        mapped = errors.map_error(result.error)
        raise (type(mapped)(f"{mapped.message}\n{again}") if again else mapped) from result.error
    if result.error is not None:
        internal = errors.InternalError(result.error, Path(result.outcome.run) if is_logged else None)
        raise errors.map_system_error(result.error, again) or internal from result.error
    require_quality(RunDirectory(Path(result.outcome.run)), mode)


def require_quality(run: RunDirectory, mode: OutputMode) -> None:
    """End the command with its own exit code where `--require-quality` was given and the run is not good."""
    table = find_table(ModelStore.of_user(os.environ))
    if mode.requires_quality and (verdict := assess_run(run, table).verdict) is not Verdict.GOOD:
        raise errors.QualityMissed(verdict)
