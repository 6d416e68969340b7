"""Surveys that pages start: each is asked in a thread, and kept in a folder beside the runs.

The directory of a run has one writer, its worker, so a survey is none of its files. A folder holds what was asked and
how it ended, the replies as they come, and the answers. A server that ends leaves the survey interrupted; asking on
takes the replies that are there, and pays for the others only.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Any, Literal
from uuid import uuid4

import msgspec

from shoal.agents import Survey
from shoal.errors import RunMissing, RunRefused, ShoalError
from shoal.runs import LimitSettings, RunDirectory, RunResources, replace_json, storage_errors, wall_clock
from shoal.runs.interviews import AgentSelection, AnswerTable, Asking, ask_agents, parse_survey
from shoal.unix import read_lock, try_lock, write_lock

#: Beside the runs, under a name that no run can have.
SHELF = ".surveys"
_RECORD, _ANSWERS, _JOURNAL, _LOCK = "survey.json", "answers.json", "journal.jsonl", "lock"
_MAX_LISTED = 30
_MAX_AT_ONCE = 2
_ID_DIGITS = 8

SurveyState = Literal["waiting", "copying", "asking", "completed", "failed", "ended", "interrupted"]


class SurveyRequest(msgspec.Struct, frozen=True):
    """The questions, the people who are asked, and what it may cost."""

    questions: list[Any]
    #: How many people that is.
    people: int
    who: tuple[int, ...] | None = None
    where: str | None = None
    sample: int | None = None
    round: int | None = None
    model: str | None = None
    max_cost: float | None = None

    def build_asking(self) -> Asking:
        return Asking(AgentSelection(self.who, self.where, self.sample), self.round, self.model)


class SurveyRecord(msgspec.Struct):
    """A survey as it is kept: its request, and how far it is."""

    id: str
    simulation_id: str
    request: SurveyRequest
    started_at: str
    state: SurveyState = "waiting"
    done: int = 0
    total: int = 0
    error: str | None = None


@dataclass(slots=True)
class SurveyJob:
    """A survey in its folder, and the work on it where this server asks."""

    folder: Path
    record: SurveyRecord
    survey: Survey
    #: Set by `end`, and by the end of the server.
    is_ended: bool = False
    is_left: bool = False
    _task: asyncio.Task[AnswerTable] | None = None
    _loop: asyncio.AbstractEventLoop | None = None

    @classmethod
    def read(cls, folder: Path) -> SurveyJob:
        """Read a survey that this server does not ask; RunMissing where the folder holds none."""
        try:
            record = msgspec.json.decode((folder / _RECORD).read_bytes(), type=SurveyRecord)
        except (OSError, msgspec.MsgspecError):
            raise RunMissing("there is no such survey") from None
        if record.state in ("waiting", "copying", "asking") and read_lock(folder / _LOCK) is None:
            record.state = "interrupted"
        return cls(folder, record, parse_survey(record.request.questions))

    @property
    def is_open(self) -> bool:
        return self.record.state in ("waiting", "copying", "asking")

    def read_answers(self) -> AnswerTable | None:
        """Return the answers; None before they are complete."""
        if self.record.state != "completed":
            return None
        return msgspec.json.decode((self.folder / _ANSWERS).read_bytes(), type=AnswerTable)

    def save(self) -> None:
        replace_json(self.folder / _RECORD, self.record)

    def end(self) -> None:
        """Ask no more."""
        self.is_ended = True
        self._cancel()

    def leave(self) -> None:
        """Let go of the survey, which can be asked on later."""
        self.is_left = True
        self._cancel()

    def _cancel(self) -> None:
        if self._loop is not None and self._task is not None and self.is_open:
            self._loop.call_soon_threadsafe(self._task.cancel)

    def work(self, run: RunDirectory, resources: RunResources) -> None:
        """Ask all people, and keep how it ended. Another server that asks them already is left to it."""
        if self.is_left:
            return
        handle = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if not try_lock(handle):
                return
            write_lock(handle, str(os.getpid()))
            try:
                table = asyncio.run(self._ask(run, resources))
                replace_json(self.folder / _ANSWERS, table)
                self.record.state = "completed"
            except asyncio.CancelledError:
                self.record.state = "ended" if self.is_ended else "interrupted"
            except ShoalError as error:
                self.record.state, self.record.error = "failed", str(error)
            except Exception as error:
                # The thread has no caller that would report it.
                self.record.state, self.record.error = "failed", f"internal error: {type(error).__name__}"
                raise
            finally:
                self.save()
        finally:
            os.close(handle)

    async def _ask(self, run: RunDirectory, resources: RunResources) -> AnswerTable:
        self.record.state = "copying"
        asking = replace(self.record.request.build_asking(), watch=self._count, journal=self.folder / _JOURNAL)
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.ensure_future(ask_agents(run, self.survey, asking, resources))
        if self.is_ended or self.is_left:
            self._task.cancel()
        return await self._task

    def _count(self, done: int, total: int) -> None:
        self.record.state, self.record.done, self.record.total = "asking", done, total


@dataclass(slots=True)
class SurveyShelf:
    """All surveys of a folder of runs, and the threads that ask."""

    runs: Path
    environ: Mapping[str, str]
    #: Those that this server asks, or asked.
    _jobs: dict[tuple[str, str], SurveyJob] = field(default_factory=dict)
    _changing: Lock = field(default_factory=Lock)
    _threads: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(_MAX_AT_ONCE, thread_name_prefix="survey")
    )

    def start(self, run: RunDirectory, identity: str, request: SurveyRequest) -> SurveyJob:
        """Keep a survey of a run, and start it or let it wait for those before it."""
        # Later ones have larger numbers, so their names are in order.
        number = f"{time.time_ns():016x}{uuid4().hex[:_ID_DIGITS]}"
        folder = self.runs / SHELF / identity / number
        with storage_errors(folder):
            folder.mkdir(parents=True)
        record = SurveyRecord(number, identity, request, wall_clock(), total=request.people)
        job = SurveyJob(folder, record, parse_survey(request.questions))
        job.save()
        return self._work(job, run)

    def go_on(self, run: RunDirectory, identity: str, survey_id: str) -> SurveyJob:
        """Ask on where a survey was interrupted, ended or failed; RunRefused where it has its answers."""
        job = self.find(identity, survey_id)
        if job.record.state == "completed":
            raise RunRefused("this survey has all its answers")
        if job.is_open:
            return job
        record = msgspec.structs.replace(job.record, state="waiting", error=None)
        return self._work(SurveyJob(job.folder, record, job.survey), run)

    def find(self, identity: str, survey_id: str) -> SurveyJob:
        """Return a survey of a run; RunMissing for another id."""
        job = self._jobs.get((identity, survey_id))
        return SurveyJob.read(self.runs / SHELF / identity / survey_id) if job is None else job

    def list_newest(self, identity: str) -> list[SurveyJob]:
        """List the surveys of a run, newest first."""
        shelf = self.runs / SHELF / identity
        names = sorted((path.name for path in shelf.iterdir()), reverse=True) if shelf.is_dir() else []
        return [self.find(identity, name) for name in names[:_MAX_LISTED]]

    def close(self) -> None:
        """Let go of all surveys. They can be asked on by the next server."""
        for job in list(self._jobs.values()):
            job.leave()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _work(self, job: SurveyJob, run: RunDirectory) -> SurveyJob:
        limits = LimitSettings.of({"max_cost": job.record.request.max_cost})
        resources = replace(RunResources.of_user(self.environ), limits=limits)
        with self._changing:
            self._jobs[job.record.simulation_id, job.record.id] = job
        self._threads.submit(job.work, run, resources)
        return job
