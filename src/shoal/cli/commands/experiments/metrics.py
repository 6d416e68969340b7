"""The command metrics: named figures of a run, at its end and over rounds."""

from __future__ import annotations

from pathlib import Path

import click
from rich.text import Text

from shoal.cli.options import PATH, json_option
from shoal.cli.views.output import Output, echo, echo_json, make_table
from shoal.errors import QueryFailed
from shoal.experiments.metrics import (
    METRICS,
    Metric,
    choose_metrics,
    list_recorded,
    load_own_metrics,
    measure_run,
    read_series,
)
from shoal.runs import RunDirectory


@click.command("metrics")
@click.argument("run", type=PATH, required=False)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--file", "files", type=PATH, multiple=True, help="A Python file with metrics of your own; repeatable.")
@click.option("--over-rounds", is_flag=True, help="The value of each named metric after every round.")
@json_option
def metrics_(
    run: Path | None, names: tuple[str, ...], files: tuple[Path, ...], over_rounds: bool, as_json: bool
) -> None:
    """Measure a run: reach, cascades, polarisation, echo chambers, balance, and more. Nothing is changed.

    Without NAME, everything that the run has a value for. Without RUN, all metrics with their formulas.

    \b
    Examples:
      shoal metrics
      shoal metrics runs/rumour-1
      shoal metrics runs/rumour-1 cascade_depth "polarisation(topic)" --json
      shoal metrics runs/rumour-1 reach --over-rounds
      shoal metrics runs/rumour-1 --file my_metrics.py
    """
    own = [metric for path in files for metric in load_own_metrics(path)]
    if run is None:
        _list_metrics([*METRICS.values(), *own], as_json)
        return
    directory = RunDirectory.open(run)
    if over_rounds:
        _show_series(directory, names or tuple(metric.name for metric in own), own, as_json)
        return
    known = [*list_recorded(directory), *own]
    found = measure_run(directory, choose_metrics(names, known) if names else known)
    if as_json:
        echo_json({"metrics": found.values, "missing": found.missing})
        return
    table = make_table("metric", "value", right=("value",))
    for name, value in found.values.items():
        table.add_row(Text(name), f"{value:.4g}")
    Output().print(table)
    for name, reason in found.missing.items() if names or own else ():
        echo(f"{name}: {reason}")


def _list_metrics(metrics: list[Metric], as_json: bool) -> None:
    if as_json:
        echo_json([{"metric": each.name, "worlds": each.worlds, "formula": each.formula} for each in metrics])
        return
    table = make_table("metric", "worlds", "is")
    for each in metrics:
        table.add_row(each.name, ", ".join(each.worlds) or "all", Text(each.formula))
    Output().print(table)


def _show_series(run: RunDirectory, names: tuple[str, ...], own: list[Metric], as_json: bool) -> None:
    if not names:
        raise QueryFailed("name the metrics that are to be shown for each round, such as: reach polarisation")
    series = {name: read_series(run, name, own) for name in names}
    if as_json:
        echo_json({name: [[round, value] for round, value in values] for name, values in series.items()})
        return
    table = make_table("round", *names, right=("round", *names))
    columns = {name: dict(values) for name, values in series.items()}
    for round in sorted({round for values in columns.values() for round in values}):
        row = (f"{values[round]:.4g}" if round in values else "" for values in columns.values())
        table.add_row(str(round), *row)
    Output().print(table)
