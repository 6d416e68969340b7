"""The scenario that a command is to work with: what the file says, and what the options change about it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from shoal.agents.settings import LanguageSettings, ScriptedSettings
from shoal.cli.exits import complain
from shoal.cli.options import Changes
from shoal.cli.words import counted
from shoal.scenario.files import load, override
from shoal.scenario.models import Scenario


def chosen(path: Path, model: str | None, changes: Changes, more: Sequence[str] = ()) -> Scenario:
    """The scenario of the file, with another model, and with everything else that is to be different."""
    scenario = cut(load(path), changes.rounds)
    return override(scenario, [*_minded(scenario, model), *changes.assignments, *more])


def cut(scenario: Scenario, rounds: int | None) -> Scenario:
    """A run that is made shorter leaves out what would happen after its end."""
    if rounds is None:
        return scenario
    events = tuple(event for event in scenario.events if event.round <= rounds)
    mind = scenario.mind
    if isinstance(mind, ScriptedSettings):
        mind = mind.model_copy(update={"turns": tuple(turn for turn in mind.turns if turn.round <= rounds)})
    if len(events) < len(scenario.events):
        complain(f"note: {counted(len(scenario.events) - len(events), 'event')} after round {rounds} will not happen")
    return scenario.model_copy(update={"events": events, "mind": mind})


def _minded(scenario: Scenario, model: str | None) -> list[str]:
    """Another language model, or one in place of the scenario's mind, as a change of the scenario."""
    if model is None:
        return []
    if isinstance(scenario.mind, LanguageSettings):
        return [f"mind.model={msgspec.json.encode(model).decode()}"]
    return [f"mind={msgspec.json.encode({'kind': 'language', 'model': model}).decode()}"]
