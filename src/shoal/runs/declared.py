"""What was declared or injected differently in two runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from shoal.journal import is_continuation, read, round_of
from shoal.runs.directory import RunDirectory

#: Where a difference is not in the scenario.
INJECTED = "injected"
#: Fields that a history does not depend on, as far as it goes.
_IDLE = ("name", "rounds", "max_workers", "metrics", "mind.latency")


@dataclass(frozen=True, slots=True)
class Declared:
    """A field of the scenario, from the round on from which the two differ in it; or something that was injected."""

    path: str
    since: int
    one: Any
    other: Any


def differences(one: RunDirectory, other: RunDirectory) -> Iterator[Declared]:
    """Every field in which the scenarios differ, and every injected event that only one of the runs has."""
    left, right = _Told.of(one), _Told.of(other)
    known: dict[str, tuple[Any, Any]] = {}
    for since in sorted({*left.scenarios, *right.scenarios}):
        for path, values in _unequal(left.at(since), right.at(since)).items():
            if known.get(path) != values:
                known[path] = values
                yield Declared(path, since, *values)
    for event in left.events:
        if event not in right.events:
            yield Declared(INJECTED, event.get("round", 0), event, None)
    for event in right.events:
        if event not in left.events:
            yield Declared(INJECTED, event.get("round", 0), None, event)


def bears(field: Declared) -> bool:
    """Whether a history may depend on this field of the scenario."""
    return field.path != INJECTED and not any(f"{field.path}.".startswith(f"{idle}.") for idle in _IDLE)


@dataclass(frozen=True, slots=True)
class _Told:
    """What a run was told: its scenarios by the round from which on they are in force, and what was injected."""

    scenarios: Mapping[int, Mapping[str, Any]]
    events: Sequence[Mapping[str, Any]]

    @classmethod
    def of(cls, directory: RunDirectory) -> _Told:
        config = directory.config()
        lines, _ = read(directory.journal)
        scenarios = {0: config.scenario} | {change.at: change.scenario for change in config.changes}
        scenarios |= {round_of(line): line.event["scenario"] for line in lines if line.event and is_continuation(line)}
        return cls(scenarios, [line.event for line in lines if line.event and not is_continuation(line)])

    def at(self, round: int) -> Mapping[str, Any]:
        return self.scenarios[max(since for since in self.scenarios if since <= round)]


def _unequal(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    left, right = dict(_flat(one)), dict(_flat(other))
    return {path: (left.get(path), right.get(path)) for path in {**left, **right} if left.get(path) != right.get(path)}


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """`{"a": {"b": 1}}` as `a.b`, 1; items of lists by number."""
    if isinstance(value, Mapping) and value:
        for name, below in value.items():
            yield from _flat(below, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list) and value and not _is_plain(value):
        for number, below in enumerate(value):
            yield from _flat(below, f"{path}.{number}")
    else:
        yield path, msgspec.to_builtins(value)


def _is_plain(values: list[Any]) -> bool:
    return not any(isinstance(value, Mapping | list) for value in values)
