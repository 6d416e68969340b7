"""Follows how a difference between two runs spreads: which agents it reached when, and through which others.

An agent is reached in the first round in which it acts differently. The cause is whatever differed in its observations
and lies nearest to the start of the difference, so chains are as short as possible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import msgspec

from shoal.types import Event, Notice, Observation

How = Literal["happening", "saw", "reaction", "totals", "scenario"]

#: Arguments of actions that name something others see too -> its name in their observations.
_THINGS = {"post_id": "post_id", "quoted_id": "post_id", "comment_id": "comment_id", "group_id": "group_id"}
#: Arguments that repeat the text of what was reacted to. A repost shows the same text under another number.
_TEXTS = ("post_content", "original_content")
#: Arguments that name a person.
_PEOPLE = ("followee_id", "mutee_id", "to_agent_id")
#: Notices that concern no agent by themselves.
_REMARKS = ("intervention", "stop")

Thing = tuple[str, object]


@dataclass(frozen=True, slots=True)
class Reached:
    """An agent that acted differently for the first time, and what led to it."""

    agent: int
    name: str
    round: int
    #: `happening`: an event acted in its name or on it; `saw`: it saw something that `via` did differently;
    #: `reaction`: it saw something to which `via` reacted differently; `totals`: counts or rankings differed, which
    #: belong to no single agent; `scenario`: nothing in the world differed, so the declared differences led to it.
    how: How
    via: int | None
    #: Steps from the start of the difference.
    depth: int


class _Contact(NamedTuple):
    """Something different that an agent met."""

    how: How
    via: int | None
    depth: int


class Deviation(NamedTuple):
    """One agent's turn that was not the same in both runs."""

    agent: int
    #: The observation in each run; None where the agent had no turn.
    pictures: tuple[Observation | None, Observation | None]
    #: Whether the agent acted differently.
    acted: bool
    #: Whether agents act one after another, and see what was done earlier in the same round.
    in_turn: bool = False

    @property
    def changed(self) -> bool:
        one, other = self.pictures
        return one is not None and other is not None and one != other


class Spread:
    """Follows a difference round by round. Its size grows with the number of agents reached."""

    def __init__(self, names: Sequence[str], redeclared: bool = False, visibility: int = 1) -> None:
        self._names = names
        #: Rounds until agents see what another one did.
        self._visibility = visibility
        #: Whether the scenarios differ, and not only the injected events.
        self._redeclared = redeclared
        self.reached: dict[int, Reached] = {}
        #: Agent -> the first different thing it met.
        self._contacts: dict[int, _Contact] = {}
        #: Thing -> agents that reacted to it differently.
        self._touched: dict[Thing, set[int]] = {}
        #: The last round in which an agent, or every agent, got a different notice.
        self._noticed: dict[int, int] = {}
        self._all_noticed = -1
        self._last_turn: dict[int, int] = {}

    def add_round(
        self, round: int, made: Iterable[Event | Notice], turns: Iterable[Deviation], acting: Iterable[int]
    ) -> list[Reached]:
        """Add the lines of events and the turns that differ, in order. Return the agents reached in this round."""
        for line in made:
            if isinstance(line, Notice) and line.event_type not in _REMARKS:
                self._noticed.update(dict.fromkeys(line.to, round))
                if not line.to:
                    self._all_noticed = round
        known = len(self.reached)
        for turn in turns:
            if turn.agent not in self.reached:
                contact = self._find_contact(round, turn)
                if contact is not None:
                    self._contacts.setdefault(turn.agent, contact)
                if turn.acted:
                    contact = contact or self._contacts.get(turn.agent)
                    if contact is None:
                        # No single agent led to it.
                        has_begun = any(who.round < round for who in self.reached.values())
                        is_reaction = has_begun and (turn.changed or not self._redeclared)
                        contact = _Contact("totals" if is_reaction else "scenario", None, 0)
                    self.reached[turn.agent] = Reached(turn.agent, self._names[turn.agent], round, *contact)
        self._last_turn.update(dict.fromkeys(acting, round))
        for line in made:
            if isinstance(line, Event) and line.agent_id not in self.reached:
                name = self._names[line.agent_id]
                self.reached[line.agent_id] = Reached(line.agent_id, name, round, "happening", None, 0)
        return list(self.reached.values())[known:]

    def add_reactions(self, events: Iterable[Event]) -> None:
        """Add actions that differ: what they refer to will look different to others."""
        for event in events:
            args = event.action_args
            things: list[Thing] = [(thing, args[name]) for name, thing in _THINGS.items() if name in args]
            things += [("content", args[name]) for name in _TEXTS if name in args]
            things += [("agent", args[name]) for name in _PEOPLE if name in args]
            for thing in things:
                self._touched.setdefault(thing, set()).add(event.agent_id)

    def chain(self, agent: int) -> list[int]:
        """Return the agents from the start of the difference to this one."""
        links = [agent]
        while (via := self.reached[links[-1]].via) is not None:
            links.append(via)
        return links[::-1]

    def _find_contact(self, round: int, turn: Deviation) -> _Contact | None:
        """Find what differed for the agent, nearest to the start: a notice, or something in its observation."""
        agent = turn.agent
        if max(self._noticed.get(agent, -1), self._all_noticed) > self._last_turn.get(agent, -1):
            return _Contact("happening", None, 0)
        one, other, visible = *turn.pictures, round - self._visibility
        if one is None or other is None:
            # Only one run has this turn, though the same was declared: an agent in sight ended or began something.
            seen = one or other
            if seen is None or self._redeclared:
                return None
            return self._nearest("saw", (who for who, _ in seen.sources()), until=visible)
        if not turn.changed:
            return None
        left, right = Counter(one.sources()), Counter(other.sources())
        authors = {who for who, _ in (left - right) + (right - left)} - {agent}
        if (contact := self._nearest("saw", authors, until=visible)) is not None:
            return contact
        before, after = (dict(_list_things(msgspec.to_builtins(seen))) for seen in (one, other))
        changed = [thing for thing in before.keys() | after.keys() if before.get(thing) != after.get(thing)]
        items = [side[thing] for thing in changed for side in (before, after) if thing in side]
        texts = (("content", item["content"]) for item in items if "content" in item)
        things: set[Thing] = {("agent", agent), *changed, *texts}
        reactors = {who for thing in things for who in self._touched.get(thing, ())} - {agent}
        return self._nearest("reaction", reactors) or self._nearest("saw", authors if turn.in_turn else ())

    def _nearest(self, how: How, candidates: Iterable[int], until: int | None = None) -> _Contact | None:
        """Find the candidate nearest to the start, of those that are reached, up to a round where one is given."""
        known = [self.reached[who] for who in candidates if who in self.reached]
        known = [one for one in known if until is None or one.round <= until]
        if not known:
            return None
        best = min(known, key=lambda one: (one.depth, one.round, one.agent))
        return _Contact(how, best.agent, best.depth + 1)


def _list_things(value: Any) -> Iterator[tuple[Thing, Mapping[str, Any]]]:
    """Yield everything in an observation that has an id."""
    if isinstance(value, Mapping):
        for name in _THINGS:
            if name in value:
                yield (name, value[name]), value
        for below in value.values():
            yield from _list_things(below)
    elif isinstance(value, list | tuple):
        for below in value:
            yield from _list_things(below)
