"""What the parts of a declared experiment have in common: they are strict, and say where they are wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shoal.errors import ScenarioInvalid
from shoal.scenario import Document, Problem, read_problems

SECTION = "experiment"

NAME_CHARACTERS = "letters, digits, dots, hyphens and underscores, at most 100"
#: What names a folder.
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]


class ExperimentPart(BaseModel):
    """A part of the section `experiment`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def wrap_in_list(value: Any) -> Any:
    """Let one mapping stand for a list of one."""
    return [value] if isinstance(value, dict) else value


def read_error(error: ValidationError, model: type[ExperimentPart], value: Any) -> Iterator[Problem]:
    """Yield the problems of pydantic's errors about a value, with the nearest field where one is unknown."""
    errors = [(tuple(_find_place(each["loc"], value)), each) for each in error.errors(include_url=False)]
    # A wrong number that may also be a list is only a wrong number.
    numbers = {place for place, each in errors if each["type"] != "list_type"}
    for place, details in errors:
        if details["type"] == "list_type" and place in numbers:
            continue
        if details["type"] == "string_pattern_mismatch":
            yield Problem.mismatch(NAME_CHARACTERS, details["input"], *place)
        elif details["type"] == "extra_forbidden":
            yield Problem.unknown("field", str(place[-1]), _list_fields(model, place[:-1]), *place, at_key=True)
        elif details["type"] == "missing":
            yield Problem(place[:-1], f"missing field {place[-1]!r}")
        else:
            for problem in read_problems(details):
                yield replace(problem, path=(*place, *problem.path))


def locate_problems(name: str, document: Document, problems: list[Problem]) -> ScenarioInvalid:
    """Say where in the document each problem of the section is."""
    moved = [replace(problem, path=(SECTION, *problem.path)) for problem in problems]
    if not document.values:
        return ScenarioInvalid([f"{name}: {problem}" for problem in moved])
    places = [(document.locate(problem), problem) for problem in moved]
    return ScenarioInvalid([f"{name}:{line}:{column}: {problem}" for (line, column), problem in places])


def _find_place(location: tuple[str | int, ...], value: Any) -> Iterator[str | int]:
    """Yield the parts of a location that are in the value: pydantic adds branches of unions to it."""
    for number, part in enumerate(location):
        if isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
            yield part
        elif isinstance(value, dict) and isinstance(part, str) and part != "[key]":
            if part in value or number == len(location) - 1:
                yield part
            value = value.get(part)


def _list_fields(model: type[ExperimentPart], place: tuple[str | int, ...]) -> list[str]:
    """List the fields that are known at a place."""
    models = [model]
    for part in place:
        fields = [each.model_fields[part] for each in models if isinstance(part, str) and part in each.model_fields]
        if fields:
            models = [found for field in fields for found in _list_models(field.annotation)]
    return [name for each in models for name in each.model_fields]


def _list_models(annotation: Any) -> Iterator[type[ExperimentPart]]:
    if isinstance(annotation, type) and issubclass(annotation, ExperimentPart):
        yield annotation
    for part in get_args(annotation):
        yield from _list_models(part)
