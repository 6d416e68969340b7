"""The commands `export` and `plot`, which write tables of runs and experiments for other tools, and pictures."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from shoal.cli.options import PATH, json_option, run_argument
from shoal.cli.views.output import echo, echo_json
from shoal.errors import RunRefused
from shoal.experiments import RESULTS
from shoal.experiments.comparison import export_results
from shoal.formats import FORMATS, Format
from shoal.runs import RunDirectory
from shoal.runs.plots import plot_runs
from shoal.runs.reports import Graphs, export_run
from shoal.text import format_count

_GRAPHS: tuple[Graphs, ...] = ("follows", "talk", "all", "none")


@click.command("export")
@run_argument
@click.option("--out", type=PATH, metavar="DIR", help="Folder of the files; default: export in the run's directory.")
@click.option("--format", type=click.Choice(FORMATS), default="csv", help="Of the tables; default: csv.")
@click.option("--graph", type=click.Choice(_GRAPHS), default="all", help="Which graphs, as GraphML; default: all.")
@click.option("--force", is_flag=True, help="Replace an export that is there.")
@click.option("--raw", is_flag=True, help="Leave texts in CSV as they are, also those that spreadsheets would run.")
@json_option
def export_(  # noqa: PLR0913  # a command has as many options as it has
    run: Path, out: Path | None, format: Format, graph: Graphs, force: bool, raw: bool, as_json: bool
) -> None:
    """Write the tables of a run, or of an experiment, for other tools.

    Of an experiment, one table: a row for each run, with arms, metrics, judgements and what the arms change.

    Of a run, every table of every world, the stream of actions, the people and the metrics, one file each; the follow
    graph at the end and the graph of interactions as GraphML; and manifest.json, which says what there is. The run is
    only read. In CSV, a text that begins with =, +, -, @, a tab or a carriage return gets an apostrophe before it, so
    that no spreadsheet runs it as a formula.

    \b
    Examples:
      shoal export runs/rumour-1
      shoal export runs/rumour-1 --format parquet --out study/rumour
      shoal export runs/rumour-1 --graph follows --force
      shoal export results/misinformation --format parquet
    """
    if (run / RESULTS).is_file():
        _export_experiment(run, out or run / "export", format, force, raw, as_json)
        return
    folder = out or run / "export"
    manifest = export_run(RunDirectory(run), folder, format, graph, force, raw)
    if as_json:
        echo_json({"out": str(folder), **msgspec.to_builtins(manifest)})
        return
    tables = [file for file in manifest.files if file.kind == "table"]
    rows = format_count(sum(file.rows for file in tables), "row")
    graphs = format_count(len(manifest.files) - len(tables), "graph")
    echo(f"{folder}: {format_count(len(tables), 'table')} with {rows}, {graphs}")


def _export_experiment(  # what the options say
    experiment: Path, folder: Path, format: Format, force: bool, raw: bool, as_json: bool
) -> None:
    path = folder / f"runs.{format}"
    if path.exists() and not force:
        raise RunRefused(f"{path} is there already.\nReplace it with --force, or choose another folder with --out.")
    rows = export_results(experiment, path, format, raw)
    if as_json:
        echo_json({"out": str(path), "rows": rows})
    else:
        echo(f"{path}: {format_count(rows, 'run')}")


@click.command("plot")
@click.argument("runs", type=PATH, nargs=-1, required=True, metavar="RUN...")
@click.option("--out", type=PATH, metavar="DIR", help="Folder of the pictures; default: plots in the first run.")
@json_option
def plot_(runs: tuple[Path, ...], out: Path | None, as_json: bool) -> None:
    """Draw runs: figures over rounds, opinions, cascades, the network.

    Writes index.html, a page that needs nothing else, and every picture on it as an SVG file of its own, for papers and
    slides. Several runs share the charts of figures, one line each. Pictures of these names are replaced. Also works
    while a run goes on.

    \b
    Examples:
      shoal plot runs/rumour-1
      shoal plot runs/rumour-1 runs/rumour-1-fork-1 --out plots
    """
    page = plot_runs([RunDirectory.open(run) for run in runs])
    written = page.save(out or runs[0] / "plots")
    if as_json:
        echo_json({"page": str(written[-1]), "pictures": [str(path) for path in written[:-1]]})
        return
    echo(f"{written[-1]}: {format_count(len(written) - 1, 'picture')}, also as SVG files beside it")
