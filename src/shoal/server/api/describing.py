"""Describes runs in the fields that MiroFish's clients read."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.runs import CONFIG, RunDirectory, RunState, Status, format_state
from shoal.scenario import count_people, sample

_PLATFORMS = ("twitter", "reddit")
_STATUS = {Status.IDLE: "ready", Status.STARTING: "running", Status.STOPPING: "running"}
_MAX_FILES = 3
_VERSION = "shoal"


def describe_status(run: RunDirectory) -> dict[str, Any]:
    """Return the state of a run as it is now."""
    return format_state(run.observe_state())


def name_report(run: RunDirectory) -> str:
    """Return the id of a run's report."""
    return f"report_{run.path.name}"


def describe_simulation(run: RunDirectory, state: RunState | None = None) -> dict[str, Any]:
    """Return what a simulation is, and where it stands."""
    state = state or run.observe_state()
    status = _STATUS.get(state.runner_status, str(state.runner_status))
    people = count_people(run.scenario.population)
    notes = run.scenario.notes
    standing = dict.fromkeys(_PLATFORMS, "not_started")
    for name, world in state.worlds.items():
        if name in standing and (world.running or world.completed or world.current_round):
            standing[name] = "completed" if world.completed else "running" if world.running else "stopped"
    return {
        "simulation_id": run.path.name,
        # A simulation of our own stands for its project and its graph.
        **{name: notes.get(name) or run.path.name for name in ("project_id", "graph_id")},
        **{f"enable_{platform}": platform in run.worlds for platform in _PLATFORMS},
        "status": status,
        "entities_count": people,
        "profiles_count": people,
        "entity_types": ["person"],
        "config_generated": True,
        "config_reasoning": str(notes.get("generation_reasoning") or ""),
        "current_round": state.current_round,
        **{f"{platform}_status": standing[platform] for platform in _PLATFORMS},
        "created_at": run.config.generated_at or None,
        "updated_at": state.updated_at or run.config.generated_at or None,
        "error": state.error,
        "simulation_requirement": str(notes.get("simulation_requirement") or run.scenario.topic or run.scenario.name),
        "worlds": list(run.worlds),
    }


def describe_history(run: RunDirectory) -> dict[str, Any]:
    """Return what the list of past simulations shows of one."""
    state = run.observe_state()
    files = sorted(path.name for path in run.path.iterdir() if path.is_file())[:_MAX_FILES]
    return {
        **describe_simulation(run, state),
        "total_simulation_hours": state.total_simulation_hours,
        "runner_status": state.runner_status,
        "total_rounds": state.total_rounds,
        "files": [{"filename": name} for name in files],
        "report_id": name_report(run) if state.current_round else None,
        "version": _VERSION,
        "created_date": run.config.generated_at[:10],
    }


def describe_preparation(run: RunDirectory) -> dict[str, Any]:
    """Return what preparing a simulation has given: here it is done when the simulation is made."""
    info = describe_simulation(run)
    kept = (
        "status",
        "entities_count",
        "profiles_count",
        "entity_types",
        "config_generated",
        "created_at",
        "updated_at",
    )
    return {
        "simulation_id": run.path.name,
        "status": "ready",
        "progress": 100,
        "message": "the simulation is prepared",
        "already_prepared": True,
        "prepare_info": {**{name: info[name] for name in kept}, "existing_files": [CONFIG]},
    }


def describe_people(run: RunDirectory, offset: int, limit: int) -> tuple[int, list[dict[str, Any]]]:
    """Return how many people there are, and the profiles of some of them."""
    people = sample(run.scenario)
    profiles = []
    for number in range(offset, min(offset + limit, len(people))):
        person = people[number]
        profiles.append(
            {
                **{
                    name: value
                    for name, value in person.traits.items()
                    if value is None or isinstance(value, str | int | float | list)
                },
                "user_id": number,
                "username": person.username,
                "user_name": person.username,
                "name": person.name,
                "bio": person.bio,
                "persona": person.persona,
                "interested_topics": list(person.interests),
            }
        )
    return len(people), profiles


def read_config_file(run: RunDirectory) -> bytes:
    """Return the config, as it is on disk."""
    return msgspec.Raw(run.file(CONFIG).read_bytes().strip())
