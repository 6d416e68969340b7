"""How a difference spreads from agent to agent: who was reached when, and through whom.

Somebody is reached in the first round in which they act differently. What led there is, of all that was different in
what they saw, that which is nearest to where it began: the shortest chain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import msgspec

from shoal.types import Event, Notice, Observation

How = Literal["happening", "saw", "reaction", "totals", "scenario"]

#: Arguments of actions that name something others see too -> what it is called in what they see.
_THINGS = {"post_id": "post_id", "quoted_id": "post_id", "comment_id": "comment_id", "group_id": "group_id"}
#: Arguments that repeat the words of what was reacted to: passed on, it is seen under other numbers.
_WORDS = ("post_content", "original_content")
#: Arguments that name a person.
_PEOPLE = ("followee_id", "mutee_id", "to_agent_id")
#: Notices that concern nobody by themselves.
_REMARKS = ("intervention", "stop")

Thing = tuple[str, object]


@dataclass(frozen=True, slots=True)
class Reached:
    """Somebody who acted differently for the first time, and what led there."""

    agent: int
    name: str
    round: int
    #: `happening`: it was made to happen in their name or to them; `saw`: something that `via` did differently;
    #: `reaction`: something that `via` reacted to differently; `totals`: counts or rankings that are nobody's in
    #: particular; `scenario`: nothing in the world, so what was declared differently.
    how: How
    via: int | None
    #: Steps from where it began.
    depth: int


class _Contact(NamedTuple):
    """Something different that somebody came across."""

    how: How
    via: int | None
    depth: int


class Deviation(NamedTuple):
    """One agent's part in a round in which something was different about it."""

    agent: int
    #: What was seen in each run; None where there was no turn.
    pictures: tuple[Observation | None, Observation | None]
    #: Whether something else was done.
    acted: bool
    #: Whether people act one after another, and see what was done before in the same round.
    in_turn: bool = False

    @property
    def changed(self) -> bool:
        one, other = self.pictures
        return one is not None and other is not None and one != other


class Spread:
    """Follows a difference round by round. What it keeps grows with the people it has reached."""

    def __init__(self, names: Sequence[str], redeclared: bool = False) -> None:
        self._names = names
        #: Whether the scenarios differ, and not only what was injected.
        self._redeclared = redeclared
        self.reached: dict[int, Reached] = {}
        self._contacts: dict[int, _Contact] = {}
        self._touched: dict[Thing, set[int]] = {}
        #: When people were told something different: one by one, and all of them.
        self._told: dict[int, int] = {}
        self._all_told = -1
        self._last_turn: dict[int, int] = {}

    def take_in(
        self, round: int, made: Iterable[Event | Notice], turns: Iterable[Deviation], acting: Iterable[int]
    ) -> list[Reached]:
        """A round: what was made to happen differently, and the turns, in order. Returns who is reached in it."""
        for event in made:
            self._tell(round, event)
        new = [found for turn in turns if (found := self._meet(round, turn)) is not None]
        self._last_turn.update(dict.fromkeys(acting, round))
        posted = [self._begin(round, event) for event in made if isinstance(event, Event)]
        return new + [found for found in posted if found is not None]

    def touch(self, events: Iterable[Event]) -> None:
        """Actions that differ: what they concern will look different too."""
        for event in events:
            for thing in _concerned(event):
                self._touched.setdefault(thing, set()).add(event.agent_id)

    def chain(self, agent: int) -> list[int]:
        """From where it began to this agent."""
        links = [agent]
        while (via := self.reached[links[-1]].via) is not None:
            links.append(via)
        return links[::-1]

    def _tell(self, round: int, event: Event | Notice) -> None:
        if isinstance(event, Notice) and event.event_type not in _REMARKS:
            self._told.update(dict.fromkeys(event.to, round))
            if not event.to:
                self._all_told = round

    def _begin(self, round: int, event: Event) -> Reached | None:
        """Something was done in somebody's name. Others see it as theirs."""
        if event.agent_id in self.reached:
            return None
        return self._reach(round, event.agent_id, _Contact("happening", None, 0))

    def _meet(self, round: int, deviation: Deviation) -> Reached | None:
        agent = deviation.agent
        if agent in self.reached:
            return None
        contact = self._contact(round, deviation)
        if contact is not None:
            self._contacts.setdefault(agent, contact)
        if not deviation.acted:
            return None
        return self._reach(round, agent, contact or self._contacts.get(agent) or self._unclear(round, deviation))

    def _unclear(self, round: int, deviation: Deviation) -> _Contact:
        """Nobody in particular led there."""
        began = any(who.round < round for who in self.reached.values())
        return _Contact("totals" if began and (deviation.changed or not self._redeclared) else "scenario", None, 0)

    def _reach(self, round: int, agent: int, contact: _Contact) -> Reached:
        found = Reached(agent, self._names[agent], round, contact.how, contact.via, contact.depth)
        self.reached[agent] = found
        return found

    def _contact(self, round: int, deviation: Deviation) -> _Contact | None:
        """What is different about the picture, nearest to where it began; or what somebody was told."""
        if max(self._told.get(deviation.agent, -1), self._all_told) > self._last_turn.get(deviation.agent, -1):
            return _Contact("happening", None, 0)
        one, other = deviation.pictures
        if one is None or other is None:
            return self._kept_from(round, one or other)
        if not deviation.changed:
            return None
        authors = _differing(one.sources(), other.sources()) - {deviation.agent}
        return (
            self._nearest("saw", (who for who in authors if self._before(who, round)))
            or self._nearest(
                "reaction", (who for who in self._reactors(deviation.agent, one, other) if who != deviation.agent)
            )
            or self._nearest("saw", authors if deviation.in_turn else ())
        )

    def _kept_from(self, round: int, picture: Observation | None) -> _Contact | None:
        """A turn that only one run has, though the same was declared: somebody in sight ended or began something."""
        if picture is None or self._redeclared:
            return None
        return self._nearest("saw", (who for who, _ in picture.sources() if self._before(who, round)))

    def _before(self, agent: int, round: int) -> bool:
        return agent in self.reached and self.reached[agent].round < round

    def _reactors(self, agent: int, one: Observation, other: Observation) -> Iterator[int]:
        things = {("agent", agent), *_changed_things(one, other)}
        for thing in things:
            yield from self._touched.get(thing, ())

    def _nearest(self, how: How, candidates: Iterable[int]) -> _Contact | None:
        known = [self.reached[who] for who in candidates if who in self.reached]
        if not known:
            return None
        best = min(known, key=lambda one: (one.depth, one.round, one.agent))
        return _Contact(how, best.agent, best.depth + 1)


def _differing(one: Iterable[tuple[int, object]], other: Iterable[tuple[int, object]]) -> set[int]:
    """Whose items are not the same in both."""
    left, right = Counter(one), Counter(other)
    return {who for who, _ in (left - right) + (right - left)}


def _concerned(event: Event) -> Iterator[Thing]:
    args = event.action_args
    for name, thing in _THINGS.items():
        if name in args:
            yield thing, args[name]
    for name in _WORDS:
        if name in args:
            yield "content", args[name]
    for name in _PEOPLE:
        if name in args:
            yield "agent", args[name]


def _changed_things(one: Observation, other: Observation) -> set[Thing]:
    left, right = (dict(_things(msgspec.to_builtins(picture))) for picture in (one, other))
    changed = [thing for thing in left.keys() | right.keys() if left.get(thing) != right.get(thing)]
    shown = [side[thing] for thing in changed for side in (left, right) if thing in side]
    return {*changed, *(("content", item["content"]) for item in shown if "content" in item)}


def _things(value: Any) -> Iterator[tuple[Thing, Mapping[str, Any]]]:
    """Everything in a picture that has a number of its own."""
    if isinstance(value, Mapping):
        for name in _THINGS:
            if name in value:
                yield (name, value[name]), value
        for below in value.values():
            yield from _things(below)
    elif isinstance(value, list | tuple):
        for below in value:
            yield from _things(below)
