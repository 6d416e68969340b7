"""The command `shoal`. Sub-commands are loaded when they are called, so that `shoal --help` answers at once."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

import click

import shoal
from shoal.cli import errors
from shoal.errors import ShoalError
from shoal.text import nearest

#: Name -> module, what it does. A command is the attribute of that name, with an underscore at its end.
COMMANDS = {
    "init": ("shoal.cli.commands.init", "Write a commented scenario to start from."),
    "validate": ("shoal.cli.commands.init", "Check a scenario and say everything that is wrong with it."),
    "import": ("shoal.cli.commands.import_", "Make a scenario of the people, graphs and directories you have."),
    "plan": ("shoal.cli.commands.plan", "Say what a run with language models will take, before it is paid for."),
    "doctor": ("shoal.cli.commands.doctor", "Say how many at once suit this machine and this server, and why."),
    "tune": ("shoal.cli.commands.tune", "Find out how many calls or simulations at once are best."),
    "limits": ("shoal.cli.commands.limits", "Show what providers allow, who holds how many calls, and who waits."),
    "run": ("shoal.cli.commands.run", "Run a scenario to its end."),
    "resume": ("shoal.cli.commands.run", "Continue a run that was stopped, killed or failed, or let it go on."),
    "replay": ("shoal.cli.commands.run", "Run a run again from its journal and compare; changes nothing."),
    "fork": ("shoal.cli.commands.run", "Branch a run at a round, with something changed."),
    "show": ("shoal.cli.commands.show", "Say what happened in a run."),
    "query": ("shoal.cli.commands.show", "Ask a run's database something in SQL."),
    "list": ("shoal.cli.commands.show", "List the runs in a folder."),
    "explain": ("shoal.cli.commands.explain", "Rebuild what somebody saw in a round, and why they did what they did."),
    "diff": ("shoal.cli.commands.explain", "Show where two runs part, and how the difference spreads."),
    "ask": ("shoal.cli.commands.ask", "Ask agents of a run something, or score a claim; changes nothing."),
    "export": ("shoal.cli.commands.export", "Write a run's tables and graphs for other tools."),
    "rehearse": (
        "shoal.cli.commands.rehearse",
        "Serve a rehearsal of a model provider, with limits and faults of your choice.",
    ),
}

EPILOG = """\b
Try it:
  shoal init                       write scenario.yaml
  shoal run scenario.yaml          run it; nothing but this machine is needed
  shoal fork runs/rumour-1 --at 8 --set mind.persuasion=0.3

\b
Exit codes:
  0    done
  1    the run failed: the disk, or a history that did not repeat itself
  2    wrong usage, a wrong scenario or a wrong question
  3    refused: no such run, directory taken, locked, or from a newer Shoal
  4    stopped because a budget is reached; shoal resume goes on with a larger one
  70   internal error; SHOAL_TRACEBACK=1 shows all of it
  130  stopped by Ctrl-C (143: by a termination signal); shoal resume goes on
"""


class Shoal(click.Group):
    """Knows its sub-commands by name and by one line; the code of each is loaded when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _ = COMMANDS[cmd_name]
        command = getattr(import_module(module), f"{cmd_name}_")
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            near = nearest(args[0], COMMANDS, cutoff=0.5)
            hint = f" Did you mean '{near}'?" if near else ""
            raise click.UsageError(f"No such command '{args[0]}'.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> object:
        with _errors_in_words(bool(ctx.params["traceback"])):
            result = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()
            return result


@contextmanager
def _errors_in_words(traceback: bool) -> Iterator[None]:
    """Whatever goes wrong ends as one readable message and an exit code."""
    try:
        yield
    except ShoalError as error:
        raise errors.failure(error) from error
    except errors.InternalError as error:
        _trace(error.error, traceback)
        raise
    except (click.ClickException, click.exceptions.Exit):
        raise
    except (KeyboardInterrupt, click.Abort):
        raise click.exceptions.Exit(errors.INTERRUPTED) from None
    except BrokenPipeError:
        errors.leave_broken_pipe()
    except Exception as error:
        _trace(error, traceback)
        raise errors.InternalError(error) from error


def _trace(error: Exception, wanted: bool) -> None:
    if wanted:
        sys.excepthook(type(error), error, error.__traceback__)


@click.group(
    cls=Shoal, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(shoal.__version__, message="shoal %(version)s")
@click.option("--traceback", is_flag=True, envvar="SHOAL_TRACEBACK", help="Show all of an internal error.")
def cli(traceback: bool) -> None:
    """Run populations of agents as experiments.

    A scenario says who the agents are and where they meet. A run of it keeps its whole history in one directory, which
    can be resumed, replayed, forked and queried.
    """


def main() -> None:
    """The entry point. Worlds and minds of one's own are found in the current folder too."""
    sys.path.append("")
    for stream in (sys.stdout, sys.stderr):
        # What a terminal cannot show is better shown as a question mark than as an error.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    cli(prog_name="shoal")
