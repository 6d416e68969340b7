"""Dialogues with an assistant under test: a plain chat on its side, and people who know what they talk to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shoal.engine.record import RoundRecord
from shoal.errors import ScenarioInvalid
from shoal.models.base import Answer, Question
from shoal.scenario.loading import parse
from tests.agents.language.minds import build_simulation, no_insights, reply_with, run_worlds

SYSTEM = "You are the help desk of a bank. Never ask for a PIN."
SCENARIO: dict[str, Any] = {
    "population": [
        {
            "group": "customers",
            "count": 2,
            "persona": "{name}, {age}, is {mood} and has lost a card.",
            "bio": "A customer.",
            "traits": {"mood": ["hurried"], "colour": ["blue"]},
        },
        {"assistant": "Helpdesk", "count": 2, "system": SYSTEM},
    ],
    "worlds": {"dialogue": {"pairs": {"customers": "Helpdesk"}, "turns": 4, "scenes": [{}, {}]}},
    "rounds": 10,
}
MIND: dict[str, Any] = {"by_group": {"Helpdesk": {"model": "vllm/helpdesk", "temperature": 0.1, "max_tokens": 50}}}


class Chat:
    """Answers in the name of both sides, and keeps the questions by key."""

    def __init__(self, *answers: str) -> None:
        self.questions: dict[str, Question] = {}
        self._answers = list(answers)

    async def answer(self, question: Question) -> Answer:
        self.questions[str(question.key)] = question
        if question.model == "vllm/helpdesk":
            return Answer(self._answers.pop(0) if self._answers else f"Answer {question.key.round}, at length." * 30)
        if "RATE it" in question.messages[-1].content:
            return Answer(reply_with({"action": "RATE", "score": 7}))
        said = ({"action": "SAY", "content": f"{part} in {question.key.round}"} for part in ("One", "Two"))
        return Answer(reply_with(*said))


def hold(model: Any, path: Path, scenario: dict[str, Any] = SCENARIO) -> list[bytes]:
    lines: list[bytes] = []

    def watch(record: RoundRecord) -> None:
        lines.extend(record.lines.splitlines())

    run_worlds(build_simulation(model, scenario, **no_insights(**MIND)), 10, path, watch)
    return lines


def test_an_assistant_is_sent_a_plain_chat(tmp_path: Path) -> None:
    model = Chat()
    hold(model, tmp_path)
    question = model.questions["dialogue/4/2/decide/0"]
    answer = "Answer 2, at length." * 30
    assert [(message.role, message.content) for message in question.messages] == [
        ("system", SYSTEM),
        ("user", "One in 1\n\nTwo in 1"),
        ("assistant", answer),
        ("user", "One in 3\n\nTwo in 3"),
    ]
    assert (question.schema, question.model, question.temperature, question.max_tokens) == (
        None,
        "vllm/helpdesk",
        0.1,
        50,
    )


def test_without_a_system_message_none_is_sent(tmp_path: Path) -> None:
    customers, assistant = SCENARIO["population"]
    model = Chat()
    bare = {key: value for key, value in assistant.items() if key != "system"}
    hold(model, tmp_path, {**SCENARIO, "population": [customers, bare]})
    assert [message.role for message in model.questions["dialogue/2/2/decide/0"].messages] == ["user"]


def test_people_begin_every_session_and_only_they_rate(tmp_path: Path) -> None:
    model = Chat()
    lines = hold(model, tmp_path)
    asked = sorted(key.split("/decide/")[0] for key in model.questions)
    assert [key for key in asked if key.endswith(("/0", "/2"))] == [
        *("dialogue/1/0", "dialogue/10/0", "dialogue/2/2", "dialogue/3/0", "dialogue/4/2", "dialogue/5/0"),
        *("dialogue/6/0", "dialogue/7/2", "dialogue/8/0", "dialogue/9/2"),
    ]
    assert sum(b'"RATE"' in line for line in lines) == 4
    # A new session is a new chat.
    assert model.questions["dialogue/7/2/decide/0"].messages[1].content == "One in 6\n\nTwo in 6"


def test_people_know_what_they_talk_to_and_read_its_answers_whole(tmp_path: Path) -> None:
    model = Chat()
    hold(model, tmp_path)
    system, user = (message.content for message in model.questions["dialogue/3/0/decide/0"].messages)
    assert "A chat in writing" in system
    assert "face to face" not in system
    assert "You talk with Helpdesk (an AI assistant)." in user
    assert "Answer 2, at length." * 30 in user


def test_two_groups_talk_to_one_another_and_who_is_left_over_does_not() -> None:
    people = [{"group": "guests", "count": 2}, {"name": "Ada"}, {"group": "hosts", "count": 3}]
    scenario = {"population": people, "worlds": {"dialogue": {"pairs": {"hosts": "guests"}}}}
    world = build_simulation(Chat(), scenario).worlds["dialogue"]
    partners = [seen.partner_id for seen in world.observe(1, range(6))]  # type: ignore[attr-defined]
    assert partners == [3, 4, -1, 0, 1, -1]
    assert world.turns(1) == [[3, 4]]


def test_a_group_has_personas_of_its_own(tmp_path: Path) -> None:
    model = Chat()
    hold(model, tmp_path)
    about = model.questions["dialogue/1/0/decide/0"].messages[1].content.partition("# Now")[0]
    assert "is hurried and has lost a card.\nYour profile says: A customer.\ncolour: blue\n\n" in about


def test_an_empty_answer_is_a_lost_turn_and_silence_is_not_answered(tmp_path: Path) -> None:
    class Silent(Chat):
        async def answer(self, question: Question) -> Answer:
            if question.model != "vllm/helpdesk":
                return Answer(reply_with())
            return await super().answer(question)

    assert any(b"the assistant's reply is empty" in line for line in hold(Chat("  "), tmp_path))
    model = Silent()
    hold(model, tmp_path)
    assert model.questions == {}


@pytest.mark.parametrize(
    ("scenario", "problem"),
    [
        (
            "population: [{count: 2}, {assistant: Desk}]\nworlds: [twitter]",
            "worlds: an assistant can only take part in a dialogue",
        ),
        (
            "population: [{count: 2}, {assistant: Desk}]\nworlds: [dialogue]",
            "say who talks to the assistant, such as `pairs: {customers: Desk}`",
        ),
        (
            "population: [{group: a, count: 2}, {assistant: Desk}]\nworlds: {dialogue: {pairs: {a: Desk}}}",
            "s.yaml:2:32: worlds.dialogue.pairs.a: there are 2 of 'a' and 1 of 'Desk'; give the assistant",
        ),
        (
            "population: [{assistant: A}, {assistant: B}]\nworlds: {dialogue: {pairs: {A: B}}}",
            "'A' and 'B' are both assistants; one of them must be people",
        ),
        (
            "population: [{group: guests, count: 2}, {group: hosts, count: 2}]\n"
            "worlds: {dialogue: {pairs: {guests: host}}}",
            "unknown group 'host'; did you mean 'hosts'?",
        ),
        (
            "population: [{group: a, count: 2}, {group: b, count: 2}]\nworlds: {dialogue: {pairs: {a: b, b: a}}}",
            "group 'a' stands in two places",
        ),
        (
            "population: [{group: a, count: 2, persona: 'I am {nam}.', traits: {x: 1}}]",
            "s.yaml:1:44: population.0.persona: unknown variable 'nam'; did you mean 'name'?",
        ),
    ],
)
def test_what_is_wrong_about_pairs_and_assistants_is_said(scenario: str, problem: str) -> None:
    with pytest.raises(ScenarioInvalid) as caught:
        parse(scenario, "s.yaml")
    assert problem in str(caught.value)
