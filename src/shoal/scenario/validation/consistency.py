"""What only shows when parts of a scenario are held against one another: names, worlds, rounds, actions.

Each check reports everything it finds. A problem says which other parts it needs, so that a mistake there does not
make this one up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Protocol

from shoal.agents.settings import LanguageSettings, ScriptedSettings, ScriptedTurn
from shoal.scenario.declared.events import (
    STIMULI,
    BroadcastEvent,
    ChangeEvent,
    DeclaredEvent,
    MuteEvent,
    PostEvent,
    SkipEvent,
    StimulusEvent,
    kind_of,
)
from shoal.scenario.declared.follows import FollowSettings
from shoal.scenario.declared.interventions import OPINIONS, Intervention
from shoal.scenario.declared.population import (
    MAX_PEOPLE,
    MOST_FOLLOWED,
    RANDOM,
    FileEntry,
    PersonEntry,
    PopulationEntries,
    listed,
    size,
)
from shoal.scenario.validation.problems import Path, Problem
from shoal.text import hint
from shoal.types import MAX_ACTIONS_PER_TURN
from shoal.worlds.base import DO_NOTHING
from shoal.worlds.clock import TimeSettings
from shoal.worlds.dialogue.settings import DialogueSettings
from shoal.worlds.dialogue.world import Dialogue
from shoal.worlds.room.settings import RoomSettings
from shoal.worlds.room.world import Room
from shoal.worlds.social.actions import ACTIONS
from shoal.worlds.social.settings import SocialSettings

Entries = PopulationEntries
Events = Sequence[DeclaredEvent]
Interventions = Sequence[Intervention]
_Mention = tuple[Path, str | int]

_NAMES, _NUMBERS, _WORLDS, _ROUNDS = (frozenset({part}) for part in ("names", "numbers", "worlds", "rounds"))
#: Interests are kept as 16-bit numbers.
MAX_TOPICS = 32_000


def people(entries: Entries, topic: str | None) -> Iterator[Problem]:
    """Too many, twice the same, or more interests than can be told apart."""
    total = size(entries)
    if total > MAX_PEOPLE:
        yield Problem(("population",), f"{total:,} people in all; at most {MAX_PEOPLE:,} are possible")
    yield from _repeated(entries, "name")
    yield from _repeated(entries, "username")
    words = {topic} if topic else set()
    for entry in entries:
        if isinstance(entry, FileEntry):
            words.update(*(given for given in entry.roster.column("interests") if given is not None))
        elif entry.interests is not None:
            words |= set(entry.interests if isinstance(entry, PersonEntry) else entry.interests.among)
    if len(words) > MAX_TOPICS:
        yield Problem(("population",), f"{len(words):,} different interests; at most {MAX_TOPICS:,} are possible")


def _repeated(entries: Entries, field: str) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    for index, entry in enumerate(entries):
        value = getattr(entry, field, None)
        if value is None:
            continue
        first = seen.setdefault(value.casefold() if field == "username" else value, index)
        if first != index:
            yield Problem(("population", index, field), f"{value!r} is already the {field} of population.{first}")


class DeclaredParts(Protocol):
    """The parts of a scenario that speak of people."""

    @property
    def population(self) -> Entries: ...
    @property
    def follows(self) -> FollowSettings: ...
    @property
    def events(self) -> Events: ...
    @property
    def interventions(self) -> Interventions: ...
    @property
    def mind(self) -> object: ...
    @property
    def worlds(self) -> Mapping[str, object]: ...
    @property
    def play(self) -> Sequence[str | int]: ...


def references(declared: DeclaredParts) -> Iterator[Problem]:
    """People who are spoken of but do not exist, and people who would follow themselves."""
    entries = declared.population
    names, total = listed(entries), size(entries)
    for path, who in _mentions(declared):
        if text := _unknown(who, names, total):
            yield Problem(path, text, _NUMBERS if isinstance(who, int) else _NAMES)
    for index, entry in enumerate(entries):
        if isinstance(entry, PersonEntry) and entry.name in entry.follows:
            place = entry.follows.index(entry.name)
            yield Problem(("population", index, "follows", place), f"{entry.name!r} cannot follow themselves")
    yield from _bad_edges(declared.follows, names)
    yield from _bad_pairs(declared.worlds, names)
    yield from _bad_relations(declared.worlds, names)
    yield from _bad_groups(entries, declared.mind)


def _mentions(declared: DeclaredParts) -> Iterator[_Mention]:
    for index, entry in enumerate(declared.population):
        if isinstance(entry, PersonEntry):
            yield from ((("population", index, "follows", place), who) for place, who in enumerate(entry.follows))
    for index, edge in enumerate(declared.follows.edges):
        yield from ((("follows", "edges", index, end), who) for end, who in enumerate(edge))
    for path, event in _all_events(declared.events, declared.interventions):
        yield from _mentioned_by(path, event)
    for index, intervention in enumerate(declared.interventions):
        asked = intervention.condition.asked
        yield from ((("interventions", index, "when"), who) for who in (*asked.get("by", ()), *asked.get("quiet", ())))
    for name, world in declared.worlds.items():
        yield from _mentioned_in(("worlds", name), world)
    yield from ((("mind", "turns", index, "agent"), turn.agent) for index, turn in _turns(declared.mind))
    yield from ((("play", index), who) for index, who in enumerate(declared.play))
    if isinstance(declared.mind, LanguageSettings):
        yield from ((("mind", "by_agent", name), name) for name in declared.mind.by_agent)


def _bad_groups(entries: Entries, mind: object) -> Iterator[Problem]:
    """Groups that are to have a model of their own but do not exist."""
    known = {group for entry in entries if (group := getattr(entry, "group", None)) is not None}
    for name in mind.by_group if isinstance(mind, LanguageSettings) else ():
        if name not in known:
            near = hint(name, known) or (f"; there is {', '.join(sorted(known))}" if known else "; none has a `group`")
            yield Problem(("mind", "by_group", name), f"unknown group {name!r}{near}", _NAMES, at_key=True)


def _all_events(events: Events, interventions: Interventions) -> Iterator[tuple[Path, DeclaredEvent]]:
    yield from ((("events", index), event) for index, event in enumerate(events))
    for index, intervention in enumerate(interventions):
        yield from ((("interventions", index, "do", place), event) for place, event in enumerate(intervention.do))


def _mentioned_by(path: Path, event: DeclaredEvent) -> Iterator[_Mention]:
    if isinstance(event, PostEvent):
        if event.by not in (RANDOM, MOST_FOLLOWED):
            yield (*path, "by"), event.by
    elif isinstance(event, MuteEvent):
        yield from (((*path, "mute", place), who) for place, who in enumerate(event.mute))
    elif isinstance(event, BroadcastEvent | StimulusEvent | ChangeEvent):
        if isinstance(event, StimulusEvent) and event.by is not None:
            yield (*path, "by"), event.by
        yield from (((*path, "to", place), who) for place, who in enumerate(event.to))


def _mentioned_in(path: Path, world: object) -> Iterator[_Mention]:
    if isinstance(world, RoomSettings):
        for index, relation in enumerate(world.relations):
            place = (*path, "relations", index, "between")
            yield from (((*place, end), who) for end, who in enumerate(relation.between))
    elif isinstance(world, DialogueSettings) and not isinstance(world.pairs, str):
        for index, pair in enumerate(world.pairs):
            yield from (((*path, "pairs", index, end), who) for end, who in enumerate(pair))


def _bad_pairs(worlds: Mapping[str, object], names: Mapping[str, int]) -> Iterator[Problem]:
    """Nobody can be in two conversations at once."""
    for name, world in worlds.items():
        if not isinstance(world, DialogueSettings) or isinstance(world.pairs, str):
            continue
        seen: dict[str | int, int] = {}
        for index, pair in enumerate(world.pairs):
            for end, who in enumerate(pair):
                first = seen.setdefault(_number(who, names), index)
                path = ("worlds", name, "pairs", index, end)
                if first != index:
                    yield Problem(path, f"{who!r} is already in pair {first}; nobody can be in two", _NAMES | _NUMBERS)
            if _number(pair[0], names) == _number(pair[1], names):
                yield Problem(("worlds", name, "pairs", index), f"{pair[0]!r} cannot talk to themselves", _NAMES)


def _bad_relations(worlds: Mapping[str, object], names: Mapping[str, int]) -> Iterator[Problem]:
    for name, world in worlds.items():
        for index, relation in enumerate(world.relations if isinstance(world, RoomSettings) else ()):
            first, second = relation.between
            if _number(first, names) == _number(second, names):
                path = ("worlds", name, "relations", index, "between")
                yield Problem(path, f"{first!r} cannot be related to themselves", _NAMES | _NUMBERS)


def _turns(mind: object) -> Iterable[tuple[int, ScriptedTurn]]:
    return enumerate(mind.turns) if isinstance(mind, ScriptedSettings) else ()


def _unknown(who: str | int, names: Mapping[str, int], total: int) -> str | None:
    if isinstance(who, int):
        return None if 0 <= who < total else f"there is no person {who}: people are numbered 0 to {total - 1}"
    if who in names:
        return None
    near = hint(who, (*names, RANDOM, MOST_FOLLOWED))
    return f"unknown person {who!r}{near or '; only people listed with a name can be called by it, others by number'}"


def _bad_edges(follows: FollowSettings, names: Mapping[str, int]) -> Iterator[Problem]:
    seen: dict[tuple[str | int, str | int], int] = {}
    for index, (source, target) in enumerate(follows.edges):
        edge = (_number(source, names), _number(target, names))
        first = seen.setdefault(edge, index)
        if edge[0] == edge[1]:
            yield Problem(("follows", "edges", index), f"{source!r} cannot follow themselves", _NAMES | _NUMBERS)
        elif first != index:
            yield Problem(("follows", "edges", index), f"the same edge as follows.edges.{first}", _NAMES | _NUMBERS)


def _number(who: str | int, names: Mapping[str, int]) -> str | int:
    return names.get(who, who) if isinstance(who, str) else who


def worlds(
    known: Mapping[str, object], events: Events, interventions: Interventions, mind: object
) -> Iterator[Problem]:
    """Worlds that are spoken of but do not exist."""
    mentions: list[tuple[Path, str | None]] = []
    mentions += [(("events", index, "world"), event.world) for index, event in enumerate(events)]
    mentions += [(("interventions", index, "world"), rule.world) for index, rule in enumerate(interventions)]
    mentions += [(("mind", "turns", index, "world"), turn.world) for index, turn in _turns(mind)]
    for path, world in mentions:
        if world is not None and world not in known:
            near = hint(world, known) or f"; there is {', '.join(known)}"
            yield Problem(path, f"unknown world {world!r}{near}", _WORLDS)


def knows(world: object, event: DeclaredEvent) -> bool:
    """Whether such a thing can happen in a world of this kind. Worlds of one's own are told everything."""
    kind = kind_of(event)
    if isinstance(world, SocialSettings):
        return kind not in STIMULI
    if isinstance(world, RoomSettings):
        return kind != "post"
    return not isinstance(world, DialogueSettings) or (kind != "post" and kind not in STIMULI)


def occasions(known: Mapping[str, object], events: Events, interventions: Interventions) -> Iterator[Problem]:
    """Things that cannot happen where they are meant to."""
    scopes = [rule.world for rule in interventions]
    for path, event in _all_events(events, interventions):
        if isinstance(event, SkipEvent):
            continue
        scope = scopes[int(path[1])] if path[0] == "interventions" else event.world
        meant = [settings for name, settings in known.items() if scope in (None, name)]
        if meant and not any(knows(settings, event) for settings in meant):
            where = f"in {scope!r}" if scope else "in any of its worlds"
            yield Problem((*path, kind_of(event)), f"{kind_of(event)!r} cannot happen {where}", _WORLDS)
    for index, rule in enumerate(interventions):
        meant = [settings for name, settings in known.items() if rule.world in (None, name)]
        path = ("interventions", index, "when")
        if rule.condition.facts & OPINIONS and any(getattr(settings, "visibility", 1) > 1 for settings in meant):
            yield Problem(path, "opinions are only known where visibility is 1: with more, rounds overlap", _WORLDS)
        yield from (Problem(path, text, _WORLDS) for text in _never_done(rule, meant))


def _never_done(rule: Intervention, meant: Sequence[object]) -> Iterator[str]:
    """What a condition asks about that nobody can do anywhere it looks."""
    known = [_actions_of(settings) for settings in meant]
    possible = {kind for each in known for kind in each or ()}
    if not meant or None in known:
        return
    asked = rule.condition.asked
    for kind in (*asked.get("count", ()), *asked.get("total", ())):
        if kind not in possible:
            yield f"unknown action {kind!r}{hint(kind, sorted(possible))}"


def actions(known_worlds: Mapping[str, object], mind: object) -> Iterator[Problem]:
    """Actions that nobody can take, or that lack an argument."""
    for name, world in known_worlds.items():
        possible = _actions_of(world)
        for index, action in enumerate(getattr(world, "actions", None) or ()):
            if possible is not None and action not in possible:
                yield Problem(("worlds", name, "actions", index), f"unknown action {action!r}{hint(action, possible)}")
    for index, turn in _turns(mind):
        meant = [_actions_of(world) for name, world in known_worlds.items() if turn.world in (None, name)]
        possible = {kind: args for known in meant for kind, args in (known or {}).items()}
        if None not in meant:
            yield from _bad_turn(("mind", "turns", index), turn, possible)


def _actions_of(world: object) -> Mapping[str, Iterable[str]] | None:
    """Kind of action -> what it needs; None where that is not known."""
    if isinstance(world, SocialSettings):
        return ACTIONS
    if isinstance(world, RoomSettings):
        return {**Room.actions, DO_NOTHING: ()}
    return {**Dialogue.actions, DO_NOTHING: ()} if isinstance(world, DialogueSettings) else None


def _bad_turn(path: Path, turn: ScriptedTurn, possible: Mapping[str, Iterable[str]]) -> Iterator[Problem]:
    if turn.action not in possible:
        yield Problem((*path, "action"), f"unknown action {turn.action!r}{hint(turn.action, possible)}", _WORLDS)
        return
    for argument in possible[turn.action]:
        if argument not in turn.args:
            near = hint(argument, turn.args).replace("did you mean", "is it")
            place = (*path, "args") if turn.args else path
            yield Problem(place, f"{turn.action} needs {argument!r} among its args{near}", _WORLDS)


def rounds(last: int, time: TimeSettings, events: Events, mind: object) -> Iterator[Problem]:
    """Things that would happen after the end, or after the end of the calendar."""
    due: list[tuple[Path, int]] = [(("events", index, "round"), event.round) for index, event in enumerate(events)]
    due += [(("mind", "turns", index, "round"), turn.round) for index, turn in _turns(mind)]
    for path, round in due:
        if round > last:
            yield Problem(path, f"round {round} never comes: the run has {last} rounds", _ROUNDS)
    skipped = sum(event.skip for event in events if isinstance(event, SkipEvent))
    try:
        time.start + timedelta(days=1, minutes=time.minutes_per_round * last + skipped)
    except OverflowError:
        skips = f" and {skipped} minutes skipped" if skipped else ""
        yield Problem(("rounds",), f"{last} rounds of {time.minutes_per_round} minutes{skips} end after the year 9999")
    low, high = time.agents_per_hour_min, time.agents_per_hour_max
    if low is not None and high is not None and low > high:
        yield Problem(("time", "agents_per_hour_min"), f"the minimum ({low}) is above agents_per_hour_max ({high})")


def quotas(entries: Entries, known: Mapping[str, object], events: Events) -> Iterator[Problem]:
    """More posts by one author in one round than a world can number."""
    names = listed(entries)
    counts: Counter[tuple[str, int, str | int]] = Counter()
    for index, event in enumerate(events):
        if not isinstance(event, PostEvent) or event.by == RANDOM:
            continue
        keys = [(world, event.round, _number(event.by, names)) for world in known if event.world in (None, world)]
        counts.update(keys)
        if any(counts[key] == MAX_ACTIONS_PER_TURN + 1 for key in keys):
            text = f"more than {MAX_ACTIONS_PER_TURN} posts by {event.by!r} in round {event.round}"
            yield Problem(("events", index), text, _NAMES | _NUMBERS | _WORLDS)
