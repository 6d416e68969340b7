"""Plays a run through without asking a model, and measures what it would ask.

The world's offline mind decides for every agent. The language mind builds the prompts of some of the agents, reads
replies and remembers, as in a run. Its questions are answered by a stand-in that puts the offline mind's decision into
the form of a model's reply.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from shoal.agents import JUDGE, HeuristicSettings, LanguageSettings, WrapperMind
from shoal.engine import Decider, DecisionLimits, Engine, RoundRecord
from shoal.errors import ScenarioInvalid
from shoal.journal import REMEMBER, Journal, JournalKey
from shoal.models import Answer, Question, estimate
from shoal.models.local import is_local
from shoal.models.openai import is_embedding, pack
from shoal.rehearsal import PrefixCache, embed_text
from shoal.scenario import OwnWorldSettings, People, Scenario, Sources, build
from shoal.seeds import derive, hashes
from shoal.types import Action, Decision, Mind, MindMode, Observation, Versioned
from shoal.worlds import DO_NOTHING, NameIndex, kind_seen

#: A thought of the length that models write where they are allowed twenty words.
THOUGHT = "Everybody talks about this, and before I take a side I would rather hear what those say who were there."
#: Models seldom let a turn pass, as offline minds often do; of several actions that they may take they take one or two.
USUAL_ACTIONS = 1.5
#: Prompts of platforms ask for a sentence or two. Models write that much, where offline minds write less.
POSTED_CHARACTERS = 130
_POSTED = {"CREATE_POST": "content", "CREATE_COMMENT": "content", "QUOTE_POST": "quote_content"}
#: The length of an action where no offline mind shows it.
ACTION_TOKENS = 24
#: Enough to tell texts apart.
_EMBEDDING_DIMENSIONS = 64
#: What a server adds around a prompt and its schema.
TOKENS_AROUND = 16
#: Servers cache no shorter beginnings of prompts than this.
CACHED_FROM_TOKENS = 1024

_encode = msgspec.json.Encoder().encode


class CallSite(NamedTuple):
    """Where and when a model is asked."""

    world: str
    model: str
    round: int


@dataclass(frozen=True, slots=True)
class CallTally:
    """Calls, and the tokens they took."""

    calls: float = 0
    input: float = 0
    output: float = 0
    #: The part of the input that a server with a prefix cache has read before.
    cached: float = 0

    def __add__(self, other: CallTally) -> CallTally:
        tokens = self.input + other.input, self.output + other.output, self.cached + other.cached
        return CallTally(self.calls + other.calls, *tokens)

    def __mul__(self, times: float) -> CallTally:
        return CallTally(self.calls * times, self.input * times, self.output * times, self.cached * times)


@dataclass(slots=True)
class Measurements:
    """Everything that was asked in a dry run."""

    #: Turns of all agents in which a model would have been asked.
    turns: Counter[CallSite] = field(default_factory=Counter)
    #: Questions of the sampled agents.
    decided: defaultdict[CallSite, CallTally] = field(default_factory=lambda: defaultdict(CallTally))
    remembered: defaultdict[CallSite, CallTally] = field(default_factory=lambda: defaultdict(CallTally))
    embedded: defaultdict[CallSite, CallTally] = field(default_factory=lambda: defaultdict(CallTally))
    #: Questions of interventions whether a claim holds. They do not depend on how many agents there are.
    judged: defaultdict[CallSite, CallTally] = field(default_factory=lambda: defaultdict(CallTally))
    #: World -> actions other than doing nothing, each counted as a call.
    acts: defaultdict[str, CallTally] = field(default_factory=lambda: defaultdict(CallTally))


class DryRunModel:
    """Answers in place of every model. `on_turn` receives the questions that agents ask in their turns."""

    def __init__(self, measurements: Measurements, on_turn: Callable[[Question], None] | None = None) -> None:
        self._measurements = measurements
        self._on_turn = on_turn
        self._replies: dict[JournalKey, str] = {}
        #: Id of a schema -> the schema, which keeps its id from being used again, and its text.
        self._schemas: dict[int, tuple[object, str]] = {}
        self._prefixes: dict[str, PrefixCache] = {}

    def prepare_reply(self, observation: Observation, decision: Decision) -> None:
        """Take a decision as the reply to the agent's next question."""
        self._replies[JournalKey.of_turn(observation)] = _write_reply(decision.actions)
        for action in decision.actions:
            if action.kind != DO_NOTHING:
                tokens = estimate(_write_reply([action])) - REPLY_TOKENS
                self._measurements.acts[observation.world] += CallTally(1, output=tokens)

    async def answer(self, question: Question) -> Answer:
        key = question.key
        site = CallSite(key.world, question.model, key.round)
        if is_embedding(question):
            texts = [message.content for message in question.messages]
            self._measurements.embedded[site] += CallTally(1, sum(map(estimate, texts)))
            return Answer(pack([embed_text(text, _EMBEDDING_DIMENSIONS) for text in texts]))
        if key.purpose == REMEMBER:
            # Conclusions of usual length, none of which was drawn before.
            assert isinstance(key.agent, int)
            insights = [
                f"By round {key.round} most people around me had taken a side, and few of them had looked into it.",
                f"What number {key.agent + 1} on my list told me about it turned out to be only half of the story.",
            ]
            text = _encode({"insights": insights}).decode()
            self._measurements.remembered[site] += self._measure(question, estimate(text))
        elif key in self._replies:
            text = self._replies.pop(key)
            if self._on_turn is not None:
                self._on_turn(question)
            self._measurements.decided[site] += self._measure(question, REPLY_TOKENS)
        elif key.purpose == JUDGE:
            # A reason of usual length, and a score at which nothing happens.
            text = _encode({"reason": f"{THOUGHT} {THOUGHT}", "score": 0}).decode()
            self._measurements.judged[site] += self._measure(question, estimate(text))
        else:
            # The second question about a decision that the world's actions cannot express.
            text = '{"thought": "", "actions": []}'
        return Answer(text)

    def _measure(self, question: Question, output: int) -> CallTally:
        schema, form, runs_here = question.schema, "", is_local(question.model)
        # On this machine, a schema only limits what can be written, and the whole beginning of a prompt is kept.
        if schema is not None and not runs_here:
            # Servers count the schema as a part of the prompt, and put it before the messages.
            if id(schema) not in self._schemas:
                self._schemas[id(schema)] = schema, _encode(schema).decode()
            form = self._schemas[id(schema)][1]
        messages = question.messages
        input = sum(
            _estimate_shared(one.content) if one.role == "system" else estimate(one.content) for one in messages
        )
        prefixes = self._prefixes.setdefault(question.model, PrefixCache(0 if runs_here else CACHED_FROM_TOKENS))
        cached = prefixes.count_cached(form + "\n".join(f"{message.role}: {message.content}" for message in messages))
        return CallTally(1, input + _estimate_shared(form) + TOKENS_AROUND, output, cached)


#: Estimates a text that is the same for many agents, once.
_estimate_shared = lru_cache(maxsize=64)(estimate)


def _write_reply(actions: Sequence[Action]) -> str:
    chosen = [{"action": action.kind, **action.args} for action in actions]
    return _encode({"thought": THOUGHT, "actions": chosen}).decode()


def _lengthen(action: Action) -> Action:
    """Return an action with a text of the length that models write."""
    name = _POSTED.get(action.kind, "")
    text = action.args.get(name, "")
    if not 0 < len(text) < POSTED_CHARACTERS:
        return action
    return Action(action.kind, {**action.args, name: f"{text} {THOUGHT}"[:POSTED_CHARACTERS]})


#: A reply without its actions.
REPLY_TOKENS = estimate(_write_reply(()))


@dataclass(frozen=True, slots=True)
class SampledAgents:
    """The agents whose prompts are built, those played by a person, and the model of all others."""

    followed: frozenset[int]
    played: frozenset[int]
    model: Callable[[int], str]

    @classmethod
    def draw(cls, scenario: Scenario, settings: LanguageSettings, people: People, max_followed: int) -> SampledAgents:
        """Draw at most `max_followed` agents, about as many of each model."""

        def model(agent: int) -> str:
            return models[agent] if models else settings.model

        models: list[str] = []
        if settings.by_agent or settings.by_group:
            groups = (people[agent].traits.get("group") for agent in range(len(people)))
            models = [settings.model_of(name, group) for name, group in zip(people.names, groups, strict=True)]
        index = NameIndex(people.names)
        played = frozenset(index[who] for who in scenario.play)
        others = [agent for agent in range(len(people)) if agent not in played]
        lots = hashes(derive(scenario.seed, "plan"), np.asarray(others, np.int64))
        followed = [others[place] for place in np.argsort(lots, kind="stable").tolist()]
        if len(followed) > max_followed:
            by_model: dict[str, list[int]] = {}
            for agent in followed:
                by_model.setdefault(model(agent), []).append(agent)
            share = max(max_followed // len(by_model), 1)
            followed = [agent for drawn in by_model.values() for agent in drawn[:share]]
        return cls(frozenset(followed), played, model)


class DryRunMind(WrapperMind):
    """Lets the offline mind decide for every agent, and has the language mind build the prompts of some of them."""

    def __init__(
        self, language: Mind, offline: Mind, agents: SampledAgents, measurements: Measurements, model: DryRunModel
    ) -> None:
        super().__init__(language)
        self._offline = offline
        self._agents = agents
        self._turns = measurements.turns
        self._model = model

    def mode(self, agent: int) -> MindMode:
        return MindMode.SELF_JOURNALING if agent in self._agents.followed else MindMode.PURE

    def decide(self, observation: Observation) -> Decision | Awaitable[Decision]:
        agent = observation.agent
        if agent not in self._agents.played:
            self._turns[CallSite(observation.world, self._agents.model(agent), observation.round)] += 1
        decision = self._offline.decide(observation)
        assert isinstance(decision, Decision)
        if (kind := kind_seen(observation)) is not None and kind.ending_actions:
            # No conversation ends before its last turn.
            decision = Decision(tuple(done for done in decision.actions if done.kind not in kind.ending_actions))
        decision = Decision(tuple(map(_lengthen, decision.actions)))

        async def ask_language_mind() -> Decision:
            self._model.prepare_reply(observation, decision)
            asked = self.mind_of(agent).decide(observation)
            if isinstance(asked, Awaitable):
                await asked
            return decision

        return ask_language_mind() if agent in self._agents.followed else decision

    def absorb(self, observation: Observation, decision: Decision) -> None:
        self._offline.absorb(observation, decision)
        if observation.agent in self._agents.followed:
            super().absorb(observation, decision)

    async def measure(self, round: int) -> None:
        """Ask nothing: what a poll costs does not depend on what happens."""

    def change(self, agent: int, traits: Mapping[str, Any]) -> None:
        self._offline.change(agent, traits)
        super().change(agent, traits)


class IdleMind(Mind):
    """Does nothing, in worlds that have no offline mind."""

    def decide(self, observation: Observation) -> Decision:
        return Decision()


class RoundTurns(NamedTuple):
    """How many agents had a turn in a round, and whether they acted one after another."""

    acting: int
    is_sequential: bool

    def waves(self, max_workers: int) -> int:
        """Return how many calls must follow one another."""
        return self.acting if self.is_sequential else ceil(self.acting / max_workers)


class _TurnCounter:
    """A ledger that keeps only the numbers of turns."""

    def __init__(self) -> None:
        self.rounds: list[RoundTurns] = []

    def commit(self, record: RoundRecord) -> None:
        is_sequential = record.step is not None and record.step.mode == "sequential"
        self.rounds.append(RoundTurns(record.tally.acting, is_sequential))


@dataclass(frozen=True, slots=True)
class DryRun:
    """A run that was played through."""

    people: int
    followed: int
    measurements: Measurements
    last_round: int
    #: World -> its rounds, and how many of them are in flight.
    rounds: Mapping[str, list[RoundTurns]]
    visibility: Mapping[str, int]
    #: World -> the smallest share of its turns that are taken.
    least_share: Mapping[str, float]

    def after(self, done: Mapping[str, int]) -> DryRun:
        """Return what is left when these rounds are done."""
        left = Measurements(acts=self.measurements.acts)
        for name in ("turns", "decided", "remembered", "embedded", "judged"):
            sites = getattr(self.measurements, name).items()
            getattr(left, name).update({site: n for site, n in sites if site.round > done.get(site.world, 0)})
        rounds = {world: rounds[done.get(world, 0) + 1 :] for world, rounds in self.rounds.items()}
        return replace(self, rounds=rounds, measurements=left)


async def play_dry(
    versions: Versioned[Scenario],
    settings: LanguageSettings,
    max_followed: int,
    on_turn: Callable[[Question], None] | None = None,
) -> DryRun:
    """Play a scenario through in memory. Conversations take all their turns, because their length is not known."""
    measurements = Measurements()
    model = DryRunModel(measurements, on_turn)

    def without_people(scenario: Scenario) -> Scenario:
        worlds = {name: world.without_early_end() for name, world in scenario.worlds.items()}
        return scenario.model_copy(update={"play": (), "worlds": worlds})

    unplayed = versions.map(without_people)
    simulation = build(unplayed, sources=Sources(model=model))
    offline = _build_offline_minds(unplayed)
    agents = SampledAgents.draw(versions.first, settings, simulation.people, max_followed)
    ledgers = {name: _TurnCounter() for name in simulation.minds}

    async def play_world(name: str) -> None:
        mind = DryRunMind(simulation.minds[name], offline[name], agents, measurements, model)
        decider = Decider(mind, Journal(Path(), [], None), DecisionLimits())
        schedule = simulation.schedules[name]
        schedule.forget_functions()
        engine = Engine(simulation.worlds[name], decider, ledgers[name], simulation.seed, schedule)
        await engine.run(simulation.rounds, asyncio.Event())

    try:
        await asyncio.gather(*map(play_world, simulation.minds))
    finally:
        for mind in simulation.minds.values():
            await mind.close()
    least_share = {}
    for name, world in unplayed.latest.worlds.items():
        rounds = ledgers[name].rounds
        turns = sum(round.acting for round in rounds)
        least = world.least_turns(max(round.acting for round in rounds[:2])) if turns else None
        least_share[name] = 1.0 if least is None else min(1.0, least / turns)
    return DryRun(
        people=len(simulation.people),
        followed=len(agents.followed),
        measurements=measurements,
        last_round=max(len(ledger.rounds) for ledger in ledgers.values()) - 1,
        rounds={name: ledger.rounds for name, ledger in ledgers.items()},
        visibility={name: world.visibility for name, world in simulation.worlds.items()},
        least_share=least_share,
    )


def _build_offline_minds(versions: Versioned[Scenario]) -> Mapping[str, Mind]:
    """Build the minds that decide in place of models. A world without one that needs no calls gets an idle mind."""
    heuristic = versions.map(lambda scenario: scenario.model_copy(update={"mind": HeuristicSettings()}))

    def without_own_worlds(scenario: Scenario) -> Scenario:
        known = {name: world for name, world in scenario.worlds.items() if not isinstance(world, OwnWorldSettings)}
        return scenario.model_copy(update={"worlds": known})

    try:
        minds = build(heuristic).minds
    except ScenarioInvalid:
        minds = build(heuristic.map(without_own_worlds)).minds
    worlds = versions.first.worlds
    return {name: minds[name] if name in minds and not minds[name].outside else IdleMind() for name in worlds}
