"""What the names in a reply stand for, given what the agent was shown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeVar

from shoal.types import Observation
from shoal.worlds import NameIndex, renderer_for

#: `Ada Lund (17)`: the number distinguishes two people of one name.
_NUMBERED = re.compile(r".*\((\d+)\)")
T = TypeVar("T")

_EVERYBODY = frozenset({"everyone", "everybody", "all", "the room", "room", "group", "the group", "anyone"})


class Finder:
    """Knows the names in one observation, and those of all people. Looks only when asked, which is seldom."""

    def __init__(self, observation: Observation, index: NameIndex) -> None:
        self._seen = observation
        self._renderer = renderer_for(observation)
        self._index = index

    def find_user(self, name: str) -> int | None:
        """Return the number of a user in sight, or else of the only one of that name."""
        name = _simplify(name)
        numbered = _NUMBERED.fullmatch(name)
        if numbered:
            return int(numbered[1])
        shown = [(known.casefold(), agent) for agent, known in self._renderer.users(self._seen)]
        found = [agent for known, agent in shown if known == name]
        found = found or _only(agent for known, agent in shown if name in known.split())
        found = found or _only(self._index.namesakes(name))
        return found[0] if found else None

    def find_person(self, name: str) -> str | None:
        """Return the full name of a person in sight, or None for all of them. Unknown names stay as they are."""
        simple = _simplify(name)
        if simple in _EVERYBODY:
            return None
        shown = list(dict.fromkeys(self._renderer.people(self._seen)))
        found = [known for known in shown if known.casefold() == simple]
        found = found or _only(known for known in shown if simple in known.casefold().split())
        return found[0] if found else name.strip()

    def find_thing(self, what: str, name: str) -> int | None:
        """Return the number of the only group with this name, or of the only post in sight by this author."""
        name = _simplify(name)
        things = self._renderer.things(self._seen, what)
        found = _only(number for number, known in things if known.casefold() == name)
        return found[0] if found else None


def _simplify(name: str) -> str:
    return name.strip().strip("@*\"'«»“”").casefold()


def _only(found: Iterable[T]) -> list[T]:
    """Return what was found if it is one and the same, and else nothing."""
    different = list(dict.fromkeys(found))
    return different if len(different) == 1 else []
