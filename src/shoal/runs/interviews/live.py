"""Interviews with the agents of a run as they are now, while it goes on and after it.

Copies are asked: who they are, what they remember and what they last saw. The run does not hear of it: answers are kept
in the `trace` tables, as OASIS keeps them, but never in the journal or the history.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import count
from typing import Any

import msgspec

from shoal.agents import ANSWER, Item, LanguageSettings, Respondent, Survey, build_question, unwrap
from shoal.agents.language import LanguageMind
from shoal.errors import QueryFailed
from shoal.journal import JournalKey
from shoal.models import Model
from shoal.runs.directory import RunDirectory
from shoal.runs.interviews.ask import (
    Asking,
    InterviewJob,
    build_approach,
    choose_mind,
    collect_answers,
    open_interviews,
)
from shoal.runs.interviews.selection import AgentSelection
from shoal.runs.interviews.snapshots import AgentCopier, RecollectionSource, snapshot_agents
from shoal.runs.resources import RunResources
from shoal.runs.state import wall_clock
from shoal.runs.store import InterviewLog
from shoal.scenario import Simulation, count_people
from shoal.text import one_of
from shoal.types import Observation

MAX_INTERVIEWS = 1_000


class InterviewRequest(msgspec.Struct, frozen=True):
    """One question to one agent."""

    agent_id: int
    prompt: str
    #: The world in which it is recorded, and which the agent is asked about; None means all.
    platform: str | None = None
    #: What was said before in the same conversation. It is part of the question, but not recorded again.
    context: str = ""


class InterviewAnswer(msgspec.Struct, frozen=True):
    """What an agent answered, or why it did not."""

    request: InterviewRequest
    #: Where it is recorded.
    worlds: tuple[str, ...]
    response: str | None
    error: str | None
    timestamp: str

    def to_json(self, world: str) -> dict[str, Any]:
        """Return it as MiroFish's clients read it."""
        found = {"agent_id": self.request.agent_id, "response": self.response, "platform": world}
        return {**found, "timestamp": self.timestamp, **({} if self.error is None else {"error": self.error})}

    def trace(self) -> tuple[int, str, str]:
        """Return agent, time and content of its row in the trace."""
        info = {"prompt": self.request.prompt, "response": self.response, "outside": True}
        return self.request.agent_id, self.timestamp, msgspec.json.encode(info).decode()


@dataclass(frozen=True, slots=True)
class _PresentMind:
    """A mind at work, which may be looked at but not changed."""

    mind: LanguageMind

    async def recollection(self, agent: int, round: int, cue: str) -> tuple[str, str]:
        return self.mind.recollect_now(agent, cue)


class LiveAgents:
    """The agents of a simulation with language minds, as they are now."""

    def __init__(self, run: RunDirectory, simulation: Simulation) -> None:
        self._simulation = simulation
        self._copier = AgentCopier(simulation.people, run.scenario.mind, run.clock)

    async def copy(self, request: InterviewRequest, worlds: Sequence[str]) -> Respondent:
        """Copy an agent as it is known in these worlds."""
        sources: dict[str, tuple[RecollectionSource, Observation | None]] = {}
        for world in worlds:
            mind = unwrap(self._simulation.minds[world], request.agent_id)
            if isinstance(mind, LanguageMind):
                sources[world] = _PresentMind(mind), mind.sights.get(request.agent_id)
        if not sources:
            raise QueryFailed(f"agent {request.agent_id} is played by a person; ask that person")
        return await self._copier.copy(request.agent_id, sources, request.prompt)


class LiveInterviews:
    """Puts questions to the agents of one run, through models that stay open between them."""

    def __init__(self, run: RunDirectory, resources: RunResources) -> None:
        self._run = run
        self._resources = resources
        self._log = (InterviewLog if resources.copy is None else resources.copy.open_interviews)(run.path)
        self._opened = AsyncExitStack()
        #: Name of a model, or None for the agents' own -> its settings, and the open model.
        self._models: dict[str | None, tuple[LanguageSettings, Model]] = {}
        self._opening = asyncio.Lock()
        self._numbers = count()

    async def close(self) -> None:
        self._log.close()
        await self._opened.aclose()

    async def ask(
        self, requests: Sequence[InterviewRequest], simulation: Simulation | None, model: str | None = None
    ) -> list[InterviewAnswer]:
        """Ask all at once, record the answers in the trace, and return them in the order of the requests.

        The agents of the simulation are asked, where they have language minds. Others are made again as they were at
        the end of the last committed round.
        """
        self._check(requests)
        mind, asked = await self._open_model(model)
        jobs = []
        for request, respondent in zip(requests, await self._copy(requests, simulation), strict=True):
            text = f"{request.context}\n\n{request.prompt}" if request.context else request.prompt
            survey = Survey.of([Item(text)])
            key = JournalKey("interview", 0, request.agent_id, str(next(self._numbers)))
            approach = build_approach(mind, mind.model_of(respondent.name, respondent.group), survey.columns)
            question = build_question(respondent, survey, approach, key)
            jobs.append(InterviewJob(request.agent_id, respondent.name, question, survey))
        rows = await collect_answers(jobs, asked)
        now = wall_clock()
        answers = [
            InterviewAnswer(request, self._worlds_of(request), row.values.get(ANSWER), row.error, now)
            for request, row in zip(requests, rows, strict=True)
        ]
        for world in self._run.worlds:
            traced = [answer.trace() for answer in answers if world in answer.worlds and answer.error is None]
            if traced:
                self._log.add(world, traced)
        return answers

    def _worlds_of(self, request: InterviewRequest) -> tuple[str, ...]:
        return self._run.worlds if request.platform is None else (request.platform,)

    def _check(self, requests: Sequence[InterviewRequest]) -> None:
        people = count_people(self._run.scenario.population)
        if len(requests) > MAX_INTERVIEWS:
            raise QueryFailed(f"these are {len(requests):,} questions; at most {MAX_INTERVIEWS:,} are asked at once")
        for request in requests:
            if request.platform is not None and request.platform not in self._run.worlds:
                raise QueryFailed(f"there is no world {request.platform!r}; there is {one_of(self._run.worlds)}")
            if not 0 <= request.agent_id < people:
                raise QueryFailed(f"there is no agent {request.agent_id}; there are agents 0 to {people - 1}")

    async def _open_model(self, name: str | None) -> tuple[LanguageSettings, Model]:
        async with self._opening:
            if name not in self._models:
                mind = choose_mind(self._run, Asking(model=name))
                opened = await self._opened.enter_async_context(open_interviews(self._run, mind, self._resources))
                self._models[name] = mind, opened.model
        return self._models[name]

    async def _copy(self, requests: Sequence[InterviewRequest], simulation: Simulation | None) -> Sequence[Respondent]:
        if simulation is not None and simulation.prefixes:
            agents = LiveAgents(self._run, simulation)
            return [await agents.copy(request, self._worlds_of(request)) for request in requests]
        copied: dict[tuple[int, str], Respondent] = {}
        for cue in {request.prompt for request in requests}:
            numbers = sorted({request.agent_id for request in requests if request.prompt == cue})
            selection = AgentSelection(who=",".join(map(str, numbers)))
            # It may take seconds, in which the run goes on and other commands are answered.
            copies = await asyncio.to_thread(asyncio.run, snapshot_agents(self._run, selection, None, cue))
            copied.update({(each.agent, cue): each for each in copies.respondents})
        return [copied[request.agent_id, request.prompt] for request in requests]
