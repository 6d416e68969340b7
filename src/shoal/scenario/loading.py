"""Loads scenarios from files, texts and plain values, and lists of events from files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

from shoal.errors import ScenarioInvalid
from shoal.scenario.document import read_document
from shoal.scenario.importers.mirofish import scenario as mirofish
from shoal.scenario.scenario import Scenario
from shoal.scenario.validation import report
from shoal.scenario.validation.problems import Problem, describe_mismatch
from shoal.text import hint

SUFFIXES = (".yaml", ".yml", ".json")


def load(path: Path) -> Scenario:
    """Load the scenario in a YAML or JSON file, or in a directory that MiroFish has prepared.

    ScenarioInvalid holds everything that is wrong with it.
    """
    if mirofish.is_mirofish(path):
        return validate(mirofish.import_mirofish(path).scenario, str(path), path)
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


def read_text(path: Path) -> str:
    """Read the text of a YAML or JSON file; ScenarioInvalid says why it cannot be read."""
    if mirofish.is_run_directory(path):
        raise ScenarioInvalid(
            [f"{path}: a run, not a scenario; go on with it by `shoal resume {path}`, or branch it by `shoal fork`"]
        )
    if path.is_dir():
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
