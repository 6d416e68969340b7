"""Asks the agents of a run, and scores claims about them, without changing the run.

Copies of the agents are asked, as they were at the end of a round. Nothing is written into the run's directory. Answers
are in the table that is returned and, if it is used, in the response cache, so that the same question is paid for once.
"""

from __future__ import annotations

import asyncio
import csv
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TextIO

from shoal.agents import (
    ANSWER,
    SCORE_FORM,
    Approach,
    Extraction,
    Field,
    Item,
    LanguageSettings,
    MemorySettings,
    Proposition,
    Survey,
    Unanswered,
    ask_survey,
    build_question,
    excerpt_record,
    parse_fields,
    write_transcript,
)
from shoal.errors import BudgetReached, ProviderRefused, ProviderUnavailable, QueryFailed
from shoal.formats import quote_formula
from shoal.journal import Journal, JournalKey
from shoal.models import Model, ModelFailed, Question
from shoal.runs.config import LimitSettings
from shoal.runs.directory import RunDirectory
from shoal.runs.interviews.selection import EVERYBODY, AgentSelection
from shoal.runs.interviews.snapshots import Copies, snapshot_agents
from shoal.runs.rerun.rerun import check_round
from shoal.runs.resources import ModelSession, RunResources, open_models
from shoal.scenario import BudgetSettings, read_document, read_text

#: More questions than this need a budget.
MAX_UNBUDGETED = 1_000
#: How long a server may not answer: a person waits for the answers.
ASKING_PATIENCE_SECONDS = 60.0
#: Tokens of a reply for each column.
_TOKENS_PER_COLUMN = 350
_COMPACT_ANSWER_TOKENS = 120
_SCORE_COLUMNS = ("score", "reason")


@dataclass(frozen=True, slots=True)
class Asking:
    """Which agents are asked, as of which round, with which model, and how often."""

    whom: AgentSelection = EVERYBODY
    #: At the end of this round; None means the end of the run.
    round: int | None = None
    #: Replaces the agents' own model.
    model: str | None = None
    iterations: int = 1
    #: Receives after each answer how many there are, and of how many.
    watch: Callable[[int, int], None] | None = field(default=None, compare=False)
    #: Keeps the replies as they come; those that are there already are not asked for again.
    journal: Path | None = None


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One answer by column, or the reason why there is none."""

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
    #: Whether a model answered in the name of agents that had none, or another, in the run.
    stand_in: bool = False

    def label(self, **labels: str) -> AnswerTable:
        """Return the table with further columns, each with one value for all rows."""
        rows = tuple(replace(row, values={**labels, **row.values}) for row in self.rows)
        return replace(self, columns=(*labels, *self.columns), rows=rows)

    def records(self) -> list[dict[str, Any]]:
        """Return one mapping for each row, with every column in each."""
        return [
            {"agent": row.agent, "name": row.name, "iteration": row.iteration, "model": row.model}
            | {column: row.values.get(column) for column in self.columns}
            | {"error": row.error}
            for row in self.rows
        ]

    def write_csv(self, file: TextIO) -> None:
        """Write the table as CSV. No cell is taken for a formula."""
        columns = ("agent", "name", "iteration", "model", *self.columns, "error")
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: quote_formula(value) for name, value in row.items()} for row in self.records())


def join_tables(tables: Sequence[AnswerTable]) -> AnswerTable:
    """Put tables with the same columns, about the same run, below one another."""
    if not tables:
        raise QueryFailed("there is nothing to ask")
    spending: dict[str, Any] = {}
    for name, value in tables[0].spending.items():
        if isinstance(value, int | float | None):
            spent = [table.spending[name] for table in tables]
            spending[name] = None if None in spent else sum(spent)
    return replace(tables[0], rows=tuple(row for table in tables for row in table.rows), spending=spending)


@dataclass(frozen=True, slots=True)
class InterviewJob:
    """One question, and the form of its answer."""

    agent: int | None
    name: str
    question: Question
    form: Survey


@dataclass(frozen=True, slots=True)
class InterviewBatch:
    """Questions that are put to models together, and the columns of their answers."""

    jobs: Sequence[InterviewJob]
    round: int
    columns: tuple[str, ...]
    watch: Callable[[int, int], None] | None = None
    #: Where the replies are kept; None: nowhere.
    journal: Path | None = None


async def ask_agents(directory: RunDirectory, survey: Survey, asking: Asking, outside: RunResources) -> AnswerTable:
    """Ask agents of a run. One call for each of them holds all questions of the survey."""
    mind = choose_mind(directory, asking)
    copies = await snapshot_agents(directory, asking.whom, asking.round, survey.cue)
    jobs = build_interviews(survey, copies, mind, asking.iterations)
    own = directory.scenario.mind
    is_same = isinstance(own, LanguageSettings) and all(
        getattr(own, name) == getattr(mind, name) for name in ("model", "by_group", "by_agent")
    )
    batch = InterviewBatch(jobs, copies.round, survey.columns, asking.watch, asking.journal)
    table = await _ask_models(directory, mind, outside, batch)
    return replace(table, stand_in=not is_same)


async def extract_from_agents(
    directory: RunDirectory, extraction: Extraction, asking: Asking, outside: RunResources
) -> AnswerTable:
    """Fill in a form about each of the selected agents, by their turns."""
    mind = choose_mind(directory, asking)
    copies = await snapshot_agents(directory, asking.whom, asking.round, extraction.objective)
    records = {agent.agent: (agent.name, excerpt_record(copies.records[agent.agent])) for agent in copies.respondents}
    jobs = _build_extractions(extraction, records, mind, copies.round, asking.iterations)
    return await _ask_models(directory, mind, outside, InterviewBatch(jobs, copies.round, extraction.form.columns))


async def extract_from_world(
    directory: RunDirectory, extraction: Extraction, world: str, asking: Asking, outside: RunResources
) -> AnswerTable:
    """Fill in a form about a whole world, by its stream."""
    mind = choose_mind(directory, asking)
    until, record = _read_record(directory, world, asking)
    jobs = _build_extractions(extraction, {world: (f"the world {world}", record)}, mind, until, asking.iterations)
    return await _ask_models(directory, mind, outside, InterviewBatch(jobs, until, extraction.form.columns))


def _build_extractions(
    extraction: Extraction,
    records: Mapping[int, tuple[str, str]] | Mapping[str, tuple[str, str]],
    mind: LanguageSettings,
    round: int,
    iterations: int,
) -> list[InterviewJob]:
    """Build an extraction for each subject and iteration. A subject is an agent's number, or the name of a world."""
    form = extraction.form
    approach, jobs = build_approach(mind, mind.model, form.columns), []
    for subject, (title, record) in records.items():
        agent, name = (subject, title) if isinstance(subject, int) else (None, subject)
        for iteration in range(iterations):
            key = JournalKey("extract", round, subject, str(iteration))
            question = extraction.build_question(title, record, approach, key, iteration)
            jobs.append(InterviewJob(agent, name, question, form))
    return jobs


async def score_agents(directory: RunDirectory, claim: str, asking: Asking, outside: RunResources) -> AnswerTable:
    """Score a claim on each of the selected agents, by their turns."""
    mind = choose_mind(directory, asking)
    copies = await snapshot_agents(directory, asking.whom, asking.round, claim)
    jobs = []
    for agent in copies.respondents:
        record = excerpt_record(copies.records[agent.agent])
        proposition = Proposition(claim, "agent", agent.name, record, agent.persona.partition("\n")[2])
        jobs += _build_scorings(proposition, mind, agent.agent, copies.round, asking.iterations)
    return await _ask_models(directory, mind, outside, InterviewBatch(jobs, copies.round, _SCORE_COLUMNS))


async def score_world(
    directory: RunDirectory, claim: str, world: str, asking: Asking, outside: RunResources
) -> AnswerTable:
    """Score a claim on a whole world, by its stream."""
    mind = choose_mind(directory, asking)
    until, record = _read_record(directory, world, asking)
    jobs = _build_scorings(Proposition(claim, "world", world, record), mind, world, until, asking.iterations)
    return await _ask_models(directory, mind, outside, InterviewBatch(jobs, until, _SCORE_COLUMNS))


def _read_record(directory: RunDirectory, world: str, asking: Asking) -> tuple[int, str]:
    """Return the last round that is meant, and what happened in a world up to then."""
    rounds = directory.read_last_rounds()
    if world not in rounds:
        raise QueryFailed(f"there is no world {world!r}; there are {', '.join(rounds)}")
    until = check_round(rounds, asking.round)
    return until, excerpt_record(write_transcript(directory.open_stream(world).read(until)))


def build_interviews(survey: Survey, copies: Copies, mind: LanguageSettings, iterations: int = 1) -> list[InterviewJob]:
    """Build one interview for each agent and iteration."""
    jobs = []
    for agent in copies.respondents:
        approach = build_approach(mind, mind.model_of(agent.name, agent.group), survey.columns)
        for iteration in range(iterations):
            key = JournalKey("ask", copies.round, agent.agent, str(iteration))
            question = build_question(agent, survey, approach, key, iteration)
            jobs.append(InterviewJob(agent.agent, agent.name, question, survey))
    return jobs


def _build_scorings(
    proposition: Proposition, mind: LanguageSettings, subject: int | str, round: int, iterations: int
) -> list[InterviewJob]:
    """Build one scoring of an agent, by number, or of a world, by name, for each iteration."""
    approach, agent = build_approach(mind, mind.model, _SCORE_COLUMNS), subject if isinstance(subject, int) else None
    jobs = []
    for iteration in range(iterations):
        key = JournalKey("claim", round, subject, str(iteration))
        question = proposition.build_question(approach, key, iteration)
        jobs.append(InterviewJob(agent, proposition.name, question, SCORE_FORM))
    return jobs


def build_approach(mind: LanguageSettings, model: str, columns: Sequence[str]) -> Approach:
    """Choose how long an answer may be: as the mind is set, and enough for all columns."""
    tokens = max(mind.max_tokens, _TOKENS_PER_COLUMN * (len(columns) + 1))
    if mind.is_compact and tuple(columns) == (ANSWER,):
        # In its own words, a small model goes on until it is stopped.
        tokens = _COMPACT_ANSWER_TOKENS
    return Approach(model, mind.temperature, tokens, mind.is_compact)


def choose_mind(directory: RunDirectory, asking: Asking) -> LanguageSettings:
    """Return the settings of the models to ask; QueryFailed without a model."""
    own = directory.scenario.mind
    if isinstance(own, LanguageSettings) and asking.model in (None, own.model):
        mind = own
    elif asking.model is not None:
        mind = LanguageSettings(model=asking.model)
    else:
        raise QueryFailed(
            f"the agents of {directory.path} have no language model: their mind is {own.kind}, and has no "
            "words to answer with.\nName a model to answer in their name, from who they are and what they lived "
            "through: --model openai/gpt-4.1-mini"
        )
    one_for_all: dict[str, Any] = {} if asking.model is None else {"by_group": {}, "by_agent": {}}
    # Conclusions were drawn in the run, so the models that drew them are not needed.
    return mind.model_copy(update={"memory": MemorySettings(), **one_for_all})


async def _ask_models(
    directory: RunDirectory, mind: LanguageSettings, outside: RunResources, batch: InterviewBatch
) -> AnswerTable:
    """Ask all questions."""
    budget = outside.limits.apply_to(BudgetSettings())
    if len(batch.jobs) > MAX_UNBUDGETED and budget == BudgetSettings():
        raise QueryFailed(
            f"this would put {len(batch.jobs):,} questions to a model, without a limit.\n"
            "Ask fewer agents (--who, --where, --sample 100), or say what it may cost (--max-cost, --max-calls)."
        )
    async with open_interviews(directory, mind, outside, batch.journal) as language:
        rows = await collect_answers(batch.jobs, language.model, batch.watch)
        spending = language.model.spending.as_dict()
    return AnswerTable(str(directory.path), batch.round, batch.columns, rows, spending)


@asynccontextmanager
async def open_interviews(
    directory: RunDirectory, mind: LanguageSettings, outside: RunResources, kept: Path | None = None
) -> AsyncIterator[ModelSession]:
    """Open the models that are asked, with a journal and a budget of their own: those of the run are not touched.

    The journal is thrown away unless a file is named in which it is `kept`.
    """
    limits = LimitSettings(patience=ASKING_PATIENCE_SECONDS).replace_with(outside.limits)
    budget = outside.limits.apply_to(BudgetSettings())
    scenario = directory.scenario.model_copy(update={"mind": mind, "budget": budget})
    with TemporaryDirectory(prefix="shoal-ask-") as folder:
        async with (
            Journal.open(kept or Path(folder) / "journal.jsonl") as journal,
            open_models(scenario, journal, replace(outside, limits=limits)) as language,
        ):
            yield language


async def collect_answers(
    jobs: Sequence[InterviewJob], model: Model, watch: Callable[[int, int], None] | None = None
) -> tuple[AnswerRow, ...]:
    """Ask all questions side by side. One that fails is a row too, with the reason."""
    done = count(1)

    async def collect(job: InterviewJob) -> AnswerRow:
        values: Mapping[str, Any] = {}
        error = None
        try:
            values = await ask_survey(model, job.question, job.form)
        except (Unanswered, ModelFailed, ProviderRefused, ProviderUnavailable) as failure:
            error = str(failure).partition("\n")[0]
        except BudgetReached as reached:
            error = f"not asked: the budget is reached ({reached.setting})"
        if watch is not None:
            watch(next(done), len(jobs))
        return AnswerRow(job.agent, job.name, job.question.iteration, job.question.model, values, error)

    return tuple(await asyncio.gather(*map(collect, jobs)))


# Surveys in files


def read_survey(path: Path) -> Survey:
    """Read a survey from a YAML or JSON file: a list of questions, each with or without fields."""
    found = read_document(read_text(path), str(path))
    if found.problems:
        (line, column), problem = found.problems[0]
        raise QueryFailed(f"{path}:{line}:{column}: {problem.text}")
    return parse_survey(found.value, str(path))


def parse_survey(questions: object, name: str = "survey") -> Survey:
    """Read a survey in plain values; QueryFailed says what is wrong with which question."""
    if not isinstance(questions, list) or not questions:
        raise QueryFailed(f"{name}: expected a list of questions, such as - {{question: ..., fields: {{why: text}}}}")
    items = []
    for number, entry in enumerate(questions, 1):
        try:
            items.append(_parse_item(entry))
        except QueryFailed as error:
            raise QueryFailed(f"{name}: question {number}: {error}") from None
    return Survey.of(items)


def _parse_item(entry: object) -> Item:
    if isinstance(entry, str):
        return Item(entry)
    if not isinstance(entry, dict) or not isinstance(entry.get("question"), str):
        raise QueryFailed("expected a text, or {question: ..., fields: ...}")
    unknown = set(entry) - {"question", "fields"}
    if unknown:
        raise QueryFailed(f"there is no {min(unknown)!r}; there are question and fields")
    match entry.get("fields"):
        case None:
            fields: tuple[Field, ...] = ()
        case str() as declared:
            fields = parse_fields([declared])
        case dict() as declared:
            fields = tuple(Field.parse(str(name), str(kind)) for name, kind in declared.items())
        case list() as declared if all(isinstance(one, str) for one in declared):
            fields = parse_fields(declared)
        case _:
            raise QueryFailed("fields are a mapping, such as {vote: yes/no, why: text}")
    return Item(entry["question"], fields)
