"""What only shows when parts of a scenario are held against one another: names, worlds, rounds, actions.

Each check reports everything it finds. A problem says which other parts it needs, so that a mistake there does not
make this one up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta

from shoal.agents.settings import HeuristicSettings, ScriptedSettings, ScriptedTurn
from shoal.scenario.entries import MAX_PEOPLE, MOST_FOLLOWED, RANDOM, Group, Person, listed, size
from shoal.scenario.events import BroadcastEvent, PostEvent
from shoal.scenario.follows import FollowSettings
from shoal.scenario.problems import Path, Problem, hint
from shoal.types import MAX_ACTIONS_PER_TURN
from shoal.worlds.clock import TimeSettings
from shoal.worlds.social.rules import ACTIONS
from shoal.worlds.social.settings import SocialSettings

Entries = tuple[Person | Group, ...]
Events = Sequence[PostEvent | BroadcastEvent]
Mind = HeuristicSettings | ScriptedSettings
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
        if entry.interests is not None:
            words |= set(entry.interests if isinstance(entry, Person) else entry.interests.among)
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


def references(entries: Entries, follows: FollowSettings, events: Events, mind: Mind) -> Iterator[Problem]:
    """People who are spoken of but do not exist, and people who would follow themselves."""
    names, total = listed(entries), size(entries)
    for path, who in _mentions(entries, follows, events, mind):
        if text := _unknown(who, names, total):
            yield Problem(path, text, _NUMBERS if isinstance(who, int) else _NAMES)
    for index, entry in enumerate(entries):
        if isinstance(entry, Person) and entry.name in entry.follows:
            place = entry.follows.index(entry.name)
            yield Problem(("population", index, "follows", place), f"{entry.name!r} cannot follow themselves")
    yield from _bad_edges(follows, names)


def _mentions(entries: Entries, follows: FollowSettings, events: Events, mind: Mind) -> Iterator[_Mention]:
    for index, entry in enumerate(entries):
        if isinstance(entry, Person):
            yield from ((("population", index, "follows", place), who) for place, who in enumerate(entry.follows))
    for index, edge in enumerate(follows.edges):
        yield from ((("follows", "edges", index, end), who) for end, who in enumerate(edge))
    for index, event in enumerate(events):
        if isinstance(event, BroadcastEvent):
            yield from ((("events", index, "to", place), who) for place, who in enumerate(event.to))
        elif event.by not in (RANDOM, MOST_FOLLOWED):
            yield ("events", index, "by"), event.by
    yield from ((("mind", "turns", index, "agent"), turn.agent) for index, turn in _turns(mind))


def _turns(mind: Mind) -> Iterable[tuple[int, ScriptedTurn]]:
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


def worlds(known: Mapping[str, SocialSettings], events: Events, mind: Mind) -> Iterator[Problem]:
    """Worlds that are spoken of but do not exist."""
    mentions: list[tuple[Path, str | None]] = []
    mentions += [(("events", index, "world"), event.world) for index, event in enumerate(events)]
    mentions += [(("mind", "turns", index, "world"), turn.world) for index, turn in _turns(mind)]
    for path, world in mentions:
        if world is not None and world not in known:
            near = hint(world, known) or f"; there is {', '.join(known)}"
            yield Problem(path, f"unknown world {world!r}{near}", _WORLDS)


def actions(known_worlds: Mapping[str, SocialSettings], mind: Mind) -> Iterator[Problem]:
    """Actions that nobody can take, or that lack an argument."""
    for name, world in known_worlds.items():
        for index, action in enumerate(world.actions or ()):
            if action not in ACTIONS:
                yield Problem(("worlds", name, "actions", index), f"unknown action {action!r}{hint(action, ACTIONS)}")
    for index, turn in _turns(mind):
        path = ("mind", "turns", index)
        if turn.action not in ACTIONS:
            yield Problem((*path, "action"), f"unknown action {turn.action!r}{hint(turn.action, ACTIONS)}")
            continue
        for argument in ACTIONS[turn.action]:
            if argument not in turn.args:
                near = hint(argument, turn.args).replace("did you mean", "is it")
                place = (*path, "args") if turn.args else path
                yield Problem(place, f"{turn.action} needs {argument!r} among its args{near}")


def rounds(last: int, time: TimeSettings, events: Events, mind: Mind) -> Iterator[Problem]:
    """Things that would happen after the end, or after the end of the calendar."""
    due: list[tuple[Path, int]] = [(("events", index, "round"), event.round) for index, event in enumerate(events)]
    due += [(("mind", "turns", index, "round"), turn.round) for index, turn in _turns(mind)]
    for path, round in due:
        if round > last:
            yield Problem(path, f"round {round} never comes: the run has {last} rounds", _ROUNDS)
    try:
        time.start + timedelta(days=1, minutes=time.minutes_per_round * last)
    except OverflowError:
        yield Problem(("rounds",), f"{last} rounds of {time.minutes_per_round} minutes end after the year 9999")
    low, high = time.agents_per_hour_min, time.agents_per_hour_max
    if low is not None and high is not None and low > high:
        yield Problem(("time", "agents_per_hour_min"), f"the minimum ({low}) is above agents_per_hour_max ({high})")


def quotas(entries: Entries, known: Mapping[str, SocialSettings], events: Events) -> Iterator[Problem]:
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
