"""Propositions: a claim is scored 0 to 9 by a record, with the reason."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from shoal.agents.interview import Approach, Unanswered, ask_survey
from shoal.agents.propositions import SCORE_FORM, Proposition
from shoal.agents.record import MAX_LINE_CHARS, excerpt_record
from shoal.errors import QueryFailed
from shoal.journal import JournalKey
from shoal.models.base import Answer
from tests.models.fakes import Scripted

APPROACH = Approach("openai/gpt-4.1")
KEY = JournalKey("claim", 2, 0, "0")
CLAIM = Proposition("Ada changed her mind.", "agent", "Ada", "Round 1: rain\nRound 2: sun", "Ada is a baker.")


def test_a_question_has_the_record_before_the_claim_and_asks_for_the_reason_before_the_score() -> None:
    question = CLAIM.build_question(APPROACH, KEY, 3)
    text = question.messages[-1].content
    places = [text.index(part) for part in ("a baker", "Round 1: rain", "Round 2: sun", "Ada changed her mind.")]
    assert places == sorted(places)
    assert question.schema is not None
    assert list(question.schema["properties"]) == ["reason", "score"]
    assert question.schema["properties"]["score"] == {"type": "integer", "minimum": 0, "maximum": 9}
    assert (question.key, question.iteration) == ("claim/2/0/0/0", 3)


def test_claims_about_the_same_record_begin_alike() -> None:
    record = excerpt_record(f"Round {round}: something" for round in range(20))
    one, other = (
        Proposition(claim, "world", "twitter", record).build_question(APPROACH, KEY) for claim in ("One.", "Other.")
    )
    text, start = one.messages[-1].content, one.messages[-1].content.index("One.")
    assert other.messages[-1].content.startswith(text[:start])
    assert start > len(record)


def test_a_claim_about_a_world_names_the_world() -> None:
    claim = Proposition("It was calm.", "world", "twitter", excerpt_record([]))
    text = claim.build_question(APPROACH, KEY).messages[-1].content
    assert "the world twitter" in text
    assert "(nothing happened)" in text
    assert "was told to be" not in text


def test_a_long_record_keeps_its_beginning_and_its_end() -> None:
    record = excerpt_record((f"line {n}" for n in range(100)), first=2, last=3)
    assert record == "line 0\nline 1\n(… 95 lines left out …)\nline 97\nline 98\nline 99"


def test_a_short_record_is_kept_whole() -> None:
    lines = [f"line {n}" for n in range(5)]
    assert excerpt_record(lines, first=2, last=3) == "\n".join(lines)


def test_no_record_is_longer_than_its_bounds() -> None:
    record = excerpt_record(["x" * 10_000] * 1_000, first=10, last=10)
    assert len(record) < 20 * (MAX_LINE_CHARS + 1) + 100


def score(*answers: Answer) -> dict[str, Any]:
    return asyncio.run(ask_survey(Scripted(*answers), CLAIM.build_question(APPROACH, KEY), SCORE_FORM))


def test_a_score_comes_with_its_reason() -> None:
    assert score(Answer('{"reason": "round 2 says so", "score": 8}')) == {"reason": "round 2 says so", "score": 8}


@pytest.mark.parametrize("value", ["10", "-1", "4.5", '"high"', "null"])
def test_a_value_that_is_no_score_from_0_to_9_is_refused(value: str) -> None:
    answer = Answer(f'{{"reason": "x", "score": {value}}}')
    with pytest.raises(Unanswered):
        score(answer, answer)


def test_a_judge_is_asked_once_more_and_then_given_up() -> None:
    good, bad = Answer('{"reason": "x", "score": 3}'), Answer("three")
    assert score(bad, good) == {"reason": "x", "score": 3}
    with pytest.raises(Unanswered):
        score(bad, bad)


@pytest.mark.parametrize("claim", ["", "  ", "x" * 3_000])
def test_an_empty_or_too_long_claim_is_refused(claim: str) -> None:
    with pytest.raises(QueryFailed, match="claim"):
        Proposition(claim, "world", "twitter", "")
