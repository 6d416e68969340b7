"""Everybody who is in a world."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shoal.api.person import Person
from shoal.errors import ScenarioInvalid
from shoal.scenario.problems import expected, hint


class Cast:
    """The people of a world, by name or in order; groups and files of people are counted, and drawn when it runs."""

    def __init__(self, world: str) -> None:
        self._world = world
        self._people: dict[str, Person] = {}
        #: In order, as they were given.
        self.entries: list[Person | dict[str, Any]] = []

    def add(self, who: Person | Mapping[str, Any]) -> None:
        if isinstance(who, Mapping):
            if "name" not in who:
                self.entries.append(dict(who))
                return
            who = Person(**who)
        if not isinstance(who, Person):
            raise ScenarioInvalid([expected('a Person, or a mapping such as {"count": 20}', who)])
        if who.name in self._people:
            raise ScenarioInvalid([f"there is already somebody called {who.name!r} in {self._world!r}"])
        self._people[who.name] = who
        self.entries.append(who)
        who.world = self._world

    def declared(self) -> list[dict[str, Any]]:
        return [entry.declared() if isinstance(entry, Person) else entry for entry in self.entries]

    def described(self) -> str:
        groups = len(self.entries) - len(self._people)
        people = f"{len(self)} {'person' if len(self) == 1 else 'people'}"
        return people if not groups else f"{people} and {groups} group{'s' if groups > 1 else ''} of people"

    def __getitem__(self, who: str | int) -> Person:
        if isinstance(who, int):
            return list(self._people.values())[who]
        if who not in self._people:
            raise KeyError(f"there is nobody called {who!r} in {self._world!r}{hint(who, self._people)}")
        return self._people[who]

    def __iter__(self) -> Iterator[Person]:
        return iter(list(self._people.values()))

    def __len__(self) -> int:
        return len(self._people)

    def __contains__(self, who: object) -> bool:
        return who in self._people or who in self._people.values()

    def __repr__(self) -> str:
        return f"[{', '.join(self._people)}]" if self._people else f"<{self.described()}>"
