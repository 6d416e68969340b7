"""What a scenario intends to run, as far as `shoal doctor` wants to know it.

A module of its own: reading scenarios takes longer to load than looking at a machine takes.
"""

from __future__ import annotations

from pathlib import Path

from shoal.agents.settings import LanguageSettings
from shoal.cli.chosen import chosen
from shoal.cli.examination import Asked, Subject
from shoal.cli.options import Changes
from shoal.scenario.entries import size
from shoal.slots.advice import Need


def intended(path: Path, model: str | None) -> Subject:
    """The run that the file describes, with another model if one is named."""
    scenario = chosen(path, model, Changes([], None))
    mind = scenario.mind
    need = Need(
        people=size(scenario.population),
        rounds=scenario.rounds,
        worlds=len(scenario.worlds),
        asks=isinstance(mind, LanguageSettings),
        max_workers=scenario.max_workers,
    )
    return Subject(scenario.name, (need,), _models(mind) if isinstance(mind, LanguageSettings) else ())


def _models(mind: LanguageSettings) -> tuple[Asked, ...]:
    return tuple(
        Asked(name, mind.base_url, mind.key_variable, chats=name != mind.memory.embeddings) for name in mind.models()
    )
