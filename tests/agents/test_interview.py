"""Interviews: forms of answers, prompts that begin alike, and replies that are read as far as they can be."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from shoal.agents.interview import (
    ANSWER,
    CARD,
    Approach,
    Field,
    Item,
    Respondent,
    Survey,
    Unanswered,
    UnusableAnswer,
    ask_survey,
    build_question,
    parse_fields,
)
from shoal.errors import QueryFailed
from shoal.journal import JournalKey
from shoal.models.base import Answer, FailureKind, ModelFailed
from tests.models.fakes import Scripted, make_failure

ADA = Respondent(3, "Ada", "# Who you are\nYou are Ada.", "You posted «rain».", "It was Monday.")
APPROACH = Approach("openai/gpt-4.1-mini", 0.5, 400)
KEY = JournalKey("ask", 5, 3, "0")
FREE = Survey.of([Item("Do you like rain?")])
FORMED = Survey.of([Item("Do you like rain?", parse_fields(["like:yes/no,why"]))])


def test_fields_are_declared_in_a_line_or_one_by_one() -> None:
    assert parse_fields(["go:yes/no, why:text", "anger: integer 0-10"]) == (
        Field("go", "choice", ("yes", "no")),
        Field("why"),
        Field("anger", "integer", (), 0, 10),
    )
    assert parse_fields(["why"]) == (Field("why"),)
    assert parse_fields(["side:one of pro|contra"]) == parse_fields(["side:pro | contra"])


@pytest.mark.parametrize(
    ("declared", "complaint"),
    [
        ("go:maybe", "there are text, number"),
        ("go:a|A", "there is no kind"),
        ("go:one of a", "there is no kind"),
        ("go:integer 10-0", "the smaller number comes first"),
        ("2go:text", "cannot be called '2go'"),
        ("agent:text", "cannot be called 'agent'"),
        (":text", "cannot be called ''"),
    ],
)
def test_a_field_that_makes_no_sense_is_refused_with_a_reason(declared: str, complaint: str) -> None:
    with pytest.raises(QueryFailed, match=complaint):
        parse_fields([declared])


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        ("text", {"type": "string", "maxLength": 1000}),
        ("number", {"type": "number"}),
        ("number 0-0.5", {"type": "number", "minimum": 0, "maximum": 0.5}),
        ("integer -3 to 3", {"type": "integer", "minimum": -3, "maximum": 3}),
        ("yes/no", {"type": "string", "enum": ["yes", "no"]}),
        ("a|b|c", {"type": "string", "enum": ["a", "b", "c"]}),
    ],
)
def test_each_kind_of_field_has_its_schema(kind: str, schema: dict[str, Any]) -> None:
    assert Field.parse("x", kind).to_schema() == schema


@pytest.mark.parametrize(
    ("kind", "value", "read"),
    [
        ("text", " well ", "well"),
        ("text", 7, "7"),
        ("number", "2.5", 2.5),
        ("integer 0-10", 7.0, 7),
        ("integer 0-10", "7", 7),
        ("yes/no", "Yes", "yes"),
        ("yes/no", False, "no"),
        ("Pro|Contra", "contra ", "Contra"),
    ],
)
def test_a_value_is_converted_to_the_kind_of_its_field(kind: str, value: object, read: object) -> None:
    found = Field.parse("x", kind).read(value)
    assert (type(found), found) == (type(read), read)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("text", "  "),
        ("text", True),
        ("text", ["a"]),
        ("number", "much"),
        ("number", "nan"),
        ("integer", 2.5),
        ("integer 0-10", 11),
        ("integer 0-10", -1),
        ("integer", True),
        ("yes/no", "perhaps"),
        ("a|b", True),
    ],
)
def test_a_value_that_does_not_fit_is_not_guessed_at(kind: str, value: object) -> None:
    with pytest.raises(UnusableAnswer, match='"x" must be'):
        Field.parse("x", kind).read(value)


def test_the_questions_of_a_survey_each_get_a_column() -> None:
    survey = Survey.of([Item("Who?"), Item("Will you go?", parse_fields(["go:yes/no"])), Item("Why?")])
    assert survey.columns == ("answer_1", "go", "answer_3")
    schema = survey.to_schema()
    assert schema is not None
    assert schema["required"] == ["answer_1", "go", "answer_3"]
    assert "2. Will you go?" in survey.render()
    assert '"go": "yes" or "no"' in survey.render()


def test_one_question_without_fields_is_answered_in_free_text() -> None:
    assert FREE.to_schema() is None
    assert FREE.columns == ("answer",)
    assert FREE.read(Answer("<think>hm</think> I do. ")) == {"answer": "I do."}


@pytest.mark.parametrize(
    ("items", "complaint"),
    [
        ([], "no question"),
        ([Item(" ")], "no question"),
        ([Item("a" * 9000)], "too long"),
        ([Item("a", parse_fields(["x"])), Item("b", parse_fields(["x"]))], "two fields are called 'x'"),
    ],
)
def test_a_survey_that_cannot_be_asked_is_refused(items: list[Item], complaint: str) -> None:
    with pytest.raises(QueryFailed, match=complaint):
        Survey.of(items)


def test_a_prompt_goes_from_what_all_share_to_the_question() -> None:
    question = build_question(ADA, FORMED, APPROACH, KEY)
    system, user = (message.content for message in question.messages)
    assert system == CARD
    places = [user.index(part) for part in ("You are Ada.", "«rain»", "It was Monday.", "Do you like rain?")]
    assert places == sorted(places)
    assert (question.key, question.model, question.temperature, question.max_tokens) == (
        "ask/5/3/0/0",
        "openai/gpt-4.1-mini",
        0.5,
        400,
    )


def test_iterations_are_different_questions_to_a_cache() -> None:
    first, second = (build_question(ADA, FREE, APPROACH, JournalKey("ask", 5, 3, str(n)), n) for n in (0, 1))
    assert first.digest != second.digest
    assert first.digest == build_question(ADA, FREE, APPROACH, JournalKey("other", 1, 2, "0"), 0).digest


@pytest.mark.parametrize(
    "reply",
    [
        '{"like": "yes", "why": "it is wet"}',
        'Sure!\n```json\n{"like": "yes", "why": "it is wet"}\n```',
        '<think>{"like": "no"}</think>{"like": "YES", "why": "it is wet",}',
        '{"like": true, "why": "it is wet"',
    ],
)
def test_a_reply_is_read_whatever_is_around_it(reply: str) -> None:
    model = Scripted(Answer(reply))
    found = asyncio.run(ask_survey(model, build_question(ADA, FORMED, APPROACH, KEY), FORMED))
    assert found == {"like": "yes", "why": "it is wet"}
    assert len(model.asked) == 1


def test_a_reply_that_cannot_be_used_is_asked_for_once_more_with_the_reason() -> None:
    model = Scripted(Answer('{"like": "perhaps", "why": "x"}'), Answer(json.dumps({"like": "no", "why": "x"})))
    first = build_question(ADA, FORMED, APPROACH, KEY, iteration=4)
    assert asyncio.run(ask_survey(model, first, FORMED)) == {"like": "no", "why": "x"}
    again = model.asked[1]
    assert '"like" must be "yes" or "no"' in again.messages[-1].content
    assert (again.key, again.iteration, again.messages[:2]) == ("ask/5/3/0/1", 4, first.messages)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer("I like it."), "not a JSON object"),
        (Answer("", finish="length"), "cut off"),
        (Answer('{"like": "yes"}'), "says nothing about why"),
        (Answer("I cannot help with that.", finish="refused"), "the model refused: I cannot help"),
    ],
)
def test_two_unusable_replies_count_as_no_answer(answer: Answer, reason: str) -> None:
    with pytest.raises(Unanswered, match=reason):
        asyncio.run(ask_survey(Scripted(answer), build_question(ADA, FORMED, APPROACH, KEY), FORMED))


def test_a_refusal_is_not_asked_about_again() -> None:
    model = Scripted(Answer("No.", finish="refused"))
    with pytest.raises(Unanswered):
        asyncio.run(ask_survey(model, build_question(ADA, FREE, APPROACH, KEY), FREE))
    assert len(model.asked) == 1


def test_a_failure_of_the_model_is_passed_on() -> None:
    with pytest.raises(ModelFailed):
        asyncio.run(
            ask_survey(Scripted(make_failure(FailureKind.AUTH)), build_question(ADA, FREE, APPROACH, KEY), FREE)
        )


def test_an_answer_that_was_cut_off_ends_with_its_last_whole_sentence() -> None:
    assert FREE.read(Answer("It rains. I am sure. They said tha", finish="length")) == {ANSWER: "It rains. I am sure."}
    assert FREE.read(Answer("It rains, I am sure, they said tha", finish="length"))[ANSWER].endswith("said tha")
    why = Survey.of([Item("Why?", (Field("why"),))])
    assert why.read(Answer(f'{{"why": "It stays. {"so " * 400}"}}')) == {"why": "It stays."}


def test_a_small_model_is_asked_in_few_words() -> None:
    question = build_question(ADA, FREE, Approach("local", is_compact=True), KEY)
    assert len(question.messages[0].content) < 300
    assert question.messages[1].content.endswith("You are Ada. Answer in one or two sentences.")
