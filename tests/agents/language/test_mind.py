"""One call for each turn, one more where the reply cannot be used, and what becomes of either."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from shoal.agents.language.mind import LanguageMind
from shoal.engine.record import RoundRecord
from shoal.errors import Stopped
from shoal.journal import read_journal
from shoal.models.base import Answer, FailureKind, ModelFailed, ModelFailure, Question
from shoal.types import Action, Decision, Observation
from tests.agents.language.minds import (
    MODEL,
    Regular,
    Replies,
    build_mind,
    no_insights,
    prompt_of,
    reply_with,
    run_worlds,
)
from tests.engine.harness import village

NAMES = ("Ada Lund", "Bo Berg")
PLACE = village(NAMES, [("Bo Berg", "Ada Lund")], topic="the old bridge", events=[{"post": "Hello!", "by": "Ada Lund"}])
LIKE = {"action": "LIKE_POST", "post_id": 12}


def mind_of(model: Any, **settings: Any) -> tuple[LanguageMind, Observation]:
    """The mind of two people, and what Bo sees first."""
    mind, made = build_mind(model, PLACE, **no_insights(**settings))
    world = made.worlds["twitter"]
    world.begin(0)
    for happening in made.schedules["twitter"].due(0):
        world.happen(0, happening)
    world.writes()
    world.turns(1)
    return mind, world.observe(1, [1])[0]


async def decide(model: Any, **settings: Any) -> Decision:
    mind, seen = mind_of(model, **settings)
    return await mind.decide(seen)


async def test_a_turn_is_one_call() -> None:
    model = Replies(reply_with(LIKE, {"action": "FOLLOW", "user": "Ada Lund"}))
    assert await decide(model) == Decision((Action("LIKE_POST", {"post_id": 12}), Action("FOLLOW", {"followee_id": 0})))
    (question,) = model.questions
    assert question.key == "twitter/1/1/decide/0"
    assert (question.model, question.temperature, question.max_tokens) == (MODEL, 0.7, 600)
    assert [message.role for message in question.messages] == ["system", "user"]
    assert question.schema is not None


async def test_a_reply_that_cannot_be_used_is_sent_back_once_with_what_is_wrong() -> None:
    model = Replies("Hm, let me see.", reply_with(LIKE))
    assert (await decide(model)).actions == (Action("LIKE_POST", {"post_id": 12}),)
    first, second = model.questions
    assert second.key == "twitter/1/1/decide/1"
    assert second.messages[:2] == first.messages
    assert [message.role for message in second.messages[2:]] == ["assistant", "user"]
    assert second.messages[2].content == "Hm, let me see."
    assert "not a JSON object" in second.messages[3].content
    assert second.digest != first.digest


async def test_two_replies_that_cannot_be_used_are_an_unusable_turn() -> None:
    decision = await decide(Replies("Hm.", reply_with({"action": "FLY"})))
    assert decision.failure == "unusable"
    assert decision.reason is not None
    assert decision.reason.startswith("there is no action “FLY”")


async def test_a_refusal_is_not_sent_back() -> None:
    model = Replies(Answer("I cannot help with that.", finish="refused"))
    decision = await decide(model)
    assert (decision.failure, decision.reason) == ("unusable", "the model refused: I cannot help with that.")
    assert len(model.questions) == 1


async def test_a_model_that_fails_is_an_error_that_names_its_kind() -> None:
    decision = await decide(Replies(ModelFailed(ModelFailure(FailureKind.TOKEN_RATE, "too many tokens", 429))))
    assert decision == Decision(failure="error", reason="token_rate: too many tokens")
    decision = await decide(Replies("Hm.", ModelFailed(ModelFailure(FailureKind.OVERLOAD, "busy"))))
    assert decision == Decision(failure="error", reason="overload: busy")


async def test_what_stops_the_run_goes_through() -> None:
    with pytest.raises(Stopped, match="nothing left"):
        await decide(Replies(Stopped("nothing left")))


async def test_the_request_of_a_turn_is_its_first_question() -> None:
    model = Replies("Hm.", "Hm.")
    mind, seen = mind_of(model)
    before = mind.request(seen)
    await mind.decide(seen)
    assert mind.request(seen) is model.questions[0]
    assert before.digest == model.questions[0].digest


async def test_a_turn_cut_short_before_it_asked_still_has_a_request() -> None:
    mind, seen = mind_of(Replies())
    deciding = asyncio.ensure_future(mind.decide(seen))
    deciding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await deciding
    assert mind.request(seen).key == "twitter/1/1/decide/0"


async def test_groups_and_people_may_have_models_of_their_own() -> None:
    scenario = {
        "population": [
            {"group": "experts", "count": 1},
            {"group": "experts", "count": 1, "profession": "doctor"},
            {"name": "Ada Lund"},
            {"name": "Bo Berg"},
        ],
        "time": {"daily_rhythm": False},
    }
    model = Replies(*[reply_with()] * 4)
    plain, made = build_mind(model, scenario, **no_insights())
    second = made.people.names[1]
    by = {"by_group": {"experts": "openai/large"}, "by_agent": {"Ada Lund": "groq/own", second: "groq/doctor"}}
    mind, made = build_mind(model, scenario, **no_insights(**by))
    world = made.worlds["twitter"]
    world.begin(0)
    for seen in world.observe(1, range(4)):
        await mind.decide(seen)
    assert [question.model for question in model.questions] == ["openai/large", "groq/doctor", "groq/own", MODEL]
    assert plain.request(world.observe(1, [0])[0]).model == MODEL


async def test_what_was_done_and_thought_is_remembered() -> None:
    model = Replies(reply_with(LIKE, thought="Ada is right."), reply_with())
    mind, seen = mind_of(model)
    mind.absorb(seen, await mind.decide(seen))
    later = type(seen)(**{field: getattr(seen, field) for field in seen.__struct_fields__} | {"round": 2})
    await mind.decide(later)
    assert "# What you remember" not in model.questions[0].messages[1].content
    assert "You thought: Ada is right. You liked post 12." in prompt_of(model.questions)


class Stubborn(Replies):
    """Follows itself and likes a post that is not there, in every turn."""

    async def answer(self, question: Question) -> Answer:
        self.questions.append(question)
        return Answer(reply_with({"action": "FOLLOW", "user": question.key.split("/")[2]}, {"action": "TREND"}))


@pytest.mark.parametrize("visibility", [1, 3])
def test_an_agent_is_told_what_was_refused_and_never_remembers_it_as_done(tmp_path: Path, visibility: int) -> None:
    model = Stubborn()
    _, made = build_mind(model, {**PLACE, "worlds": {"twitter": {"visibility": visibility}}}, **no_insights())
    run_worlds(made, 6, tmp_path)
    asked = {str(question.key): question.messages[1].content for question in model.questions}
    told = asked[f"twitter/{1 + visibility}/1/decide/0"]
    assert (
        "You tried to follow Bo Berg but were refused (nobody can follow themselves), looked at what is liked most."
        in told
    )
    assert "Refused in your last turn: FOLLOW: nobody can follow themselves." in told
    assert all("followed Bo Berg" not in prompt for prompt in asked.values())
    assert "Refused" not in asked[f"twitter/{visibility}/1/decide/0"]


def test_prompts_of_the_first_version_remember_what_was_decided(tmp_path: Path) -> None:
    model = Stubborn()
    _, made = build_mind(model, PLACE, **no_insights(prompt={"version": 1}))
    run_worlds(made, 2, tmp_path)
    told = next(question for question in model.questions if question.key == "twitter/2/1/decide/0")
    assert "You followed Bo Berg, looked at what is liked most." in told.messages[1].content
    assert "Refused" not in told.messages[1].content


async def test_a_failed_turn_is_not_remembered() -> None:
    model = Replies(reply_with())
    mind, seen = mind_of(model)
    mind.absorb(seen, Decision.timed_out(3))
    await mind.decide(seen)
    assert "# What you remember" not in prompt_of(model.questions)


async def test_a_change_of_mind_is_in_the_prompt() -> None:
    mind, seen = mind_of(Replies())
    assert "You have changed your mind" not in mind.request(seen).messages[1].content
    mind.change(1, {"stance": 0.9})
    mind.change(1, {"job": "retired", "activity": 0.1})
    told = mind.request(seen).messages[1].content
    assert "You have changed your mind: you are now strongly in favour of the old bridge.\n" in told
    assert "What is new about you:\njob: retired\n" in told
    assert "undecided" not in told.split("\n# Now")[0]


async def test_an_explanation_shows_the_prompt_without_a_call() -> None:
    model = Replies()
    mind, seen = mind_of(model)
    why = mind.explain(seen)
    assert (why["model"], why["recalled"]) == (MODEL, "")
    assert [message["role"] for message in why["prompt"]] == ["system", "user"]
    assert "Ada Lund" in why["prompt"][1]["content"]
    assert model.questions == []
    assert mind.opinions() == ()
    assert mind.prefixes.total.prompts == 0


def test_in_a_run_every_turn_is_asked_for_and_failures_are_journaled(tmp_path: Path) -> None:
    class Moody(Regular):
        async def answer(self, question: Any) -> Answer:
            if question.key.startswith("twitter/2/1/"):
                return Answer("Hm.")
            return await super().answer(question)

    events = []

    def watch(record: RoundRecord) -> None:
        events.extend(record.lines.splitlines())

    model = Moody()
    _, made = build_mind(model, PLACE)
    run_worlds(made, 4, tmp_path, watch)
    (line,) = read_journal(tmp_path / "twitter.jsonl")[0]
    assert (line.key, line.outcome) == ("twitter/2/1/outcome/0", "unusable")
    assert sum(b'"round":' in event and b'"agent_id":1' in event for event in events) == 4
    assert any(b"unusable: your reply is not a JSON object" in event for event in events)
