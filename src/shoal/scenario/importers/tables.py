"""Files of records as columns of cells: CSV, TSV, JSONL, JSON and Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from typing import Any

import msgspec

from shoal.errors import ScenarioInvalid
from shoal.formats import guess_delimiter, read_csv_rows, read_parquet
from shoal.scenario.importers.fields import FieldUse, raise_problems
from shoal.scenario.validation.problems import show_value


@dataclass(frozen=True, slots=True)
class RecordTable:
    """The records of a file, column by column. A cell that is empty or missing is None."""

    #: The name of the file, which problems begin with.
    name: str
    columns: Mapping[str, Sequence[Any]]
    #: For each record its first line; where a file has no useful lines, records are counted from 1.
    lines: Sequence[int]
    #: What that number counts; empty for lines.
    unit: str = ""
    notes: tuple[str, ...] = ()
    #: How the fields of the source were used, where the columns were made from something else.
    uses: tuple[FieldUse, ...] = ()
    #: How values that stand beside the records were used.
    beside: tuple[FieldUse, ...] = ()
    #: Whether numbers may have a comma before their decimals, as in files that are separated by semicolons.
    has_decimal_commas: bool = False
    #: The only fields that columns fill unless the user asks for more; empty means all fields.
    only: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.lines)

    def locate(self, record: int) -> str:
        """Return where a record stands, as the beginning of a problem."""
        return locate_line(self.name, self.unit, self.lines[record])


def locate_line(name: str, unit: str, line: int) -> str:
    return f"{name}: {unit} {line}" if unit else f"{name}:{line}"


def read_csv_table(text: str, name: str, delimiter: str | None = None, limit: int | None = None) -> RecordTable:
    """Read rows under a header. The delimiter is guessed from the header unless it is given."""
    used = delimiter or guess_delimiter(text)
    rows = read_csv_rows(text, name, used)
    header, _ = next(rows)
    names = [cell.strip() or f"column {place}" for place, cell in enumerate(header, 1)]
    places: dict[str, int] = {}
    raise_problems(
        f"{name}:1: columns {first} and {place} are both called {column!r}; rename one of them"
        for place, column in enumerate(names, 1)
        if (first := places.setdefault(column, place)) != place
    )
    width, cells, lines, problems, blank = len(names), [], [], [], 0
    for row, line in islice(rows, limit):
        if len(row) > width and not any(row[width:]):
            row = row[:width]
        if not "".join(row).strip():
            blank += 1
        elif len(row) != width:
            problems.append(f"{name}:{line}: {len(row)} cells, but the header has {width}")
        else:
            cells.append(row)
            lines.append(line)
    raise_problems(problems)

    columns: dict[str, list[str | None]] = {}
    turned: Iterable[Sequence[str]] = zip(*cells, strict=True) if cells else [()] * width
    for column, title, values in zip(names, header, turned, strict=True):
        stripped = [value.strip() or None for value in values]
        # Commas at the end of every line make columns that have neither a name nor a value.
        if title.strip() or any(stripped):
            columns[column] = stripped
    notes = [f"empty rows: {blank:,}, left out"] if blank else []
    if used not in (",", delimiter):
        notes.append(f"cells are separated by {'tabs' if used == chr(9) else repr(used)}")
    return RecordTable(name, columns, lines, notes=tuple(notes), has_decimal_commas=used == ";")


def read_jsonl_table(text: str, name: str, limit: int | None = None) -> RecordTable:
    """Read one object per line."""
    decoder = msgspec.json.Decoder()
    records: list[dict[str, Any]] = []
    lines, problems = [], []
    filled = ((line, each) for line, each in enumerate(text.split("\n"), 1) if each.strip())
    for line, each in islice(filled, limit):
        try:
            record = decoder.decode(each)
        except (msgspec.DecodeError, RecursionError) as error:
            problems.append(f"{name}:{line}: not a JSON object: {error}")
            continue
        if isinstance(record, dict):
            records.append(record)
            lines.append(line)
        else:
            problems.append(f"{name}:{line}: not a JSON object: found {show_value(record)}")
    raise_problems(problems)
    return RecordTable(name, collect_columns(records), lines)


def read_json_table(value: Any, name: str, limit: int | None = None) -> RecordTable:
    """Read a list of objects, or an object that holds one such list."""
    beside: tuple[FieldUse, ...] = ()
    notes: tuple[str, ...] = ()
    if isinstance(value, dict):
        keys = [key for key, each in value.items() if isinstance(each, list) and each and isinstance(each[0], dict)]
        if len(keys) != 1:
            raise ScenarioInvalid([f"{name}: expected a list of objects, found an object with {len(keys)} such lists"])
        beside = tuple(FieldUse(name, other, "unused", "beside the people") for other in value if other != keys[0])
        value, notes = value[keys[0]], (f"people are the list under {keys[0]!r}",)
    if not isinstance(value, list):
        raise ScenarioInvalid([f"{name}: expected a list of objects, found {show_value(value)}"])
    records = value[:limit]
    raise_problems(
        f"{name}: record {number}: expected an object, found {show_value(record)}"
        for number, record in enumerate(records, 1)
        if not isinstance(record, dict)
    )
    return RecordTable(name, collect_columns(records), range(1, len(records) + 1), "record", notes, beside=beside)


def collect_columns(records: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Turn records into columns, in the order in which keys first occur. Empty values become None."""
    keys = dict.fromkeys(key for record in records for key in record)
    columns: dict[str, list[Any]] = {}
    for key in keys:
        cells = (record.get(key) for record in records)
        stripped = (cell.strip() if isinstance(cell, str) else cell for cell in cells)
        columns[key] = [None if cell in ("", [], {}) else cell for cell in stripped]
    return columns


def read_parquet_table(content: bytes, name: str, limit: int | None = None) -> RecordTable:
    """Read a Parquet file, which needs the optional polars."""
    if find_spec("polars") is None:
        problem = f"{name}: reading Parquet needs polars; install it with: pip install 'shoal[analysis]'"
        raise ScenarioInvalid([problem])
    columns = read_parquet(content, name, limit)
    count = len(next(iter(columns.values()), ()))
    return RecordTable(name, columns, range(1, count + 1), "row")
