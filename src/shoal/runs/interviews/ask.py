"""Asking the agents of a run, and scoring claims about them, without changing it.

Copies of the agents are asked, as they were at the end of a round. Nothing is written into the run's directory: what
was answered is in the table that is handed back and, if it is used, in the response cache, so that the same question is
not paid for twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from shoal.agents.claims import Proposition, TranscriptExcerpt
from shoal.agents.interview import Approach, Field, Item, Survey, Unanswered, ask_survey, build_question, parse_fields
from shoal.agents.memory.settings import MemorySettings
from shoal.agents.settings import LanguageSettings
from shoal.errors import BudgetReached, QueryFailed
from shoal.journal import Journal, JournalKey
from shoal.models.base import Model, ModelFailed
from shoal.runs.directory import RunDirectory
from shoal.runs.interviews.selection import EVERYBODY, AgentSelection
from shoal.runs.interviews.snapshots import Copies, last_round, snapshot_agents, transcript_lines
from shoal.runs.resources import RunResources, language_models
from shoal.scenario import document
from shoal.scenario.loading import read_text
from shoal.scenario.scenario import BudgetSettings, Scenario

#: More than this is asked only by those who say what it may cost.
MAX_UNBUDGETED = 1_000
#: Room in a reply for each thing that is to be said.
_TOKENS_PER_COLUMN = 200
_SCORED = ("score", "reason")


@dataclass(frozen=True, slots=True)
class Asking:
    """Who is asked, as of when, by which model, and how often."""

    whom: AgentSelection = EVERYBODY
    #: At the end of this round; None: at the end of the run.
    round: int | None = None
    #: In place of the one that the agent has in the run.
    model: str | None = None
    iterations: int = 1


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """What one answer says, by column, or why there is none."""

    #: None where a whole world was scored.
    agent: int | None
    name: str
    iteration: int
    model: str
    values: Mapping[str, Any]
    error: str | None = None


@dataclass(frozen=True, slots=True)
class AnswerTable:
    """All answers, in the order of agents and iterations."""

    run: str
    round: int
    columns: tuple[str, ...]
    rows: tuple[AnswerRow, ...]
    #: Calls, tokens and cost; a cost is None where a price is not known.
    spending: Mapping[str, Any]
    #: Whether a model spoke in the name of agents who had none, or another, in the run.
    stand_in: bool = False

    def records(self) -> list[dict[str, Any]]:
        """One mapping for each row, with every column in each."""
        return [
            {
                "agent": row.agent,
                "name": row.name,
                "iteration": row.iteration,
                "model": row.model,
                **{column: row.values.get(column) for column in self.columns},
                "error": row.error,
            }
            for row in self.rows
        ]


@dataclass(frozen=True, slots=True)
class InterviewJob:
    """One answer to be had."""

    agent: int | None
    name: str
    iteration: int
    model: str
    answer: Callable[[Model], Awaitable[Mapping[str, Any]]]


async def ask_agents(directory: RunDirectory, survey: Survey, asking: Asking, outside: RunResources) -> AnswerTable:
    """Put questions to agents of a run; one call each holds all of them."""
    desk = _Desk.of(directory, asking, outside)
    copies = await snapshot_agents(directory, asking.whom, asking.round, survey.cue)
    jobs = interviews(survey, copies, desk.mind, asking.iterations)
    return replace(await desk.table(copies.round, survey.columns, jobs), stand_in=desk.is_stand_in)


async def score_agents(directory: RunDirectory, claim: str, asking: Asking, outside: RunResources) -> AnswerTable:
    """Score a claim on each of the agents that are meant, by what they lived through."""
    desk = _Desk.of(directory, asking, outside)
    copies = await snapshot_agents(directory, asking.whom, asking.round, claim)
    approach = _approach(desk.mind, desk.mind.model, _SCORED)
    jobs = [
        _scoring(
            Proposition(claim, "agent", somebody.name, somebody.persona.partition("\n")[2]),
            TranscriptExcerpt.of_lines(copies.records[somebody.agent]),
            approach,
            (copies.round, somebody.agent, iteration),
        )
        for somebody in copies.respondents
        for iteration in range(asking.iterations)
    ]
    return await desk.table(copies.round, _SCORED, jobs)


async def score_world(
    directory: RunDirectory, claim: str, world: str, asking: Asking, outside: RunResources
) -> AnswerTable:
    """Score a claim on a whole world, by its stream."""
    rounds = directory.committed_rounds()
    if world not in rounds:
        raise QueryFailed(f"there is no world {world!r}; there are {', '.join(rounds)}")
    desk = _Desk.of(directory, asking, outside)
    until = last_round(rounds, asking.round)
    transcript = TranscriptExcerpt.of_lines(transcript_lines(directory.file(world) / "actions.jsonl", until))
    proposition = Proposition(claim, "world", world)
    approach = _approach(desk.mind, desk.mind.model, _SCORED)
    jobs = [_scoring(proposition, transcript, approach, (until, None, turn)) for turn in range(asking.iterations)]
    return await desk.table(until, _SCORED, jobs)


def interviews(survey: Survey, copies: Copies, mind: LanguageSettings, iterations: int = 1) -> list[InterviewJob]:
    """An interview with each of them, as often as it is to be repeated."""
    jobs = []
    for somebody in copies.respondents:
        approach = _approach(mind, mind.model_of(somebody.name, somebody.group), survey.columns)
        for iteration in range(iterations):
            key = JournalKey("ask", copies.round, somebody.agent, str(iteration))
            question = build_question(somebody, survey, approach, key, iteration)

            async def interview(model: Model, question: Any = question) -> Mapping[str, Any]:
                return await ask_survey(model, question, survey)

            jobs.append(InterviewJob(somebody.agent, somebody.name, iteration, approach.model, interview))
    return jobs


def _scoring(
    proposition: Proposition, transcript: TranscriptExcerpt, approach: Approach, place: tuple[int, int | None, int]
) -> InterviewJob:
    round, agent, iteration = place
    whose = proposition.name if agent is None else agent
    key = JournalKey("claim", round, whose, str(iteration))
    question = proposition.build_question(transcript, approach, key, iteration)

    async def judge(model: Model) -> Mapping[str, Any]:
        found = await proposition.score(model, question)
        return {"score": found.value, "reason": found.reason}

    return InterviewJob(agent, proposition.name, iteration, approach.model, judge)


def _approach(mind: LanguageSettings, model: str, columns: Sequence[str]) -> Approach:
    return Approach(model, mind.temperature, max(mind.max_tokens, _TOKENS_PER_COLUMN * (len(columns) + 1)))


async def answers(jobs: Sequence[InterviewJob], model: Model) -> tuple[AnswerRow, ...]:
    """All of them side by side. One that fails is a row too, with the reason."""
    return tuple(await asyncio.gather(*(_row(job, model) for job in jobs)))


async def _row(job: InterviewJob, model: Model) -> AnswerRow:
    values: Mapping[str, Any] = {}
    error = None
    try:
        values = await job.answer(model)
    except (Unanswered, ModelFailed) as why:
        error = str(why)
    except BudgetReached as reached:
        error = f"not asked: the budget is reached ({reached.setting})"
    return AnswerRow(job.agent, job.name, job.iteration, job.model, values, error)


@dataclass(frozen=True, slots=True)
class _Desk:
    """Where questions go out: who answers, and within which budget."""

    directory: RunDirectory
    scenario: Scenario
    mind: LanguageSettings
    outside: RunResources

    @classmethod
    def of(cls, directory: RunDirectory, asking: Asking, outside: RunResources) -> _Desk:
        """QueryFailed where there is no model to ask."""
        scenario = directory.scenario
        own = scenario.mind if isinstance(scenario.mind, LanguageSettings) else None
        mind = own if own is not None and asking.model in (None, own.model) else _stand_in(directory, scenario, asking)
        everybody: dict[str, Any] = {} if asking.model is None else {"by_group": {}, "by_agent": {}}
        # Conclusions were drawn in the run; the models that drew them are not needed to ask.
        mind = mind.model_copy(update={"memory": MemorySettings(), **everybody})
        return cls(directory, scenario, mind, outside)

    @property
    def is_stand_in(self) -> bool:
        """Whether somebody may be asked by another model than the one they had in the run."""
        own = self.scenario.mind
        if not isinstance(own, LanguageSettings):
            return True
        return (own.model, own.by_group, own.by_agent) != (self.mind.model, self.mind.by_group, self.mind.by_agent)

    async def table(self, round: int, columns: tuple[str, ...], jobs: Sequence[InterviewJob]) -> AnswerTable:
        if len(jobs) > MAX_UNBUDGETED and self.outside.budget is None:
            raise QueryFailed(
                f"this would put {len(jobs):,} questions to a model, without a limit.\n"
                "Ask fewer agents (--who, --where, --sample 100), or say what it may cost (--max-cost, --max-calls)."
            )
        async with self._models() as stack:
            rows = await answers(jobs, stack)
            spending = stack.spending.as_dict()
        return AnswerTable(str(self.directory.path), round, columns, rows, spending)

    @asynccontextmanager
    async def _models(self) -> AsyncIterator[Any]:
        """The budget of the run is not touched: only that of the question counts. Its journal goes with it."""
        update = {"mind": self.mind, "budget": self.outside.budget or BudgetSettings()}
        with TemporaryDirectory(prefix="shoal-ask-") as folder:
            async with (
                Journal.open(Path(folder) / "journal.jsonl") as journal,
                language_models(self.scenario.model_copy(update=update), journal, self.outside) as language,
            ):
                yield language.model


def _stand_in(directory: RunDirectory, scenario: Scenario, asking: Asking) -> LanguageSettings:
    if asking.model is None:
        raise QueryFailed(
            f"the agents of {directory.path} have no language model: their mind is {scenario.mind.kind}, and has no "
            "words to answer with.\nName a model to answer in their name, from who they are and what they lived "
            "through: --model openai/gpt-4.1-mini"
        )
    return LanguageSettings(model=asking.model)


# Surveys in files


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in a survey something is wrong."""

    path: Path
    number: int

    def wrong(self, why: str) -> QueryFailed:
        return QueryFailed(f"{self.path}: question {self.number}: {why}")


def read_survey(path: Path) -> Survey:
    """The survey in a YAML or JSON file: a list of questions, each with or without fields."""
    found = document.read_document(read_text(path), str(path))
    if found.problems:
        (line, column), problem = found.problems[0]
        raise QueryFailed(f"{path}:{line}:{column}: {problem.text}")
    if not isinstance(found.value, list) or not found.value:
        raise QueryFailed(f"{path}: expected a list of questions, such as - {{question: ..., fields: {{why: text}}}}")
    return Survey.of(_item(entry, _Place(path, number)) for number, entry in enumerate(found.value, 1))


def _item(entry: object, place: _Place) -> Item:
    if isinstance(entry, str):
        return Item(entry)
    if not isinstance(entry, dict) or not isinstance(entry.get("question"), str):
        raise place.wrong("expected a text, or {question: ..., fields: ...}")
    unknown = set(entry) - {"question", "fields"}
    if unknown:
        raise place.wrong(f"there is no {min(unknown)!r}; there are question and fields")
    return Item(entry["question"], _fields(entry.get("fields"), place))


def _fields(declared: object, place: _Place) -> tuple[Field, ...]:
    """`{vote: yes/no}`, `vote:yes/no,why:text`, or a list of such."""
    try:
        match declared:
            case None:
                return ()
            case str():
                return parse_fields([declared])
            case dict():
                return tuple(Field.parse(str(name), str(kind)) for name, kind in declared.items())
            case list() if all(isinstance(one, str) for one in declared):
                return parse_fields(declared)
    except QueryFailed as error:
        raise place.wrong(str(error)) from None
    raise place.wrong("fields are a mapping, such as {vote: yes/no, why: text}")
