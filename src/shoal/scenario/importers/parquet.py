"""Parquet, through polars. Imported only where somebody brings such a file."""

from __future__ import annotations

import io
from typing import Any

import polars

from shoal.errors import ScenarioInvalid


def columns(content: bytes, name: str, limit: int | None) -> dict[str, list[Any]]:
    """The columns as lists of plain values; what JSON does not know, such as dates, becomes text."""
    try:
        frame = polars.read_parquet(io.BytesIO(content), n_rows=limit)
    except (polars.exceptions.PolarsError, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise ScenarioInvalid([f"{name}: cannot be read as Parquet: {reason}"]) from error
    return {series.name: [_plain(value) for value in series.to_list()] for series in frame.get_columns()}


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value.strip() or None
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return None if value != value else value
    if isinstance(value, dict):
        return {key: _plain(below) for key, below in value.items()}
    return [_plain(below) for below in value] if isinstance(value, list) else str(value)
