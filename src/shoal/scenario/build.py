"""The one place that builds live objects from a scenario."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from pydantic import TypeAdapter

from shoal.agents.heuristic import HeuristicMind, Manner
from shoal.agents.scripted import ScriptedMind
from shoal.agents.settings import Latency, ScriptedSettings
from shoal.agents.unhurried import Unhurried
from shoal.engine.deliberation import Limits
from shoal.errors import ScenarioInvalid
from shoal.scenario.entries import MOST_FOLLOWED, RANDOM
from shoal.scenario.events import BroadcastEvent, Event, PostEvent
from shoal.scenario.graphs import follow_graph
from shoal.scenario.models import Scenario
from shoal.scenario.population import People, sample
from shoal.seeds import derive
from shoal.types import MAX_ACTIONS_PER_TURN, Graph, Mind, Timeline, World
from shoal.worlds.social.platform import Given, Platform
from shoal.worlds.social.settings import SocialEvent
from shoal.worlds.social.words import Reader

DeclaredEvent = PostEvent | BroadcastEvent
_EVENT: TypeAdapter[DeclaredEvent] = TypeAdapter(Event)


@dataclass(frozen=True, slots=True)
class Simulation:
    """Everything that runs, ready to run."""

    seed: int
    rounds: int
    limits: Limits
    people: People
    worlds: Mapping[str, World]
    minds: Mapping[str, Mind]


def build(history: Timeline[Scenario], injected: Sequence[DeclaredEvent] = ()) -> Simulation:
    """People, worlds and minds, as the scenario declares them and as forks have changed it since."""
    scenario, latest = history.first, history.at(history_end(history))
    people = sample(scenario)
    graph = follow_graph(scenario, people)
    events = [*_scheduled(history), *(_Placed("inject", n, event) for n, event in enumerate(injected))]
    reader = Reader(people.topics, scenario.topic)
    given = Given(people, graph, history.map(lambda version: version.time), scenario.seed, reader)
    worlds = {name: _world(name, history, given, events) for name in scenario.worlds}
    minds = {name: _mind(name, history, people, reader) for name in scenario.worlds}
    limits = Limits(latest.max_workers, latest.deadline_seconds)
    return Simulation(scenario.seed, latest.rounds, limits, people, worlds, minds)


def declared(event: Mapping[str, Any]) -> DeclaredEvent:
    """An event from a journal."""
    return _EVENT.validate_python(event)


def history_end(history: Timeline[Scenario]) -> int:
    """The round from which on nothing about the scenario changes any more."""
    return max((since for since, _ in history.changes), default=0)


class _Placed(NamedTuple):
    """An event and where it is declared, which what is drawn for it depends on: a fork must not move it."""

    source: str
    place: int
    event: DeclaredEvent


def _scheduled(history: Timeline[Scenario]) -> list[_Placed]:
    """Each version of the scenario schedules the events of the rounds in which it is in force."""
    versions = [(0, history.first), *history.changes]
    return [
        _Placed("event", place, event)
        for since, version in versions
        for place, event in enumerate(version.events)
        if event.round >= since and history.at(event.round) is version
    ]


def _world(name: str, history: Timeline[Scenario], given: Given, events: Sequence[_Placed]) -> Platform:
    mine = [placed for placed in events if placed.event.world in (None, name)]
    resolved = _resolved(mine, name, given)
    return Platform(name, history.map(lambda version: version.worlds[name]), replace(given, events=resolved))


def _resolved(events: Sequence[_Placed], world: str, given: Given) -> list[SocialEvent]:
    """Events with names turned into numbers."""
    numbers = {name: agent for agent, name in enumerate(given.population.names)} if events else {}
    posted: Counter[tuple[int, int]] = Counter()
    resolved = []
    for source, place, event in events:
        if isinstance(event, BroadcastEvent):
            to = tuple(who if isinstance(who, int) else numbers[who] for who in event.to)
            resolved.append(SocialEvent(event.round, event.broadcast, to=to))
        else:
            author = _author(event.by, derive(given.seed, world, source, place), numbers, given.graph)
            author = _with_room(author, event, posted, len(numbers))
            resolved.append(SocialEvent(event.round, event.post, author, number=posted[author, event.round]))
            posted[author, event.round] += 1
    return resolved


def _author(by: str | int, lot: int, numbers: Mapping[str, int], graph: Graph) -> int:
    if isinstance(by, int):
        return by
    if by in numbers:
        return numbers[by]
    if by == MOST_FOLLOWED and graph.edges:
        return int(np.argmax(np.bincount(graph.targets)))
    return lot % len(numbers)


def _with_room(author: int, event: PostEvent, posted: Counter[tuple[int, int]], people: int) -> int:
    """Whoever posts has a limited number of events in a round; where anybody may post, the next one does."""
    for candidate in range(author, author + (people if event.by == RANDOM else 1)):
        if posted[candidate % people, event.round] < MAX_ACTIONS_PER_TURN:
            return candidate % people
    raise ScenarioInvalid([f"events: more than {MAX_ACTIONS_PER_TURN} posts by one person in round {event.round}"])


def _mind(world: str, history: Timeline[Scenario], people: People, reader: Reader) -> Mind:
    scenario = history.first
    settings = history.map(lambda version: version.mind)
    if isinstance(settings.first, ScriptedSettings):
        mind: Mind = ScriptedMind.from_turns(settings.first, people.names, world)
    else:
        manners = history.map(lambda version: _manner(version, world))
        mind = HeuristicMind(people, manners, scenario.seed, world, reader)
    return _unhurried(mind, settings.first.latency, scenario.seed)


def _manner(scenario: Scenario, world: str) -> Manner:
    assert not isinstance(scenario.mind, ScriptedSettings)
    return Manner(scenario.mind, scenario.worlds[world].actions)


def _unhurried(mind: Mind, latency: Latency | None, seed: int) -> Mind:
    return mind if latency is None else Unhurried(mind, latency, seed)
