"""What a scenario that a client sends may not name: files, code, and keys of this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shoal.scenario import Problem, Scenario

Place = tuple[str | int, ...]


def find_references(value: Mapping[str, Any], key_variables: frozenset[str]) -> Iterator[Problem]:
    """Find what a scenario may not name when a client sends it: before it is validated, which reads files."""
    for part in ("population", "follows"):
        for path, key, _ in _walk(value.get(part), (part,)):
            if key in ("file", "fragments", "marginals"):
                yield Problem(path, "a scenario that is sent cannot name files; send what is in them")
    yield from _find_code(value)
    # Find keys that were not declared, and those that would be sent to an address that a client chose.
    every = [(path, key, inner) for path, key, inner in _walk(value, ()) if inner is not None]
    variables = [(path, name) for path, key, name in every if key == "key_variable"]
    for path, name in variables:
        if name not in key_variables:
            yield Problem(path, "this variable was not declared; start the server with --key-variable to allow it")
    for path in [path for path, key, _ in every if key == "base_url"] if variables else ():
        yield Problem(path, "an address that is sent gets no key of this machine; leave out key_variable")
    # Find sinks that would send a run, and a key of this machine, to an address that a client chose.
    for path, key, address in _walk(value.get("sinks"), ("sinks",)):
        if key == "address" and address is not None:
            yield Problem(path, "a scenario that is sent cannot name addresses of sinks; leave out address")
    if value.get("play"):
        yield Problem(("play",), "there is no terminal at the server; play from a terminal with `shoal run --play`")


def _find_code(value: Mapping[str, Any]) -> Iterator[Problem]:
    """Find the names of classes and functions, which are imported where a scenario is used."""
    found: list[Place] = [("variables",)] if value.get("variables") else []
    for part in ("mind", "worlds"):
        for path, key, named in _walk(value.get(part), (part,)):
            if key in ("kind", "mind", None) and isinstance(named, str) and ":" in named:
                found.append(path)
    found += [
        path for path, key, _ in _walk(value.get("interventions"), ("interventions",)) if key in ("check", "call")
    ]
    yield from (Problem(path, "a scenario that is sent cannot name code") for path in found)


def _walk(value: object, path: Place, key: str | None = None) -> Iterator[tuple[Place, str | None, object]]:
    """Yield the path, the key and the value of everything inside; what is in a list has no key."""
    yield path, key, value
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _walk(inner, (*path, name), str(name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _walk(inner, (*path, index))


def find_references_in_changes(
    scenario: Scenario, changes: Mapping[str, Any], key_variables: frozenset[str]
) -> list[Problem]:
    """Find what changes of a scenario may not name, each given as a path such as `mind.persuasion` and a value."""
    nested: dict[str, Any] = {}
    for path, value in changes.items():
        *parts, last = path.split(".")
        inner = nested
        for part in parts:
            before = inner.get(part)
            inner[part] = inner = before if isinstance(before, dict) else {}
        inner[last] = value
    problems = list(find_references(nested, key_variables))
    named = scenario.model_dump(mode="json", exclude_none=True)
    if "base_url" in _list_keys(nested) and "key_variable" in _list_keys(named):
        problems.append(Problem(("mind", "base_url"), "an address that is sent gets no key of this machine"))
    return problems


def _list_keys(value: object) -> set[str | None]:
    return {key for _, key, inner in _walk(value, ()) if inner is not None}
