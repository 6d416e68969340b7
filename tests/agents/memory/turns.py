"""Turns to remember, and models that draw conclusions from them."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import dataclass, field
from typing import Any, cast

from shoal.agents.memory.memory import Memory
from shoal.agents.settings import MemorySettings
from shoal.models.base import Answer, Model, ModelFailed, Question
from shoal.models.openai.embeddings import Embedder
from shoal.types import Population

WORLD = "town"
#: For memories that ask a model.
ASKING = MemorySettings(model="openai/gpt-4.1-mini", consolidate_every=4, lag_rounds=2)

_NAMES = "Ada Ben Cyd Dov Eva Finn Gil Hana".split()
_THINGS = "bridge market harbour school vote price storm letter train garden radio bread wolf council".split()
_VERBS = "closes opens burns wins fails grows moves stays sinks rises".split()


@dataclass(frozen=True)
class Town:
    names: tuple[str, ...] = tuple(_NAMES)


def memory(
    settings: MemorySettings | None = None, ask: Model | None = None, embed: Embedder | None = None, seed: int = 7
) -> Memory:
    given = settings or (MemorySettings() if ask is None else ASKING)
    return Memory(given, cast(Population, Town()), seed, WORLD, ask, embed)


def time(round: int) -> str:
    return f"2026-01-{1 + round // 24 % 28:02}T{round % 24:02}:00:00+00:00"


def turn(round: int, sentences: int = 3) -> str:
    """Return what was seen and done in a round, the same at each call."""
    draw = random.Random(round)
    said = [f"{draw.choice(_NAMES)} said the {draw.choice(_THINGS)} {draw.choice(_VERBS)}" for _ in range(sentences)]
    return f"Turn {round}. {'. '.join(said)}. You answered {draw.choice(_NAMES)}."


def absorb_turns(memory: Memory, rounds: range, agent: int = 0, sentences: int = 3) -> None:
    for round in rounds:
        memory.absorb(agent, round, time(round), turn(round, sentences))


async def recall_each_round(memory: Memory, rounds: range, agent: int = 0) -> list[str]:
    """Settle, recall and absorb in each round, as a mind does; return what was recalled."""
    texts = []
    for round in rounds:
        await memory.settle(agent, round, turn(round + 1000))
        texts.append(memory.recall(agent, round, turn(round + 1000)))
        memory.absorb(agent, round, time(round), turn(round))
    return texts


def insights(*texts: str) -> str:
    return json.dumps({"insights": texts})


@dataclass
class InsightModel:
    """Draws a different conclusion from each stretch, after a pause that the test sets."""

    #: How often to let other tasks go first, by the number of the question.
    pauses: dict[int, int] = field(default_factory=dict)
    #: Answers in place of conclusions, by the number of the question.
    instead: dict[int, str | ModelFailed] = field(default_factory=dict)
    asked: list[Question] = field(default_factory=list)

    async def answer(self, question: Question) -> Answer:
        number = len(self.asked)
        self.asked.append(question)
        for _ in range(self.pauses.get(number, 0)):
            await asyncio.sleep(0)
        said = self.instead.get(number, insights(f"Concluded {question.digest[:8]} from {question.key}."))
        if isinstance(said, ModelFailed):
            raise said
        return Answer(said)


@dataclass
class SilentModel:
    """Never answers."""

    asked: list[Question] = field(default_factory=list)
    cancelled: int = 0

    async def answer(self, question: Question) -> Answer:
        self.asked.append(question)
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        raise AssertionError


def shared_prefix(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def notes_of(question: Question) -> Any:
    """Return the episodes in a question about conclusions."""
    return question.messages[-1].content.partition("Lived through:\n")[2]
