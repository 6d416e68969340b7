"""The preparations of a server, in a folder beside its runs: begun, started, found by their ids and described.

They are described in the fields that clients of MiroFish read. When one is ready, it becomes a run of the same id.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import yaml

from shoal.errors import RunMissing
from shoal.preparation.folder import (
    STAGE_NAMES,
    STAGES,
    START_LOCK,
    PreparationFolder,
    PreparationState,
    PreparationStatus,
)
from shoal.preparation.process import start_process
from shoal.preparation.request import PreparationRequest
from shoal.preparation.work import check_tables
from shoal.preparation.writing import SCENARIO
from shoal.unix import has_ended

#: Beside the runs, under a name that no run can have.
SHELF = ".preparations"
_ID_DIGITS = 12
_TASK_STATUS = {
    PreparationStatus.CREATED: "pending",
    PreparationStatus.PREPARING: "processing",
    # The scenario is written, and becomes a run a moment later.
    PreparationStatus.READY: "processing",
}


class PreparationShelf:
    """The folder of all preparations. Nothing outside of it is opened."""

    def __init__(self, runs: Path, environ: Mapping[str, str]) -> None:
        self._runs = runs.absolute()
        self._environ = environ
        #: Processes whose end has not been seen yet.
        self._children: set[int] = set()

    def find(self, identity: str) -> PreparationFolder:
        """Find a preparation by a checked id; RunMissing if it does not exist."""
        folder = PreparationFolder(self._runs / SHELF / identity)
        if folder.path.is_symlink() or not folder.is_begun:
            raise RunMissing(f"there is no simulation {identity}")
        return folder

    def find_task(self, task_id: str) -> PreparationFolder:
        """Find the preparation that a task works on; RunMissing if it does not exist."""
        for folder in self._list():
            if folder.read_state().task_id == task_id:
                return folder
        raise RunMissing(f"there is no task {task_id}")

    def begin(self, request: PreparationRequest) -> PreparationFolder:
        """Keep a request under a new id; ScenarioInvalid where its tables are wrong."""
        check_tables(request)
        folder = PreparationFolder(self._runs / SHELF / f"sim_{uuid4().hex[:_ID_DIGITS]}")
        folder.begin(request)
        return folder

    async def start(self, folder: PreparationFolder) -> str:
        """Let a process prepare, unless one does, and return the id of its task."""
        self._children = {pid for pid in self._children if has_ended(pid) is None}
        with folder.lock(START_LOCK):
            state = folder.read_state()
            if not folder.has_worker():
                state.task_id = state.task_id or str(uuid4())
                if state.status is not PreparationStatus.READY:
                    state.status, state.error = PreparationStatus.CREATED, None
                folder.write_state(state)
                run = self._runs / folder.path.name
                self._children.add(await start_process(folder, run, self._environ))
        return state.task_id

    def list_newest(self, most: int) -> list[PreparationFolder]:
        """List the preparations that were begun last, the newest first."""
        dated = [(folder.read_state().created_at, folder.path.name, folder) for folder in self._list()]
        return [folder for *_, folder in sorted(dated, key=lambda each: each[:2], reverse=True)[:most]]

    def count_working(self) -> int:
        return sum(folder.has_worker() for folder in self._list())

    def _list(self) -> Iterator[PreparationFolder]:
        shelf = self._runs / SHELF
        paths = sorted(shelf.iterdir()) if shelf.is_dir() else []
        yield from (folder for path in paths if (folder := PreparationFolder(path)).is_begun)


def describe_prepared_simulation(folder: PreparationFolder) -> dict[str, Any]:
    """Describe a simulation that is still being prepared, with the fields of any other."""
    state, request = folder.read_state(), folder.read_request()
    working = state.status in (PreparationStatus.PREPARING, PreparationStatus.READY)
    name = folder.path.name
    return {
        **dict.fromkeys(("simulation_id", "project_id", "graph_id"), name),
        **{f"enable_{world}": world in request.worlds for world in ("twitter", "reddit")},
        "status": "preparing" if working else str(state.status),
        "entities_count": state.entities,
        "profiles_count": state.profiles,
        "entity_types": ["person", "organisation", "group"],
        "config_generated": False,
        "config_reasoning": "",
        "simulation_requirement": request.requirement,
        "current_round": 0,
        "twitter_status": "not_started",
        "reddit_status": "not_started",
        "created_at": state.created_at or None,
        "updated_at": state.updated_at or None,
        "error": state.error,
        "worlds": list(request.worlds),
    }


def describe_task(folder: PreparationFolder) -> dict[str, Any]:
    """Return how far a preparation is."""
    state = folder.read_state()
    if folder.is_ready and not folder.has_worker():
        state.status = PreparationStatus.FAILED
        state.error = "the work was interrupted before its last step; preparing again goes on with it"
    if not state.task_id:
        return {
            "simulation_id": folder.path.name,
            "status": "not_started",
            "progress": 0,
            "message": "the preparation has not begun; POST prepare begins it",
            "already_prepared": False,
        }
    return {
        "task_id": state.task_id,
        "task_type": "simulation_prepare",
        "simulation_id": folder.path.name,
        "status": _TASK_STATUS.get(state.status, "failed"),
        "created_at": state.created_at,
        "updated_at": state.updated_at,
        "progress": min(99, state.progress),
        "message": state.error or f"{STAGE_NAMES[state.stage]}: {state.item}",
        "progress_detail": _describe_stage(state),
        "result": None,
        "error": state.error,
        "metadata": {"simulation_id": folder.path.name, "project_id": folder.path.name},
        "already_prepared": False,
    }


def describe_profiles(folder: PreparationFolder) -> list[dict[str, Any]]:
    """Return the people who are made so far, under the names that clients of MiroFish read."""
    return [
        {**person, "user_id": number, "interested_topics": person.get("interests", [])}
        for number, person in enumerate(folder.read_profiles())
    ]


def describe_config(folder: PreparationFolder) -> dict[str, Any]:
    """Return how far the config is."""
    state = folder.read_state()
    is_working = state.status is PreparationStatus.PREPARING
    is_written = (folder.path / SCENARIO).is_file()
    return {
        "simulation_id": folder.path.name,
        "file_exists": is_written,
        "file_modified_at": state.updated_at or None,
        "is_generating": is_working,
        "generation_stage": str(state.stage) if is_working else None,
        "config_generated": False,
        "config": yaml.safe_load(folder.scenario.read_text(encoding="utf-8")) if is_written else None,
    }


def _describe_stage(state: PreparationState) -> dict[str, Any]:
    return {
        "current_stage": str(state.stage),
        "current_stage_name": STAGE_NAMES[state.stage],
        "stage_index": STAGES.index(state.stage) + 1,
        "total_stages": len(STAGES),
        "stage_progress": state.stage_progress,
        "current_item": state.done,
        "total_items": state.total,
        "item_description": state.item,
    }
