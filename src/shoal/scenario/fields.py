"""The base class of declared models, and the types of field that they share: numbers, texts, hours, people."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Strict

from shoal.scenario.validation.problems import InvalidValue, Problem, show_value

_SPAN = re.compile(r"\s*(\d{1,2})\s*(?:-\s*(\d{1,2})\s*)?")


class DeclaredModel(BaseModel):
    """The base class of everything declared: it is frozen and refuses unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, serialize_by_alias=True)


def make_tag(model: type[BaseModel]) -> str:
    """Return what a branch of a union is called in the locations of errors, where no field is called so."""
    return f"<{model.__name__}>"


def check_text(value: object) -> object:
    if isinstance(value, (int, float)):
        raise InvalidValue(Problem.mismatch("text", value, advice="put it in quotes"))
    return value


def check_who(value: object) -> object:
    """Check who is meant: a name, or a number from 0 on."""
    if isinstance(value, bool) or not isinstance(value, (int, str)) or value == "":
        raise InvalidValue(Problem.mismatch("a name or a number", value))
    if isinstance(value, int) and value < 0:
        raise InvalidValue(Problem((), "people are numbered from 0", found=str(value)))
    return value


def parse_hours(value: object) -> object:
    """Read `8-12,22-4` (ends included, over midnight if need be), one hour or a list of hours; sort the hours."""
    hours: set[int] = set()
    if isinstance(value, str):
        for span in value.split(","):
            match = _SPAN.fullmatch(span)
            ends = [int(end) for end in match.groups() if end is not None] if match else []
            if not ends or max(ends) > 23:
                raise InvalidValue(Problem.mismatch("hours from 0 to 23 such as 8-22 or 8-12,18-22", value))
            first, last = ends[0], ends[-1]
            hours.update(hour % 24 for hour in range(first, (last if last >= first else last + 24) + 1))
        return tuple(sorted(hours))
    if isinstance(value, int) and not isinstance(value, bool):
        value = [value]
    if not isinstance(value, (list, tuple)) or not value:
        raise InvalidValue(Problem.mismatch("hours such as 8-22 or [8, 9, 20]", value))
    for index, hour in enumerate(value):
        if isinstance(hour, bool) or not isinstance(hour, int) or not 0 <= hour <= 23:
            raise InvalidValue(Problem.mismatch("an hour from 0 to 23", hour, index))
        hours.add(hour)
    return tuple(sorted(hours))


#: Strict, because pydantic would take `true` for 1 and '3' for 3.
Number = Annotated[float, Strict()]
Whole = Annotated[int, Strict()]
Text = Annotated[str, Field(min_length=1), BeforeValidator(check_text)]
Hours = Annotated[tuple[int, ...], BeforeValidator(parse_hours)]
#: A person, by name or by number.
Who = Annotated[int | str, BeforeValidator(check_who)]


class _RejectedValue:
    """Takes the place of a value that pydantic would coerce, so that pydantic refuses it."""

    def __init__(self, value: object) -> None:
        self._shown = show_value(value)

    def __repr__(self) -> str:
        return self._shown


def _reject_coercible(model: type[BaseModel], value: object) -> object:
    if not isinstance(value, Mapping):
        return value
    checked: dict[Any, object] = {}
    for name, below in value.items():
        kind: Any = model.model_fields[name].annotation if name in model.model_fields else None
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            checked[name] = _reject_coercible(kind, below)
        elif isinstance(below, (int, float)) if kind is datetime else isinstance(below, bool) and kind is not bool:
            checked[name] = _RejectedValue(below)
        else:
            checked[name] = below
    return checked


def refuse_coercion(model: type[BaseModel]) -> BeforeValidator:
    """Make a validator for settings that are not a `DeclaredModel`.

    It keeps pydantic from reading `true` as the number 1, and 8 as a date in 1970.
    """
    return BeforeValidator(partial(_reject_coercible, model))
