"""Turns the events and interventions of a scenario into the schedule of one world."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from pydantic import TypeAdapter

from shoal.agents import RunningRecord
from shoal.engine import ClaimCheck, Facts, OwnFunction, Rule, Schedule, UnusableResult
from shoal.errors import ScenarioInvalid
from shoal.journal import digest
from shoal.scenario.declared.claims import Speaking
from shoal.scenario.declared.events import (
    BroadcastEvent,
    ChangeEvent,
    ContextEvent,
    CutEvent,
    DeclaredEvent,
    EventField,
    GiveBackEvent,
    JoinEvent,
    LeaveEvent,
    MuteEvent,
    PostEvent,
    SeatEvent,
    SkipEvent,
    StimulusEvent,
    StopEvent,
    SuspendEvent,
)
from shoal.scenario.declared.interventions import ALWAYS, JudgedClaim
from shoal.scenario.declared.population import MOST_FOLLOWED, RANDOM, count_people
from shoal.scenario.scenario import Scenario
from shoal.scenario.validation.consistency import accepts_event
from shoal.scenario.validation.problems import show_value
from shoal.scenario.validation.report import check
from shoal.seeds import derive
from shoal.types import MAX_ACTIONS_PER_TURN, Happening, Mention, Versioned
from shoal.worlds import Clock, NameIndex, WorldContext, WorldSettings

_EVENT: TypeAdapter[DeclaredEvent] = TypeAdapter(EventField)
#: What becomes of people's places in a world.
_MEMBERSHIP = {"join": "comes in", "leave": "leaves", "suspend": "is suspended", "cut": "loses all ties"}


class PlacedEvent(NamedTuple):
    """An event and where it is declared. Random draws for the event depend on the place, so that a fork keeps them."""

    source: str
    place: int
    event: DeclaredEvent


def parse_event(event: Mapping[str, Any]) -> DeclaredEvent:
    """Parse an event from a journal."""
    return _EVENT.validate_python(event)


def list_events(scenarios: Versioned[Scenario], injected: Sequence[DeclaredEvent] = ()) -> list[PlacedEvent]:
    """List the events of a run. Each version of the scenario schedules those of the rounds in which it is in force."""
    contexts: list[PlacedEvent] = []
    before: tuple[str, ...] = ()
    for since, version in [(1, scenarios.first), *scenarios.changes]:
        if version.context != before:
            # The situation at the start, or another one that a later version of the scenario states.
            contexts.append(PlacedEvent("context", 0, ContextEvent(context=version.context, round=max(since, 1))))
        before = version.context
    scheduled = [
        PlacedEvent("event", place, event)
        for since, version in [(0, scenarios.first), *scenarios.changes]
        for place, event in enumerate(version.events)
        if event.round >= since and scenarios.at(event.round) is version
    ]
    injections = [PlacedEvent("inject", place, event) for place, event in enumerate(injected)]
    return [*contexts, *scheduled, *injections]


def list_declared_mentions(scenarios: Versioned[Scenario], injected: Sequence[DeclaredEvent]) -> dict[str, Mention]:
    """Return the texts of all events that say something of a claim, and what they say."""
    events = [event for version in scenarios.versions() for event in version.events]
    events += [event for version in scenarios.versions() for rule in version.interventions for event in rule.do]
    speaking = [event for event in (*events, *injected) if isinstance(event, Speaking)]
    return {event.content: event.mention for event in speaking if event.mention is not None}


def build_clock(scenarios: Versioned[Scenario], injected: Sequence[DeclaredEvent] = ()) -> Clock:
    """Build the clock of simulated time, with the time that events skip."""
    events = [placed.event for placed in list_events(scenarios, injected)]
    return Clock(scenarios.first.time, [(event.round, event.skip) for event in events if isinstance(event, SkipEvent)])


def find_absent(scenarios: Versioned[Scenario], names: Sequence[str]) -> frozenset[int]:
    """Find the people who are not there at the start: they are added later, or the first word of them is `join`."""
    first, index = scenarios.first, NameIndex(names)
    absent, mentioned = set(range(count_people(first.population), len(names))), set[int]()
    effects = [event for intervention in first.interventions for event in intervention.do]
    for event in [*sorted(first.events, key=lambda event: event.round), *effects]:
        if event.kind in _MEMBERSHIP:
            for who in getattr(event, event.kind):
                if isinstance(event, JoinEvent) and index[who] not in mentioned:
                    absent.add(index[who])
                mentioned.add(index[who])
    return frozenset(absent)


def count_by_round(scenarios: Versioned[Scenario]) -> Versioned[int]:
    """Count the people of the scenario at the start, and again from each round in which people are added."""
    last, changes = scenarios.first.population, list[tuple[int, int]]()
    for since, version in scenarios.changes:
        if version.population is not last and version.population != last:
            changes.append((since, count_people(version.population)))
        last = version.population
    return Versioned(count_people(scenarios.first.population), tuple(changes))


def resolve_events(
    name: str, settings: WorldSettings, context: WorldContext, events: Sequence[PlacedEvent]
) -> list[tuple[int, Happening]]:
    """Return the happenings of one world, each with its round."""
    resolver = EventResolver(name, context)
    return [
        (placed.event.round, resolver.resolve(placed, placed.event.round))
        for placed in events
        if placed.event.world in (None, name) and accepts_event(settings, placed.event)
    ]


@dataclass(frozen=True, slots=True)
class Asked:
    """What interventions may ask: functions of the user's own, and a judge of claims."""

    #: Imports the function at a place; the second text is the field that names it.
    find_function: Callable[[str, str], Callable[[Facts], Any]]
    #: Makes the judge of a claim, in a world, for the intervention with this key.
    make_judge: Callable[[str, str, JudgedClaim, RunningRecord], ClaimCheck]


def build_schedule(
    name: str, scenarios: Versioned[Scenario], context: WorldContext, events: Sequence[PlacedEvent], asked: Asked
) -> Schedule:
    """Build the schedule of a world: its events, and the interventions of each version while it is in force."""
    record = RunningRecord()
    scheduled = resolve_events(name, scenarios.first.worlds[name], context, events)
    rules: list[Rule] = []
    starts = [0, *(since for since, _ in scenarios.changes)]
    for since, until, version in zip(starts, [*starts[1:], None], scenarios.versions(), strict=True):
        resolver = EventResolver(name, context, since)
        for place, intervention in enumerate(version.interventions):
            if intervention.world not in (None, name):
                continue
            condition = intervention.condition
            happenings = [
                resolver.resolve(PlacedEvent(f"intervention {place}", number, event), None)
                for number, event in enumerate(intervention.do)
                if accepts_event(version.worlds[name], event)
            ]
            key = digest(intervention.model_dump(mode="json", exclude_defaults=True))
            field, judged = f"interventions.{place}", intervention.judge
            rules.append(
                Rule(
                    key=key,
                    name=intervention.title,
                    condition=condition.holds,
                    happenings=tuple(happenings),
                    times=intervention.times,
                    pause=intervention.pause,
                    since=since,
                    until=until,
                    words=condition.asked.get("total_said", ()),
                    check=_build_function(intervention.check, f"{field}.check", _read_truth, asked),
                    judge=None if judged is None else asked.make_judge(name, key, judged, record),
                    call=_build_function(intervention.call, f"{field}.call", partial(_read_events, version), asked),
                    read=partial(_resolve_called, resolver, version.worlds[name], place),
                )
            )
    is_judged = any(rule.judge is not None for rule in rules)
    return Schedule(scheduled, rules, name, [record.add_round] if is_judged else ())


def _build_function(place: str | None, field: str, read: Callable[[Any], Any], asked: Asked) -> OwnFunction | None:
    return None if place is None else OwnFunction(place, partial(asked.find_function, place, field), read)


def _read_truth(result: Any) -> bool:
    if not isinstance(result, bool | np.bool_):
        raise UnusableResult(f"returned {show_value(result)}, not True or False")
    return bool(result)


def _read_events(scenario: Scenario, result: Any) -> list[dict[str, Any]]:
    """Check the events that a function returned; None stands for no event."""
    events = [] if result is None else [result] if isinstance(result, Mapping) else result
    if not isinstance(events, list | tuple):
        raise UnusableResult(f"returned {show_value(result)}, not events such as {{'broadcast': 'Look out!'}}")
    if not events:
        return []
    declared = {"when": ALWAYS, "do": list(events)}
    checked, problems = check({**scenario.model_dump(mode="json"), "interventions": [declared]})
    if checked is None:
        texts = (str(replace(problem, path=problem.path[3:])) for problem in problems)
        raise UnusableResult(f"returned what cannot happen: {'; '.join(texts)}")
    return [event.model_dump(mode="json") for event in checked.interventions[0].do]


def _resolve_called(
    resolver: EventResolver, settings: WorldSettings, place: int, round: int, events: Sequence[Mapping[str, Any]]
) -> list[Happening]:
    """Return what a function lets happen in a round of the resolver's world."""
    parsed = enumerate(map(parse_event, events))
    return [
        resolver.resolve(PlacedEvent(f"intervention {place} round {round}", number, event), None)
        for number, event in parsed
        if accepts_event(settings, event)
    ]


class EventResolver:
    """Turns declared events into happenings of one world: names become numbers, and random authors are drawn."""

    def __init__(self, world: str, context: WorldContext, since: int = 0) -> None:
        self.world = world
        self._context = context
        #: The round from which on interventions are in force.
        self._since = since
        self._index = NameIndex(context.population.names)
        self._posts_per_round: Counter[tuple[int, int]] = Counter()

    def resolve(self, placed: PlacedEvent, round: int | None) -> Happening:
        """Return the happening of a round; None stands for the round in which a condition holds."""
        event = placed.event
        match event:
            case PostEvent():
                author = self._choose_author(placed, event, round)
                votes = {name: self._number_all(getattr(event, name)) for name in ("liked_by", "disliked_by")}
                anybody = {"anybody": True} if event.by == RANDOM else {}
                return Happening("post", event.post, author, args={**votes, **anybody}, mention=event.mention)
            case BroadcastEvent():
                to = self._number_all(event.to)
                return Happening("broadcast", event.broadcast, to=to, mention=event.mention)
            case StimulusEvent():
                source = None if event.by is None else self._index[event.by]
                to = self._number_all(event.to)
                return Happening(event.kind, event.content, source, to=to, mention=event.mention)
            case ChangeEvent():
                content = ", ".join(f"{trait} = {value}" for trait, value in event.change.items())
                return Happening("change", content, to=self._number_all(event.to), args=event.change)
            case ContextEvent():
                texts = list(event.context)
                return Happening("context", "; ".join(texts), to=self._number_all(event.to), args={"texts": texts})
            case MuteEvent():
                content = f"for {event.rounds} round{'s' if event.rounds > 1 else ''}"
                return Happening("mute", content, to=self._number_all(event.mute), args={"rounds": event.rounds})
            case JoinEvent() | LeaveEvent() | SuspendEvent() | CutEvent():
                to = self._number_all(getattr(event, event.kind))
                return Happening(event.kind, _MEMBERSHIP[event.kind], to=to)
            case StopEvent():
                return Happening("stop", event.stop)
            case SeatEvent():
                agent, terms = self._index[event.seat], {"seconds": event.seconds, "otherwise": event.otherwise}
                content = f"a person takes the turns of {self._index.names[agent]}"
                return Happening("seat", content, to=(agent,), args=terms)
            case GiveBackEvent():
                agent = self._index[event.give_back]
                content = f"the own mind of {self._index.names[agent]} takes the turns again"
                return Happening("give_back", content, to=(agent,))
            case SkipEvent():
                return Happening("skip", f"{event.skip} minutes", args={"minutes": event.skip})

    def _number_all(self, people: Sequence[str | int]) -> tuple[int, ...]:
        return tuple(self._index[who] for who in people)

    def _choose_author(self, placed: PlacedEvent, event: PostEvent, round: int | None) -> int:
        """Choose who posts. Posts per person and round are limited; past the limit a random post goes to the next."""
        # People who join later change nothing about what was drawn before.
        people = self._context.count_people(self._since if round is None else round) or len(self._context.population)
        graph = self._context.graph
        if event.by == MOST_FOLLOWED and (graph := graph.leave_out(self._context.absent)).edges:
            author = int(np.argmax(np.bincount(graph.targets)))
        elif event.by in (RANDOM, MOST_FOLLOWED):
            author = derive(self._context.seed, self.world, placed.source, placed.place) % people
        else:
            author = self._index[event.by]
        if round is None:
            return author
        for candidate in range(author, author + (people if event.by == RANDOM else 1)):
            if self._posts_per_round[candidate % people, round] < MAX_ACTIONS_PER_TURN:
                self._posts_per_round[candidate % people, round] += 1
                return candidate % people
        raise ScenarioInvalid([f"events: more than {MAX_ACTIONS_PER_TURN} posts by one person in round {round}"])
