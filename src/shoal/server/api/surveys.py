"""Surveys that pages start: each is asked in a thread, and its answers are kept until the server ends."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Literal
from uuid import uuid4

from shoal.agents import Survey
from shoal.errors import RunMissing, ShoalError
from shoal.runs import LimitSettings, RunDirectory, RunResources, wall_clock
from shoal.runs.interviews import AnswerTable, Asking, ask_agents

_MAX_KEPT = 30
_MAX_AT_ONCE = 2
_ID_DIGITS = 12

SurveyState = Literal["waiting", "copying", "asking", "completed", "failed", "ended"]


@dataclass(slots=True)
class SurveyJob:
    """One survey: its questions, how far it is, and its answers."""

    id: str
    simulation_id: str
    survey: Survey
    people: int
    started_at: str
    state: SurveyState = "waiting"
    done: int = 0
    total: int = 0
    error: str | None = None
    table: AnswerTable | None = None
    #: Set by `end`.
    is_ended: bool = False
    _task: asyncio.Task[AnswerTable] | None = None
    _loop: asyncio.AbstractEventLoop | None = None

    async def ask(self, run: RunDirectory, asking: Asking, resources: RunResources) -> AnswerTable:
        """Ask all people, and note how far it is."""
        self.state = "copying"
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.ensure_future(ask_agents(run, self.survey, replace(asking, watch=self._count), resources))
        if self.is_ended:
            self._task.cancel()
        return await self._task

    def end(self) -> None:
        """Ask no more."""
        self.is_ended = True
        if self._loop is not None and self._task is not None and self.state in ("copying", "asking"):
            self._loop.call_soon_threadsafe(self._task.cancel)

    def _count(self, done: int, total: int) -> None:
        self.state, self.done, self.total = "asking", done, total


@dataclass(slots=True)
class SurveyShelf:
    """The surveys of a server. The response cache has their answers too, so asking again after a restart is free."""

    environ: Mapping[str, str]
    _jobs: OrderedDict[str, SurveyJob] = field(default_factory=OrderedDict)
    _changing: Lock = field(default_factory=Lock)
    _threads: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(_MAX_AT_ONCE, thread_name_prefix="survey")
    )

    def start(self, run: RunDirectory, survey: Survey, asking: Asking, limits: LimitSettings, people: int) -> SurveyJob:
        """Start a survey, or let it wait for those before it."""
        job = SurveyJob(uuid4().hex[:_ID_DIGITS], run.path.name, survey, people, wall_clock(), total=people)
        with self._changing:
            self._jobs[job.id] = job
            while len(self._jobs) > _MAX_KEPT:
                _, oldest = self._jobs.popitem(last=False)
                oldest.end()
        resources = replace(RunResources.of_user(self.environ), limits=limits)
        self._threads.submit(self._work, job, run, asking, resources)
        return job

    def find(self, simulation_id: str, survey_id: str) -> SurveyJob:
        """Return a survey of a run; RunMissing for another id."""
        job = self._jobs.get(survey_id)
        if job is None or job.simulation_id != simulation_id:
            raise RunMissing("there is no such survey; they are kept until the server ends")
        return job

    def list_jobs(self, simulation_id: str) -> list[SurveyJob]:
        """List the surveys of a run, newest first."""
        with self._changing:
            return [job for job in reversed(self._jobs.values()) if job.simulation_id == simulation_id]

    def close(self) -> None:
        """End all surveys."""
        for job in list(self._jobs.values()):
            job.end()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _work(self, job: SurveyJob, run: RunDirectory, asking: Asking, resources: RunResources) -> None:
        try:
            job.table = asyncio.run(job.ask(run, asking, resources))
            job.state = "completed"
        except asyncio.CancelledError:
            job.state = "ended"
        except ShoalError as error:
            job.state, job.error = "failed", str(error)
        except Exception as error:
            # The thread has no caller that would report it.
            job.state, job.error = "failed", f"internal error: {type(error).__name__}"
            raise
