"""Reading scenarios: from files, from text, and with single values changed."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from shoal.errors import ScenarioInvalid, StorageFailed
from shoal.scenario import document
from shoal.scenario.document import Document, Position
from shoal.scenario.importers.mirofish import scenario as mirofish
from shoal.scenario.scenario import Scenario
from shoal.scenario.validation import report
from shoal.scenario.validation.problems import Problem, describe_mismatch, show_value
from shoal.text import hint

SUFFIXES = (".yaml", ".yml", ".json")


def load(path: Path) -> Scenario:
    """The scenario in a YAML or JSON file, or in a directory that MiroFish has prepared.

    ScenarioInvalid holds everything that is wrong with it.
    """
    if mirofish.is_mirofish(path):
        return validate(mirofish.import_mirofish(path).scenario, str(path), path)
    return parse(text_of(path), str(path), path.parent)


def parse(text: str, name: str, folder: Path | None = None) -> Scenario:
    """The scenario in a text. `name` is what problems are reported under; its files are looked for in the folder."""
    found = document.read_document(text, name)
    if found.value is None:
        raise ScenarioInvalid([f"{name}: nothing in it; the shortest scenario is `population: {{count: 200}}`"])
    if not isinstance(found.value, dict):
        raise ScenarioInvalid(
            [f"{name}:1:1: {describe_mismatch('a mapping such as population: {count: 200}', found.value)}"]
        )
    scenario, problems = report.check(found.value, folder)
    unread = [position for position, _ in found.problems]
    placed = [(position_of(problem, found), problem) for problem in problems]
    # A place that cannot even be read is not judged a second time.
    placed = [*found.problems, *(item for item in placed if item[0] not in unread)]
    if scenario is None or placed:
        lines = sorted((position, str(problem)) for position, problem in placed)
        raise ScenarioInvalid([f"{name}:{line}:{column}: {text}" for (line, column), text in lines])
    return scenario


def validate(value: Any, name: str = "scenario", folder: Path | None = None) -> Scenario:
    """The scenario in plain values, such as a stored simulation_config.json or the body of a request."""
    scenario, problems = report.check(value, folder)
    if scenario is None:
        raise ScenarioInvalid([f"{name}: {problem}" for problem in problems])
    return scenario


def text_of(path: Path) -> str:
    """The text of a scenario file, or ScenarioInvalid with why it cannot be read."""
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
        raise ScenarioInvalid([f"{path}: no such file{_similar(path)}"]) from error
    except OSError as error:
        raise ScenarioInvalid([f"{path}: cannot be read: {error.strerror}"]) from error
    except UnicodeDecodeError as error:
        text = f"{path}: not UTF-8 text (byte {error.start + 1} is {error.object[error.start]:#04x}); save it as UTF-8"
        raise ScenarioInvalid([text]) from error


def _similar(path: Path) -> str:
    if not path.parent.is_dir():
        return ""
    return hint(path.name, (other.name for other in path.parent.iterdir() if other.suffix.lower() in SUFFIXES))


def position_of(problem: Problem, found: Document) -> Position:
    """Line and column of what a problem is about."""
    key = found.keys.get(problem.path) if problem.at_key else None
    return key or found.find(problem.path)


def override(scenario: Scenario, assignments: Sequence[str]) -> Scenario:
    """The scenario with some values changed, each given as `path=value`, for example `time.minutes_per_round=30`."""
    value = scenario.model_dump(mode="json")
    sources: dict[tuple[str, ...], str] = {}
    problems: list[str] = []
    for assignment in assignments:
        name = f"--set {assignment}"
        try:
            parts, given = _split(assignment, name)
            sources[tuple(_assign(value, parts, given, name))] = name
        except ScenarioInvalid as error:
            problems += error.problems
    changed, found = report.check(value)
    problems += [f"{_source(problem, sources)}: {problem}" for problem in found]
    if changed is None or problems:
        raise ScenarioInvalid(problems)
    return changed


def _split(assignment: str, name: str) -> tuple[list[str], Any]:
    path, equals, text = assignment.partition("=")
    parts = path.strip().split(".")
    if not equals or not all(parts):
        raise ScenarioInvalid([f"{name}: expected path=value, for example time.minutes_per_round=30"])
    return parts, document.read_document(text, name).value


def _assign(value: Any, parts: list[str], given: Any, name: str) -> Iterable[str]:
    """Set what the path leads to; answers the path in full."""
    taken: list[str] = []
    for part in parts[:-1]:
        value, step = _step(value, part, taken, name)
        taken += step
    container, step = _container(value, parts[-1], taken)
    key = _key(container, parts[-1], [*taken, *step[:-1]], name)
    container[key] = given
    return [*taken, *step]


def _step(value: Any, part: str, taken: list[str], name: str) -> tuple[Any, list[str]]:
    container, step = _container(value, part, taken)
    key = _key(container, part, [*taken, *step[:-1]], name)
    below = container.get(key) if isinstance(container, dict) else container[int(key)]
    if not isinstance(below, (dict, list)):
        below = container[key] = _opened(below, container, part, name)
    return below, step


def _container(value: Any, part: str, taken: list[str]) -> tuple[Any, list[str]]:
    """A population of one group may be spoken of as that group."""
    if taken == ["population"] and len(value) == 1 and not part.isdecimal():
        return value[0], ["0", part]
    return value, [part]


def _key(container: Any, part: str, taken: list[str], name: str) -> Any:
    if isinstance(container, dict):
        return part
    if not part.isdecimal() or int(part) >= len(container):
        numbers = f"0 to {len(container) - 1}" if container else "none, it is empty"
        raise ScenarioInvalid([f"{name}: {'.'.join(taken)} is a list; expected a number ({numbers}), found {part!r}"])
    return int(part)


def _opened(below: Any, container: Any, part: str, name: str) -> dict[str, Any]:
    if below is None and part in container:
        return {}
    if below is None:
        raise ScenarioInvalid([f"{name}: unknown field {part!r}{hint(part, container)}"])
    raise ScenarioInvalid([f"{name}: {part} is {show_value(below)}, there is nothing below it"])


def _source(problem: Problem, sources: dict[tuple[str, ...], str]) -> str:
    path = tuple(map(str, problem.path))
    known = [name for parts, name in sources.items() if path[: len(parts)] == parts or parts[: len(path)] == path]
    return known[-1] if known else f"--set {', '.join(name.removeprefix('--set ') for name in sources.values())}"


def load_events(path: Path, scenario: Scenario, at: int) -> list[dict[str, Any]]:
    """The events in a file. An event without a round happens in the round of the fork."""
    found = document.read_document(text_of(path), str(path))
    events, inside = _listed(found, path)
    dated = [{"round": at, **event} if isinstance(event, dict) else event for event in events]
    checked, problems = report.check({**scenario.model_dump(mode="json"), "events": dated})
    early = [
        Problem(
            ("events", index, "round"), f"expected round {at} or later, where the fork begins, found {event['round']}"
        )
        for index, event in enumerate(dated)
        if isinstance(event, dict) and isinstance(event.get("round"), int) and event["round"] < at
    ]
    moved = [_moved(problem, inside) for problem in [*problems, *early]]
    wrong = [*found.problems, *((position_of(problem, found), problem) for problem in moved)]
    if wrong or checked is None:
        raise ScenarioInvalid([f"{path}:{line}:{column}: {problem}" for (line, column), problem in wrong])
    return [event.model_dump(mode="json") for event in checked.events]


def _listed(found: Document, path: Path) -> tuple[list[Any], bool]:
    """The list, and whether it stands under `events:`."""
    value = found.value
    inside = isinstance(value, dict) and set(value) == {"events"}
    events = value["events"] if inside else value
    if not isinstance(events, list) or not events:
        raise ScenarioInvalid(
            [f"{path}:1:1: {describe_mismatch('a list of events such as - {post: text, by: random}', value)}"]
        )
    return events, inside


def _moved(problem: Problem, inside: bool) -> Problem:
    return problem if inside or problem.path[:1] != ("events",) else replace(problem, path=problem.path[1:])


_WHOLE = re.compile(r"\d+")


def amend_text(text: str, field: str, value: int) -> str | None:
    """The text with a whole number changed, or added, at its top level; None where that cannot be done safely.

    Whatever was done is read again: everything else in it must still mean the same.
    """
    try:
        changed = _replaced(text, field, value) or _added(text, field, value)
        before, after = (document.read_document(each, "").value for each in (text, changed))
    except ScenarioInvalid:
        return None
    return changed if isinstance(before, dict) and after == {**before, field: value} else None


def amend_file(path: Path, field: str, value: int) -> bool:
    """Change the file; False where that cannot be done safely, and nothing was touched."""
    try:
        text = path.read_bytes().decode()
        changed = amend_text(text, field, value)
        if changed is None:
            return False
        _replace(Path(os.path.realpath(path)), changed.encode())
    except UnicodeDecodeError:
        return False
    except OSError as error:
        raise StorageFailed(f"cannot write {path}: {error.strerror}") from error
    return True


def _replaced(text: str, field: str, value: int) -> str | None:
    """With another number where the field stands already."""
    line, column = document.read_document(text, "").values.get((field,), (0, 0))
    lines = text.splitlines(keepends=True)
    found = _WHOLE.match(lines[line - 1], column - 1) if 0 < line <= len(lines) else None
    if found is None:
        return None
    start, end = found.span()
    lines[line - 1] = f"{lines[line - 1][:start]}{value}{lines[line - 1][end:]}"
    return "".join(lines)


def _added(text: str, field: str, value: int) -> str:
    ending = "\r\n" if "\r\n" in text else "\n"
    gap = "" if text.endswith("\n") else ending
    return f"{text}{gap}{field}: {value}{ending}"


def _replace(path: Path, content: bytes) -> None:
    """In one step, with the rights that the file had."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(content)
        shutil.copymode(path, beside)
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise


STARTER = """\
# A rumour about a bridge, and how it spreads. Run it:  shoal run scenario.yaml
name: rumour
topic: the old bridge          # what people talk about; opinions are for (1) or against (-1) it
rounds: 24                     # how often everybody gets a chance to act
time: {minutes_per_round: 60}  # a round is an hour; few people are up at night

# People are drawn from what is said here; whatever is left out is drawn from sensible defaults.
# Other fields of a group: gender, country, profession, interests, active_hours, traits.
population:
  - {count: 100, group: residents, age: {normal: [45, 15], min: 18}}
  - {name: Vera Lund, profession: engineer, stance: supportive, activity: 0.9}  # and some can be written by hand

follows: scale-free            # or small-world, homophilous, none; or {graph: scale-free, mean_degree: 12}
worlds: [twitter, reddit]      # both at once, with the same people

# What is made to happen, and when. Round 0 is before the first round.
events:
  - {post: "They say the old bridge will be closed for good!", by: most_followed, round: 0}
  - {post: "I measured it myself: the old bridge is safe.", by: Vera Lund, round: 8}
"""
