"""Tables as files: CSV, JSON and Parquet are read; CSV, JSON Lines and Parquet are written.

Parquet needs polars, an optional extra, so it is imported where it is used.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from shoal.errors import RunRefused, ScenarioInvalid

Format = Literal["parquet", "csv", "jsonl"]
FORMATS: tuple[Format, ...] = get_args(Format)

Row = Sequence[Any]

# reading

_DELIMITERS = ",;\t|"
_BYTE_ORDER_MARKS = (
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
#: Rows of a Parquet file that are converted to columns at once.
_CHUNK_ROWS = 50_000


def decode_text(content: bytes, name: str) -> str:
    """Decode a file as UTF-8, or as the encoding that its byte order mark names."""
    encoding = next((known for mark, known in _BYTE_ORDER_MARKS if content.startswith(mark)), "utf-8-sig")
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        line, byte = content.count(b"\n", 0, error.start) + 1, content[error.start]
        raise ScenarioInvalid([f"{name}:{line}: not UTF-8 text (byte {byte:#04x}); save it as UTF-8"]) from error
    if "\0" in text:
        raise ScenarioInvalid([f"{name}: not a text file: it contains zero bytes"])
    if not text.strip():
        raise ScenarioInvalid([f"{name}: nothing in it"])
    return text


def decode_json(text: str, name: str) -> Any:
    """Decode one JSON value."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ScenarioInvalid([f"{name}: cannot be read as JSON: {error}"]) from error


def guess_delimiter(text: str) -> str:
    """Return the delimiter that occurs most often in the first line."""
    first = text.lstrip().partition("\n")[0]
    return max(_DELIMITERS, key=first.count)


def read_csv_rows(text: str, name: str, delimiter: str) -> Iterator[tuple[list[str], int]]:
    """Read rows, each with the line that it begins in. Blank lines are left out."""
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


def read_parquet(content: bytes, name: str, limit: int | None) -> dict[str, list[Any]]:
    """Read columns as lists of plain values. Values that JSON does not know, such as dates, become text."""
    import polars  # noqa: PLC0415  # an optional extra

    try:
        frame = polars.read_parquet(io.BytesIO(content), n_rows=limit)
    except (polars.exceptions.PolarsError, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise ScenarioInvalid([f"{name}: cannot be read as Parquet: {reason}"]) from error
    return {series.name: [_to_plain(value) for value in series.to_list()] for series in frame.get_columns()}


def _to_plain(value: Any) -> Any:
    if isinstance(value, str):
        return value.strip() or None
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return None if value != value else value
    if isinstance(value, dict):
        return {key: _to_plain(below) for key, below in value.items()}
    return [_to_plain(below) for below in value] if isinstance(value, list) else str(value)


# writing

#: What spreadsheets take for a formula begins with one of these.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, slots=True)
class ExportTable:
    """A table to be written. Its rows can be iterated once, because they may not fit into memory."""

    name: str
    columns: tuple[str, ...]
    rows: Iterable[Row]


def write_csv(table: ExportTable, path: Path, raw: bool = False) -> int:
    """Write a table and return the number of its rows. Booleans are written as in JSON, bytes in hexadecimal.

    Texts that a spreadsheet would run as a formula are quoted, unless they are wanted `raw`.
    """
    count = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(table.columns if raw else map(quote_formula, table.columns))
        for row in table.rows:
            cells = [value.hex() if isinstance(value, bytes) else value for value in row]
            cells = [str(cell).lower() if isinstance(cell, bool) else cell for cell in cells]
            lines.writerow(cells if raw else map(quote_formula, cells))
            count += 1
    return count


def quote_formula(cell: Any) -> Any:
    """Put an apostrophe before a text that begins as a formula does, so that a spreadsheet takes it for a text."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA_STARTS) else cell


def write_jsonl(table: ExportTable, path: Path) -> int:
    """Write a table, one object per row, and return the number of its rows."""
    encode = msgspec.json.Encoder().encode
    count = 0
    with path.open("wb") as file:
        for row in table.rows:
            file.write(encode(dict(zip(table.columns, row, strict=True))) + b"\n")
            count += 1
    return count


def write_parquet(table: ExportTable, path: Path) -> int:
    """Write a table and return the number of its rows. All columns are held in memory, packed.

    A column of SQLite can hold values of several types; such a column becomes text.
    """
    import polars  # noqa: PLC0415  # an optional extra

    known: dict[type, Any] = {bool: polars.Boolean, int: polars.Int64, float: polars.Float64, bytes: polars.Binary}

    def widen(types: set[Any]) -> Any:
        types = types - {polars.Null}
        if len(types) <= 1:
            return next(iter(types), polars.Null)
        return polars.Float64 if types == {polars.Int64, polars.Float64} else polars.String

    def make_series(name: str, values: Sequence[Any]) -> polars.Series:
        kind = widen({known.get(type(value), polars.String) for value in values if value is not None})
        if kind == polars.String:
            values = [None if value is None else str(value) for value in values]
        return polars.Series(name, values, dtype=kind)

    def make_frame(chunk: Sequence[Sequence[Any]]) -> polars.DataFrame:
        values = zip(*chunk, strict=True) if chunk else ((),) * len(table.columns)
        return polars.DataFrame([make_series(*column) for column in zip(table.columns, values, strict=True)])

    rest = iter(table.rows)
    frames = [make_frame(chunk) for chunk in iter(lambda: list(islice(rest, _CHUNK_ROWS)), [])] or [make_frame([])]
    schema = polars.Schema({name: widen({frame.schema[name] for frame in frames}) for name in table.columns})
    whole = polars.concat([frame.cast(schema) for frame in frames])
    whole.write_parquet(path)
    return whole.height


def choose_writer(format: Format, raw: bool = False) -> Callable[[ExportTable, Path], int]:
    """Return the function that writes a table to a path and returns the number of its rows."""
    if format == "parquet" and find_spec("polars") is None:
        raise RunRefused(
            "writing Parquet needs polars.\nInstall it with: pip install 'shoal[analysis]', or choose --format csv."
        )
    if format == "csv":
        return partial(write_csv, raw=raw)
    return write_jsonl if format == "jsonl" else write_parquet
