"""Language minds of small worlds, and models that answer from a list or by a rule."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from shoal.agents.language.mind import LanguageMind
from shoal.agents.settings import LanguageSettings
from shoal.engine.decisions import Decider
from shoal.engine.engine import Engine
from shoal.engine.record import RoundRecord
from shoal.journal import Journal
from shoal.models.base import Answer, Question
from shoal.scenario.build import Simulation, Sources, build
from shoal.scenario.loading import validate
from shoal.scenario.scenario import Scenario
from shoal.seeds import Draws, derive
from shoal.types import Versioned

MODEL = "openai/gpt-4.1-mini"
WORDS = """people say that this will not go well and nobody was asked about it so let us wait for what the council has
to tell us before we believe every story that somebody passes on""".split()


class Replies:
    """Answers with the next of its texts, and keeps the questions."""

    def __init__(self, *replies: str | Answer | Exception) -> None:
        self._replies = list(replies)
        self.questions: list[Question] = []

    async def answer(self, question: Question) -> Answer:
        self.questions.append(question)
        reply = self._replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return Answer(reply) if isinstance(reply, str) else reply


class Regular:
    """Reads the posts in the prompt and does something usual with one of them."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, int]] = []

    async def answer(self, question: Question) -> Answer:
        if "/decide/" not in question.key:
            return Answer('{"insights": ["People argue a lot about the old bridge these days."]}')
        world, round, agent, *_ = question.key.split("/")
        self.sent.append((int(round), count_bytes(question)))
        turn = _choose_action(Draws(derive(1, world, int(round), int(agent))), question.messages[-1].content)
        return Answer(
            msgspec.json.encode({"thought": "This is worth a moment of my time.", "actions": [turn]}).decode()
        )


def _choose_action(draws: Draws, prompt: str) -> dict[str, Any]:
    posts = [int(number) for number in re.findall(r"^\[(\d+)\]", prompt, re.MULTILINE)]
    text = " ".join(draws.choice(WORDS) for _ in range(28))
    chance = draws.random()
    if chance < 0.25 or not posts:
        return {"action": "CREATE_POST", "content": text}
    if chance < 0.45:
        return {"action": "CREATE_COMMENT", "post_id": draws.choice(posts), "content": text[:90]}
    return {"action": "LIKE_POST", "post_id": draws.choice(posts)} if chance < 0.7 else {"action": "DO_NOTHING"}


def count_bytes(question: Question) -> int:
    """Return the bytes of the request to a server that takes a schema."""
    form = {"type": "json_schema", "json_schema": {"name": "turn", "strict": True, "schema": question.schema}}
    body = {
        "model": question.model,
        "messages": question.messages,
        "temperature": question.temperature,
        "max_tokens": question.max_tokens,
        "response_format": form,
    }
    return len(msgspec.json.encode(body))


def build_simulation(answering: Any, scenario: Scenario | dict[str, Any], **mind: Any) -> Simulation:
    """Build the scenario with language minds that ask this model."""
    declared = validate(scenario) if isinstance(scenario, dict) else scenario
    settings = LanguageSettings.model_validate({"model": MODEL, **mind})
    return build(Versioned(declared.model_copy(update={"mind": settings})), sources=Sources(model=answering))


def build_mind(model: Any, scenario: dict[str, Any], **mind: Any) -> tuple[LanguageMind, Simulation]:
    """Build the simulation, and return the mind of its first world with it."""
    made = build_simulation(model, scenario, **mind)
    first = next(iter(made.minds.values()))
    assert isinstance(first, LanguageMind)
    return first, made


def no_insights(**more: Any) -> dict[str, Any]:
    """Return settings of a memory that draws no conclusions."""
    return {"memory": {"consolidate_every": 0}, **more}


def run_worlds(
    made: Simulation, rounds: int, path: Path, watch: Callable[[RoundRecord], None] = lambda record: None
) -> None:
    """Run all worlds, one after another."""

    class Ledger:
        def commit(self, record: RoundRecord) -> None:
            watch(record)

    async def run() -> None:
        for name, world in made.worlds.items():
            async with Journal.open(path / f"{name}.jsonl") as journal:
                asking = Decider(made.minds[name], journal, made.limits)
                await Engine(world, asking, Ledger(), made.seed, made.schedules[name]).run(rounds, asyncio.Event())
            await made.minds[name].close()

    asyncio.run(run())


def reply_with(*actions: dict[str, Any], thought: str = "") -> str:
    """Return a valid reply."""
    return msgspec.json.encode({"thought": thought, "actions": list(actions)}).decode()


def prompt_of(questions: Sequence[Question]) -> str:
    return questions[-1].messages[1].content
