"""The table of a batch: each row changes values of one scenario, as `--set` does.

A column is the path of a value, such as `seed` or `population.0.persona`; the column `id` names the simulation. An
empty cell leaves the value as the scenario has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from shoal.errors import ScenarioInvalid
from shoal.experiments.declared import NAME_CHARACTERS
from shoal.journal import digest
from shoal.runs import freeze_scenario
from shoal.scenario import RecordTable, Scenario, check_classes, override, read_json_table, read_records
from shoal.text import format_count

ID = "id"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
#: A problem with a value begins with its path, which is that of its column.
_NAMED_TWICE = re.compile(r"(column (\S+): )\2: ")
#: What tables call a column without a name.
_UNNAMED = re.compile(r"column \d+")
#: Of more wrong cells, the rest is only said to be there.
_MAX_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class BatchRow:
    """One simulation of a batch."""

    id: str
    #: What `override` takes -> the cell that it comes from.
    assignments: Mapping[str, str]
    #: What identifies the whole scenario of this row, the content of its files included.
    scenario_digest: str

    def apply_to(self, scenario: Scenario) -> Scenario:
        return override(scenario, self.assignments)


def read_rows(scenario: Scenario, source: Path | Iterable[Mapping[str, Any]]) -> list[BatchRow]:
    """Read and check every row of a file, or of mappings; ScenarioInvalid names the file, the row and the column."""
    if isinstance(source, Path):
        table = read_records(source)
    else:
        table = read_json_table([dict(row) for row in source], "rows")
    if not len(table):
        raise ScenarioInvalid([f"{table.name}: no rows; each row is one simulation"])
    if unnamed := [column for column in table.columns if _UNNAMED.fullmatch(column)]:
        raise ScenarioInvalid(
            [f"{table.name}:1: {column} has values and no name; name it as for --set" for column in unnamed]
        )
    names, known = _name_rows(table), scenario.model_dump(mode="json")
    rows: list[BatchRow] = []
    problems: list[str] = []
    for record, name in enumerate(names):
        try:
            rows.append(check_row(scenario, name, dict(_read_cells(table, record, known))))
        except ScenarioInvalid as error:
            where = table.locate(record)
            located = [each if each.startswith(where) else f"{where}: {each}" for each in error.problems]
            problems += [_NAMED_TWICE.sub(r"\1", each) for each in located]
        if len(problems) >= _MAX_PROBLEMS:
            left = len(names) - record - 1
            more = [f"{table.name}: {format_count(left, 'more row')} not looked at yet"] if left else []
            raise ScenarioInvalid([*problems, *more])
    if problems:
        raise ScenarioInvalid(problems)
    return rows


def name_batch(scenario: Scenario, source: Path | None = None) -> str:
    """Name the folder of a batch, the same whenever the same command is given."""
    name = "batch" if source is None else re.sub(r"[^A-Za-z0-9._-]+", "-", source.stem).strip("-.") or "batch"
    return f"{scenario.name}-{name}"


def _name_rows(table: RecordTable) -> list[str]:
    """Return what the rows are called: their cell `id`, or their number where the table has no such column."""
    if ID not in table.columns:
        return [f"{number:04}" for number in range(1, len(table) + 1)]
    names = ["" if cell is None else str(cell) for cell in table.columns[ID]]
    first: dict[str, int] = {}
    problems = []
    for record, name in enumerate(names):
        if not _NAME.fullmatch(name):
            wanted = f"{NAME_CHARACTERS}; it names a folder"
            problems.append(f"{table.locate(record)}: {ID}: expected {wanted}; found {name!r}")
        elif (other := first.setdefault(name.casefold(), record)) != record:
            problems.append(f"{table.locate(record)}: {ID}: {name!r} is the id of {table.locate(other)} already")
    if problems:
        raise ScenarioInvalid(problems[:_MAX_PROBLEMS])
    return names


def _read_cells(table: RecordTable, record: int, known: Any) -> Iterator[tuple[str, str]]:
    """Yield each change of the scenario with the cell that it comes from."""
    for column, cells in table.columns.items():
        if column != ID and (cell := cells[record]) is not None:
            value = _parse_cell(cell, _look_up(known, column.split("."))) if isinstance(cell, str) else cell
            yield f"{column}={msgspec.json.encode(value).decode()}", f"{table.locate(record)}: column {column}"


def _parse_cell(text: str, known: Any) -> Any:
    """Read a cell as JSON where it is some, else as text. A number is text where the scenario has a text."""
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    return text if isinstance(known, str) and not isinstance(value, dict | list) else value


def _look_up(value: Any, parts: list[str]) -> Any:
    """Return the value that the scenario has at a path; None where it has none."""
    for part in parts:
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def check_row(scenario: Scenario, name: str, assignments: Mapping[str, str]) -> BatchRow:
    """Check the scenario with some values changed; ScenarioInvalid names what each problem comes from."""
    changed = override(scenario, assignments)
    check_classes(changed)
    return BatchRow(name, assignments, digest(freeze_scenario(changed)))
