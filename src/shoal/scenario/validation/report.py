"""Checks a scenario, and reports every problem at its path in the value as the user wrote it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, Tag, ValidationError
from pydantic_core import ErrorDetails

from shoal.scenario.declared.events import STIMULI
from shoal.scenario.declared.population import MAX_PEOPLE
from shoal.scenario.scenario import Scenario
from shoal.scenario.validation.consistency import find_problems
from shoal.scenario.validation.problems import InvalidValue, Path, Problem, read_problems
from shoal.text import one_of

#: How often a value is pruned and validated again.
_MAX_VALIDATIONS = 9
#: Valid values for required fields. They replace wrong ones, so that the fields beside them can be checked.
_STAND_INS: Mapping[str | int, str | int] = {
    **dict.fromkeys(("post", "broadcast", *STIMULI, "stop"), "?"),
    "skip": 1,
    "when": "round > 0",
    "count": 1,
    "agent": 0,
    "action": "TREND",
}


def check(value: Any, folder: FilePath | None = None) -> tuple[Scenario | None, list[Problem]]:
    """Return the scenario, or every problem with the value.

    Relative paths of files in the value start at the folder, or else at the current one.
    """
    problems: list[Problem] = []
    # Invalid fields are removed, so that what is left can still be checked across fields.
    pruned = _PrunedValue(value)
    for _ in range(_MAX_VALIDATIONS):
        try:
            scenario = Scenario.model_validate(pruned.value, context={"folder": folder})
        except ValidationError as error:
            invalid = _list_problems(error, pruned.value)
            problems = problems or invalid
            if not isinstance(value, dict):
                break
            pruned.remove_all({problem.path for problem in invalid})
            continue
        found = [_move_problem(problem, problem.path, pruned.value) for problem in find_problems(scenario)]
        trusted = [problem for problem in dict.fromkeys(found) if not problem.needs & pruned.broken]
        problems += map(pruned.restore_path, trusted)
        return None if problems else scenario, problems
    return None, problems


def _list_problems(error: ValidationError, value: Any) -> list[Problem]:
    certain: list[Problem] = []
    branches: dict[Path, list[Problem]] = {}
    for details in error.errors(include_url=False):
        if details["type"] == "too_short" and details["input"]:
            # The list is not empty, but every item of it is wrong; each item is reported by itself.
            continue
        is_ours = isinstance(details.get("ctx", {}).get("error"), InvalidValue)
        for problem in _locate_problems(details, value):
            if is_ours or details["type"] in ("missing", "extra_forbidden"):
                certain.append(problem)
            else:
                branches.setdefault(problem.path, []).append(problem)
    for several in branches.values():
        # The branches of a union that failed are one problem: all of what was expected instead.
        first, *others = dict.fromkeys(several)
        if others and all(problem.expected and problem.found for problem in (first, *others)):
            first = replace(first, expected=one_of(str(problem.expected) for problem in (first, *others)))
        certain.append(first)
    # A misspelt required field is also a missing one; that is one mistake.
    meant = {(problem.path[:-1], problem.suggestion) for problem in certain}
    return [
        problem
        for problem in dict.fromkeys(certain)
        if problem.missing is None or (problem.path, problem.missing) not in meant
    ]


def _locate_problems(details: ErrorDetails, value: Any) -> Iterator[Problem]:
    """Turn an error of pydantic into problems with paths in the value."""
    loc = details["loc"]
    path = _trim_location(loc, value)
    if details["type"] == "missing":
        field = loc[-1]
        if isinstance(field, int):
            yield Problem(path, expected="a list of two values", found=str(len(details["input"]) or "none"))
        else:
            example = "for example population: {count: 200}" if loc == ("population",) else None
            yield Problem(path, f"missing field {field!r}", missing=field, advice=example)
    elif details["type"] == "extra_forbidden":
        models: list[tuple[type[BaseModel], tuple[str, ...]]] = [(Scenario, ())]
        for part in loc[:-1]:
            if isinstance(part, str) and part.startswith("<"):
                below = [(model, tags) for model, tags in models if part in tags]
            else:
                fields = [model.model_fields.get(str(part)) for model, _ in models]
                below = [found for field in fields if field is not None for found in _find_models_in(field.annotation)]
            models = below or models
        yield Problem.unknown(
            "field",
            str(loc[-1]),
            [field.alias or name for model, _ in models for name, field in model.model_fields.items()],
            *path,
            at_key=True,
        )
    else:
        for problem in read_problems(details):
            yield _move_problem(problem, (*loc, *problem.path), value)


def _move_problem(problem: Problem, loc: Path, value: Any) -> Problem:
    """Return the problem with its path in the value as the user wrote it."""
    path = _trim_location(loc, value)
    return replace(problem, path=path, at_key=problem.at_key and path[-1:] == problem.path[-1:])


def _trim_location(loc: Iterable[str | int], value: Any) -> Path:
    """Remove what validation adds to a location: tags of unions, and wrappers around short forms."""
    path: list[str | int] = []
    for part in loc:
        if isinstance(part, str) and part.endswith(".0"):
            # A number that was a key: 18 in the file, 18.0 to pydantic.
            part = part.removesuffix(".0")
        if isinstance(value, list):
            leads_on = isinstance(part, int) and part < len(value)
        else:
            leads_on = isinstance(value, dict) and part in value
        if leads_on:
            path.append(part)
            value = value[part]
    return tuple(path)


def _find_models_in(annotation: Any, tags: tuple[str, ...] = ()) -> Iterator[tuple[type[BaseModel], tuple[str, ...]]]:
    """Find the models in a type, each with the tags of the unions around it."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation, tags
    arguments = get_args(annotation)
    if get_origin(annotation) is Annotated:
        tags = (*tags, *(found.tag for found in arguments[1:] if isinstance(found, Tag)))
    for argument in arguments:
        yield from _find_models_in(argument, tags)


class _PrunedValue:
    """A copy of a value without its invalid parts, which remembers the original places of list items."""

    def __init__(self, value: Any) -> None:
        self.value = _copy(value)
        #: Parts of the scenario that are incomplete, so that nothing can be called unknown there.
        self.broken: set[str] = set()
        self._places: dict[Path, list[int]] = {}

    def remove_all(self, paths: set[Path]) -> None:
        # From the back, so that the numbers of items still to be removed stay right.
        for path in sorted(paths, key=lambda path: [(isinstance(part, int), part) for part in path], reverse=True):
            self.remove(path)

    def remove(self, path: Path) -> None:
        if not path:
            # The only required field is the population. One with as many people as possible fits everything else.
            self.value.setdefault("population", {"count": MAX_PEOPLE})
            self.broken |= {"names", "numbers"}
            return
        part, last = path[0], path[-1]
        if part in ("rounds", "worlds") and len(path) <= 2:
            self.broken.add(str(part))
        if part == "population" and (len(path) <= 2 or last in ("name", "count", "file")):
            self.broken.add("numbers")
        if part == "population" and (len(path) == 1 or last in ("name", "file")):
            self.broken.add("names")
        parent = self.value
        for step in path[:-1]:
            parent = parent[step]
        if isinstance(parent, list):
            self._places.setdefault(path[:-1], list(range(len(parent)))).pop(int(last))
            parent.pop(int(last))
        else:
            removed, stand_in = parent.pop(last, None), _STAND_INS.get(last)
            if stand_in is not None and removed != stand_in:
                parent[last] = stand_in

    def restore_path(self, problem: Problem) -> Problem:
        """Return the problem with its path in the original value."""
        path: Path = ()
        for depth, part in enumerate(problem.path):
            places = self._places.get(problem.path[:depth])
            path = (*path, places[part] if places is not None and isinstance(part, int) else part)
        return replace(problem, path=path)


def _copy(value: Any) -> Any:
    """Copy a value so that it shares nothing, even where an alias stands for the same list twice."""
    if isinstance(value, dict):
        return {key: _copy(below) for key, below in value.items()}
    return [_copy(below) for below in value] if isinstance(value, list) else value
