"""Loads scenarios from files, texts and plain values, changes single values of them, and loads lists of events."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from shoal.agents import LanguageSettings
from shoal.errors import ScenarioInvalid
from shoal.scenario.document import read_document
from shoal.scenario.importers.mirofish import import_mirofish, is_mirofish, is_run_directory, refuse_simulations
from shoal.scenario.scenario import MAX_ROUNDS, Scenario
from shoal.scenario.validation import report
from shoal.scenario.validation.consistency import check_rounds
from shoal.scenario.validation.problems import Problem, describe_mismatch, show_value
from shoal.text import hint

SUFFIXES = (".yaml", ".yml", ".json")
#: The scenarios in `data/examples`, the simplest first.
_EXAMPLES = ("rumour", "debate", "focus-group", "negotiation", "helpdesk", "misinformation")
#: The name under which problems of a text are reported that has none.
_TEXT = "scenario"
_POSITION = re.compile(rf"{_TEXT}:(\d+):\d+: (.*)", re.DOTALL)


def load(path: Path) -> Scenario:
    """Load the scenario in a YAML or JSON file, or in a directory that MiroFish has prepared.

    ScenarioInvalid holds everything that is wrong with it.
    """
    if is_mirofish(path):
        return validate(import_mirofish(path).scenario, str(path), path)
    return parse(read_text(path), str(path), path.parent)


def parse(text: str, name: str, folder: Path | None = None) -> Scenario:
    """Parse the scenario in a text.

    Problems are reported under `name`, with line and column. Relative paths in the text start at the folder.
    """
    found = read_document(text, name)
    if found.value is None:
        raise ScenarioInvalid([f"{name}: nothing in it; the shortest scenario is `population: {{count: 200}}`"])
    if not isinstance(found.value, dict):
        text = describe_mismatch("a mapping such as population: {count: 200}", found.value)
        raise ScenarioInvalid([f"{name}:1:1: {text}"])
    # What is made of the scenario in an experiment is no part of it.
    found.value.pop("experiment", None)
    scenario, problems = report.check(found.value, folder)
    unread = [position for position, _ in found.problems]
    # A place that could not be read is not reported a second time.
    located = [(position, problem) for problem in problems if (position := found.locate(problem)) not in unread]
    if scenario is None or found.problems:
        lines = sorted((position, str(problem)) for position, problem in [*found.problems, *located])
        raise ScenarioInvalid([f"{name}:{line}:{column}: {text}" for (line, column), text in lines])
    return scenario


def validate(value: Any, name: str = "scenario", folder: Path | None = None) -> Scenario:
    """Validate a scenario of plain values, such as a stored simulation_config.json or the body of a request."""
    scenario, problems = report.check(value, folder)
    if scenario is None:
        raise ScenarioInvalid([f"{name}: {problem}" for problem in problems])
    return scenario


def lengthen(scenario: Scenario, rounds: int) -> Scenario | None:
    """Return a valid scenario with more rounds; None where it would not be valid with them."""
    longer = scenario.model_copy(update={"rounds": rounds})
    return longer if rounds <= MAX_ROUNDS and not any(check_rounds(longer)) else None


def load_events(path: Path, scenario: Scenario, at: int) -> list[dict[str, Any]]:
    """Load the events in a file. An event without a round happens in round `at`, where the fork begins."""
    found = read_document(read_text(path), str(path))
    has_key = isinstance(found.value, dict) and set(found.value) == {"events"}
    events = found.value["events"] if has_key else found.value
    if not isinstance(events, list) or not events:
        text = describe_mismatch("a list of events such as - {post: text, by: random}", found.value)
        raise ScenarioInvalid([f"{path}:1:1: {text}"])
    checked, problems = _check_events(events, scenario, at)
    if not has_key:
        # Paths in the file begin at the list itself.
        problems = [
            replace(problem, path=problem.path[1:]) if problem.path[:1] == ("events",) else problem
            for problem in problems
        ]
    wrong = [*found.problems, *((found.locate(problem), problem) for problem in problems)]
    if wrong or checked is None:
        raise ScenarioInvalid([f"{path}:{line}:{column}: {problem}" for (line, column), problem in wrong])
    return [event.model_dump(mode="json") for event in checked.events]


def validate_events(events: Sequence[Any], scenario: Scenario, at: int) -> list[dict[str, Any]]:
    """Validate a list of events in plain values. An event without a round happens in round `at`."""
    if not events:
        return []
    checked, problems = _check_events(events, scenario, at)
    if checked is None or problems:
        raise ScenarioInvalid([str(problem) for problem in problems])
    return [event.model_dump(mode="json") for event in checked.events]


def _check_events(events: Sequence[Any], scenario: Scenario, at: int) -> tuple[Scenario | None, list[Problem]]:
    dated = [{"round": at, **event} if isinstance(event, dict) else event for event in events]
    checked, problems = report.check({**scenario.model_dump(mode="json"), "events": dated})
    for index, event in enumerate(dated):
        if isinstance(event, dict) and isinstance(event.get("round"), int) and event["round"] < at:
            expected = f"round {at} or later, where the fork begins"
            problems.append(Problem(("events", index, "round"), expected=expected, found=str(event["round"])))
    return checked, problems


def assign_model(scenario: Scenario, model: str) -> dict[str, str]:
    """Return the change by which this language model decides, for `override`."""
    is_language = isinstance(scenario.mind, LanguageSettings)
    field, value = ("mind.model", model) if is_language else ("mind", {"kind": "language", "model": model})
    return {f"{field}={msgspec.json.encode(value).decode()}": f"--model {model}"}


def override(scenario: Scenario, assignments: Sequence[str] | Mapping[str, str]) -> Scenario:
    """Return the scenario with some values changed, each given as in `time.minutes_per_round=30`.

    In a mapping, each stands beside what problems with it are reported under, such as the option that a user typed.
    """
    value = scenario.model_dump(mode="json")
    sources: dict[tuple[str, ...], str] = {}
    problems: list[str] = []
    typed = assignments if isinstance(assignments, Mapping) else {text: f"--set {text}" for text in assignments}
    for assignment, name in typed.items():
        place, equals, text = assignment.partition("=")
        parts = place.strip().split(".")
        try:
            if not equals or not all(parts):
                raise ScenarioInvalid([f"{name}: expected path=value, for example time.minutes_per_round=30"])
            new = read_document(text, name).value
            sources[_assign(value, parts, new, name)] = name
        except ScenarioInvalid as error:
            problems += error.problems
    changed, found = report.check(value)
    for problem in found:
        # The assignment that it comes from, or all of them where that is unclear.
        path = tuple(map(str, problem.path))
        known = [name for parts, name in sources.items() if path[: len(parts)] == parts or parts[: len(path)] == path]
        problems.append(f"{known[-1] if known else ', '.join(sources.values())}: {problem}")
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


def read_text(path: Path) -> str:
    """Read the text of a YAML or JSON file; ScenarioInvalid says why it cannot be read."""
    if is_run_directory(path):
        raise ScenarioInvalid(
            [f"{path}: a run, not a scenario; go on with it by `shoal resume {path}`, or branch it by `shoal fork`"]
        )
    if path.is_dir():
        refuse_simulations(path, "run")
        raise ScenarioInvalid([f"{path}: a directory; a scenario is a YAML or JSON file"])
    if path.suffix.lower() not in SUFFIXES:
        raise ScenarioInvalid([f"{path}: expected a file that ends in .yaml, .yml or .json"])
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError as error:
        others = path.parent.iterdir() if path.parent.is_dir() else ()
        near = hint(path.name, (other.name for other in others if other.suffix.lower() in SUFFIXES))
        raise ScenarioInvalid([f"{path}: no such file{near}"]) from error
    except OSError as error:
        raise ScenarioInvalid([f"{path}: cannot be read: {error.strerror}"]) from error
    except UnicodeDecodeError as error:
        text = f"{path}: not UTF-8 text (byte {error.start + 1} is {error.object[error.start]:#04x}); save it as UTF-8"
        raise ScenarioInvalid([text]) from error


def read_starter() -> str:
    """Read the scenario that `shoal init` writes."""
    return (resources.files("shoal.scenario") / "data" / "starter.yaml").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class ExampleScenario:
    """A scenario that comes with Shoal, to start from."""

    name: str
    #: What it is about, in a sentence.
    title: str
    text: str


def list_examples() -> list[ExampleScenario]:
    """List the scenarios that come with Shoal, the simplest first."""
    folder = resources.files("shoal.scenario") / "data" / "examples"
    texts = {name: (folder / f"{name}.yaml").read_text(encoding="utf-8") for name in _EXAMPLES}
    return [ExampleScenario(name, text.split("\n", 1)[0].lstrip("# "), text) for name, text in texts.items()]


@dataclass(frozen=True, slots=True)
class TextProblem:
    """One mistake in the text of a scenario, and the line where it is."""

    #: Where it is in the scenario, such as `time.start`; empty where the text cannot be read.
    path: str
    text: str
    line: int


def check_text(
    text: str, find_refused: Callable[[Mapping[str, Any]], Sequence[Problem]]
) -> tuple[Any, list[TextProblem]]:
    """Return the values in a scenario's text, and every mistake in them with its line.

    `find_refused` names what may not stand in it. That is asked before anything is validated, which reads files.
    """
    try:
        found = read_document(text, _TEXT)
    except ScenarioInvalid as error:
        lines, found_problems = text.count("\n") + 1, []
        for problem in error.problems:
            # A syntax error is written `scenario:line:column: message`.
            if (place := _POSITION.fullmatch(problem)) is None:
                found_problems.append(TextProblem("", problem, 1))
            else:
                found_problems.append(TextProblem("", place[2], min(int(place[1]), lines)))
        return None, found_problems
    if not isinstance(found.value, dict):
        message = describe_mismatch("a mapping such as population: {count: 200}", found.value)
        return found.value, [TextProblem("", message, 1)]
    found.value.pop("experiment", None)
    refused = list(find_refused(found.value))
    problems = refused or report.check(found.value)[1]
    located = [(found.locate(problem), problem) for problem in problems]
    every = sorted([*found.problems, *located], key=lambda place: place[0])
    return found.value, [
        TextProblem(".".join(map(str, problem.path)), problem.text, position[0]) for position, problem in every
    ]
