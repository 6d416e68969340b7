"""The errors of commands, with their exit codes and how they are printed."""

from __future__ import annotations

import errno
import json
import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import get_terminal_size
from textwrap import fill
from typing import IO, Any, NoReturn

import click

from shoal.errors import (
    ArgumentInvalid,
    BudgetReached,
    ProviderUnavailable,
    QueryFailed,
    RunRefused,
    ScenarioInvalid,
    ServerRefused,
    ShoalError,
    SlotsRefused,
)
from shoal.text import clip, hide_controls

INTERRUPTED = 128 + signal.SIGINT
_MAX_PATH_CHARS = 200
#: Errors of the system that name no file: no space, no memory, too many open files.
_SHORTAGES = (errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
#: In the meta of a context: whether the command was asked for JSON and has not printed any yet.
JSON_WANTED = "shoal.json_wanted"


class Failed(click.ClickException):
    """A run failed, for a reason that the user can act upon."""

    exit_code = 1

    def show(self, file: IO[Any] | None = None) -> None:
        first, _, rest = self.message.partition("\n")
        complain(first, "error:", "red", "red")
        if rest:
            complain(rest)


class Invalid(Failed):
    """The user's scenario or question is wrong."""

    exit_code = 2


class Refused(Failed):
    """The directory cannot be used, or the slots that runs share."""

    exit_code = 3


class BudgetSpent(click.ClickException):
    """The run stopped because its budget is reached."""

    exit_code = 4

    def show(self, file: IO[Any] | None = None) -> None:
        complain(self.message, "stopped:", "yellow")


class NotAnswered(BudgetSpent):
    """The run stopped because the server of its model did not answer for too long."""

    exit_code = 5


class QualityMissed(click.ClickException):
    """The run is complete, but its quality is not good."""

    exit_code = 6

    def __init__(self, verdict: str) -> None:
        super().__init__(f"the run is {verdict}, and --require-quality was given")

    def show(self, file: IO[Any] | None = None) -> None:
        complain(f"{click.style('quality:', fg='yellow', bold=True)} {self.message}")


class InternalError(click.ClickException):
    """A bug in Shoal."""

    exit_code = 70

    def __init__(self, error: Exception, directory: Path | None = None) -> None:
        where = (
            "SHOAL_TRACEBACK=1 shows all of it" if directory is None else f"details are in {directory}/simulation.log"
        )
        what = str(error).partition("\n")[0]
        super().__init__(f"{type(error).__name__}: {what}; {where}")
        self.error = error

    def show(self, file: IO[Any] | None = None) -> None:
        complain(self.message, "internal error:", "red")


def map_error(error: ShoalError) -> click.ClickException:
    """Map an error of the package to the one that ends the command."""
    match error:
        case BudgetReached():
            return BudgetSpent(str(error))
        case ProviderUnavailable():
            return NotAnswered(str(error))
        case ScenarioInvalid(problems=[problem]):
            return Invalid(problem)
        case ScenarioInvalid(problems=problems):
            return Invalid("\n".join([f"{len(problems)} problems:", *(f"  {problem}" for problem in problems)]))
        case ArgumentInvalid():
            context = click.get_current_context(silent=True)
            if context is not None and isinstance(context.command, click.Group) and context.invoked_subcommand:
                # The usage line is that of the command, whose own context has ended by now.
                command = context.command.get_command(context, context.invoked_subcommand)
                context = click.Context(command, context, context.invoked_subcommand) if command else context
            return click.BadParameter(str(error), context, param_hint=f"--{error.argument}")
        case QueryFailed():
            return Invalid(str(error))
        case RunRefused() | SlotsRefused() | ServerRefused():
            return Refused(str(error))
    return Failed(str(error))


def map_system_error(error: BaseException, again: str = "") -> Failed | None:
    """Map an error of the operating system, which is no bug of Shoal; None for all others. `again` is how to go on."""
    rest = f"\n{again}" if again else ""
    if isinstance(error, MemoryError):
        why = f": {error}" if str(error) else ""
        return Failed(f"there is too little memory{why}\nMake it smaller, or give the process more.{rest}")
    if isinstance(error, OSError) and error.filename is not None:
        return Failed(f"{clip(str(error.filename), _MAX_PATH_CHARS)}: {error.strerror}{rest}")
    return Failed(f"{error.strerror}{rest}") if isinstance(error, OSError) and error.errno in _SHORTAGES else None


def wrap_words(text: str, width: int) -> str:
    """Wrap long lines between words. A line that ends in a command stays whole, so that it can be copied."""
    lines = []
    for line in text.split("\n"):
        indent = " " * (len(line) - len(line.lstrip()))
        is_kept = len(line) <= width or ": shoal " in line
        wrapped = fill(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
        lines.append(line if is_kept else wrapped)
    return "\n".join(lines)


def complain(text: str, label: str = "", label_color: str = "", color: str | None = None) -> None:
    """Print to standard error without control characters, in colour on a terminal unless NO_COLOR is set."""
    shown = hide_controls(text)
    if sys.stderr.isatty():
        before = f"{label} " if label else ""
        shown = wrap_words(f"{before}{shown}", get_terminal_size().columns).removeprefix(before)
    styled = click.style(shown, fg=color) if color else shown
    start = f"{click.style(label, fg=label_color, bold=True)} " if label else ""
    click.echo(f"{start}{styled}", err=True, color=False if os.environ.get("NO_COLOR") else None)


@contextmanager
def hide_controls_in_errors() -> Iterator[None]:
    """Keep control characters out of the messages of click, which repeat what was typed."""
    try:
        yield
    except click.ClickException as error:
        vars(error)["message"] = hide_controls(error.message)
        raise


@contextmanager
def print_errors_as_json(context: click.Context) -> Iterator[None]:
    """Print an error also as one JSON object, where a command with `--json` ends before it has printed its own."""
    try:
        yield
    except click.ClickException as error:
        if context.meta.get(JSON_WANTED):
            click.echo(json.dumps({"error": error.message, "exit_code": error.exit_code}))
        raise


class PlainFormatter(logging.Formatter):
    """Formats messages of the log that no file takes, and that are printed therefore."""

    def format(self, record: logging.LogRecord) -> str:
        return hide_controls(super().format(record))


def leave_broken_pipe() -> NoReturn:
    """Exit quietly, as other commands do, when the reader of our output is gone, as in `shoal list | head -n 1`."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise click.exceptions.Exit(128 + signal.SIGPIPE)
