"""The command `import`, which makes a scenario from the data of the user."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import fill
from typing import Any

import click
import msgspec
import yaml
from rich.console import Console
from rich.text import Text

from shoal.cli.commands.init import write_scenario
from shoal.cli.options import PATH, json_option
from shoal.cli.views.output import Output, echo, echo_json, make_table
from shoal.runs import rename_inputs
from shoal.scenario import (
    FieldUse,
    ImportOptions,
    ImportResult,
    count_people,
    describe_shortened_personas,
    import_path,
    validate,
)
from shoal.text import format_count, quote_path

#: What a field's line needs beside the field and what it becomes.
_OTHER_COLUMNS_CHARS = 17
#: A part of a text that stays on one line.
_PART = re.compile(r"[^._/]*[._/]*")
#: Fields of a file that are shown one by one, and how many in one place are shown together where there are more.
_MAX_FIELDS_SHOWN, _FEWEST_FOLDED = 60, 3
_STYLES = {"used": "green", "kept": "cyan", "unused": "yellow"}


@click.command("import")
@click.argument("path", type=PATH)
@click.option("--out", type=PATH, default=Path("scenario.yaml"), metavar="FILE", help="The scenario to write.")
@click.option(
    "--map",
    "maps",
    multiple=True,
    metavar="FIELD=COLUMN",
    help="Fill a field from a column, or from none (FIELD=); repeatable.",
)
@click.option("--fragment", "fragments", multiple=True, type=PATH, help="TinyTroupe: merge this into every person.")
@click.option("--follows", type=PATH, metavar="FILE", help="Who follows whom: a list of edges, or GraphML.")
@click.option("--by", metavar="COLUMN", help="Column of the people in which the ends of edges are found.")
@click.option("--force", is_flag=True, help="Replace an existing scenario.")
@click.option("--dry-run", is_flag=True, help="Only show what is understood.")
@json_option
def import_(path: Path, out: Path, force: bool, dry_run: bool, as_json: bool, **options: Any) -> None:
    """Make a scenario from files of people, graphs and directories, and report how every field is used.

    PATH is a CSV, TSV, JSONL, JSON or Parquet file of people, profiles of OASIS, a person of TinyTroupe or a folder of
    them, or a directory that MiroFish prepared.

    \b
    Examples:
      shoal import people.csv --map name=full_name --map interests=hobbies
      shoal import people.jsonl --follows edges.csv --out study.yaml
      shoal import agents/ --fragment shy.agent.fragment.json
    """
    columns: dict[str, str | None] = {}
    for text in options.pop("maps"):
        field, equals, column = text.partition("=")
        if not equals or not field.strip():
            problem = f"expected FIELD=COLUMN, for example name=full_name, found {text!r}"
            raise click.BadParameter(problem, param_hint="--map")
        columns[field.strip()] = column.strip() or None
    result = import_path(path, ImportOptions(columns, **options))
    imported = validate(result.scenario, str(path), path if path.is_dir() else path.parent)
    people = count_people(imported.population)
    result = replace(result, notes=(*result.notes, *describe_shortened_personas(imported)))
    if not dry_run:
        folder = os.path.abspath(out.parent)  # noqa: PTH100  # symlinks stay as they are
        scenario = rename_inputs(
            result.scenario, lambda path: os.path.relpath(path, folder) if Path(path).is_absolute() else path
        )
        text = yaml.safe_dump(scenario, sort_keys=False, allow_unicode=True, width=120)
        write_scenario(out, f"# Made from: {result.kind}\n{text}", force, " with --out")
    if as_json:
        echo_json({"people": people, "written": None if dry_run else str(out), **msgspec.to_builtins(result)})
        return
    _print_fields(Output(), result, people)
    if not dry_run:
        echo(f"wrote {out}; run it with: shoal run {quote_path(out)}")


def _print_fields(console: Console, result: ImportResult, people: int) -> None:
    """Print every field of the source, file by file if there are several. No word is broken to fit the terminal."""
    console.print(Text.assemble((result.kind, "bold"), f": {format_count(people, 'person', 'people')}"))
    sources = dict.fromkeys(use.source for use in result.fields)
    width = (console.width - _OTHER_COLUMNS_CHARS) // 2
    for source in sources:
        console.print()
        if len(sources) > 1:
            console.print(Text(source, "bold"))
        table = make_table("field", "found", "use", "becomes", right=("found",))
        for use in fold_fields([use for use in result.fields if use.source == source]):
            field, becomes = (_break_words(text, width) for text in (use.field, use.becomes))
            table.add_row(Text(field), Text(f"{use.count:,}"), Text(use.use, _STYLES[use.use]), Text(becomes))
        console.print(table)
    if result.notes:
        console.print()
    for note in result.notes:
        lines = fill(f"note: {note}", console.width, break_long_words=False, break_on_hyphens=False)
        console.print(Text(lines), soft_wrap=True)
    console.print()


def fold_fields(uses: Sequence[FieldUse]) -> Iterator[FieldUse]:
    """Yield the fields of a file; of hundreds, as people with facts of their own have, those in one place together."""
    groups: dict[tuple[str, str, str], list[FieldUse]] = {}
    for use in uses:
        place = use.field if len(uses) <= _MAX_FIELDS_SHOWN else ".".join(use.field.split(".")[:2])
        groups.setdefault((place, use.use, use.becomes), []).append(use)
    for (place, _, _), group in groups.items():
        if len(group) < _FEWEST_FOLDED:
            yield from group
        else:
            yield replace(group[0], field=f"{place}.* ({len(group)} fields)", count=max(use.count for use in group))


def _break_words(text: str, width: int) -> str:
    """Break words that are longer than the width where their parts meet: after dots, underlines and slashes."""
    words = []
    for word in text.split(" "):
        lines = [""]
        for part in _PART.findall(word) if len(word) > width else (word,):
            if len(lines[-1] + part) > width and lines[-1]:
                lines.append("")
            lines[-1] += part
        words.append("\n".join(lines))
    return " ".join(words)
