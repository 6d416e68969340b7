"""How people differ in what most leave to their mind: columns that are only there if somebody says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.types import USUAL_HABITS, Habits

#: Fields of a person, and what those have who do not say.
USUAL: Mapping[str, float] = {**USUAL_HABITS, "response_delay": 0}


def fill(habits: Habits, people: int, start: int, said: Mapping[str, Sequence[Any]]) -> None:
    """Take in what people say who are numbered from `start` on, field by field; None is said by those who do not."""
    for field, values in said.items():
        stated = [start + row for row, value in enumerate(values) if value not in (None, USUAL[field])]
        if stated:
            _column(habits, field, people)[stated] = [values[number - start] for number in stated]


def of(habits: Habits, agent: int) -> dict[str, Any]:
    """What is not as it is with everybody, by field."""
    columns = {field: getattr(habits, field) for field in USUAL}
    said = {field: column[agent].tolist() for field, column in columns.items() if column is not None}
    usual = {**USUAL, "response_delay": [0, 0]}
    return {
        field: round(value, 3) if isinstance(value, float) else value
        for field, value in said.items()
        if value != usual[field] and value == value  # not a number is not equal to itself
    }


def _column(habits: Habits, field: str, people: int) -> NDArray[Any]:
    """The column of a field, made when the first person needs it."""
    column: NDArray[Any] | None = getattr(habits, field)
    if column is None:
        is_delay = field == "response_delay"
        shape = (people, 2) if is_delay else (people,)
        column = np.full(shape, USUAL[field], dtype=np.int32 if is_delay else np.float32)
        setattr(habits, field, column)
    return column
