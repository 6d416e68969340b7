"""Surveys of many agents at once: choose who is asked, start, follow, end and continue one, download the answers."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Response
from pydantic import Field

from shoal.errors import ArgumentInvalid, QueryFailed
from shoal.runs import RunDirectory
from shoal.runs.interviews import MAX_UNBUDGETED, AgentSelection, AnswerTable, Asking, choose_mind, parse_survey
from shoal.server.api.context import Context, ServerContext, answer, find_run, in_thread
from shoal.server.api.surveys import SurveyJob, SurveyRequest
from shoal.server.messages.base import AgentNumber, Envelope, ListEnvelope, RunId, RunRequest

router = APIRouter(tags=["surveys"])

_SHOWN_NAMES = 12


class SurveySelection(RunRequest):
    """Which people are meant: those that fulfil all of these."""

    who: Annotated[list[AgentNumber], Field(max_length=10_000)] | None = None
    #: A condition on traits, such as `age > 40 and stance < 0`.
    where: Annotated[str, Field(max_length=1_000)] | None = None
    #: How many of them are drawn at random.
    sample: Annotated[int, Field(strict=False, ge=1, le=1_000_000)] | None = None


class SurveyBody(SurveySelection):
    """Questions, each a text or `{question, fields}` with a kind for each field, and who is asked."""

    questions: Annotated[list[Any], Field(min_length=1, max_length=20)]
    #: As they were after this round; the end of the run by default.
    round: Annotated[int, Field(strict=False, ge=0, le=1_000_000)] | None = None
    model: Annotated[str, Field(max_length=200)] | None = None
    max_cost: Annotated[float, Field(strict=False, gt=0)] | None = None


SurveyId = Annotated[str, Field(pattern="^[0-9a-f]{1,32}$")]


class SurveyChoice(RunRequest):
    survey_id: SurveyId


@dataclass(frozen=True, slots=True)
class ChosenPeople:
    """How many people a selection means, and some of their names."""

    count: int
    names: list[str]
    #: Whether a model has to be named, as these people have none.
    needs_model: bool
    model: str | None


@dataclass(frozen=True, slots=True)
class SurveyField:
    name: str
    kind: str
    choices: list[str]
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class SurveyItem:
    question: str
    fields: list[SurveyField]


@dataclass(frozen=True, slots=True)
class SurveyStatus:
    """How far a survey is, and its answers at the end."""

    survey_id: str
    simulation_id: str
    state: str
    people: int
    done: int
    total: int
    started_at: str
    items: list[SurveyItem]
    error: str | None
    round: int | None
    columns: list[str]
    rows: list[dict[str, Any]]
    #: Whether a model answered in the name of people who had none, or another.
    stand_in: bool
    spending: dict[str, Any]


@router.post("/survey/people", response_model=Envelope[ChosenPeople])
async def count_people(body: SurveySelection, context: Context) -> Response:
    """Say how many people a selection means. No one is asked."""
    run = await find_run(context, body.simulation_id)
    names = await in_thread(_choose, context, run, body)
    model = _find_model(context, run)
    return answer(ChosenPeople(len(names), names[:_SHOWN_NAMES], model is None, model))


@router.post("/survey", response_model=Envelope[SurveyStatus])
async def start_survey(body: SurveyBody, context: Context) -> Response:
    """Start a survey. Copies of the agents are asked, and nothing in the run changes."""
    run = await find_run(context, body.simulation_id)
    people = len(await in_thread(_choose, context, run, body))
    try:
        parse_survey(body.questions, "questions")
    except QueryFailed as error:
        raise ArgumentInvalid("questions", str(error)) from None
    if people > MAX_UNBUDGETED and body.max_cost is None:
        raise ArgumentInvalid("max_cost", f"these are {people:,} people; say what it may cost, or ask a sample.")
    last = max(run.read_last_rounds().values())
    if body.round is not None and body.round > last:
        raise ArgumentInvalid("round", f"round {body.round} has not been committed; there are rounds 0 to {last}.")
    if (model := body.model or _find_model(context, run)) is None:
        raise ArgumentInvalid("model", "these agents have no language model; name one to answer for them.")
    request = SurveyRequest(
        body.questions,
        people,
        None if body.who is None else tuple(body.who),
        body.where or None,
        body.sample,
        body.round,
        model,
        body.max_cost,
    )
    return answer(_describe(await in_thread(context.surveys.start, run, body.simulation_id, request)))


@router.post("/survey/end", response_model=Envelope[SurveyStatus])
async def end_survey(body: SurveyChoice, context: Context) -> Response:
    """End a survey: no further people are asked. What was answered is kept, for whoever asks on."""
    job = await in_thread(context.surveys.find, body.simulation_id, body.survey_id)
    job.end()
    return answer(_describe(job))


@router.post("/survey/continue", response_model=Envelope[SurveyStatus])
async def continue_survey(body: SurveyChoice, context: Context) -> Response:
    """Ask on where a survey was interrupted, ended or failed. What was answered is not asked again."""
    run = await find_run(context, body.simulation_id)
    return answer(_describe(await in_thread(context.surveys.go_on, run, body.simulation_id, body.survey_id)))


@router.get("/{simulation_id}/surveys", response_model=ListEnvelope[SurveyStatus])
async def list_surveys(simulation_id: RunId, context: Context) -> Response:
    """List the surveys of a run, newest first, without their answers."""
    await find_run(context, simulation_id)
    found = [_describe(job) for job in await in_thread(context.surveys.list_newest, simulation_id)]
    return answer(found, count=len(found))


@router.get("/{simulation_id}/survey/{survey_id}", response_model=Envelope[SurveyStatus])
async def get_survey(simulation_id: RunId, survey_id: SurveyId, context: Context) -> Response:
    """Say how far a survey is, with its answers at the end."""
    return answer(await in_thread(_read, context, simulation_id, survey_id))


@router.get("/{simulation_id}/survey/{survey_id}/table.csv", response_class=Response)
async def download_csv(simulation_id: RunId, survey_id: SurveyId, context: Context) -> Response:
    """Download the answers as CSV."""
    file = io.StringIO()
    job = await in_thread(context.surveys.find, simulation_id, survey_id)
    if (table := await in_thread(job.read_answers)) is not None:
        table.write_csv(file)
    headers = {"content-disposition": f'attachment; filename="{simulation_id}-survey.csv"'}
    return Response(file.getvalue(), headers=headers, media_type="text/csv; charset=utf-8")


@router.get("/{simulation_id}/survey/{survey_id}/table.json", response_class=Response)
async def download_json(simulation_id: RunId, survey_id: SurveyId, context: Context) -> Response:
    """Download the answers as JSON, with the questions."""
    found = answer(await in_thread(_read, context, simulation_id, survey_id))
    found.headers["content-disposition"] = f'attachment; filename="{simulation_id}-survey.json"'
    return found


def _read(context: ServerContext, simulation_id: str, survey_id: str) -> SurveyStatus:
    job = context.surveys.find(simulation_id, survey_id)
    return _describe(job, job.read_answers())


def _choose(context: ServerContext, run: RunDirectory, body: SurveySelection) -> list[str]:
    """Return the names of the people that are meant; ArgumentInvalid says what is wrong with the choice."""
    people = context.people.draw(run)
    try:
        who = None if body.who is None else tuple(body.who)
        numbers = AgentSelection(who, body.where or None, body.sample).numbers(people, run.scenario.seed)
    except QueryFailed as error:
        field = "where" if body.where else "who"
        raise ArgumentInvalid(field, str(error).replace("--where: ", "")) from None
    return [people.names[number] for number in numbers]


def _find_model(context: ServerContext, run: RunDirectory) -> str | None:
    """Return the model of the run's own agents, or else the one that the server was started with."""
    try:
        return choose_mind(run, Asking()).model
    except QueryFailed:
        return context.settings.model


def _describe(job: SurveyJob, table: AnswerTable | None = None) -> SurveyStatus:
    items = [
        SurveyItem(
            item.question,
            [SurveyField(one.name, one.kind, list(one.choices), one.low, one.high) for one in item.fields],
        )
        for item in job.survey.items
    ]
    record = job.record
    return SurveyStatus(
        survey_id=record.id,
        simulation_id=record.simulation_id,
        state=record.state,
        people=record.request.people,
        done=record.done,
        total=record.total,
        started_at=record.started_at,
        items=items,
        error=record.error,
        round=record.request.round if table is None else table.round,
        columns=list(job.survey.columns),
        rows=[] if table is None else table.records(),
        stand_in=table is not None and table.stand_in,
        spending={} if table is None else dict(table.spending),
    )
