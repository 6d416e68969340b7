"""Tables as pandas or polars frames. Both are optional, and imported when a frame is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

import msgspec

from shoal.errors import ShoalError
from shoal.text import hint, one_of
from shoal.types import Event

KINDS = ("pandas", "polars")
#: What every action has; its arguments follow as columns of their own.
ACTION_COLUMNS = ("world", "round", "agent_id", "agent_name", "action_type", "success", "result", "timestamp", "id")

Columns = Mapping[str, Sequence[Any]]


def frame_of(columns: Columns, kind: str) -> Any:
    """A pandas.DataFrame or a polars.DataFrame."""
    if kind not in KINDS:
        raise ShoalError(f"there are no {kind!r} frames, only {one_of(KINDS)}{hint(kind, KINDS)}")
    try:
        library = import_module(kind)
    except ImportError as error:
        raise ShoalError(f"frames of this kind need {kind}: install it with `pip install {kind}`") from error
    if kind == "polars":
        return library.DataFrame(columns, strict=False, infer_schema_length=None)
    return library.DataFrame(columns)


def action_columns(actions: Iterable[tuple[str, Event]]) -> Columns:
    """One row for each action, with its arguments side by side; what an action does not have is None."""
    rows = list(actions)
    names = dict.fromkeys(name for _, event in rows for name in event.action_args)
    columns = {name: [_of(world, event, name) for world, event in rows] for name in ACTION_COLUMNS}
    for name in names:
        column = f"args.{name}" if name in columns else name
        columns[column] = _alike([event.action_args.get(name) for _, event in rows])
    return columns


def _of(world: str, event: Event, column: str) -> Any:
    return world if column == "world" else getattr(event, column)


def row_columns(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Columns:
    """What a database answered, column by column."""
    return {name: _alike([row[place] for row in rows]) for place, name in enumerate(names)}


def _alike(values: list[Any]) -> list[Any]:
    """One type for the whole column: what is of several, or nested, becomes text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float} or kinds in ({str}, {bool}):
        return values
    return [value if value is None or isinstance(value, str) else _text(value) for value in values]


def _text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else msgspec.json.encode(value).decode()
