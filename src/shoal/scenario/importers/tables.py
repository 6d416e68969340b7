"""Files of records as columns of cells: CSV, TSV, JSONL, JSON and Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from typing import Any

import msgspec

from shoal.errors import ScenarioInvalid
from shoal.scenario.importers.result import FieldUse
from shoal.scenario.validation.problems import show

#: Problems of one file that are told one by one.
MAX_TOLD = 20
_DELIMITERS = ",;\t|"
_BYTE_ORDER_MARKS = (
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)


@dataclass(frozen=True, slots=True)
class RecordTable:
    """Records, column by column. A cell that is empty or missing is None."""

    #: What problems are reported under.
    name: str
    columns: Mapping[str, Sequence[Any]]
    #: For each record the line that it begins in; where lines say nothing, records are counted from 1.
    lines: Sequence[int]
    #: What to call that number; nothing for a line.
    unit: str = ""
    notes: tuple[str, ...] = ()
    #: What became of the fields of the source, where columns were already made from something else.
    uses: tuple[FieldUse, ...] = ()
    #: What stands beside the records.
    beside: tuple[FieldUse, ...] = ()
    #: The only fields that columns fill without being asked for; without any: all.
    only: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.lines)

    def place(self, record: int) -> str:
        """Where a record stands, as problems begin."""
        return f"{self.name}:{f' {self.unit} ' if self.unit else ''}{self.lines[record]}"


def describe_table(problems: Sequence[str], count: int | None = None) -> list[str]:
    """The first problems, and how many more there are."""
    more = (len(problems) if count is None else count) - MAX_TOLD
    return [*problems[:MAX_TOLD], *([f"... and {more:,} more problems like these"] if more > 0 else [])]


def text_of(content: bytes, name: str) -> str:
    """The text of a file, whatever mark of its encoding it begins with."""
    encoding = next((known for mark, known in _BYTE_ORDER_MARKS if content.startswith(mark)), "utf-8-sig")
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        line, byte = content.count(b"\n", 0, error.start) + 1, content[error.start]
        problem = f"{name}:{line}: not UTF-8 text (byte {byte:#04x}); save it as UTF-8"
        raise ScenarioInvalid([problem]) from error
    if "\0" in text:
        raise ScenarioInvalid([f"{name}: not a text file: it contains zero bytes"])
    if not text.strip():
        raise ScenarioInvalid([f"{name}: nothing in it"])
    return text


# text with delimiters


def csv_table(text: str, name: str, delimiter: str | None = None, limit: int | None = None) -> RecordTable:
    """Rows under a header. What separates cells is told from the header, unless it is given."""
    found = delimiter or delimiter_of(text)
    rows = rows_of(text, name, found)
    header, _ = next(rows)
    names = _header(header, name)
    cells, lines, problems, blank = _read_rows(islice(rows, limit), len(names), name)
    if problems:
        raise ScenarioInvalid(describe_table(problems))
    columns = {column: _column(values) for column, values in zip(names, _turned(cells, len(names)), strict=True)}
    notes = [f"empty rows: {blank:,}, left out"] if blank else []
    if found not in (",", delimiter):
        notes.append(f"cells are separated by {'tabs' if found == chr(9) else repr(found)}")
    return RecordTable(name, _without_nameless(columns, header), lines, notes=tuple(notes))


def delimiter_of(text: str) -> str:
    """What occurs most often in the first line."""
    first = text.lstrip().partition("\n")[0]
    return max(_DELIMITERS, key=first.count)


def rows_of(text: str, name: str, delimiter: str) -> Iterator[tuple[list[str], int]]:
    """Rows with the lines that they begin in, without blank lines."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    line = 1
    try:
        for row in reader:
            if row:
                yield row, line
            line = reader.line_num + 1
    except csv.Error as error:
        problem = f"{name}:{line}: cannot be read as CSV: {error}; perhaps a quote is not closed"
        raise ScenarioInvalid([problem]) from error


def _header(row: Sequence[str], name: str) -> list[str]:
    names = [cell.strip() or f"column {place}" for place, cell in enumerate(row, 1)]
    places: dict[str, int] = {}
    problems = []
    for place, column in enumerate(names, 1):
        first = places.setdefault(column, place)
        if first != place:
            problems.append(f"{name}:1: columns {first} and {place} are both called {column!r}; rename one of them")
    if problems:
        raise ScenarioInvalid(describe_table(problems))
    return names


def _read_rows(
    rows: Iterable[tuple[list[str], int]], width: int, name: str
) -> tuple[list[list[str]], list[int], list[str], int]:
    """Cells and lines of the rows, those that are too long or too short, and how many have nothing in them."""
    cells, lines, problems, blank = [], [], [], 0
    for row, line in rows:
        if len(row) > width and not any(row[width:]):
            row = row[:width]
        if not "".join(row).strip():
            blank += 1
        elif len(row) != width:
            problems.append(f"{name}:{line}: {len(row)} cells, but the header has {width}")
        else:
            cells.append(row)
            lines.append(line)
    return cells, lines, problems, blank


def _turned(rows: Sequence[Sequence[Any]], width: int) -> Iterable[Sequence[Any]]:
    return zip(*rows, strict=True) if rows else [()] * width


def _column(values: Iterable[str]) -> list[str | None]:
    return [value.strip() or None for value in values]


def _without_nameless(columns: dict[str, list[str | None]], header: Sequence[str]) -> dict[str, list[str | None]]:
    """Commas at the end of every line make columns that have neither a name nor anything in them."""
    named = zip(columns.items(), header, strict=True)
    return {name: values for (name, values), cell in named if cell.strip() or any(values)}


# JSON


def jsonl_table(text: str, name: str, limit: int | None = None) -> RecordTable:
    """One object per line."""
    decoder = msgspec.json.Decoder()
    records: list[dict[str, Any]] = []
    lines, problems = [], []
    filled = ((line, each) for line, each in enumerate(text.split("\n"), 1) if each.strip())
    for line, each in islice(filled, limit):
        try:
            records.append(_object(decoder.decode(each)))
            lines.append(line)
        except (msgspec.DecodeError, RecursionError) as error:
            problems.append(f"{name}:{line}: not a JSON object: {error}")
    if problems:
        raise ScenarioInvalid(describe_table(problems))
    return RecordTable(name, columns_of(records), lines)


def json_value(text: str, name: str) -> Any:
    """What is in a JSON file."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ScenarioInvalid([f"{name}: cannot be read as JSON: {error}"]) from error


def json_table(value: Any, name: str, limit: int | None = None) -> RecordTable:
    """A list of objects, or an object that holds one such list."""
    beside: tuple[FieldUse, ...] = ()
    notes: tuple[str, ...] = ()
    if isinstance(value, dict):
        key = _only_list(value, name)
        beside = tuple(FieldUse(name, other, "unused", "beside the people") for other in value if other != key)
        value, notes = value[key], (f"people are the list under {key!r}",)
    if not isinstance(value, list):
        raise ScenarioInvalid([f"{name}: expected a list of objects, found {show(value)}"])
    problems = [
        f"{name}: record {number}: expected an object, found {show(record)}"
        for number, record in enumerate(value[:limit], 1)
        if not isinstance(record, dict)
    ]
    if problems:
        raise ScenarioInvalid(describe_table(problems))
    lines = range(1, len(value[:limit]) + 1)
    return RecordTable(name, columns_of(value[:limit]), lines, "record", notes, beside=beside)


def _only_list(value: dict[str, Any], name: str) -> str:
    lists = [key for key, below in value.items() if isinstance(below, list) and below and isinstance(below[0], dict)]
    if len(lists) != 1:
        raise ScenarioInvalid([f"{name}: expected a list of objects, found an object with {len(lists)} such lists"])
    return lists[0]


def columns_of(records: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Every key that any record has, in the order in which they first occur."""
    keys = dict.fromkeys(key for record in records for key in record)
    return {key: [_plain(record.get(key)) for record in records] for key in keys}


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise msgspec.DecodeError(f"found {show(value)}")
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value.strip() or None
    return None if value in ([], {}) else value


# Parquet


def parquet_table(content: bytes, name: str, limit: int | None = None) -> RecordTable:
    """The columns of a Parquet file. Needs polars, which not everybody has."""
    try:
        module = import_module("shoal.scenario.importers.parquet")
    except ImportError as error:
        problem = f"{name}: reading Parquet needs polars; install it with: pip install 'shoal[analysis]'"
        raise ScenarioInvalid([problem]) from error
    columns: dict[str, list[Any]] = module.columns(content, name, limit)
    count = len(next(iter(columns.values()), ()))
    return RecordTable(name, columns, range(1, count + 1), "row")
