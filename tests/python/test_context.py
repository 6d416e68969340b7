"""The situation that people are in, which they see until it changes."""

from __future__ import annotations

import asyncio
from typing import ClassVar

import pytest

import shoal
from shoal.errors import ScenarioInvalid
from shoal.python.person import Person
from shoal.python.world import World
from shoal.runs.planning.plan import collect_questions
from shoal.scenario.loading import validate
from shoal.scenario.prompts import describe_notes
from shoal.types import Action, Decision, Mind, Observation


class Aware(Mind):
    """Says what situation it is in."""

    outside = True
    seen: ClassVar[list[tuple[int, str, tuple[str, ...]]]] = []

    async def decide(self, observation: Observation) -> Decision:
        context = observation.context or ()
        self.seen.append((observation.round, observation.name, context))
        return Decision((Action("TALK", {"content": " and ".join(context) or "Nothing."}),))


def said(world: World, name: str) -> list[str]:
    return [event.action_args["content"] for event in world.results.actions() if event.agent_name == name]


def test_people_see_their_situation_until_it_changes() -> None:
    world = World("Town", [Person("Ada"), Person("Ben")], mind=Aware, context="It rains.")
    world.run(2)
    world.change_context(["The sun shines.", "It is Sunday."]).run(1)
    world.change_context("She is ill.", to="Ada").run(1)
    ben = world.people["Ben"].change_context("He travels.")
    world.run(1)
    world.change_context([]).run(1)
    sunny = "The sun shines. and It is Sunday."
    assert said(world, "Ada") == ["It rains.", "It rains.", sunny, "She is ill.", "She is ill.", "Nothing."]
    assert said(world, "Ben") == ["It rains.", "It rains.", sunny, sunny, "He travels.", "Nothing."]
    assert world.results.replay().digest == world.results.digest
    assert ben.name == "Ben"


def test_the_situation_is_part_of_the_history_and_of_what_a_request_depends_on() -> None:
    def digest(context: str) -> str:
        return World("Town", [Person("Ada"), Person("Ben")], context=context).run(2).digest

    assert digest("It rains.") == digest("It rains.") != digest("It snows.")
    run = World("Town", [Person("Ada"), Person("Ben")], mind=Aware, context="It rains.").run(4)
    Aware.seen.clear()
    fork = run.fork(at=3, set={"context": ["It snows."]})
    assert {(round, context) for round, _, context in Aware.seen} == {(3, ("It snows.",)), (4, ("It snows.",))}
    assert fork.replay().digest == fork.digest


def test_a_scenario_says_it_and_who_joins_later_is_in_it_too() -> None:
    Aware.seen.clear()
    events = [
        {"join": ["Cem"], "round": 2},
        {"context": "The bridge is closed.", "round": 3},
        {"context": "At home.", "to": ["Ben"], "round": 3},
    ]
    people = [Person(name, activity=1) for name in ("Ada", "Ben", "Cem")]
    start = "2026-01-01T19:00:00"
    world = World("Net", people, kind="twitter", mind=Aware, context="Spring.", events=events, start=start)
    world.run(3)
    assert sorted(Aware.seen) == [
        (1, "Ada", ("Spring.",)),
        (1, "Ben", ("Spring.",)),
        (2, "Ada", ("Spring.",)),
        (2, "Ben", ("Spring.",)),
        (2, "Cem", ("Spring.",)),
        (3, "Ada", ("The bridge is closed.",)),
        (3, "Ben", ("At home.",)),
        (3, "Cem", ("The bridge is closed.",)),
    ]
    assert "The bridge is closed." in str(world.results.explain("Ada", round=3))


@pytest.mark.parametrize("kind", ["room", "twitter", "dialogue"])
def test_language_models_are_told(kind: str) -> None:
    declared = {
        "population": [{"name": "Ada", "activity": 1}, {"name": "Ben", "activity": 1}],
        "time": {"daily_rhythm": False},
        "rounds": 2,
        "worlds": [kind],
        "mind": {"kind": "language", "model": "openai/gpt-4.1-mini"},
        "context": ["It rains.", "It is late."],
    }
    asked = asyncio.run(collect_questions(validate(declared), 2))
    assert asked
    told = "The situation: It rains.\nThe situation: It is late.\n"
    assert all(told in question.messages[-1].content for question in asked)
    assert describe_notes(validate(declared)) == []


def test_what_cannot_be_a_situation_is_refused_at_once() -> None:
    world = World("Town", [Person("Ada")])
    with pytest.raises(ScenarioInvalid, match="context"):
        world.change_context([""])
    with pytest.raises(ScenarioInvalid, match="Zoe"):
        world.change_context("It rains.", to="Zoe")
    with pytest.raises(ScenarioInvalid, match="context"):
        world.people["Ada"].change_context([3])  # type: ignore[list-item]
    assert world.run().rounds == 1
    assert isinstance(world.results, shoal.Run)


def test_offline_minds_do_not_read_it_and_this_is_said() -> None:
    scenario = validate({"population": {"count": 2}, "context": "It rains."})
    assert describe_notes(scenario) == [
        "the heuristic mind does not read the `context`, so it changes nothing in what people do"
    ]
