"""Agents that are played by a person."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from shoal.agents.heuristic.dialogue import DialogueMind
from shoal.agents.human import HumanMind, PlayedMind
from shoal.agents.scripted import ScriptedMind
from shoal.agents.settings import Latency
from shoal.agents.wrappers import DelayedMind
from shoal.engine.decisions import Decider, DecisionLimits
from shoal.engine.engine import Engine
from shoal.journal import Journal
from shoal.types import Action, Decision, MindMode, Observation
from tests.agents.heuristic.test_dialogue import NEAR, look, mind_of, people
from tests.engine.harness import Ledger
from tests.worlds.drivers import make_dialogue


class Person:
    """Answers every turn with the same words, and keeps what it was asked."""

    def __init__(self, words: str = "As a human, I see it differently.") -> None:
        self.seen: list[Observation] = []
        self._words = words

    async def answer(self, observation: Observation) -> Decision:
        self.seen.append(observation)
        return Decision((Action("SAY", {"content": self._words}),))


def cast(person: Person, default: DialogueMind | None = None) -> PlayedMind:
    """Wrap a mind so that the second of two agents is played."""
    return PlayedMind(default or mind_of(people(*NEAR)), HumanMind(person.answer), {1})


async def run(
    mind: PlayedMind, journal: Path, limits: DecisionLimits | None = None, stop: asyncio.Event | None = None
) -> list[str]:
    """Run a conversation of six turns and a score; return the digests of what was committed."""
    ledger = Ledger()
    async with Journal.open(journal) as lines:
        asking = Decider(mind, lines, limits or DecisionLimits())
        world = make_dialogue(people(*NEAR), turns=6)
        await Engine(world, asking, ledger, seed=7).run(10, stop or asyncio.Event())
    return ledger.digests


def test_only_played_agents_are_asked_outside_and_have_no_deadline() -> None:
    mind = cast(Person())
    assert mind.outside
    assert [mind.mode(0), mind.mode(1)] == [MindMode.PURE, MindMode.EXTERNAL]
    assert [mind.deadline(0, 5.0), mind.deadline(1, 5.0)] == [5.0, None]


def test_agents_that_are_asked_outside_anyway_still_are() -> None:
    default = DelayedMind(mind_of(people(*NEAR)), Latency(median_ms=1), seed=1)
    mind = PlayedMind(default, HumanMind(Person().answer), [1])
    assert [mind.mode(0), mind.mode(1)] == [MindMode.EXTERNAL, MindMode.EXTERNAL]
    assert [mind.deadline(0, 5.0), mind.deadline(1, 5.0)] == [5.0, None]
    assert mind.request(look()) == default.request(look())


def test_other_agents_decide_remember_and_explain_as_without_a_person() -> None:
    alone, default = mind_of(people(*NEAR)), mind_of(people(*NEAR))
    mind = cast(Person(), default)
    seen = look()
    assert mind.decide(seen) == alone.decide(seen)
    for one in (mind, alone):
        one.absorb(seen, Decision((Action("SAY", {"content": "Hm."}),)))
    assert mind.memory(0) == alone.memory(0)
    assert mind.explain(seen) == alone.explain(seen)
    assert mind.opinions() == alone.opinions()
    mind.change(0, {"stance": -1.0})
    assert mind.opinions()[0] == default.opinions()[0] == -1.0


async def test_the_mind_learns_nothing_of_a_played_agent() -> None:
    default = mind_of(people(*NEAR))
    mind = PlayedMind(default, HumanMind(Person("Hello.").answer), [0])
    seen = look()
    before = default.memory(0)
    decision = await mind.decide(seen)  # type: ignore[misc]
    assert decision == Decision((Action("SAY", {"content": "Hello."}),))
    mind.absorb(seen, decision)
    assert default.memory(0) == before
    assert mind.memory(0) is None
    assert mind.explain(seen) == {"played_by": "a person"}
    assert mind.request(seen) == seen


def test_a_mind_without_memory_can_be_wrapped() -> None:
    assert PlayedMind(ScriptedMind(lambda seen: []), HumanMind(Person().answer), [1]).memory(0) is None


async def test_a_person_takes_the_turns_of_one_agent(tmp_path: Path) -> None:
    person = Person()
    digests = await run(cast(person), tmp_path / "journal.jsonl")
    assert [(seen.round, seen.agent) for seen in person.seen] == [(2, 1), (4, 1), (6, 1), (7, 1)]
    assert len(digests) == 8


async def test_what_a_person_decided_is_never_asked_again(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    digests = await run(cast(Person()), journal)
    again = Person("Something else.")
    assert await run(cast(again), journal) == digests
    assert again.seen == []


async def test_after_an_interruption_the_person_goes_on_where_they_were(tmp_path: Path) -> None:
    whole = await run(cast(Person()), tmp_path / "whole.jsonl")
    lines = (tmp_path / "whole.jsonl").read_text().splitlines(keepends=True)
    journal = tmp_path / "journal.jsonl"
    journal.write_text("".join(lines[:-2]))
    person = Person()
    assert await run(cast(person), journal) == whole
    assert [seen.round for seen in person.seen] == [6, 7]


async def test_no_deadline_cuts_a_person_short(tmp_path: Path) -> None:
    class Slow(Person):
        async def answer(self, observation: Observation) -> Decision:
            for _ in range(5):
                await asyncio.sleep(0)
            return await super().answer(observation)

    person = Slow()
    await run(cast(person), tmp_path / "journal.jsonl", DecisionLimits(deadline_seconds=0.0))
    assert "timeout" not in (tmp_path / "journal.jsonl").read_text()
    assert len(person.seen) == 4


@pytest.mark.parametrize("error", [ValueError("no idea"), OSError("gone")])
async def test_an_answer_that_fails_is_an_outcome_and_no_crash(tmp_path: Path, error: Exception) -> None:
    class Clumsy(Person):
        async def answer(self, observation: Observation) -> Decision:
            raise error

    assert len(await run(cast(Clumsy()), tmp_path / "journal.jsonl")) == 8
    assert str(error) in (tmp_path / "journal.jsonl").read_text()
