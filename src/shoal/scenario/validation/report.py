"""Turns what pydantic found into one readable line per mistake."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from shoal.scenario.declared.events import STIMULI
from shoal.scenario.declared.population import MAX_PEOPLE
from shoal.scenario.scenario import Scenario
from shoal.scenario.validation.problems import OURS, Path, Problem, describe_error
from shoal.text import hint, one_of

_MISSING, _EXTRA, _TOO_SHORT = "missing", "extra_forbidden", "too_short"
_ROUNDS_OF_PRUNING = 8
#: What takes the place of a wrong value that cannot be left out, so that what stands beside it can be looked at.
_STAND_INS: Mapping[str | int, str | int] = {
    **dict.fromkeys(("post", "broadcast", *STIMULI, "stop"), "?"),
    "skip": 1,
    "when": "round > 0",
    "count": 1,
    "agent": 0,
    "action": "TREND",
}


def check(value: Any, folder: FilePath | None = None) -> tuple[Scenario | None, list[Problem]]:
    """The scenario, or every problem with the value, each with its path in the value as it was given.

    Files that the value speaks of are looked for in the folder, or else in the current one.
    """
    try:
        return Scenario.model_validate(value, context={"folder": folder}), []
    except ValidationError as error:
        found = _problems(error, value)
        if isinstance(value, dict) and not _consistency_was_checked(error):
            found += _inconsistencies(value, error, folder)
        return None, found


def _consistency_was_checked(error: ValidationError) -> bool:
    return any(details["type"] == OURS and not details["loc"] for details in error.errors())


def _problems(error: ValidationError, value: Any) -> list[Problem]:
    certain: list[Problem] = []
    branches: dict[Path, list[Problem]] = {}
    for details in error.errors(include_url=False):
        if details["type"] == _TOO_SHORT and details["input"]:
            # There is something in it, only nothing that is right; that is said where it stands.
            continue
        for problem in _translated(details, value):
            if details["type"] in (OURS, _MISSING, _EXTRA):
                certain.append(problem)
            else:
                branches.setdefault(problem.path, []).append(problem)
    certain += [_one(path, several) for path, several in branches.items()]
    return list(_without_echoes(list(dict.fromkeys(certain))))


def _one(path: Path, several: list[Problem]) -> Problem:
    """The branches of a union that failed are one problem: all of what was expected instead."""
    texts = list(dict.fromkeys(problem.text for problem in several))
    if len(texts) == 1 or not all(text.startswith("expected ") and ", found " in text for text in texts):
        return several[0]
    wanted = [text.removeprefix("expected ").partition(", found ")[0] for text in texts]
    return Problem(path, f"expected {one_of(wanted)}, found {texts[0].partition(', found ')[2]}")


def _without_echoes(problems: list[Problem]) -> Iterator[Problem]:
    """A misspelt field is also a missing one; that is one mistake."""
    meant = {(problem.path[:-1], problem.text.partition("; did you mean ")[2]) for problem in problems}
    for problem in problems:
        field = problem.text.removeprefix("missing field ").partition(";")[0]
        if not problem.text.startswith("missing field ") or (problem.path, f"{field}?") not in meant:
            yield problem


def _translated(details: ErrorDetails, value: Any) -> Iterator[Problem]:
    path = _as_written(details["loc"], value)
    if details["type"] == OURS:
        for problem in details["ctx"]["problems"]:
            path = _as_written((*details["loc"], *problem.path), value)
            at_key = problem.at_key and path[-1:] == problem.path[-1:]
            yield Problem(path, problem.text, problem.needs, at_key)
    elif details["type"] == _MISSING:
        yield Problem(path, _missing(details["loc"], details["input"]))
    elif details["type"] == _EXTRA:
        field = str(details["loc"][-1])
        yield Problem(path, _extra(details["loc"], field), at_key=True)
    else:
        yield Problem(path, describe_error(details))


def _as_written(loc: Iterable[str | int], value: Any) -> Path:
    """A location without what validation put into it: tags of unions, wrappers around short forms."""
    path: list[str | int] = []
    for part in loc:
        if isinstance(part, str) and part.endswith(".0"):
            # A number that was a key: 18 in the file, 18.0 to pydantic.
            part = part.removesuffix(".0")
        if _leads_on(value, part):
            path.append(part)
            value = value[part]
    return tuple(path)


def _leads_on(value: Any, part: str | int) -> bool:
    if isinstance(value, list):
        return isinstance(part, int) and part < len(value)
    return isinstance(value, dict) and part in value


def _missing(loc: Path, value: Any) -> str:
    field = str(loc[-1])
    if isinstance(loc[-1], int):
        return f"expected a list of two values, found {len(value) or 'none'}"
    if loc[:1] == ("worlds",) and field == "kind":
        return "missing field 'kind'; a world that is not called twitter or reddit must say which of them it is"
    if loc == ("population",):
        return "missing field 'population'; for example population: {count: 200}"
    return f"missing field {field!r}"


def _extra(loc: Path, field: str) -> str:
    return f"unknown field {field!r}{hint(field, _fields_at(loc[:-1]))}"


def _fields_at(loc: Path) -> list[str]:
    """The fields of the model that validation was in at this location."""
    models: list[type[BaseModel]] = [Scenario]
    for part in loc:
        models = [model for known in models for model in _models_below(known, part)] or models
    return [field.alias or name for model in models for name, field in model.model_fields.items()]


def _models_below(model: type[BaseModel], part: str | int) -> list[type[BaseModel]]:
    if isinstance(part, str) and part.startswith("<"):
        return (
            [model]
            if f"<{model.__name__.removesuffix('Entry').lower()}>".startswith(part[:-1]) or _is_tagged(model, part)
            else []
        )
    field = model.model_fields.get(str(part))
    return list(_models_in(field.annotation)) if field is not None else []


def _is_tagged(model: type[BaseModel], tag: str) -> bool:
    kind = model.model_fields.get("kind")
    return kind is not None and tag[1:-1] in get_args(kind.annotation)


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)


def _inconsistencies(value: Any, error: ValidationError, folder: FilePath | None) -> list[Problem]:
    """What else is wrong between the parts that are right by themselves: leave out the rest, and look again."""
    pruned = _Pruned(value)
    for _ in range(_ROUNDS_OF_PRUNING):
        pruned.leave_out(error)
        try:
            Scenario.model_validate(pruned.value, context={"folder": folder})
            return []
        except ValidationError as again:
            error = again
        if _consistency_was_checked(error):
            found = _problems(error, pruned.value)
            return [pruned.original(problem) for problem in found if not problem.needs & pruned.broken]
    return []


class _Pruned:
    """A copy of the value without what is wrong in it, which remembers the places that things had before."""

    def __init__(self, value: Any) -> None:
        self.value = _copied(value)
        #: Parts whose entries are no longer complete, so that nothing can be called unknown there.
        self.broken: set[str] = set()
        self._places: dict[Path, list[int]] = {}

    def leave_out(self, error: ValidationError) -> None:
        paths = {problem.path for problem in _problems(error, self.value)}
        for path in sorted(paths, key=_from_the_back, reverse=True):
            self._remove(path)

    def original(self, problem: Problem) -> Problem:
        path: Path = ()
        current: Path = ()
        for part in problem.path:
            places = self._places.get(current)
            path = (*path, places[part] if places is not None and isinstance(part, int) else part)
            current = (*current, part)
        return replace(problem, path=path)

    def _remove(self, path: Path) -> None:
        if not path:
            # Only a population cannot be left out; a boundless one lets everything else be looked at.
            self.value.setdefault("population", {"count": MAX_PEOPLE})
            self.broken |= {"names", "numbers"}
            return
        self._note_broken(path)
        parent = self.value
        for part in path[:-1]:
            parent = parent[part]
        if isinstance(parent, list):
            self._places.setdefault(path[:-1], list(range(len(parent)))).pop(int(path[-1]))
            parent.pop(int(path[-1]))
        elif parent.pop(path[-1], None) != (stand_in := _STAND_INS.get(path[-1])) and stand_in is not None:
            parent[path[-1]] = stand_in

    def _note_broken(self, path: Path) -> None:
        if path[0] in ("rounds", "worlds") and len(path) <= 2:
            self.broken.add(str(path[0]))
        if path[0] == "population" and (len(path) <= 2 or path[-1] in ("name", "count", "file")):
            self.broken.add("numbers")
        if path == ("population",) or (path[0] == "population" and path[-1] in ("name", "file")):
            self.broken.add("names")


def _copied(value: Any) -> Any:
    """A copy that shares nothing, also where an alias stands for the same list twice."""
    if isinstance(value, dict):
        return {key: _copied(below) for key, below in value.items()}
    return [_copied(below) for below in value] if isinstance(value, list) else value


def _from_the_back(path: Path) -> list[tuple[bool, str | int]]:
    return [(isinstance(part, int), part) for part in path]
