"""Tables as files: CSV and JSON Lines row by row, Parquet where polars is installed."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from shoal.errors import RunRefused

Format = Literal["parquet", "csv", "jsonl"]
FORMATS: tuple[Format, ...] = get_args(Format)

Row = Sequence[Any]


@dataclass(frozen=True, slots=True)
class ExportTable:
    """Rows to be written; they may be too many to hold at once, so they come one by one and only once."""

    name: str
    columns: tuple[str, ...]
    rows: Iterable[Row]


def writer(format: Format) -> Callable[[ExportTable, Path], int]:
    """What writes a table to a path, and says how many rows there were."""
    if format != "parquet":
        return _TEXT[format]
    try:
        module = import_module("shoal.formats.parquet")
    except ImportError as error:
        raise RunRefused(
            "writing Parquet needs polars.\nInstall it with: pip install 'shoal[analysis]', or choose --format csv."
        ) from error
    write: Callable[[ExportTable, Path], int] = module.write
    return write


def _write_csv(table: ExportTable, path: Path) -> int:
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(table.columns)
        count = _Count(table.rows)
        lines.writerows([_cell(value) for value in row] for row in count)
    return count.total


def _write_jsonl(table: ExportTable, path: Path) -> int:
    encode = msgspec.json.Encoder().encode
    count = _Count(table.rows)
    with path.open("wb") as file:
        file.writelines(encode(dict(zip(table.columns, row, strict=True))) + b"\n" for row in count)
    return count.total


def _cell(value: Any) -> Any:
    """As it is read again: truth as in JSON, bytes in hexadecimal."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.hex() if isinstance(value, bytes) else value


class _Count:
    """Counts what passes through."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = rows
        self.total = 0

    def __iter__(self) -> Iterator[Row]:
        for row in self._rows:
            self.total += 1
            yield row


_TEXT: Mapping[str, Callable[[ExportTable, Path], int]] = {"csv": _write_csv, "jsonl": _write_jsonl}
