"""How a command ends: the exit codes, and errors as the user reads them."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import IO, Any, NoReturn

import click

from shoal.errors import BudgetReached, QueryFailed, RunRefused, ScenarioInvalid, ShoalError

INTERRUPTED = 128 + signal.SIGINT


class Failed(click.ClickException):
    """An error that the user can understand and act upon: the run failed."""

    exit_code = 1

    def show(self, file: IO[Any] | None = None) -> None:
        first, _, rest = self.message.partition("\n")
        complain(f"{click.style('error:', fg='red', bold=True)} {click.style(first, fg='red')}")
        if rest:
            complain(rest)


class Invalid(Failed):
    """What the user wrote is wrong: the scenario, or the question."""

    exit_code = 2


class Refused(Failed):
    """The directory cannot be worked on."""

    exit_code = 3


class BudgetSpent(click.ClickException):
    """The run stopped because it was told how much it may spend; nothing is wrong with it."""

    exit_code = 4

    def show(self, file: IO[Any] | None = None) -> None:
        complain(f"{click.style('stopped:', fg='yellow', bold=True)} {self.message}")


class InternalError(click.ClickException):
    """A mistake of ours."""

    exit_code = 70

    def __init__(self, error: Exception, directory: Path | None = None) -> None:
        where = (
            "SHOAL_TRACEBACK=1 shows all of it" if directory is None else f"details are in {directory}/simulation.log"
        )
        what = str(error).partition("\n")[0]
        super().__init__(f"{type(error).__name__}: {what}; {where}")
        self.error = error

    def show(self, file: IO[Any] | None = None) -> None:
        complain(f"{click.style('internal error:', fg='red', bold=True)} {self.message}")


def failure(error: ShoalError) -> click.ClickException:
    """The error as a command ends with it."""
    if isinstance(error, BudgetReached):
        return BudgetSpent(str(error))
    if isinstance(error, ScenarioInvalid):
        return Invalid(_worded(error))
    if isinstance(error, QueryFailed):
        return Invalid(str(error))
    return Refused(str(error)) if isinstance(error, RunRefused) else Failed(str(error))


def _worded(error: ScenarioInvalid) -> str:
    if len(error.problems) == 1:
        return error.problems[0]
    return "\n".join([f"{len(error.problems)} problems:", *(f"  {problem}" for problem in error.problems)])


def complain(text: str) -> None:
    """To standard error, in colour where a person reads it and has not asked for none."""
    click.echo(text, err=True, color=False if os.environ.get("NO_COLOR") else None)


def leave_broken_pipe() -> NoReturn:
    """Nobody reads what we write any more, as in `shoal list | head -n 1`: leave quietly, as other commands do."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise click.exceptions.Exit(128 + signal.SIGPIPE)
