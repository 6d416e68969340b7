"""Data frames of pandas or polars. Both are optional, and imported when a frame is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

import msgspec

from shoal.errors import ShoalError
from shoal.text import hint, one_of
from shoal.types import Event

KINDS = ("pandas", "polars")
#: Columns of every action; its arguments follow, one column each.
ACTION_COLUMNS = ("world", "round", "agent_id", "agent_name", "action_type", "success", "result", "timestamp", "id")

Columns = Mapping[str, Sequence[Any]]


def build_frame(columns: Columns, kind: str) -> Any:
    """Return a pandas.DataFrame or a polars.DataFrame."""
    if kind not in KINDS:
        raise ShoalError(f"there are no {kind!r} frames, only {one_of(KINDS)}{hint(kind, KINDS)}")
    try:
        library = import_module(kind)
    except ImportError as error:
        raise ShoalError(f"frames of this kind need {kind}: install it with `pip install {kind}`") from error
    if kind == "polars":
        return library.DataFrame(columns, strict=False, infer_schema_length=None)
    return library.DataFrame(columns)


def build_action_columns(actions: Iterable[tuple[str, Event]]) -> Columns:
    """Return a row for each action, with a column for each argument; a missing argument is None."""
    rows = list(actions)
    names = dict.fromkeys(name for _, event in rows for name in event.action_args)
    columns = {
        name: [world if name == "world" else getattr(event, name) for world, event in rows] for name in ACTION_COLUMNS
    }
    for name in names:
        column = f"args.{name}" if name in columns else name
        columns[column] = _unify([event.action_args.get(name) for _, event in rows])
    return columns


def build_row_columns(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Columns:
    """Turn the rows of a database into columns."""
    return {name: _unify([row[place] for row in rows]) for place, name in enumerate(names)}


def _unify(values: list[Any]) -> list[Any]:
    """Give a column one type: mixed and nested values become text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float} or kinds in ({str}, {bool}):
        return values

    def text(value: Any) -> str | None:
        if value is None or isinstance(value, str):
            return value
        return value.hex() if isinstance(value, bytes) else msgspec.json.encode(value).decode()

    return [text(value) for value in values]
