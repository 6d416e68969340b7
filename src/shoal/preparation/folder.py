"""The folder of a preparation: what was asked for, how far it is, and the scenario that comes of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from shoal.errors import RunLocked, RunMissing, RunRefused, StorageFailed
from shoal.preparation.draft import DraftPerson
from shoal.preparation.request import PreparationRequest
from shoal.preparation.writing import EVIDENCE, PEOPLE, SCENARIO
from shoal.runs import replace_json, storage_errors, wall_clock
from shoal.text import quote_path
from shoal.unix import read_lock, try_lock, write_lock

#: The part of the folder that is about the work and not about its result.
WORK = "preparation"
REQUEST, STATE, JOURNAL, LOG = "request.json", "state.json", "journal.jsonl", "preparation.log"
#: Held by the process that works, and by one that starts it.
LOCK, START_LOCK = "lock", "start.lock"
PROFILES = "profiles.json"
_GLANCE_SECONDS = 0.05
_LOG_TAIL_BYTES = 4_096


class Stage(StrEnum):
    """The stages of the work, in order, under the names that clients of MiroFish know."""

    READING = "reading"
    PROFILES = "generating_profiles"
    CONFIG = "generating_config"
    WRITING = "copying_scripts"


STAGES = tuple(Stage)
#: Where each stage begins and ends in the progress of the whole, in per cent.
_SPANS = {Stage.READING: (0, 20), Stage.PROFILES: (20, 70), Stage.CONFIG: (70, 90), Stage.WRITING: (90, 100)}
STAGE_NAMES = {
    Stage.READING: "reading the documents",
    Stage.PROFILES: "making people",
    Stage.CONFIG: "making posts and settings",
    Stage.WRITING: "writing the scenario",
}


class PreparationStatus(StrEnum):
    """Where a preparation stands."""

    CREATED = "created"
    PREPARING = "preparing"
    READY = "ready"
    FAILED = "failed"


class PreparationState(msgspec.Struct):
    """How far a preparation is. It is written anew whenever something is done."""

    status: PreparationStatus = PreparationStatus.CREATED
    stage: Stage = Stage.READING
    #: Of this stage, how many of its items are done.
    done: int = 0
    total: int = 0
    #: What was done last.
    item: str = ""
    entities: int = 0
    profiles: int = 0
    error: str | None = None
    task_id: str = ""
    created_at: str = ""
    updated_at: str = ""
    #: What the model took so far.
    spent: dict[str, Any] = msgspec.field(default_factory=dict)

    @property
    def stage_progress(self) -> int:
        return 100 if not self.total else round(100 * min(1.0, self.done / self.total))

    @property
    def progress(self) -> int:
        """The progress of the whole, 0 to 100."""
        if self.status is PreparationStatus.READY:
            return 100
        if self.status is PreparationStatus.CREATED:
            return 0
        first, last = _SPANS[self.stage]
        share = self.done / self.total if self.total else 0.0
        return min(99, int(first + (last - first) * min(1.0, share)))


class PreparationFolder:
    """The folder of one preparation. The process that works on it holds its lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.work = path / WORK

    @property
    def scenario(self) -> Path:
        return self.path / SCENARIO

    @property
    def journal(self) -> Path:
        return self.work / JOURNAL

    @property
    def log(self) -> Path:
        return self.work / LOG

    @property
    def is_begun(self) -> bool:
        return (self.work / REQUEST).is_file()

    @property
    def is_ready(self) -> bool:
        """Whether the scenario, which is the last file, is written."""
        return self.is_begun and self.scenario.is_file()

    def begin(self, request: PreparationRequest) -> None:
        """Keep the request; RunRefused where the folder holds that of another, or files that are not ours."""
        if self.is_begun:
            before = self.read_request()
            if before != request:
                raise RunRefused(
                    f"{self.path} holds a preparation of something else ({before.describe_difference(request)}).\n"
                    f"Choose another folder with --out; `shoal prepare --out {quote_path(self.path)}` alone goes on "
                    "with the one that is there."
                )
            return
        for name in (SCENARIO, PEOPLE, EVIDENCE):
            if (self.path / name).exists():
                raise RunRefused(f"{self.path / name} is there already; choose another folder with --out")
        with storage_errors(self.work):
            self.work.mkdir(parents=True, exist_ok=True)
        now = wall_clock()
        self.write_state(PreparationState(created_at=now, updated_at=now))
        replace_json(self.work / REQUEST, request)

    def read_request(self) -> PreparationRequest:
        """Read what was asked for; RunMissing where nothing was."""
        path = self.work / REQUEST
        try:
            return msgspec.json.decode(path.read_bytes(), type=PreparationRequest)
        except FileNotFoundError:
            raise RunMissing(f"there is no preparation in {self.path}; say what to prepare") from None
        except (OSError, msgspec.MsgspecError) as error:
            raise StorageFailed(f"cannot read {path}: {error}") from error

    def read_state(self) -> PreparationState:
        """Read how far the work is; where it was interrupted, say so."""
        try:
            state = msgspec.json.decode((self.work / STATE).read_bytes(), type=PreparationState)
        except (FileNotFoundError, msgspec.DecodeError):
            state = PreparationState()
        is_begun = state.status is PreparationStatus.CREATED and state.task_id != ""
        has_no_end = is_begun or state.status is PreparationStatus.PREPARING
        if self.is_ready:
            state.status = PreparationStatus.READY
        elif has_no_end and read_lock(self.work / START_LOCK) is None and not self.has_worker():
            state.status = PreparationStatus.FAILED
            state.error = f"the work was interrupted; preparing again goes on with it. {self.read_last_words()}".strip()
        return state

    def write_state(self, state: PreparationState) -> None:
        state.updated_at = wall_clock()
        replace_json(self.work / STATE, state, sync=False)

    def write_profiles(self, people: list[DraftPerson]) -> None:
        """Write down the people who are made so far, for clients that watch."""
        replace_json(self.work / PROFILES, [person.to_record() for person in people], sync=False)

    def read_profiles(self) -> list[dict[str, Any]]:
        """Read the people who are made so far."""
        path = self.path / PEOPLE if self.is_ready else self.work / PROFILES
        try:
            found: list[dict[str, Any]] = msgspec.json.decode(path.read_bytes())
        except (FileNotFoundError, msgspec.DecodeError):
            return []
        return found

    def read_last_words(self) -> str:
        """Return the last line that a process working on the folder has left."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - _LOG_TAIL_BYTES))
                lines = file.read().decode(errors="replace").strip().splitlines()
        except FileNotFoundError:
            return ""
        return lines[-1] if lines else ""

    def has_worker(self) -> bool:
        return read_lock(self.work / LOCK) is not None

    @contextmanager
    def lock(self, name: str = LOCK) -> Iterator[None]:
        """Be the only process that works on the folder, or starts one; RunLocked where another does."""
        path = self.work / name
        with storage_errors(path):
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if not try_lock(handle, _GLANCE_SECONDS):
                raise RunLocked(f"another process prepares {self.path}; wait for it, or stop it first")
            write_lock(handle, str(os.getpid()))
            yield
        finally:
            os.close(handle)
