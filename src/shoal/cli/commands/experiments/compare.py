"""The command compare: what differs between experiments, arms or runs, and between simulation and people."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec
from rich.text import Text

from shoal.cli.options import PATH, human_options, json_option
from shoal.cli.views.output import Output, echo, echo_json, make_table
from shoal.experiments.comparison import Comparison, compare_sides
from shoal.experiments.report import (
    HumanComparison,
    compare_with_people,
    format_p,
    format_range,
    format_signed,
    format_value,
    list_people,
    name_outcome,
)
from shoal.text import clip, format_count, printable

#: Differences of scenarios that are shown; --json has all.
_MAX_DIFFERENCES = 20
_MAX_VALUE_CHARS = 50


@click.command("compare")
@click.argument("paths", type=PATH, nargs=-1, metavar="A B...")
@human_options
@json_option
def compare_(
    paths: tuple[Path, ...], human: Path | None, answers: Path | None, by: tuple[str, ...], as_json: bool
) -> None:
    """Compare experiments, arms or runs with the first of them, or one of them with people.

    Shows which values of the scenario differ, and which metrics differ by how much: with 95 % intervals, and p
    corrected for everything that is compared. Runs with the same seeds are compared in pairs. Of two experiments, arms
    of the same name are compared; an arm is the folder TIER/ARM of an experiment.

    With --human, the outcomes of an experiment, or the answers in a file, are compared with what people answered:
    means, spread, distance of the distributions, and agreement person by person, over that of people with themselves.

    \b
    Examples:
      shoal compare results/pilot results/main
      shoal compare results/main/answer/nothing results/main/answer/fact-check
      shoal compare results/main --human survey.csv --by region
      shoal compare --human survey.csv --answers answers.csv
    """
    if human is None:
        if answers is not None or by:
            raise click.UsageError("--answers and --by go with --human FILE")
        if len(paths) < 2:
            raise click.UsageError("give two or more experiments, arms or runs; or one with --human FILE")
        found = compare_sides(paths)
        if as_json:
            echo_json({"comparisons": msgspec.to_builtins(found)})
        else:
            for each in found:
                _show(each)
        return
    if len(paths) > 1:
        raise click.UsageError("--human goes with one experiment")
    people = compare_with_people(human, paths[0] if paths else None, answers, by)
    if as_json:
        echo_json(msgspec.to_builtins(people))
    else:
        _show_people(people)


def _show(found: Comparison) -> None:
    output = Output()
    echo(f"{printable(found.before)} ({format_count(found.runs[0], 'run')})")
    echo(f"  against {printable(found.after)} ({format_count(found.runs[1], 'run')})")
    if found.scenario:
        table = make_table("scenario", "first", "second")
        for each in found.scenario[:_MAX_DIFFERENCES]:
            table.add_row(*(Text(_show_value(value)) for value in (each.path, each.before, each.after)))
        output.print(table)
        if len(found.scenario) > _MAX_DIFFERENCES:
            echo(f"and {len(found.scenario) - _MAX_DIFFERENCES} more values; --json has all")
    else:
        echo("the scenarios are the same")
    if not found.metrics:
        echo("no metric in common")
        return
    table = make_table("metric", "first", "second", "difference", "95 % interval", "corrected p")
    for row in found.metrics:
        difference = row.effect.difference
        table.add_row(
            Text(printable(name_outcome(row.metric))),
            format_value(row.before, row.metric),
            format_value(row.after, row.metric),
            format_signed(difference.value, row.metric),
            format_range(difference, row.metric, signed=True),
            format_p(row.corrected_p).removeprefix("p ").removeprefix("= "),
        )
    output.print(table)
    if any(row.is_paired for row in found.metrics):
        echo("runs are paired by seed\n")
    elif min(found.runs) < 2:
        echo("one run alone shows no difference beyond chance: compare arms with several seeds\n")
    else:
        echo("no seeds in common: by the t test of Welch\n")


def _show_value(value: object) -> str:
    text = value if isinstance(value, str) else "-" if value is None else msgspec.json.encode(value).decode()
    return clip(printable(text), _MAX_VALUE_CHARS)


def _show_people(found: HumanComparison) -> None:
    titles, *rows = list_people(found)
    table = make_table(*titles)
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    Output().print(table)
    for note in found.notes:
        echo(note)
