"""The one place that builds live objects from a scenario."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from pydantic import TypeAdapter

from shoal.agents.heuristic.base import Behaviour
from shoal.agents.heuristic.minds import build_heuristic_mind
from shoal.agents.human import AskPerson, HumanMind, PlayedMind
from shoal.agents.language.mind import LanguageMind
from shoal.agents.language.prefix_stats import PrefixMeter
from shoal.agents.language.world_card import build_card
from shoal.agents.memory.memory import Memory
from shoal.agents.memory.settings import MemorySettings
from shoal.agents.scripted import ScriptedMind
from shoal.agents.settings import HeuristicSettings, LanguageSettings, Latency, ScriptedSettings
from shoal.agents.wrappers import DelayedMind
from shoal.engine.decisions import DecisionLimits
from shoal.engine.interventions import Rule, Schedule
from shoal.errors import RunRefused, ScenarioInvalid
from shoal.journal import digest
from shoal.models.base import Answer, Model, Question
from shoal.scenario import plugins
from shoal.scenario.declared.events import (
    BroadcastEvent,
    ChangeEvent,
    DeclaredEvent,
    EventField,
    MuteEvent,
    PostEvent,
    SkipEvent,
    StimulusEvent,
    StopEvent,
)
from shoal.scenario.declared.interventions import Intervention
from shoal.scenario.declared.population import MOST_FOLLOWED, RANDOM
from shoal.scenario.sampling.follow_graph import draw_follow_graph
from shoal.scenario.sampling.people import People
from shoal.scenario.sampling.sampler import sample
from shoal.scenario.scenario import OwnMindSettings, OwnWorldSettings, Scenario
from shoal.scenario.validation.consistency import accepts_event
from shoal.seeds import derive
from shoal.types import (
    MAX_ACTIONS_PER_TURN,
    Decision,
    FollowGraph,
    Happening,
    Mind,
    Observation,
    Versioned,
    WorldProtocol,
)
from shoal.worlds.clock import Clock
from shoal.worlds.context import WorldContext
from shoal.worlds.kinds import kind_named
from shoal.worlds.lexicon import TextReader
from shoal.worlds.settings import WorldSettings

_EVENT: TypeAdapter[DeclaredEvent] = TypeAdapter(EventField)


@dataclass(frozen=True, slots=True)
class Simulation:
    """Everything that runs, ready to run."""

    seed: int
    rounds: int
    limits: DecisionLimits
    people: People
    worlds: Mapping[str, WorldProtocol]
    minds: Mapping[str, Mind]
    agendas: Mapping[str, Schedule]
    #: World -> how much of its prompts repeats earlier ones, where language minds send any.
    prefixes: Mapping[str, PrefixMeter]


@dataclass(frozen=True, slots=True)
class Sources:
    """Where replies come from that a run cannot make itself: a person who plays somebody, and language models."""

    answer: AskPerson | None = None
    model: Model | None = None


def build(
    history: Versioned[Scenario], injected: Sequence[DeclaredEvent] = (), sources: Sources | None = None
) -> Simulation:
    """People, worlds and minds, as the scenario declares them and as forks have changed it since."""
    sources = sources or Sources()
    scenario, latest = history.first, history.at(history_end(history))
    people = sample(scenario)
    events = [*_scheduled(history), *(Origin("inject", n, event) for n, event in enumerate(injected))]
    time = history.map(lambda version: version.time)
    given = WorldContext(
        population=people,
        graph=draw_follow_graph(scenario, people),
        time=time,
        clock=clock_of(history, injected),
        seed=scenario.seed,
        reader=TextReader(people.topics, scenario.topic),
    )
    worlds = {name: _world(name, history, given) for name in scenario.worlds}
    minds = {name: _mind(name, history, given, worlds[name], sources.model) for name in scenario.worlds}
    prefixes = {name: mind.prefixes for name, mind in minds.items() if isinstance(mind, LanguageMind)}
    if scenario.play:
        minds = {name: _played(mind, scenario, given, sources.answer) for name, mind in minds.items()}
    agendas = {name: _agenda(name, history, given, events) for name in scenario.worlds}
    limits = DecisionLimits(latest.workers, latest.deadline_seconds, latest.metrics)
    return Simulation(scenario.seed, latest.rounds, limits, people, worlds, minds, agendas, prefixes)


def clock_of(history: Versioned[Scenario], injected: Sequence[DeclaredEvent] = ()) -> Clock:
    """Simulated time, with what is skipped."""
    events = [*(placed.event for placed in _scheduled(history)), *injected]
    return Clock(history.first.time, [(event.round, event.skip) for event in events if isinstance(event, SkipEvent)])


def check_classes(scenario: Scenario) -> None:
    """Find every class of the user's own that a scenario names; ScenarioInvalid where one cannot be found."""
    for name, world in scenario.worlds.items():
        if isinstance(world, OwnWorldSettings):
            plugins.world(world.kind, f"worlds.{name}.kind")
            if world.mind is not None:
                plugins.mind(world.mind, f"worlds.{name}.mind")
    if isinstance(scenario.mind, OwnMindSettings):
        plugins.mind(scenario.mind.kind, "mind.kind")


def parse_event(event: Mapping[str, Any]) -> DeclaredEvent:
    """An event from a journal."""
    return _EVENT.validate_python(event)


def history_end(history: Versioned[Scenario]) -> int:
    """The round from which on nothing about the scenario changes any more."""
    return max((since for since, _ in history.changes), default=0)


# Worlds and minds


def _world(name: str, history: Versioned[Scenario], given: WorldContext) -> WorldProtocol:
    settings: Versioned[Any] = history.map(lambda version: version.worlds[name])
    own = settings.first
    if isinstance(own, OwnWorldSettings):
        field = f"worlds.{name}.kind"
        world: WorldProtocol = plugins.instantiate(plugins.world(own.kind, field), field, name, given, own.settings)
        return world
    kind = kind_named(own.kind)
    assert kind is not None
    return kind.build(name, settings, given)


def _mind(
    name: str, history: Versioned[Scenario], given: WorldContext, world: WorldProtocol, model: Model | None
) -> Mind:
    settings = history.first.mind
    match settings:
        case LanguageSettings():
            return _language(name, history, given, world, model)
        case ScriptedSettings():
            mind: Mind = ScriptedMind.from_turns(settings, given.population.names, name)
        case OwnMindSettings(kind=kind, settings=own):
            mind = _own_mind(kind, "mind.kind", given, own)
        case HeuristicSettings():
            mind = _heuristic(name, history, given, world)
    return _unhurried(mind, settings.latency, given.seed)


def _language(
    name: str, history: Versioned[Scenario], given: WorldContext, world: WorldProtocol, model: Model | None
) -> Mind:
    settings = history.map(_language_settings)
    cards = history.map(
        lambda version: build_card(version.worlds[name], world, _language_settings(version).max_actions)
    )
    memory = Memory(settings.map(_memory_settings), given.population, given.seed, name, model)
    memory.last_round = history.versions()[-1].rounds
    return LanguageMind(given, settings, cards, model or _NoModel(), memory)


def _memory_settings(settings: LanguageSettings) -> MemorySettings:
    """Conclusions are drawn by the mind's own model, unless another one is named."""
    memory = settings.memory
    return memory.model_copy(update={"model": memory.model or settings.model})


def _language_settings(scenario: Scenario) -> LanguageSettings:
    assert isinstance(scenario.mind, LanguageSettings)
    return scenario.mind


class _NoModel:
    """Stands where nobody can be asked."""

    async def answer(self, question: Question) -> Answer:
        raise RunRefused(f"no language model is at hand to answer {question.key}")


def _heuristic(name: str, history: Versioned[Scenario], given: WorldContext, world: WorldProtocol) -> Mind:
    """The offline mind that suits the world."""
    settings = history.first.worlds[name]
    if isinstance(settings, OwnWorldSettings):
        return _own_worlds_mind(name, settings.mind, given, world)
    kind = kind_named(settings.kind)
    assert kind is not None
    return build_heuristic_mind(kind, given, history.map(lambda version: _manner(version, name)), name)


def _own_worlds_mind(name: str, kind: str | None, given: WorldContext, world: WorldProtocol) -> Mind:
    if kind is not None:
        return _own_mind(kind, f"worlds.{name}.mind", given, {})
    usual = getattr(world, "mind", None)
    if isinstance(usual, type) and issubclass(usual, Mind):
        mind: Mind = plugins.instantiate(usual, f"worlds.{name}.kind", given, {})
        return mind
    raise ScenarioInvalid(
        [f"worlds.{name}: the heuristic mind knows only Shoal's own worlds; name a class with `mind: module:Class`"]
    )


def _own_mind(kind: str, field: str, given: WorldContext, settings: Mapping[str, Any]) -> Mind:
    mind: Mind = plugins.instantiate(plugins.mind(kind, field), field, given, settings)
    return mind


def _manner(scenario: Scenario, world: str) -> Behaviour:
    assert isinstance(scenario.mind, HeuristicSettings)
    actions = getattr(scenario.worlds[world], "actions", None)
    return Behaviour(scenario.mind, actions, scenario.time.minutes_per_round)


def _unhurried(mind: Mind, latency: Latency | None, seed: int) -> Mind:
    return mind if latency is None else DelayedMind(mind, latency, seed)


def _played(mind: Mind, scenario: Scenario, given: WorldContext, answer: AskPerson | None) -> Mind:
    names = list(given.population.names)
    agents = [who if isinstance(who, int) else names.index(who) for who in scenario.play]
    return PlayedMind(mind, HumanMind(answer or _nobody), agents)


async def _nobody(observation: Observation) -> Decision:
    raise RunRefused(f"{observation.name} is played by a person; go on from a terminal with `shoal resume`")


# What is made to happen


class Origin(NamedTuple):
    """An event and where it is declared, which what is drawn for it depends on: a fork must not move it."""

    source: str
    place: int
    event: DeclaredEvent


def _scheduled(history: Versioned[Scenario]) -> list[Origin]:
    """Each version of the scenario schedules the events of the rounds in which it is in force."""
    versions = [(0, history.first), *history.changes]
    return [
        Origin("event", place, event)
        for since, version in versions
        for place, event in enumerate(version.events)
        if event.round >= since and history.at(event.round) is version
    ]


def _agenda(name: str, history: Versioned[Scenario], given: WorldContext, events: Sequence[Origin]) -> Schedule:
    known = history.first.worlds[name]
    mine = [placed for placed in events if placed.event.world in (None, name) and accepts_event(known, placed.event)]
    casting = EventResolver(name, given)
    scheduled = [
        (placed.event.round, happening)
        for placed in mine
        if (happening := casting.happening(placed, placed.event.round)) is not None
    ]
    return Schedule(scheduled, _rules(name, history, casting))


def _rules(name: str, history: Versioned[Scenario], casting: EventResolver) -> list[Rule]:
    """The interventions of each version of the scenario, in force while it is."""
    sinces = [0, *(since for since, _ in history.changes)]
    rules = []
    for since, until, version in zip(sinces, [*sinces[1:], None], history.versions(), strict=True):
        for place, intervention in enumerate(version.interventions):
            if intervention.world in (None, name):
                rules.append(_rule(intervention, place, (since, until), casting, version.worlds[name]))
    return rules


def _rule(
    intervention: Intervention, place: int, force: tuple[int, int | None], casting: EventResolver, world: WorldSettings
) -> Rule:
    condition = intervention.condition
    happenings = [
        casting.happening(Origin(f"intervention {place}", n, event), None)
        for n, event in enumerate(intervention.do)
        if accepts_event(world, event)
    ]
    return Rule(
        key=digest(intervention.model_dump(mode="json")),
        name=intervention.name or intervention.when,
        condition=condition.holds,
        happenings=tuple(happening for happening in happenings if happening is not None),
        times=intervention.times,
        pause=intervention.pause,
        since=force[0],
        until=force[1],
        words=condition.asked.get("total_said", ()),
    )


class EventResolver:
    """Turns declared events into happenings in one world: names become numbers, and lots are drawn."""

    def __init__(self, world: str, given: WorldContext) -> None:
        self._world = world
        self._given = given
        self._numbers: dict[str, int] = {}
        self._posted: Counter[tuple[int, int]] = Counter()

    def happening(self, placed: Origin, round: int | None) -> Happening | None:
        """The happening of a round, or of whichever round a condition comes true in."""
        event = placed.event
        match event:
            case PostEvent():
                return Happening("post", event.post, self._author(placed, event, round))
            case BroadcastEvent():
                return Happening("broadcast", event.broadcast, to=self._all(event.to))
            case StimulusEvent():
                source = None if event.by is None else self._all([event.by])[0]
                return Happening(event.kind, event.content, source, to=self._all(event.to))
            case ChangeEvent():
                told = ", ".join(f"{trait} = {value}" for trait, value in event.change.items())
                return Happening("change", told, to=self._all(event.to), args=event.change)
            case MuteEvent():
                told = f"for {event.rounds} round{'s' if event.rounds > 1 else ''}"
                return Happening("mute", told, to=self._all(event.mute), args={"rounds": event.rounds})
            case StopEvent():
                return Happening("stop", event.stop)
            case SkipEvent():
                return Happening("skip", f"{event.skip} minutes", args={"minutes": event.skip})
        raise AssertionError(event)

    def _all(self, people: Sequence[str | int]) -> tuple[int, ...]:
        return tuple(who if isinstance(who, int) else self._number(who) for who in people)

    def _number(self, name: str) -> int:
        if not self._numbers:
            self._numbers = {name: agent for agent, name in enumerate(self._given.population.names)}
        return self._numbers[name]

    def _author(self, placed: Origin, event: PostEvent, round: int | None) -> int:
        lot = derive(self._given.seed, self._world, placed.source, placed.place)
        author = self._chosen(event.by, lot, self._given.graph)
        if round is None:
            return author
        author = self._with_room(author, event, round)
        self._posted[author, round] += 1
        return author

    def _chosen(self, by: str | int, lot: int, graph: FollowGraph) -> int:
        if isinstance(by, int):
            return by
        if by == MOST_FOLLOWED and graph.edges:
            return int(np.argmax(np.bincount(graph.targets)))
        if by in (RANDOM, MOST_FOLLOWED):
            return lot % len(self._given.population)
        return self._number(by)

    def _with_room(self, author: int, event: PostEvent, round: int) -> int:
        """Whoever posts has a limited number of events in a round; where anybody may post, the next one does."""
        people = len(self._given.population)
        for candidate in range(author, author + (people if event.by == RANDOM else 1)):
            if self._posted[candidate % people, round] < MAX_ACTIONS_PER_TURN:
                return candidate % people
        raise ScenarioInvalid([f"events: more than {MAX_ACTIONS_PER_TURN} posts by one person in round {round}"])
