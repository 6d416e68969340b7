"""The one way to find a person by name or number."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from shoal.errors import QueryFailed
from shoal.text import hint, join_words, one_of

#: Candidates for an ambiguous name.
_MAX_SHOWN = 8


class NameIndex:
    """The people of a run by name.

    An exact name goes before the same name in other letters. Several people can share a name; then the first of them
    is found, unless the method says otherwise. Each table is built when it is first needed.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    def __getitem__(self, who: str | int) -> int:
        """Return the number of a person who is known to exist; KeyError otherwise."""
        found = self.find(who)
        if found is None:
            raise KeyError(who)
        return found

    def find(self, who: str | int) -> int | None:
        """Return the number of a person given by name or number, or None if there is no such person."""
        if isinstance(who, int):
            return who if 0 <= who < len(self.names) else None
        found = self._by_name.get(who)
        return next(iter(self.namesakes(who.strip())), None) if found is None else found

    def namesakes(self, name: str) -> Sequence[int]:
        """Return all people with this name, in upper or lower case."""
        return self._by_folded_name.get(name.casefold(), ())

    def search(self, query: str) -> list[int]:
        """Return all people whose name contains every word of the query."""
        found = [self._by_word.get(word, []) for word in query.casefold().split()]
        return sorted(set(found[0]).intersection(*found[1:])) if found else []

    def resolve(self, text: str) -> int:
        """Return the one person that a user means by a name or by a number written in digits.

        Raises QueryFailed where the text fits no person, or more than one.
        """
        same = self.namesakes(text)
        found = [number for number in same if self.names[number] == text] or same
        if len(found) > 1:
            raise QueryFailed(f"several people are called {text!r}; name one by number: {', '.join(map(str, found))}")
        if found:
            return found[0]
        if text.isascii() and text.isdigit() and int(text) < len(self.names):
            return int(text)
        near = self.list_candidates(text) or self.suggest(text)
        near = near or f"; people have numbers 0 to {len(self.names) - 1}"
        raise QueryFailed(f"there is no agent {text!r}{near}")

    def suggest(self, name: str) -> str:
        """Return `; did you mean 'x'?` for a person with this word in their name, or with a similar name."""
        part_of = self._by_word.get(name.strip().casefold())
        if part_of:
            return f"; did you mean {self.names[part_of[0]]!r}?"
        return hint(name.strip(), self.names, limit=None)

    def list_candidates(self, name: str) -> str:
        """Return `; it could be 'x' or 'y'` where several people have these words in their name, else nothing."""
        found = [repr(self.names[number]) for number in self.search(name)]
        if len(found) < 2:
            return ""
        return f"; it could be {one_of(found) if len(found) <= _MAX_SHOWN else join_words(found, _MAX_SHOWN)}"

    @cached_property
    def _by_name(self) -> dict[str, int]:
        return {name: number for number, name in reversed(list(enumerate(self.names)))}

    @cached_property
    def _by_folded_name(self) -> dict[str, list[int]]:
        people: dict[str, list[int]] = {}
        for number, name in enumerate(self.names):
            people.setdefault(name.casefold(), []).append(number)
        return people

    @cached_property
    def _by_word(self) -> dict[str, list[int]]:
        """Word of a name -> the people who have it."""
        people: dict[str, list[int]] = {}
        for number, name in enumerate(self.names):
            for word in name.casefold().split():
                people.setdefault(word, []).append(number)
        return people
