"""Playing a run through without asking anybody: the offline mind decides, and every question is only measured.

Language minds are asked for their turns as in a run: they build their prompts, read replies and remember. What they ask
is answered by an understudy, which puts the decision of the world's offline mind into the words of a model.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import msgspec

from shoal.agents.memory.tokens import estimate
from shoal.models.question import Answer, Question
from shoal.models.rehearsal.prefixes import Prefixes
from shoal.types import Decision, Mind, Observation

#: As long as what models write where they are allowed twenty words.
THOUGHT = "Everybody talks about this, and before I take a side I would rather hear what those say who were there."
#: What a server adds around a prompt and its schema.
TOKENS_AROUND = 16
#: Servers keep no shorter beginnings of prompts than this.
CACHED_FROM_TOKENS = 1024

_encode = msgspec.json.Encoder().encode


class Place(NamedTuple):
    """Where and when a model is asked."""

    world: str
    model: str
    round: int


@dataclass(slots=True)
class Measured:
    """Calls, and the tokens they took."""

    calls: int = 0
    input: float = 0
    output: float = 0
    #: Of the input, what a server with a prefix cache has read before.
    cached: float = 0

    def add(self, other: Measured, times: float = 1.0) -> None:
        self.calls += round(other.calls * times)
        self.input += other.input * times
        self.output += other.output * times
        self.cached += other.cached * times

    def mean(self) -> Measured:
        """One call of these."""
        calls = max(self.calls, 1)
        return Measured(1, self.input / calls, self.output / calls, self.cached / calls)


@dataclass(slots=True)
class Measurements:
    """All that was asked while a run was played through."""

    #: Turns in which a model would have been asked, of everybody.
    turns: Counter[Place] = field(default_factory=Counter)
    #: Questions of those who were followed.
    decided: defaultdict[Place, Measured] = field(default_factory=lambda: defaultdict(Measured))
    remembered: defaultdict[Place, Measured] = field(default_factory=lambda: defaultdict(Measured))


class Understudy:
    """Answers in place of every model."""

    def __init__(self, measurements: Measurements) -> None:
        self._measurements = measurements
        self._replies: dict[str, str] = {}
        self._schemas: dict[int, tuple[object, int]] = {}
        self._prefixes: dict[str, Prefixes] = {}

    def learn(self, observation: Observation, decision: Decision) -> None:
        """What to answer when this agent asks."""
        actions = [{"action": action.kind, **action.args} for action in decision.actions]
        turn = f"{observation.world}/{observation.round}/{observation.agent}"
        self._replies[turn] = _encode({"thought": THOUGHT, "actions": actions}).decode()

    async def answer(self, question: Question) -> Answer:
        turn, purpose, _ = question.key.rsplit("/", 2)
        world, round, agent = turn.rsplit("/", 2)
        place = Place(world, question.model, int(round))
        if purpose == "remember":
            text = _insights(int(round), int(agent))
            self._measure(self._measurements.remembered[place], question, text)
        elif purpose == "decide" and turn in self._replies:
            text = self._replies.pop(turn)
            self._measure(self._measurements.decided[place], question, text)
        else:
            # Asked a second time, about a decision that cannot be said in the words of this world.
            text = '{"thought": "", "actions": []}'
        return Answer(text)

    def _measure(self, measured: Measured, question: Question, text: str) -> None:
        measured.calls += 1
        measured.input += sum(_tokens(message.role, message.content) for message in question.messages)
        measured.input += self._schema_tokens(question.schema) + TOKENS_AROUND
        measured.output += estimate(text)
        prompt = "\n".join(f"{message.role}: {message.content}" for message in question.messages)
        measured.cached += self._prefixes.setdefault(question.model, Prefixes(CACHED_FROM_TOKENS)).cached(prompt)

    def _schema_tokens(self, schema: dict[str, Any] | None) -> int:
        """Servers count the schema as a part of the prompt. It is kept, so that its id stays its own."""
        if schema is None:
            return 0
        if id(schema) not in self._schemas:
            self._schemas[id(schema)] = schema, estimate(_encode(schema).decode())
        return self._schemas[id(schema)][1]


@dataclass(frozen=True, slots=True)
class Whom:
    """Whose prompts are built, who is played by a person, and which model is asked for everybody else."""

    followed: frozenset[int]
    played: frozenset[int]
    model: Callable[[int], str]


class Rehearsed(Mind):
    """Lets the offline mind decide for everybody, and has the language mind go along with those who are followed."""

    outside: ClassVar[bool] = True
    keeps_journal: ClassVar[bool] = True

    def __init__(self, language: Mind, offline: Mind, whom: Whom, measurements: Measurements, ask: Understudy) -> None:
        super().__init__()
        self._language = language
        self._offline = offline
        self._whom = whom
        self._turns = measurements.turns
        self._understudy = ask

    def asks(self, agent: int) -> bool:
        return agent in self._whom.followed

    def decide(self, observation: Observation) -> Decision | Awaitable[Decision]:
        agent = observation.agent
        if agent not in self._whom.played:
            self._turns[Place(observation.world, self._whom.model(agent), observation.round)] += 1
        return self._ask(observation) if self.asks(agent) else self._offline.decide(observation)

    async def _ask(self, observation: Observation) -> Decision:
        decision = self._offline.decide(observation)
        assert isinstance(decision, Decision)
        self._understudy.learn(observation, decision)
        asked = self._language.decide(observation)
        if isinstance(asked, Awaitable):
            await asked
        return decision

    def absorb(self, observation: Observation, decision: Decision) -> None:
        self._offline.absorb(observation, decision)
        if self.asks(observation.agent):
            self._language.absorb(observation, decision)

    def change(self, agent: int, traits: Mapping[str, Any]) -> None:
        self._offline.change(agent, traits)
        self._language.change(agent, traits)

    def opinions(self) -> Sequence[float]:
        return self._language.opinions()

    async def close(self) -> None:
        await self._language.close()


class Idle(Mind):
    """For worlds that no offline mind knows."""

    def decide(self, observation: Observation) -> Decision:
        return Decision()


@lru_cache(maxsize=64)
def _shared_tokens(text: str) -> int:
    return estimate(text)


def _tokens(role: str, text: str) -> int:
    """What is the same for all agents is measured once."""
    return _shared_tokens(text) if role == "system" else estimate(text)


def _insights(round: int, agent: int) -> str:
    """Conclusions of usual length; none of them was drawn before."""
    insights = [
        f"By round {round} most people around me had taken a side, and few of them had looked into it.",
        f"What number {agent + 1} on my list told me about it turned out to be only half of the story.",
    ]
    return _encode({"insights": insights}).decode()
