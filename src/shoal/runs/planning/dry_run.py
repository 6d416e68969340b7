"""Playing a run through without asking anybody: the offline mind decides, and every question is only measured.

Language minds are asked for their turns as in a run: they build their prompts, read replies and remember. What they ask
is answered by an understudy, which puts the decision of the world's offline mind into the words of a model.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import msgspec

from shoal.agents.wrappers import WrapperMind
from shoal.journal import REMEMBER, JournalKey
from shoal.models.base import Answer, Question
from shoal.models.openai.embeddings import is_embedding, pack
from shoal.models.tokens import estimate
from shoal.rehearsal.embeddings import PrefixCache, embed_text
from shoal.types import Action, Decision, Mind, MindMode, Observation
from shoal.worlds.kinds import kind_seen

#: As long as what models write where they are allowed twenty words.
THOUGHT = "Everybody talks about this, and before I take a side I would rather hear what those say who were there."
#: Models seldom let a turn pass, as offline minds often do; of several actions that they may take they take one or two.
USUAL_ACTIONS = 1.5
#: One action, where no offline mind shows how long they are.
ACTION_TOKENS = 24
NOTHING = "DO_NOTHING"
#: Directions in which texts can differ; enough to tell them apart.
_DIMENSIONS = 64
#: What a server adds around a prompt and its schema.
TOKENS_AROUND = 16
#: Servers keep no shorter beginnings of prompts than this.
CACHED_FROM_TOKENS = 1024

T = TypeVar("T")

_encode = msgspec.json.Encoder().encode


class CallSite(NamedTuple):
    """Where and when a model is asked."""

    world: str
    model: str
    round: int


@dataclass(slots=True)
class CallTally:
    """Calls, and the tokens they took."""

    calls: int = 0
    input: float = 0
    output: float = 0
    #: Of the input, what a server with a prefix cache has read before.
    cached: float = 0

    def add(self, other: CallTally, times: float = 1.0) -> None:
        self.calls += round(other.calls * times)
        self.input += other.input * times
        self.output += other.output * times
        self.cached += other.cached * times

    def mean(self) -> CallTally:
        """One call of these."""
        calls = max(self.calls, 1)
        return CallTally(1, self.input / calls, self.output / calls, self.cached / calls)


@dataclass(slots=True)
class Measurements:
    """All that was asked while a run was played through."""

    #: Turns in which a model would have been asked, of everybody.
    turns: Counter[CallSite] = field(default_factory=Counter)
    #: Questions of those who were followed.
    decided: defaultdict[CallSite, CallTally] = field(default_factory=lambda: defaultdict(CallTally))
    remembered: defaultdict[CallSite, CallTally] = field(default_factory=lambda: defaultdict(CallTally))
    embedded: defaultdict[CallSite, CallTally] = field(default_factory=lambda: defaultdict(CallTally))
    #: World -> what was done in it, action by action, where anything was done at all.
    acts: defaultdict[str, CallTally] = field(default_factory=lambda: defaultdict(CallTally))

    def action_tokens(self, world: str) -> float:
        """How long an action usually is."""
        acts = self.acts[world]
        return acts.output / acts.calls if acts.calls else ACTION_TOKENS

    def after(self, done: Mapping[str, int]) -> Measurements:
        """What is asked in the rounds that come after these."""

        def left(found: Mapping[CallSite, T]) -> dict[CallSite, T]:
            return {place: each for place, each in found.items() if place.round > done.get(place.world, 0)}

        return Measurements(
            Counter(left(self.turns)),
            defaultdict(CallTally, left(self.decided)),
            defaultdict(CallTally, left(self.remembered)),
            defaultdict(CallTally, left(self.embedded)),
            self.acts,
        )


class DryRunModel:
    """Answers in place of every model; `tell` is told what is asked in turns."""

    def __init__(self, measurements: Measurements, tell: Callable[[Question], None] | None = None) -> None:
        self._measurements = measurements
        self._tell = tell
        self._replies: dict[JournalKey, str] = {}
        self._schemas: dict[int, tuple[object, int]] = {}
        self._prefixes: dict[str, PrefixCache] = {}

    def learn(self, observation: Observation, decision: Decision) -> None:
        """What to answer when this agent asks."""
        self._replies[JournalKey.of_turn(observation)] = _reply(decision.actions)
        acts = self._measurements.acts[observation.world]
        for action in decision.actions:
            if action.kind != NOTHING:
                acts.calls += 1
                acts.output += estimate(_reply([action])) - REPLY_TOKENS

    async def answer(self, question: Question) -> Answer:
        key = question.key
        place = CallSite(key.world, question.model, key.round)
        if is_embedding(question):
            return self._embed(self._measurements.embedded[place], question)
        if key.purpose == REMEMBER:
            assert isinstance(key.agent, int)
            text = _insights(key.round, key.agent)
            self._measure(self._measurements.remembered[place], question, estimate(text))
        elif key in self._replies:
            text = self._replies.pop(key)
            if self._tell is not None:
                self._tell(question)
            self._measure(self._measurements.decided[place], question, REPLY_TOKENS)
        else:
            # Asked a second time, about a decision that cannot be said in the words of this world.
            text = '{"thought": "", "actions": []}'
        return Answer(text)

    @staticmethod
    def _embed(measured: CallTally, question: Question) -> Answer:
        texts = [message.content for message in question.messages]
        measured.calls += 1
        measured.input += sum(map(estimate, texts))
        return Answer(pack([embed_text(text, _DIMENSIONS) for text in texts]))

    def _measure(self, measured: CallTally, question: Question, output: int) -> None:
        measured.calls += 1
        measured.input += sum(_tokens(message.role, message.content) for message in question.messages)
        measured.input += self._schema_tokens(question.schema) + TOKENS_AROUND
        measured.output += output
        prompt = "\n".join(f"{message.role}: {message.content}" for message in question.messages)
        measured.cached += self._prefixes.setdefault(question.model, PrefixCache(CACHED_FROM_TOKENS)).count_cached(
            prompt
        )

    def _schema_tokens(self, schema: dict[str, Any] | None) -> int:
        """Servers count the schema as a part of the prompt. It is kept, so that its id stays its own."""
        if schema is None:
            return 0
        if id(schema) not in self._schemas:
            self._schemas[id(schema)] = schema, estimate(_encode(schema).decode())
        return self._schemas[id(schema)][1]


@dataclass(frozen=True, slots=True)
class SampledAgents:
    """Whose prompts are built, who is played by a person, and which model is asked for everybody else."""

    followed: frozenset[int]
    played: frozenset[int]
    model: Callable[[int], str]


class DryRunMind(WrapperMind):
    """Lets the offline mind decide for every agent, and has the language mind build the prompts of some of them."""

    def __init__(
        self, language: Mind, offline: Mind, whom: SampledAgents, measurements: Measurements, ask: DryRunModel
    ) -> None:
        super().__init__(language)
        self._offline = offline
        self._whom = whom
        self._turns = measurements.turns
        self._understudy = ask

    def mode(self, agent: int) -> MindMode:
        return MindMode.SELF_JOURNALING if agent in self._whom.followed else MindMode.PURE

    def decide(self, observation: Observation) -> Decision | Awaitable[Decision]:
        agent = observation.agent
        if agent not in self._whom.played:
            self._turns[CallSite(observation.world, self._whom.model(agent), observation.round)] += 1
        decision = self._offline.decide(observation)
        assert isinstance(decision, Decision)
        if (kind := kind_seen(observation)) is not None and kind.ending_actions:
            # No conversation ends before its last turn.
            decision = Decision(tuple(done for done in decision.actions if done.kind not in kind.ending_actions))
        return self._ask(observation, decision) if agent in self._whom.followed else decision

    async def _ask(self, observation: Observation, decision: Decision) -> Decision:
        self._understudy.learn(observation, decision)
        asked = super().decide(observation)
        if isinstance(asked, Awaitable):
            await asked
        return decision

    def absorb(self, observation: Observation, decision: Decision) -> None:
        self._offline.absorb(observation, decision)
        if observation.agent in self._whom.followed:
            super().absorb(observation, decision)

    def change(self, agent: int, traits: Mapping[str, Any]) -> None:
        self._offline.change(agent, traits)
        super().change(agent, traits)


class IdleMind(Mind):
    """For worlds that no offline mind knows."""

    def decide(self, observation: Observation) -> Decision:
        return Decision()


def _reply(actions: Sequence[Action]) -> str:
    told = [{"action": action.kind, **action.args} for action in actions]
    return _encode({"thought": THOUGHT, "actions": told}).decode()


#: A reply without its actions.
REPLY_TOKENS = estimate(_reply(()))


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
