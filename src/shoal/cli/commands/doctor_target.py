"""What a scenario intends to run, as far as `shoal doctor` wants to know it.

A module of its own: reading scenarios takes longer to load than looking at a machine takes.
"""

from __future__ import annotations

from pathlib import Path

from shoal.agents.settings import LanguageSettings
from shoal.cli.options import Changes, load_scenario
from shoal.machine.advice import Need
from shoal.runs.doctor import DoctorTarget, ModelRef
from shoal.scenario.declared.population import count_people


def doctor_target(path: Path, model: str | None) -> DoctorTarget:
    """The run that the file describes, with another model if one is named."""
    scenario = load_scenario(path, model, Changes([], None))
    mind = scenario.mind
    need = Need(
        people=count_people(scenario.population),
        rounds=scenario.rounds,
        worlds=len(scenario.worlds),
        asks=isinstance(mind, LanguageSettings),
        max_workers=scenario.max_workers,
    )
    return DoctorTarget(scenario.name, (need,), _models(mind) if isinstance(mind, LanguageSettings) else ())


def _models(mind: LanguageSettings) -> tuple[ModelRef, ...]:
    return tuple(
        ModelRef(name, mind.base_url, mind.key_variable, chats=name != mind.memory.embeddings) for name in mind.models()
    )
