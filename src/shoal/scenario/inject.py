"""Events to be injected into a fork: a file with a list of events, as a scenario has them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from shoal.errors import ScenarioInvalid
from shoal.scenario import document, report
from shoal.scenario.document import Document
from shoal.scenario.files import position_of, said, text_of
from shoal.scenario.models import Scenario
from shoal.scenario.problems import Problem, expected


def load_events(path: Path, scenario: Scenario, at: int) -> list[dict[str, Any]]:
    """The events in a file. An event without a round happens in the round of the fork."""
    found = document.read(text_of(path), str(path))
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
        raise ScenarioInvalid([f"{path}:{line}:{column}: {said(problem)}" for (line, column), problem in wrong])
    return [event.model_dump(mode="json") for event in checked.events]


def _listed(found: Document, path: Path) -> tuple[list[Any], bool]:
    """The list, and whether it stands under `events:`."""
    value = found.value
    inside = isinstance(value, dict) and set(value) == {"events"}
    events = value["events"] if inside else value
    if not isinstance(events, list) or not events:
        raise ScenarioInvalid([f"{path}:1:1: {expected('a list of events such as - {post: text, by: random}', value)}"])
    return events, inside


def _moved(problem: Problem, inside: bool) -> Problem:
    return problem if inside or problem.path[:1] != ("events",) else replace(problem, path=problem.path[1:])
