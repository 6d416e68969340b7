"""The command experiment: tiers of arms over seeds, as a scenario's file declares them."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.text import Text

from shoal.cli.commands.plan import is_confirmed, is_watched
from shoal.cli.errors import BudgetSpent, Failed, NotAnswered
from shoal.cli.options import PATH, POSITIVE, count_option, output_options, parse_patience, place_option, yes_option
from shoal.cli.runner import OutputMode, stop_on_signals
from shoal.cli.views.display import show_progress
from shoal.cli.views.experiment import choose_experiment_display, print_forecast, print_standing
from shoal.cli.views.output import Output, echo, echo_json
from shoal.errors import BudgetReached, ExperimentBudgetReached, RunRefused, Stopped
from shoal.event_loop import run_async
from shoal.experiments import (
    RESULTS_FOLDER,
    BatchSettings,
    BudgetLimits,
    DailyWindow,
    Experiment,
    ExperimentRun,
    ExperimentStanding,
    forecast_experiment,
    is_experiment,
    load_experiment,
    read_results,
    read_standing,
    recommend_simulations,
)
from shoal.experiments.report import PAGE
from shoal.runs import LimitSettings, RunResources
from shoal.runs.launchers import LOCAL, ForkLauncher, fork_early, open_launcher
from shoal.text import format_count, quote_path

#: Options that say how an experiment runs, in the order in which the command to go on names them.
_KEPT = ("out", "parallel", "max_simulations", "max_cost", "max_calls", "max_hours", "between", "retry_failed", "on")


@click.command("experiment")
@click.argument("file", type=PATH)
@click.option("--out", type=PATH, metavar="DIR", help="Folder of the experiment; default: results/EXPERIMENT.")
@count_option("--parallel", help="At most N agents act at once, over all tiers, arms and seeds together.")
@count_option("--max-simulations", help="Simulations side by side, at most; default: what suits this machine.")
@click.option("--max-cost", type=POSITIVE, metavar="DOLLARS", help="What the whole experiment may spend, at most.")
@count_option("--max-calls", help="Calls to language models of the whole experiment, at most.")
@click.option("--max-hours", type=POSITIVE, metavar="HOURS", help="How long it may be worked on, all calls together.")
@click.option(
    "--patience", type=parse_patience, metavar="TIME", help="How long to wait for a server that does not answer."
)
@click.option("--between", metavar="HOURS", help="Run only at these hours of the day, such as 22:00-06:00.")
@click.option("--retry-failed", is_flag=True, help="Try simulations again that were recorded as failed.")
@click.option("--accept-changes", is_flag=True, help="Go on although the design was changed; the change is recorded.")
@click.option("--dry-run", is_flag=True, help="Show what each arm will cost and how long it takes, and run nothing.")
@place_option
@yes_option
@output_options
def experiment_(file: Path, yes: bool, dry_run: bool, mode: OutputMode, **options: Any) -> None:
    """Run the tiers and arms that a scenario's file declares, or show those of a folder.

    FILE is a scenario with a section `experiment`: tiers of arms, each arm over the same seeds. Everything is checked
    before anything runs. Each simulation is a run in TIER/ARM/SEED, and results.jsonl has a line for each, with the
    command that makes it again. A simulation that fails is tried once more, and the others go on.

    The same command again continues where it was stopped or killed, or where a budget was used up, and repeats nothing
    that has ended. With the folder of an experiment it shows how far that is, and runs nothing.

    \b
    Examples:
      shoal experiment examples/misinformation.yaml --dry-run
      shoal experiment examples/misinformation.yaml --parallel 6
      shoal experiment results/misinformation
      shoal experiment study.yaml --max-simulations 4 --max-cost 20 --json
    """
    if is_experiment(file):
        _print_end(file, mode)
        return
    if file.is_dir():
        raise RunRefused(f"{quote_path(file)} is no experiment: give the file of a scenario, or the folder of results")
    forks = click.get_current_context().with_resource(fork_early(options["on"], os.environ))
    experiment = load_experiment(file)
    folder = options["out"] or RESULTS_FOLDER / experiment.name
    recommended = options["max_simulations"] or recommend_simulations(experiment.base, folder, options["on"])
    at_once = min(recommended, experiment.runs)
    limits = LimitSettings(parallel=options["parallel"], patience=options["patience"])
    if dry_run:
        forecast = run_async(forecast_experiment(experiment, limits, at_once))
        echo_json(forecast) if mode.json else print_forecast(forecast)
        return
    window = None if options["between"] is None else DailyWindow.parse(options["between"])
    work = ExperimentRun(
        experiment,
        folder,
        BatchSettings(at_once, limits, window, options["retry_failed"]),
        BudgetLimits(**{name: options[name] for name in BudgetLimits.model_fields}),
        accept_changes=options["accept_changes"],
        command=_write_command(file, options),
    )
    work.check(RunResources.of_user(os.environ))
    if not yes and is_watched():
        _confirm(experiment, folder, limits, at_once)
    title = f"{experiment.name}: {format_count(experiment.runs, 'simulation')} in {folder}, {at_once} side by side"
    ended = _run_experiment(work, title, options["on"], forks, mode.quiet)
    _print_end(folder, mode)
    _end_command(folder, ended)


def _write_command(file: Path, options: Mapping[str, Any]) -> str:
    """Write the command with which this experiment goes on."""
    parts = ["shoal", "experiment", str(file)]
    for name in _KEPT:
        value = options[name]
        if value not in (None, False, LOCAL):
            text = f"{value:g}" if isinstance(value, float) else str(value)
            parts += [f"--{name.replace('_', '-')}", *([] if value is True else [text])]
    return shlex.join(parts)


def _confirm(experiment: Experiment, folder: Path, limits: LimitSettings, at_once: int) -> None:
    """Ask at the terminal before much is spent, as if what is left cost as much as it was planned."""
    forecast = run_async(forecast_experiment(experiment, limits, at_once))
    left = 1 - read_standing(folder).ended / experiment.runs if is_experiment(folder) else 1.0
    calls, cost = round(forecast.calls * left), None if forecast.cost is None else forecast.cost * left
    price = "at a price that is not known" if cost is None else f"for up to ${cost:,.2f}"
    asked = f"{experiment.name} will take about {format_count(calls, 'call')} {price}."
    if not is_confirmed(calls, cost, asked):
        raise RunRefused("not confirmed, so nothing was run and nothing was spent")


def _run_experiment(
    work: ExperimentRun, title: str, on: str, forks: ForkLauncher | None, quiet: bool
) -> int | Stopped | None:
    """Work through the experiment, and return the signal or the error that stopped it."""
    display = choose_experiment_display(Output(stderr=True), work, title, quiet)

    async def supervise() -> int | Stopped | None:
        stop = asyncio.Event()
        with stop_on_signals(stop, display) as received:
            try:
                async with open_launcher(on, os.environ, forks) as launcher:
                    await work.run(launcher, stop)
            except Stopped as error:
                return received[0] if received else error
        return None

    with show_progress(display):
        return run_async(supervise())


def _print_end(folder: Path, mode: OutputMode) -> None:
    """Print how far it came: all of it, one JSON object, or just the folder."""
    standing = read_standing(folder)
    if mode.json:
        echo_json(_describe(folder, standing))
    elif mode.quiet:
        echo(folder)
    else:
        state, status = standing.state, _find_status(folder, standing)
        how = state.reason.partition("\n")[0] if state.reason else status
        lines = [("status", Text(how, "" if status == "completed" else "yellow"))]
        if status in ("stopped", "killed") and state.command:
            lines.append(("go on", Text(state.command)))
        lines.append(("results", Text(quote_path(folder / "results.jsonl"))))
        if (folder / PAGE).exists():
            lines.append(("report", Text(quote_path(folder / PAGE))))
        print_standing(standing, lines)


def _describe(folder: Path, standing: ExperimentStanding) -> dict[str, Any]:
    state = standing.state
    counts = {name: standing.count(name) for name in ("failed", "stopped")}
    return {
        "experiment": str(folder),
        "status": _find_status(folder, standing),
        "reason": state.reason,
        "simulations": standing.runs,
        "completed": standing.ended - sum(counts.values()),
        **counts,
        "left": standing.runs - standing.ended,
        "cost": state.cost,
        "calls": state.calls,
        "hours": state.hours.get("", 0.0),
        "arms": msgspec.to_builtins(standing.arms),
        "starts": state.starts,
        "stops": msgspec.to_builtins(state.stops),
        "skipped": state.skipped,
        "spent": state.spent,
        "notes": state.notes,
        "results": str(folder / "results.jsonl"),
        "command": state.command,
    }


def _find_status(folder: Path, standing: ExperimentStanding) -> str:
    """Return how it stands: an experiment that says that it runs may have been killed."""
    status = standing.state.status
    return "killed" if status == "running" and not ExperimentRun.is_at_work(folder) else status


def _end_command(folder: Path, ended: int | Stopped | None) -> None:
    """Exit as a single run would."""
    if isinstance(ended, int):
        raise click.exceptions.Exit(128 + ended)
    if isinstance(ended, ExperimentBudgetReached):
        raise BudgetSpent(str(ended))
    if ended is not None:
        raise Failed(str(ended))
    standing = read_standing(folder)
    total = format_count(standing.runs, "simulation")
    if failed := standing.count("failed"):
        raise Failed(f"of {total}, {failed} failed; --retry-failed tries them again")
    if standing.state.skipped:
        raise Failed(f"{', '.join(standing.state.skipped)} could not be run: see above")
    if stopped := standing.count("stopped"):
        errors = [result.error or "" for result in read_results(folder / "results.jsonl") if result.status == "stopped"]
        is_budget = any(BudgetReached.read_setting(error) for error in errors)
        why = "by the budget of the scenario" if is_budget else "because a server did not answer"
        text = f"of {total}, {stopped} stopped {why}; the same command goes on with them"
        raise (BudgetSpent if is_budget else NotAnswered)(text)
