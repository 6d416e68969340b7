"""One run worked on from the terminal: watched, stopped by signals, and reported on."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

import click

from shoal.cli import errors
from shoal.cli.views.output import echo_json
from shoal.cli.views.progress import Progress, show_progress
from shoal.errors import ShoalError, Stopped
from shoal.event_loop import run_async
from shoal.runs.directory import RunDirectory
from shoal.runs.state import Status
from shoal.runs.worker import RunOutcome, Watch, outcome_of

Verb = Callable[[RunDirectory, asyncio.Event, Watch], Awaitable[RunOutcome]]

#: The live view hides the cursor.
_SHOW_CURSOR = b"\x1b[?25h\n"


@dataclass(frozen=True, slots=True)
class OutputMode:
    """How a command speaks."""

    json: bool
    quiet: bool

    @property
    def plain(self) -> bool:
        """To a person."""
        return not (self.json or self.quiet)


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How work on a run ended: well, with an error, or because of a signal."""

    outcome: RunOutcome
    error: Exception | None = None
    signal: int | None = None


def work_on(directory: RunDirectory, verb: Verb, progress: Progress) -> CommandResult:
    """Carry out the verb to its end; nothing is said but progress."""
    with show_progress(progress):
        return run_async(_supervised(directory, verb, progress))


async def _supervised(directory: RunDirectory, verb: Verb, progress: Progress) -> CommandResult:
    stop = asyncio.Event()
    with _stopped_by_signals(stop, progress) as received:
        try:
            return CommandResult(await verb(directory, stop, progress.watch))
        except Stopped as error:
            return CommandResult(_as_left(directory, Status.STOPPED), error, received[0] if received else None)
        except Exception as error:
            return CommandResult(_as_left(directory, Status.FAILED), error)


def _as_left(directory: RunDirectory, status: Status) -> RunOutcome:
    """What there is of a run that did not come to its end. It may be another worker's, which goes on."""
    found = outcome_of(directory)
    return found if found.status is Status.RUNNING else replace(found, status=status)


@contextmanager
def _stopped_by_signals(stop: asyncio.Event, progress: Progress) -> Iterator[list[int]]:
    """Ctrl-C and termination set the event; a second one ends the process at once.

    The handlers are those of the process and not of the loop, which would wait for a long computation to end.
    """
    loop = asyncio.get_running_loop()
    received: list[int] = []

    def receive(number: int, _: FrameType | None) -> None:
        if received:
            _end_at_once(number)
        received.append(number)
        loop.call_soon_threadsafe(progress.stopping)
        loop.call_soon_threadsafe(stop.set)

    before = {number: signal.signal(number, receive) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end_at_once(number: int) -> None:
    """What is journaled and committed is on disk already: there is nothing to wait for."""
    if os.isatty(2):
        os.write(2, _SHOW_CURSOR)
    os._exit(128 + number)


def end(ended: CommandResult, speech: OutputMode, *, logged: bool = True) -> None:
    """The last line of a command, and how it exits."""
    if speech.json:
        echo_json(ended.outcome)
    elif speech.quiet and ended.error is None:
        click.echo(ended.outcome.run)
    if ended.signal is not None:
        raise click.exceptions.Exit(128 + ended.signal)
    if isinstance(ended.error, ShoalError):
        raise errors.map_error(ended.error) from ended.error
    if ended.error is not None:
        raise errors.InternalError(ended.error, Path(ended.outcome.run) if logged else None) from ended.error
