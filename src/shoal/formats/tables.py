"""Tables as files: text, CSV and JSON are decoded here; CSV, JSON Lines and Parquet are written."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from shoal.errors import RunRefused, ScenarioInvalid
from shoal.formats.parquet import write_parquet

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


# writing


@dataclass(frozen=True, slots=True)
class ExportTable:
    """A table to be written. Its rows can be iterated once, because they may not fit into memory."""

    name: str
    columns: tuple[str, ...]
    rows: Iterable[Row]


def write_csv(table: ExportTable, path: Path) -> int:
    """Write a table and return the number of its rows. Booleans are written as in JSON, bytes in hexadecimal."""
    count = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(table.columns)
        for row in table.rows:
            cells = [value.hex() if isinstance(value, bytes) else value for value in row]
            lines.writerow([str(cell).lower() if isinstance(cell, bool) else cell for cell in cells])
            count += 1
    return count


def write_jsonl(table: ExportTable, path: Path) -> int:
    """Write a table, one object per row, and return the number of its rows."""
    encode = msgspec.json.Encoder().encode
    count = 0
    with path.open("wb") as file:
        for row in table.rows:
            file.write(encode(dict(zip(table.columns, row, strict=True))) + b"\n")
            count += 1
    return count


def choose_writer(format: Format) -> Callable[[ExportTable, Path], int]:
    """Return the function that writes a table to a path and returns the number of its rows."""
    if format == "parquet" and find_spec("polars") is None:
        raise RunRefused(
            "writing Parquet needs polars.\nInstall it with: pip install 'shoal[analysis]', or choose --format csv."
        )
    writers: Mapping[Format, Callable[[ExportTable, Path], int]] = {
        "csv": write_csv,
        "jsonl": write_jsonl,
        "parquet": lambda table, path: write_parquet(table.columns, table.rows, path),
    }
    return writers[format]
