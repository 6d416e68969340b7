"""Agents that follow a script."""

from __future__ import annotations

import asyncio

import pytest

from shoal.agents.scripted import ScriptedMind
from shoal.agents.settings import ScriptedSettings, ScriptedTurn
from shoal.errors import ScenarioInvalid
from shoal.types import Action, Decision
from tests.agents.people import look

NAMES = ("Mira", "Bo", "Mira")
NOTHING = Decision((Action("DO_NOTHING"),))


def turn(round: int, agent: str | int, text: str, world: str | None = None) -> ScriptedTurn:
    return ScriptedTurn(round=round, agent=agent, world=world, action="CREATE_POST", args={"content": text})


def mind_of(*turns: ScriptedTurn) -> ScriptedMind:
    return ScriptedMind.from_turns(ScriptedSettings(kind="scripted", turns=turns), NAMES, "twitter")


def create_post(text: str) -> Action:
    return Action("CREATE_POST", {"content": text})


async def test_agents_do_exactly_what_the_script_says() -> None:
    mind = mind_of(turn(2, "Bo", "hello"), turn(2, 1, "again"), turn(3, "Bo", "bye"))
    assert await mind.decide(look(agent=1, round=2)) == Decision((create_post("hello"), create_post("again")))
    assert await mind.decide(look(agent=1, round=3)) == Decision((create_post("bye"),))
    assert await mind.decide(look(agent=1, round=4)) == NOTHING
    assert await mind.decide(look(agent=0, round=2)) == NOTHING


async def test_turns_of_other_worlds_are_left_out() -> None:
    mind = mind_of(turn(1, "Bo", "here", "twitter"), turn(1, "Bo", "there", "reddit"))
    assert await mind.decide(look(agent=1, round=1)) == Decision((create_post("here"),))


async def test_a_shared_name_means_the_first_who_has_it() -> None:
    mind = mind_of(turn(1, "Mira", "me"))
    assert await mind.decide(look(agent=0, round=1)) == Decision((create_post("me"),))
    assert await mind.decide(look(agent=2, round=1)) == NOTHING


@pytest.mark.parametrize("agent", ["Nobody", 3, -1])
def test_an_unknown_agent_is_a_problem_of_the_scenario(agent: str | int) -> None:
    with pytest.raises(ScenarioInvalid, match=f"round 4: there is no agent {agent!r}"):
        mind_of(turn(4, agent, "hello"))


async def test_a_function_can_be_the_script() -> None:
    mind = ScriptedMind(lambda seen: [create_post(f"round {seen.round}")] if seen.agent == 1 else [])
    assert await mind.decide(look(agent=1, round=5)) == Decision((create_post("round 5"),))
    assert await mind.decide(look(agent=0, round=5)) == NOTHING


async def test_it_records_the_agents_that_were_asked_in_each_round() -> None:
    mind = mind_of()
    for round, agent in ((1, 2), (1, 0), (2, 1)):
        await mind.decide(look(agent=agent, round=round))
    assert mind.asked == [(1, 2), (1, 0), (2, 1)]


async def test_a_delayed_agent_answers_after_the_others() -> None:
    mind = ScriptedMind(lambda seen: [], delay=lambda seen: 0.02 if seen.agent == 0 else 0.0)
    answered: list[int] = []

    async def ask(agent: int) -> None:
        await mind.decide(look(agent=agent))
        answered.append(agent)

    await asyncio.gather(ask(0), ask(1))
    assert mind.asked == [(1, 0), (1, 1)]
    assert answered == [1, 0]


def test_a_scripted_mind_is_outside() -> None:
    assert ScriptedMind.outside
