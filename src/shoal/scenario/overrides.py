"""Changes to single values of a scenario, written as `path=value`: the option `--set`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shoal.errors import ScenarioInvalid
from shoal.scenario.document import read_document
from shoal.scenario.scenario import Scenario
from shoal.scenario.validation import report
from shoal.scenario.validation.problems import show_value
from shoal.text import hint


def override(scenario: Scenario, assignments: Sequence[str]) -> Scenario:
    """Return the scenario with some values changed, each given as in `time.minutes_per_round=30`."""
    value = scenario.model_dump(mode="json")
    sources: dict[tuple[str, ...], str] = {}
    problems: list[str] = []
    for assignment in assignments:
        place, equals, text = assignment.partition("=")
        parts = place.strip().split(".")
        try:
            if not equals or not all(parts):
                raise ScenarioInvalid(
                    [f"--set {assignment}: expected path=value, for example time.minutes_per_round=30"]
                )
            new = read_document(text, f"--set {assignment}").value
            sources[_assign(value, parts, new, f"--set {assignment}")] = assignment
        except ScenarioInvalid as error:
            problems += error.problems
    changed, found = report.check(value)
    for problem in found:
        # The assignment that it comes from, or all of them where that is unclear.
        path = tuple(map(str, problem.path))
        known = [text for parts, text in sources.items() if path[: len(parts)] == parts or parts[: len(path)] == path]
        problems.append(f"--set {known[-1] if known else ', '.join(sources.values())}: {problem}")
    if changed is None or problems:
        raise ScenarioInvalid(problems)
    return changed


def _assign(value: Any, parts: list[str], new: Any, name: str) -> tuple[str, ...]:
    """Set the value at a path, and return the path in full. `name` is what problems are reported under."""
    taken: list[str] = []
    for part in parts:
        if taken:
            key: Any = int(taken[-1]) if isinstance(value, list) else taken[-1]
            below = value[key] if isinstance(value, list) else value.get(key)
            if below is None:
                if isinstance(value, dict) and key not in value:
                    raise ScenarioInvalid([f"{name}: unknown field {key!r}{hint(key, value)}"])
                # An optional mapping that is not set.
                below = value[key] = {}
            elif not isinstance(below, (dict, list)):
                raise ScenarioInvalid([f"{name}: {taken[-1]} is {show_value(below)}, there is nothing below it"])
            value = below
        if taken == ["population"] and isinstance(value, list) and len(value) == 1 and not part.isdecimal():
            # The fields of the only entry may be named without its number.
            value = value[0]
            taken.append("0")
        if isinstance(value, list) and (not part.isdecimal() or int(part) >= len(value)):
            numbers = f"0 to {len(value) - 1}" if value else "none, it is empty"
            text = f"{name}: {'.'.join(taken)} is a list; expected a number ({numbers}), found {part!r}"
            raise ScenarioInvalid([text])
        taken.append(part)
    value[int(taken[-1]) if isinstance(value, list) else taken[-1]] = new
    return tuple(taken)
