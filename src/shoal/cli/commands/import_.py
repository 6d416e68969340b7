"""The command that brings what people have: import."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import click
import msgspec
import yaml
from rich.console import Console
from rich.table import Table
from rich.text import Text

from shoal.cli.options import PATH, json_option
from shoal.cli.views.output import Output, echo_json
from shoal.errors import RunRefused, StorageFailed
from shoal.runs.inputs import rename_inputs
from shoal.scenario.declared.population import count_people
from shoal.scenario.importers.detect import ImportOptions, import_path
from shoal.scenario.importers.fields import FieldUse, ImportResult
from shoal.scenario.loading import validate
from shoal.text import format_count, quote_path

_STYLES = {"used": "green", "kept": "cyan", "unused": "yellow"}


def _wishes(command: Callable[..., None]) -> Callable[..., None]:
    """What can be said about what was brought, as one value."""

    @click.option(
        "--map", "maps", multiple=True, metavar="FIELD=COLUMN", help="Fill a field from a column; repeatable."
    )
    @click.option("--fragment", "fragments", multiple=True, type=PATH, help="TinyTroupe: merge this into every person.")
    @click.option("--follows", type=PATH, metavar="FILE", help="Who follows whom: a list of edges, or GraphML.")
    @click.option("--by", metavar="COLUMN", help="Column of the people in which the ends of edges are found.")
    @wraps(command)
    def wishing(*args: Any, maps: tuple[str, ...], **rest: Any) -> None:
        said = {name: rest.pop(name) for name in ("fragments", "follows", "by")}
        command(*args, wishes=ImportOptions(dict(map(_pair, maps)), **said), **rest)

    return wishing


@click.command("import")
@click.argument("path", type=PATH)
@click.option("--out", type=PATH, default=Path("scenario.yaml"), metavar="FILE", help="The scenario to write.")
@_wishes
@click.option("--force", is_flag=True, help="Write over a scenario that is there.")
@click.option("--dry-run", is_flag=True, help="Only show what is understood.")
@json_option
def import_(path: Path, out: Path, wishes: ImportOptions, force: bool, dry_run: bool, as_json: bool) -> None:
    """Make a scenario from files of people, graphs and directories, and report how every field is used.

    PATH is a CSV, TSV, JSONL, JSON or Parquet file of people, profiles of OASIS, a person of TinyTroupe or a folder of
    them, or a directory that MiroFish prepared.

    \b
    Examples:
      shoal import people.csv --map name=full_name --map interests=hobbies
      shoal import people.jsonl --follows edges.csv --out study.yaml
      shoal import agents/ --fragment shy.agent.fragment.json
    """
    found = import_path(path, wishes)
    people = count_people(validate(found.scenario, str(path), path if path.is_dir() else path.parent).population)
    written = None if dry_run else out
    if written is not None:
        _write(written, found, force)
    if as_json:
        echo_json({"people": people, "written": written and str(written), **_plain(found)})
        return
    _show(Output(), found, people)
    if written is not None:
        click.echo(f"wrote {written}; run it with: shoal run {quote_path(written)}")


def _pair(text: str) -> tuple[str, str]:
    field, equals, column = text.partition("=")
    if not equals or not field or not column:
        raise click.BadParameter(
            f"expected FIELD=COLUMN, for example name=full_name, found {text!r}", param_hint="--map"
        )
    return field.strip(), column.strip()


def _plain(found: ImportResult) -> dict[str, Any]:
    content: dict[str, Any] = msgspec.to_builtins(found)
    return content


def _write(out: Path, found: ImportResult, force: bool) -> None:
    """The scenario as YAML; files are spoken of as seen from where it is written."""
    folder = os.path.abspath(out.parent)  # noqa: PTH100  # symlinks stay as they are
    scenario = rename_inputs(
        found.scenario, lambda path: os.path.relpath(path, folder) if Path(path).is_absolute() else path
    )
    text = f"# Made from: {found.kind}\n{yaml.safe_dump(scenario, sort_keys=False, allow_unicode=True, width=120)}"
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with out.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise RunRefused(
            f"{out} is there already; choose another name with --out, or --force to write over it"
        ) from None
    except OSError as error:
        raise StorageFailed(f"cannot write {out}: {error.strerror}") from error


def _show(console: Console, found: ImportResult, people: int) -> None:
    console.print(Text.assemble((found.kind, "bold"), f": {format_count(people, 'person', 'people')}"))
    console.print()
    console.print(_table(found.fields))
    if found.notes:
        console.print()
    for note in found.notes:
        console.print(Text(f"note: {note}"), soft_wrap=True)
    console.print()


def _table(fields: Sequence[FieldUse]) -> Table:
    """Every field of what was brought. Where it stands is only said if there is more than one place."""
    several = len({use.source for use in fields}) > 1
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in (*(["in"] if several else []), "field", "found", "use", "becomes"):
        table.add_column(column, overflow="fold", justify="right" if column == "found" else "left")
    for use in fields:
        place = [Text(use.source)] if several else []
        said = (Text(use.field), Text(f"{use.count:,}"), Text(use.use, _STYLES[use.use]), Text(use.becomes))
        table.add_row(*place, *said)
    return table
