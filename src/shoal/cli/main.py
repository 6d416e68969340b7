"""The command `shoal`. Subcommands are loaded when they are called, so that `shoal --help` answers at once."""

from __future__ import annotations

import gc
import logging
import os
import sys
from contextlib import suppress
from importlib import import_module
from traceback import format_exception
from typing import Any

import click

import shoal
from shoal.cli import errors
from shoal.errors import ShoalError
from shoal.text import nearest, replace_surrogates

_ROOM = "shoal.cli.commands"
#: Name -> module and description. The command is the module's attribute of that name, with an underscore at its end.
COMMANDS = {
    "init": (f"{_ROOM}.init", "Write a commented scenario to start from."),
    "validate": (f"{_ROOM}.validate", "Check a scenario, and the experiment in it, and report every mistake."),
    "import": (f"{_ROOM}.import_", "Make a scenario from files of people, graphs and directories."),
    "prepare": (f"{_ROOM}.prepare", "Make a scenario from a requirement in plain words and documents."),
    "plan": (f"{_ROOM}.plan", "Predict calls, tokens, cost and time of a run with language models."),
    "doctor": (f"{_ROOM}.doctor", "Recommend how many simulations and calls at once, with reasons."),
    "tune": (f"{_ROOM}.tune", "Measure how many calls or simulations at once are best."),
    "model": (f"{_ROOM}.model", "List, download and remove models that run on this machine."),
    "limits": (f"{_ROOM}.limits", "Show what providers allow, which run holds how many calls, what waits."),
    "run": (f"{_ROOM}.run", "Run a scenario to its end."),
    "batch": (f"{_ROOM}.experiments.batch", "Run a scenario once for each row of a table, many side by side."),
    "experiment": (f"{_ROOM}.experiments.experiment", "Run the tiers and arms of an experiment over seeds."),
    "compare": (f"{_ROOM}.experiments.compare", "Compare experiments, arms or runs, or simulation with people."),
    "resume": (f"{_ROOM}.run", "Continue a run that was stopped, killed or failed, or add rounds."),
    "replay": (f"{_ROOM}.run", "Run a run again from its journal and compare; changes nothing."),
    "fork": (f"{_ROOM}.run", "Branch a run at a round, with something changed."),
    "show": (f"{_ROOM}.show", "Summarise a run."),
    "metrics": (f"{_ROOM}.experiments.metrics", "Measure a run: reach, cascades, polarisation, and more."),
    "query": (f"{_ROOM}.show", "Query a run's database in SQL."),
    "judge": (f"{_ROOM}.experiments.judge", "Judge runs that have ended again, with other judges."),
    "list": (f"{_ROOM}.show", "List the runs in a folder."),
    "explain": (f"{_ROOM}.reading.explain", "Show what an agent saw in a round, and why it decided so."),
    "diff": (f"{_ROOM}.reading.explain", "Show where two runs part, and how the difference spread."),
    "ask": (f"{_ROOM}.ask", "Interview agents of a run, or score a claim; changes nothing."),
    "interview": (f"{_ROOM}.live.interview", "Chat with an agent of a run; changes nothing."),
    "seat": (f"{_ROOM}.live.seat", "Decide for one person of a run at the terminal, while it goes on."),
    "watch": (f"{_ROOM}.live.watch", "Follow a run that another process works on, also over HTTP."),
    "stop": (f"{_ROOM}.live.watch", "Stop a run that another process works on."),
    "serve": (f"{_ROOM}.live.serve", "Serve the runs of a folder over HTTP."),
    "report": (f"{_ROOM}.reading.report", "Report what happened in a run, or what an experiment found."),
    "graph": (f"{_ROOM}.reading.graph", "Ask a run's graph memory who thinks what, since when, and why."),
    "export": (f"{_ROOM}.reading.export", "Write the tables of a run or an experiment for other tools."),
    "bundle": (f"{_ROOM}.reading.bundle", "Write a run or an experiment as files that any browser opens."),
    "plot": (f"{_ROOM}.reading.export", "Draw runs: figures over rounds, opinions, cascades, the network."),
    "check": (f"{_ROOM}.experiments.check", "Compare a mind with published results, over many seeds."),
    "rehearse": (f"{_ROOM}.rehearse", "Serve a free stand-in for a model provider, with chosen limits and faults."),
}

EPILOG = """\b
Try it:
  shoal init                       write scenario.yaml
  shoal run scenario.yaml          run it; nothing but this machine is needed
  shoal fork runs/rumour-1 --at 8 --set mind.persuasion=0.3

\b
Exit codes:
  0    done
  1    the run failed: the disk, a history that differs, or every turn failed
  2    wrong usage, a wrong scenario or a wrong question
  3    refused: no such run, directory taken, locked, from a newer Shoal, or no slots
  4    stopped because a budget is reached; shoal resume goes on with a larger one
  5    stopped because a model's server did not answer; shoal resume goes on
  6    the quality of the run is not good, and --require-quality was given
  70   internal error; SHOAL_TRACEBACK=1 shows all of it
  130  stopped by Ctrl-C (143: by a termination signal, 129: with its terminal); shoal resume goes on
"""


class Shoal(click.Group):
    """The group of subcommands, known by name and description until they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _ = COMMANDS[cmd_name]
        command = getattr(import_module(module), f"{cmd_name}_")
        if not gc.isenabled():
            gc.freeze()
            gc.enable()
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

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **extra: Any) -> click.Context:
        with errors.hide_controls_in_errors():
            for arg in args:
                if replace_surrogates(arg) != arg:
                    raise click.UsageError(
                        f"{arg!r} is no text in UTF-8, so that it could be neither stored nor shown."
                    )
            return super().make_context(info_name, args, *rest, **extra)

    def invoke(self, ctx: click.Context) -> object:
        """Run a subcommand. Every error ends as one readable message and an exit code."""
        with errors.print_errors_as_json(ctx), errors.hide_controls_in_errors():
            try:
                result = super().invoke(ctx)
                if sys.stdout is not None:
                    sys.stdout.flush()
                return result
            except ShoalError as error:
                raise errors.map_error(error) from error
            except (KeyboardInterrupt, click.Abort):
                raise click.exceptions.Exit(errors.INTERRUPTED) from None
            except BrokenPipeError:
                errors.leave_broken_pipe()
            except Exception as error:
                internal = error if isinstance(error, errors.InternalError) else errors.InternalError(error)
                if internal is not error and isinstance(error, click.ClickException | click.exceptions.Exit):
                    raise
                if ctx.params["traceback"]:
                    errors.complain("".join(format_exception(internal.error)).rstrip())
                raise errors.map_system_error(error) or internal from internal.error


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
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(errors.PlainFormatter())


def main() -> None:
    """Run the command. Users' own worlds and minds are also looked for in the current folder."""
    # What a command imports stays, and to look for garbage in it meanwhile takes an eighth of the time.
    gc.disable()
    sys.path.append("")
    for number in range(3):
        # What the caller has closed would be given to a socket, and be taken for the terminal.
        with suppress(OSError):
            os.fstat(number)
            continue
        os.open(os.devnull, os.O_RDWR)
    for stream in (sys.stdout, sys.stderr):
        # A terminal shows a question mark for characters it does not know.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    cli(prog_name="shoal")
