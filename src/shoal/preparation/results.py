"""The request and the result of a preparation, as pages show them: people, and the sentences that speak of them."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.preparation.folder import PreparationFolder
from shoal.preparation.shelf import describe_task
from shoal.preparation.work import read_prepared
from shoal.preparation.writing import EVIDENCE, format_whole_scenario


def describe_preparation_request(folder: PreparationFolder, is_run: bool) -> dict[str, Any]:
    """Return what was asked for, and where it stands. It is ready once it has become a run."""
    request, task = folder.read_request(), describe_task(folder)
    return {
        "simulation_id": folder.path.name,
        "status": "ready" if is_run else task["status"],
        "progress": 100 if is_run else task["progress"],
        "error": None if is_run else task.get("error"),
        "created_at": folder.read_state().created_at,
        "requirement": request.requirement,
        "documents": [document.name for document in request.documents],
        "people": request.people,
        "rounds": request.rounds,
        "worlds": list(request.worlds),
        "model": request.model,
    }


def describe_result(folder: PreparationFolder) -> dict[str, Any]:
    """Return who was found, with the sentences they rest on, and the scenario as one text."""
    prepared = read_prepared(folder)
    evidence = msgspec.json.decode((folder.path / EVIDENCE).read_bytes())
    personas = {person["name"]: person.get("persona", "") for person in folder.read_profiles()}
    kept = ("name", "kind", "role", "stance", "mentions", "sentences")
    return {
        "topic": prepared.topic,
        "people": prepared.people,
        "drawn": prepared.people - prepared.profiles,
        "entities": [
            {**{name: entity[name] for name in kept}, "persona": personas.get(entity["name"], "")}
            for entity in evidence["entities"]
        ],
        "notes": list(prepared.notes),
        "text": format_whole_scenario(folder.path),
    }
