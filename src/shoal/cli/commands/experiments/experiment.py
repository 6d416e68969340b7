"""The command experiment: tiers of arms over seeds, as a scenario's file declares them."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

import click
from rich.table import Table

from shoal.cli.errors import Failed
from shoal.cli.options import PATH, POSITIVE, count_option, output_options, scenario_argument
from shoal.cli.runner import OutputMode, stop_on_signals
from shoal.cli.views.batch import choose_batch_display
from shoal.cli.views.display import ProgressDisplay
from shoal.cli.views.output import Output, echo, echo_json
from shoal.errors import Stopped
from shoal.event_loop import run_async
from shoal.experiments import (
    BatchProgress,
    BatchSettings,
    Experiment,
    ExperimentRun,
    RunResult,
    load_experiment,
    recommend_simulations,
)
from shoal.runs import LimitSettings, RunResources, Status, describe_servers
from shoal.runs.launchers import ForkLauncher
from shoal.runs.planning import plan_run
from shoal.text import format_count, format_duration
from shoal.types import Versioned

RESULTS_FOLDER = Path("results")


@click.command("experiment")
@scenario_argument
@click.option("--out", type=PATH, metavar="DIR", help="Folder of the experiment; default: results/EXPERIMENT.")
@count_option("--parallel", help="At most N agents act at once, over all tiers, arms and seeds together.")
@count_option("--max-simulations", help="Simulations side by side, at most; default: what suits this machine.")
@click.option("--max-cost", type=POSITIVE, metavar="DOLLARS", help="What each simulation may spend, at most.")
@click.option("--retry-failed", is_flag=True, help="Try simulations again that were recorded as failed.")
@click.option("--dry-run", is_flag=True, help="Show the tiers and arms with their cost and time, and run nothing.")
@output_options
def experiment_(  # noqa: PLR0913  # a command has as many options as it has
    scenario: Path,
    out: Path | None,
    parallel: int | None,
    max_simulations: int | None,
    max_cost: float | None,
    retry_failed: bool,
    dry_run: bool,
    mode: OutputMode,
) -> None:
    """Run the experiment that a scenario's file declares: tiers of arms, each arm over the same seeds.

    Everything is checked before anything runs. Each simulation is a run in TIER/ARM/SEED, and results.jsonl has a line
    for each. A simulation that fails is tried once more, and the others go on. The same command again continues where
    it was stopped or killed, and repeats nothing that has ended. Exits with 1 if a simulation failed.

    \b
    Examples:
      shoal experiment examples/misinformation.yaml --dry-run
      shoal experiment examples/misinformation.yaml --parallel 6
    """
    experiment = load_experiment(scenario)
    limits = LimitSettings(max_cost=max_cost, parallel=parallel)
    if dry_run:
        _show_plan(experiment, limits, mode)
        return
    folder = out or RESULTS_FOLDER / experiment.name
    at_once = min(max_simulations or recommend_simulations(experiment.base, folder), experiment.runs)
    work = ExperimentRun(experiment, folder, BatchSettings(at_once, limits, retry_failed=retry_failed))
    work.check(RunResources.of_user(os.environ))
    title = f"running {format_count(experiment.runs, 'simulation')} in {folder}, {at_once} side by side"
    results = _run_experiment(work, title, mode.quiet)
    failed = [result for result in results if result.status != Status.COMPLETED]
    if mode.json:
        echo_json({"experiment": str(folder), "simulations": len(results), "failed": len(failed)})
    elif mode.quiet:
        echo(folder)
    else:
        Output().print(_tabulate(experiment, results))
        echo(f"results  {work.results_file}")
    if failed:
        raise Failed(f"of {format_count(len(results), 'simulation')}, {len(failed)} did not complete")


@dataclass(slots=True)
class _CurrentDisplay:
    """The display of the batch that runs, replaced as the next tiers begin."""

    title: str
    quiet: bool
    shown: ProgressDisplay | None = None

    def show(self, progress: BatchProgress) -> None:
        self.close()
        self.shown = choose_batch_display(Output(stderr=True), progress, self.title, self.quiet)
        self.shown.open()

    def open(self) -> None: ...

    def show_stopping(self) -> None:
        if self.shown is not None:
            self.shown.show_stopping()

    def close(self) -> None:
        if self.shown is not None:
            self.shown.close()


def _run_experiment(work: ExperimentRun, title: str, quiet: bool) -> list[RunResult]:
    """Work through the experiment; exits as the signal demands that stopped it."""
    display = _CurrentDisplay(title, quiet)
    display.show(work.batch.progress)

    async def supervise() -> list[RunResult] | int:
        stop = asyncio.Event()
        with stop_on_signals(stop, display) as received, ForkLauncher(os.environ, idle_seconds=0) as launcher:
            try:
                return await work.run(launcher, stop)
            except Stopped:
                return received[0]

    try:
        ended = run_async(supervise())
    finally:
        display.close()
    if isinstance(ended, int):
        raise click.exceptions.Exit(128 + ended)
    return ended


def _show_plan(experiment: Experiment, limits: LimitSettings, mode: OutputMode) -> None:
    """Show what each arm will take. An inheriting tier is planned without what it will inherit."""
    table = Table("tier", "arm", "runs", "calls", "cost", "time of one", box=None)
    rows = []
    for tier in experiment.tiers:
        for arm, first in zip(tier.list_arms(), experiment.list_rows(tier, {}), strict=False):
            scenario = first.apply_to(experiment.base)
            servers = describe_servers(scenario, os.environ)
            budget = limits.apply_to(scenario.budget)
            plan = run_async(plan_run(Versioned(scenario), budget=budget, servers=servers))
            runs, total = len(experiment.seeds), plan.total
            cost = None if total.cost_uncached is None else total.cost_uncached * runs
            row = {"tier": tier.name, "arm": arm, "runs": runs, "calls": total.calls * runs, "cost": cost}
            rows.append({**row, "seconds": plan.seconds})
            price = "unknown" if cost is None else f"${cost:,.2f}"
            table.add_row(tier.name, arm, str(runs), f"{total.calls * runs:,}", price, format_duration(plan.seconds))
    if mode.json:
        echo_json({"experiment": experiment.name, "simulations": experiment.runs, "arms": rows})
    else:
        Output().print(table)
        echo(f"{format_count(experiment.runs, 'simulation')} in all; nothing was run")


def _tabulate(experiment: Experiment, results: list[RunResult]) -> Table:
    table = Table("tier", "arm", "completed", "failed", "cost", box=None)
    for tier in experiment.tiers:
        for arm in tier.list_arms():
            runs = [result for result in results if (result.tier, result.arm) == (tier.name, arm)]
            completed = sum(result.status == Status.COMPLETED for result in runs)
            costs = [result.cost for result in runs if result.cost is not None]
            price = f"${sum(costs):,.4f}" if len(costs) == len(runs) else "unknown"
            table.add_row(tier.name, arm, str(completed), str(len(runs) - completed), price)
    return table
