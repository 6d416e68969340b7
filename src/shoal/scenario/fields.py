"""The small shapes that fields of a scenario have: numbers, text, hours of the day."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from shoal.scenario.validation.problems import expected, wrong


class DeclaredModel(BaseModel):
    """The base of everything declared: frozen, and nothing unknown is let through."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, serialize_by_alias=True)


def _number(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise wrong(expected("a number", value))
    return value


def _whole(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong(expected("a whole number", value))
    return value


def _text(value: object) -> object:
    if isinstance(value, (int, float)):
        raise wrong(f"{expected('text', value)}; put it in quotes")
    return value


Number = Annotated[float, BeforeValidator(_number)]
Whole = Annotated[int, BeforeValidator(_whole)]
Text = Annotated[str, Field(min_length=1), BeforeValidator(_text)]
_SPAN = re.compile(r"\s*(\d{1,2})\s*(?:-\s*(\d{1,2})\s*)?")


def _hours(value: object) -> object:
    """`8-12,22-4` (ends included, over midnight if need be), one hour or a list of hours, as sorted hours."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = [value]
    if isinstance(value, str):
        return tuple(sorted({hour for span in value.split(",") for hour in _span(span, value)}))
    if not isinstance(value, (list, tuple)) or not value:
        raise wrong(expected("hours such as 8-22 or [8, 9, 20]", value))
    return tuple(sorted({_hour(hour, index) for index, hour in enumerate(value)}))


def _span(span: str, whole: str) -> list[int]:
    match = _SPAN.fullmatch(span)
    ends = [int(end) for end in match.groups() if end is not None] if match else []
    if not ends or max(ends) > 23:
        raise wrong(expected("hours from 0 to 23 such as 8-22 or 8-12,18-22", whole))
    first, last = ends[0], ends[-1]
    return [hour % 24 for hour in range(first, (last if last >= first else last + 24) + 1)]


def _hour(value: object, index: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 23:
        raise wrong(expected("an hour from 0 to 23", value), index)
    return value


Hours = Annotated[tuple[int, ...], BeforeValidator(_hours)]


def _who(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, (int, str)) or value == "":
        raise wrong(expected("a name or a number", value))
    if isinstance(value, int) and value < 0:
        raise wrong(f"people are numbered from 0, found {value}")
    return value


#: A person, by name or by number.
Who = Annotated[int | str, BeforeValidator(_who)]
