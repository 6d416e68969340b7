"""Tables as Parquet, through polars. Imported only where somebody asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import polars

from shoal.formats.tables import ExportTable, Row

#: Rows that are turned into columns at once.
_CHUNK = 50_000

_KINDS: tuple[tuple[type, Any], ...] = (
    (bool, polars.Boolean),
    (int, polars.Int64),
    (float, polars.Float64),
    (bytes, polars.Binary),
)


def write(table: ExportTable, path: Path) -> int:
    """All columns in memory, packed; SQLite lets a column hold anything, and one that does becomes text."""
    rows = iter(table.rows)
    chunks = [_frame(table.columns, chunk) for chunk in iter(lambda: list(islice(rows, _CHUNK)), [])]
    frame = _joined(chunks) if chunks else _frame(table.columns, [])
    frame.write_parquet(path)
    return frame.height


def _frame(columns: Sequence[str], rows: Sequence[Row]) -> polars.DataFrame:
    values = zip(*rows, strict=True) if rows else ((),) * len(columns)
    return polars.DataFrame([_series(name, column) for name, column in zip(columns, values, strict=True)])


def _series(name: str, values: Sequence[Any]) -> polars.Series:
    kind = _kind(values)
    plain = [None if value is None else str(value) for value in values] if kind == polars.String else values
    return polars.Series(name, plain, dtype=kind)


def _kind(values: Iterable[Any]) -> Any:
    found = {type(value) for value in values if value is not None}
    if not found:
        return polars.Null
    if found == {int, float}:
        return polars.Float64
    return next((kind for python, kind in _KINDS if found == {python}), polars.String)


def _joined(chunks: Sequence[polars.DataFrame]) -> polars.DataFrame:
    schemas = [chunk.schema for chunk in chunks]
    common = polars.Schema({name: _common([schema[name] for schema in schemas]) for name in schemas[0]})
    return polars.concat([chunk.cast(common) for chunk in chunks])


def _common(kinds: Sequence[Any]) -> Any:
    found = {kind for kind in kinds if kind != polars.Null}
    if len(found) <= 1:
        return next(iter(found), polars.Null)
    return polars.Float64 if found == {polars.Int64, polars.Float64} else polars.String
