"""The command batch: a simulation for each row of a table."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import click

from shoal.agents import LanguageSettings
from shoal.cli.commands.plan import is_confirmed, is_watched
from shoal.cli.errors import Failed
from shoal.cli.options import (
    PATH,
    POSITIVE,
    Changes,
    change_options,
    count_option,
    load_scenario,
    output_options,
    parse_patience,
    place_option,
    scenario_argument,
    yes_option,
)
from shoal.cli.runner import OutputMode, stop_on_signals
from shoal.cli.views.batch import choose_batch_display, print_batch
from shoal.cli.views.display import ProgressDisplay, show_progress
from shoal.cli.views.output import Output, echo, echo_json
from shoal.errors import RunRefused, Stopped
from shoal.event_loop import run_async
from shoal.experiments import (
    Batch,
    BatchSettings,
    DailyWindow,
    name_batch,
    read_rows,
    recommend_simulations,
)
from shoal.runs import RUNS, LimitSettings, RunResources, Status, describe_servers
from shoal.runs.launchers import ForkLauncher, fork_early, open_launcher
from shoal.runs.planning import plan_run
from shoal.scenario import Scenario
from shoal.text import format_count
from shoal.types import Versioned


@click.command("batch")
@scenario_argument
@click.argument("rows", type=PATH)
@click.option("--out", type=PATH, metavar="DIR", help="Folder of the batch; default: runs/SCENARIO-ROWS.")
@change_options
@click.option("--model", metavar="NAME", help="Let this language model decide, such as openai/gpt-4.1-mini.")
@count_option("--parallel", help="At most N agents act at once, over all simulations together.")
@count_option("--max-simulations", help="Simulations side by side, at most; default: what suits this machine.")
@click.option("--max-cost", type=POSITIVE, metavar="DOLLARS", help="What each simulation may spend, at most.")
@click.option(
    "--patience", type=parse_patience, metavar="TIME", help="How long to wait for a server that does not answer."
)
@click.option("--between", metavar="HOURS", help="Run only at these hours of the day, such as 22:00-06:00.")
@click.option("--retry-failed", is_flag=True, help="Try simulations again that were recorded as failed.")
@place_option
@yes_option
@output_options
def batch_(  # noqa: PLR0913  # a command has as many options as it has
    scenario: Path,
    rows: Path,
    out: Path | None,
    changes: Changes,
    model: str | None,
    parallel: int | None,
    max_simulations: int | None,
    max_cost: float | None,
    patience: float | None,
    between: str | None,
    retry_failed: bool,
    on: str,
    yes: bool,
    mode: OutputMode,
) -> None:
    """Run a scenario once for each row of a table, many simulations side by side.

    ROWS is a CSV, JSON Lines or Parquet file. Its columns are values of the scenario, named as for --set, such as seed
    or population.0.persona; a column `id` names the simulations. An empty cell leaves the value as it is. All rows are
    checked before anything runs.

    Results are written to results.jsonl as simulations end, and to results.csv at the end. A simulation that fails is
    tried once more, and the others go on. The same command again continues where it was stopped or killed, and repeats
    nothing that has ended. Exits with 1 if a simulation failed.

    \b
    Examples:
      shoal batch examples/negotiation.yaml pairs.csv
      shoal batch study.yaml rows.jsonl --parallel 6 --max-simulations 4
      shoal batch study.yaml rows.parquet --between 22:00-06:00 --max-cost 0.50
      shoal batch study.yaml rows.csv --json | jq .failed
    """
    forks = click.get_current_context().with_resource(fork_early(on, os.environ))
    limits = LimitSettings(max_cost=max_cost, parallel=parallel, patience=patience)
    window = None if between is None else DailyWindow.parse(between)
    base = load_scenario(scenario, model, changes)
    table = read_rows(base, rows)
    folder = out or RUNS / name_batch(base, rows)
    at_once = min(max_simulations or recommend_simulations(base, folder, on), len(table))
    batch = Batch(base, table, folder, BatchSettings(at_once, limits, window, retry_failed))
    batch.check_models(RunResources.of_user(os.environ))
    if not yes and is_watched() and (left := batch.list_open_rows()):
        _confirm(left[0].apply_to(base), len(left), limits)
    title = f"running {format_count(len(table), 'simulation')} in {folder}, {at_once} side by side"
    display = choose_batch_display(Output(stderr=True), batch.progress, title, mode.quiet)
    stopped_by = _run_batch(batch, display, on, forks)
    if mode.json:
        echo_json(batch.describe())
    elif mode.quiet:
        echo(folder)
    else:
        print_batch(batch)
    if stopped_by is not None:
        raise click.exceptions.Exit(128 + stopped_by)
    _end_batch(batch)


def _confirm(first: Scenario, count: int, limits: LimitSettings) -> None:
    """Ask at the terminal before much is spent, taking the first row for all."""
    if not isinstance(first.mind, LanguageSettings):
        return
    servers = describe_servers(first, os.environ)
    total = run_async(plan_run(Versioned(first), budget=limits.apply_to(first.budget), servers=servers)).total
    calls, cost = total.calls * count, None if total.cost_uncached is None else total.cost_uncached * count
    price = "at a price that is not known" if cost is None else f"for up to ${cost:,.2f}"
    asked = f"These {format_count(count, 'simulation')} will take about {format_count(calls, 'call')} {price}."
    if not is_confirmed(calls, cost, asked):
        raise RunRefused("not confirmed, so nothing was run and nothing was spent")


def _run_batch(batch: Batch, display: ProgressDisplay, on: str, forks: ForkLauncher | None) -> int | None:
    """Work through the batch, and return the number of the signal that stopped it."""

    async def supervise() -> int | None:
        stop = asyncio.Event()
        with stop_on_signals(stop, display) as received:
            try:
                async with open_launcher(on, os.environ, forks) as launcher:
                    await batch.run(launcher, stop)
            except Stopped:
                return received[0]
        return None

    with show_progress(display):
        return run_async(supervise())


def _end_batch(batch: Batch) -> None:
    failed, stopped = batch.progress.count(Status.FAILED), batch.progress.count(Status.STOPPED)
    if failed or stopped:
        parts = [f"{failed} failed"] if failed else []
        parts += [f"{stopped} stopped before their end"] if stopped else []
        again = "; --retry-failed tries them again" if failed else "; the same command goes on with them"
        raise Failed(f"of {format_count(batch.progress.total, 'simulation')}, {' and '.join(parts)}{again}")
