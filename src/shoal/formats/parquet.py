"""Parquet files, read and written with polars. polars is an optional extra, so it is imported where it is used."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from shoal.errors import ScenarioInvalid

#: Rows that are converted to columns at once.
_CHUNK_ROWS = 50_000


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


def write_parquet(columns: Sequence[str], rows: Iterable[Sequence[Any]], path: Path) -> int:
    """Write rows and return how many there were. All columns are held in memory, packed.

    A column of SQLite can hold values of several types; such a column becomes text.
    """
    import polars  # noqa: PLC0415  # an optional extra

    known: dict[type, Any] = {
        bool: polars.Boolean,
        int: polars.Int64,
        float: polars.Float64,
        bytes: polars.Binary,
    }

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
        values = zip(*chunk, strict=True) if chunk else ((),) * len(columns)
        return polars.DataFrame([make_series(*column) for column in zip(columns, values, strict=True)])

    rest = iter(rows)
    frames = [make_frame(chunk) for chunk in iter(lambda: list(islice(rest, _CHUNK_ROWS)), [])] or [make_frame([])]
    schema = polars.Schema({name: widen({frame.schema[name] for frame in frames}) for name in columns})
    whole = polars.concat([frame.cast(schema) for frame in frames])
    whole.write_parquet(path)
    return whole.height
