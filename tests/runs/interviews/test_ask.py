"""Asking agents of a run: they answer from what they lived through, and the run stays as it was, byte by byte."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shoal.agents import write_transcript
from shoal.agents.human import AskPerson
from shoal.agents.interview import Item, Survey, parse_fields
from shoal.agents.memory.past import LEARNED
from shoal.agents.settings import LanguageSettings
from shoal.errors import BudgetReached, QueryFailed, RunRefused, ScenarioInvalid
from shoal.models.base import Answer, FailureKind, Question
from shoal.rehearsal.server import Rehearsal
from shoal.rehearsal.server import start as serving
from shoal.rehearsal.settings import RehearsalSettings
from shoal.runs.config import LimitSettings
from shoal.runs.directory import RunDirectory
from shoal.runs.interviews.ask import (
    MAX_UNBUDGETED,
    AnswerTable,
    Asking,
    ask_agents,
    build_interviews,
    collect_answers,
    read_survey,
    score_agents,
    score_world,
)
from shoal.runs.interviews.selection import EVERYBODY, AgentSelection
from shoal.runs.interviews.snapshots import Copies, snapshot_agents
from shoal.runs.operations import create_run
from shoal.runs.resources import RunResources
from shoal.runs.worker import work_on_run
from shoal.scenario.loading import validate
from shoal.types import Action, Decision, Observation
from tests.engine.harness import crowd, village
from tests.models.fakes import make_failure
from tests.runs.harness import start

MODEL = "openai/gpt-4.1-mini"
PEOPLE = ["Ada", "Bea", "Cid"]
EDGES = [("Bea", "Ada"), ("Cid", "Bea")]
TURNS = [
    {"round": 1, "agent": "Ada", "action": "CREATE_POST", "args": {"content": "it will rain"}},
    {"round": 3, "agent": "Ada", "action": "CREATE_POST", "args": {"content": "it will snow"}},
    {"round": 3, "agent": "Bea", "action": "LIKE_POST", "args": {"post_id": 99}},
]
SCRIPTED = village(PEOPLE, EDGES, rounds=5, mind={"kind": "scripted", "turns": TURNS})
MIND: dict[str, Any] = {"kind": "language", "model": MODEL}
FREE = Survey.of([Item("Will it rain?")])
FORMED = Survey.of([Item("Will it rain?", parse_fields(["rain:yes/no", "sure:integer 0-10", "why"]))])

Asked = Callable[[Rehearsal, RunResources], Awaitable[Any]]


def run_beside_server(act: Asked, folder: Path, settings: RehearsalSettings | None = None) -> Any:
    """Run a coroutine function beside a server that answers."""

    async def main() -> Any:
        async with serving(settings or RehearsalSettings()) as server:
            outside = RunResources(environ={"OPENAI_BASE_URL": server.base_url}, cache=folder / "cache" / "replies.db")
            return await act(server, outside)

    return asyncio.run(main())


def language_run(folder: Path, answer: AskPerson | None = None, **more: Any) -> RunDirectory:
    scenario = village(PEOPLE, EDGES, **{"rounds": 6, "mind": MIND, **more})

    async def run(server: Rehearsal, outside: RunResources) -> RunDirectory:
        directory = create_run(validate(scenario), folder / "run")
        await work_on_run(directory, asyncio.Event(), None, replace(outside, answer=answer))
        return directory

    found: RunDirectory = run_beside_server(run, folder)
    return found


def scripted_run(folder: Path) -> RunDirectory:
    start(SCRIPTED, folder / "run")
    return RunDirectory(folder / "run")


def put(directory: RunDirectory, survey: Survey = FORMED, asking: Asking | None = None) -> AnswerTable:
    async def act(server: Rehearsal, outside: RunResources) -> AnswerTable:
        return await ask_agents(directory, survey, asking or Asking(model=MODEL), outside)

    found: AnswerTable = run_beside_server(act, directory.path.parent)
    return found


def copies_of(directory: RunDirectory, who: str = "Bea", round: int | None = None, cue: str = "weather") -> Copies:
    return asyncio.run(snapshot_agents(directory, AgentSelection(who), round, cue))


def bytes_of(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in sorted(folder.rglob("*"))
    }


class Rule:
    """Answers by what is asked, and keeps the questions."""

    def __init__(self, rule: Callable[[Question], str]) -> None:
        self._rule = rule
        self.asked: list[Question] = []

    async def answer(self, question: Question) -> Answer:
        self.asked.append(question)
        return Answer(self._rule(question))


# The run is not touched


@pytest.mark.parametrize("make", [scripted_run, language_run])
def test_asking_leaves_every_byte_of_the_run_as_it_is(make: Callable[[Path], RunDirectory], tmp_path: Path) -> None:
    directory = make(tmp_path)
    before = bytes_of(directory.path)

    async def act(server: Rehearsal, outside: RunResources) -> None:
        by = Asking(model=MODEL)
        assert all(row.error is None for row in (await ask_agents(directory, FORMED, by, outside)).rows)
        assert all(row.error is None for row in (await score_agents(directory, "It rains.", by, outside)).rows)
        assert all(
            row.error is None for row in (await score_world(directory, "It rains.", "twitter", by, outside)).rows
        )

    run_beside_server(act, tmp_path)
    assert bytes_of(directory.path) == before


# What a copy knows


def test_a_copy_knows_what_was_seen_and_done_up_to_its_round_and_no_more(tmp_path: Path) -> None:
    directory = scripted_run(tmp_path)
    early, late = (copies_of(directory, round=round).respondents[0].render() for round in (2, None))
    assert "it will rain" in early
    assert "it will snow" not in early
    assert "it will snow" in late
    assert "You are Bea." in early


def test_before_the_first_round_there_is_only_the_persona(tmp_path: Path) -> None:
    (bea,) = copies_of(scripted_run(tmp_path), round=0).respondents
    assert (bea.memory, bea.sight) == ("", "")
    assert "You are Bea." in bea.persona


def test_an_agent_with_a_language_mind_has_the_memory_of_that_mind(tmp_path: Path) -> None:
    """Thoughts and conclusions are in no stream: only the mind that is run again has them."""
    memory = {"consolidate_every": 2, "lag_rounds": 1, "recent_tokens": 200}
    directory = language_run(tmp_path, mind=MIND | {"memory": memory}, rounds=8)
    assert b"/remember/" in directory.journal.read_bytes()
    (ada,) = copies_of(directory, "Ada").respondents
    assert "You thought:" in ada.memory
    assert LEARNED.strip() in ada.memory
    assert len(ada.memory) > len(copies_of(directory, "Ada", round=1).respondents[0].memory)


async def same_turn(observation: Observation) -> Decision:
    return Decision((Action("CREATE_POST", {"content": "I am a person"}),))


def test_beside_a_played_agent_the_others_keep_the_memory_of_their_mind(tmp_path: Path) -> None:
    directory = language_run(tmp_path, answer=same_turn, play=["Cid"])
    ada, cid = copies_of(directory, "Ada,Cid").respondents
    assert "You thought:" in ada.memory
    assert "I am a person" in cid.memory
    assert "You thought:" not in cid.memory


def test_a_copy_knows_all_its_worlds_by_name(tmp_path: Path) -> None:
    start(crowd(4, rounds=4) | {"worlds": ["twitter", "reddit"]}, tmp_path / "run")
    (somebody,) = copies_of(RunDirectory(tmp_path / "run"), "0").respondents
    assert "In twitter:" in somebody.memory
    assert "In reddit:" in somebody.sight


def test_an_agent_knows_its_changed_traits(tmp_path: Path) -> None:
    change = {"round": 2, "change": {"stance": 0.9}, "to": ["Bea"]}
    start(SCRIPTED | {"topic": "rain", "events": [change]}, tmp_path / "run")
    directory = RunDirectory(tmp_path / "run")
    assert "now strongly in favour of rain" in copies_of(directory).respondents[0].persona
    assert "now strongly in favour" not in copies_of(directory, round=1).respondents[0].persona
    assert "now strongly in favour" not in copies_of(directory, "Cid").respondents[0].persona


def test_a_run_that_was_stopped_is_asked_as_far_as_it_came(tmp_path: Path) -> None:
    with pytest.raises(BudgetReached):
        language_run(tmp_path, rounds=20, budget={"max_calls": 20})
    directory = RunDirectory(tmp_path / "run")
    table = put(directory, FREE, Asking())
    assert 2 < table.round < 10
    assert [row.error for row in table.rows] == [None, None, None]


@pytest.mark.parametrize("kind", ["room", "dialogue"])
def test_people_in_rooms_and_dialogues_are_asked_too(kind: str, tmp_path: Path) -> None:
    settings = {"kind": kind} if kind == "room" else {"kind": kind, "pairs": [[0, 1]]}
    scenario = {"population": [{"name": "Ada"}, {"name": "Bea"}], "rounds": 6, "worlds": {"here": settings}}
    start(scenario, tmp_path / "run")
    (bea,) = copies_of(RunDirectory(tmp_path / "run")).respondents
    assert "You said «" in bea.memory
    assert "Ada" in bea.sight
    assert "It was" in bea.sight


def test_a_round_that_never_was_cannot_be_asked_about(tmp_path: Path) -> None:
    with pytest.raises(QueryFailed, match="there are rounds 0 to 5"):
        copies_of(scripted_run(tmp_path), round=6)


def test_a_run_without_a_round_cannot_be_asked(tmp_path: Path) -> None:
    with pytest.raises(QueryFailed, match="no round"):
        copies_of(create_run(validate(SCRIPTED), tmp_path / "run"))


# Questions, and the models that answer them


def test_all_agents_answer_in_the_requested_form(tmp_path: Path) -> None:
    table = put(scripted_run(tmp_path), FORMED, Asking(AgentSelection("Ada,Cid"), model=MODEL))
    assert [(row.agent, row.name, row.model) for row in table.rows] == [(0, "Ada", MODEL), (2, "Cid", MODEL)]
    for row in table.records():
        assert row["rain"] in ("yes", "no")
        assert row["sure"] in range(11)
        assert row["why"]
    assert (table.round, table.columns, table.stand_in) == (5, ("rain", "sure", "why"), True)


def test_agents_without_a_language_model_are_not_asked_without_one_being_named(tmp_path: Path) -> None:
    with pytest.raises(QueryFailed, match=r"their mind is scripted.*\n.*--model"):
        put(scripted_run(tmp_path), FREE, Asking())


def test_agents_are_asked_by_the_model_that_they_have(tmp_path: Path) -> None:
    directory = language_run(tmp_path, mind=MIND | {"by_agent": {"Bea": "openai/gpt-4.1"}}, rounds=2)
    table = put(directory, FREE, Asking())
    assert [row.model for row in table.rows] == [MODEL, "openai/gpt-4.1", MODEL]
    assert not table.stand_in
    other = put(directory, FREE, Asking(model="openai/gpt-4o"))
    assert {row.model for row in other.rows} == {"openai/gpt-4o"}
    assert other.stand_in


def test_a_model_without_a_key_or_server_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    with pytest.raises(RunRefused, match="OPENAI_API_KEY"):
        asyncio.run(ask_agents(scripted_run(tmp_path), FREE, Asking(model=MODEL), RunResources()))


def test_each_is_asked_as_often_as_wanted_with_the_iteration_in_the_question(tmp_path: Path) -> None:
    copies = copies_of(scripted_run(tmp_path), "Ada,Bea")
    model = Rule(lambda question: f"answer {question.iteration}")
    rows = asyncio.run(collect_answers(build_interviews(FREE, copies, LanguageSettings(model=MODEL), 3), model))
    assert [(row.name, row.values["answer"]) for row in rows] == [
        (name, f"answer {iteration}") for name in ("Ada", "Bea") for iteration in range(3)
    ]
    assert len({question.digest for question in model.asked}) == len({question.key for question in model.asked}) == 6


def test_all_questions_of_a_survey_are_one_call(tmp_path: Path) -> None:
    survey = Survey.of([Item("Will it rain?"), Item("And snow?", parse_fields(["snow:yes/no"]))])
    model = Rule(lambda question: '{"answer_1": "maybe", "snow": "no"}')
    copies = copies_of(scripted_run(tmp_path), "Ada")
    (row,) = asyncio.run(collect_answers(build_interviews(survey, copies, LanguageSettings(model=MODEL)), model))
    assert row.values == {"answer_1": "maybe", "snow": "no"}
    assert len(model.asked) == 1


# Money, and what goes wrong


def test_asking_the_same_again_costs_nothing(tmp_path: Path) -> None:
    directory = scripted_run(tmp_path)

    async def act(server: Rehearsal, outside: RunResources) -> tuple[AnswerTable, AnswerTable, AnswerTable]:
        by = Asking(model=MODEL)
        first, second = (
            await ask_agents(directory, FORMED, by, outside),
            await ask_agents(directory, FORMED, by, outside),
        )
        assert server.stats.requests == 3
        third = await ask_agents(directory, FORMED, Asking(model=MODEL, iterations=2), outside)
        assert server.stats.requests == 6
        return first, second, third

    first, second, third = run_beside_server(act, tmp_path)
    assert first.rows == second.rows
    assert (first.spending["calls"], second.spending["calls"], second.spending["cache_hits"]) == (3, 0, 3)
    assert second.spending["cost"] == 0
    assert third.rows[::2] == first.rows


def test_without_the_cache_all_agents_are_asked_again(tmp_path: Path) -> None:
    directory = scripted_run(tmp_path)

    async def act(server: Rehearsal, outside: RunResources) -> int:
        for _ in range(2):
            await ask_agents(directory, FREE, Asking(model=MODEL), RunResources(environ=outside.environ))
        return server.stats.requests

    assert run_beside_server(act, tmp_path) == 6


def test_a_budget_holds_and_agents_that_were_not_asked_are_listed(tmp_path: Path) -> None:
    directory = scripted_run(tmp_path)

    async def act(server: Rehearsal, outside: RunResources) -> AnswerTable:
        limited = RunResources(environ=outside.environ, limits=LimitSettings(max_calls=2))
        table = await ask_agents(directory, FREE, Asking(model=MODEL), limited)
        assert server.stats.requests == 2
        return table

    table: AnswerTable = run_beside_server(act, tmp_path)
    assert sorted(row.error or "" for row in table.rows) == ["", "", "not asked: the budget is reached (max_calls)"]


def test_the_budget_of_the_run_is_not_that_of_the_question(tmp_path: Path) -> None:
    directory = language_run(tmp_path, rounds=1, budget={"max_calls": 8})
    table = put(directory, FREE, Asking(iterations=3))
    assert [row.error for row in table.rows] == [None] * 9


def test_a_failed_answer_is_a_row_and_the_others_still_answer(tmp_path: Path) -> None:
    def rule(question: Question) -> str:
        if "You are Bea" in question.messages[1].content:
            raise make_failure(FailureKind.OVERLOAD)
        return "I think so." if "You are Ada" in question.messages[1].content else ""

    copies = asyncio.run(snapshot_agents(scripted_run(tmp_path), EVERYBODY, None, ""))
    rows = asyncio.run(collect_answers(build_interviews(FREE, copies, LanguageSettings(model=MODEL)), Rule(rule)))
    assert [row.values for row in rows] == [{"answer": "I think so."}, {}, {}]
    assert [row.error for row in rows] == [
        None,
        "overload: a overload failure",
        "unusable: there is nothing in your reply",
    ]


def test_many_are_only_asked_by_those_who_say_what_it_may_cost(tmp_path: Path) -> None:
    directory, often = scripted_run(tmp_path), Asking(model=MODEL, iterations=MAX_UNBUDGETED // 3 + 1)
    with pytest.raises(QueryFailed, match=r"put 1,002 questions.*\n.*--sample"):
        put(directory, FREE, often)

    async def act(server: Rehearsal, outside: RunResources) -> AnswerTable:
        return await ask_agents(directory, FREE, often, replace(outside, limits=LimitSettings(max_calls=1)))

    assert len(run_beside_server(act, tmp_path).rows) == MAX_UNBUDGETED + 2


# Claims


def test_a_claim_is_scored_on_each_agent_by_what_it_lived_through(tmp_path: Path) -> None:
    directory = scripted_run(tmp_path)

    async def act(server: Rehearsal, outside: RunResources) -> AnswerTable:
        return await score_agents(directory, "Spoke of rain.", Asking(AgentSelection("Ada,Bea"), model=MODEL), outside)

    table: AnswerTable = run_beside_server(act, tmp_path)
    assert [row.name for row in table.rows] == ["Ada", "Bea"]
    assert all(row["score"] in range(10) and row["reason"] for row in table.records())
    record = copies_of(directory, "Ada").records[0]
    assert record[0].startswith("Round 1: ")
    assert "it will rain" in record[0]


def test_a_claim_is_scored_on_a_world_as_it_was_after_a_round(tmp_path: Path) -> None:
    directory = scripted_run(tmp_path)
    early, late = (list(write_transcript(directory.open_stream("twitter").read(until))) for until in (2, 5))
    (posted,) = early
    assert posted.startswith("Round 1, ")
    assert "Ada: create post" in posted
    assert "«it will rain»" in posted
    assert len(late) == 3
    assert "which came to nothing" in next(line for line in late if "Bea" in line)


def test_a_missing_world_is_refused(tmp_path: Path) -> None:
    with pytest.raises(QueryFailed, match="there is no world 'reddit'; there are twitter"):
        asyncio.run(score_world(scripted_run(tmp_path), "x", "reddit", Asking(model=MODEL), RunResources()))


# Surveys in files


def test_a_survey_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "survey.yaml"
    path.write_text(
        "- Whom do you trust?\n"
        "- question: Will you go?\n  fields: {go: yes/no, why: text}\n"
        "- {question: How angry?, fields: 'anger:integer 0-10'}\n"
        "- {question: Which side?, fields: ['side:pro|contra']}\n"
    )
    assert read_survey(path).columns == ("answer_1", "go", "why", "anger", "side")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "survey.yaml:"),
        ("question: x", "expected a list of questions"),
        ("[]", "expected a list of questions"),
        ("- 7", "question 1: expected a text"),
        ("- a\n- {fields: {x: text}}", "question 2: expected a text"),
        ("- {question: a, feilds: {}}", "question 1: there is no 'feilds'"),
        ("- {question: a, fields: {x: colour}}", "question 1: field x: there is no kind 'colour'"),
        ("- {question: a, fields: 7}", "question 1: fields are a mapping"),
    ],
)
def test_a_wrong_survey_is_refused_with_the_place(text: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "survey.yaml").write_text(text)
    with pytest.raises((QueryFailed, ScenarioInvalid), match=complaint):
        read_survey(tmp_path / "survey.yaml")
