"""Who follows whom according to files: the file of the follow graph, and columns of the population's files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.scenario.declared.follows import FollowSettings
from shoal.scenario.declared.population import (
    FileEntry,
    PersonEntry,
    PopulationEntries,
    count_people,
    find_own_names,
    number_entries,
    number_own_names,
)
from shoal.scenario.importers.edges import EdgeEnd, encode_edges
from shoal.scenario.importers.fields import MAX_PROBLEMS, limit_problems
from shoal.scenario.importers.people_file import PeopleTable
from shoal.scenario.validation.problems import Path, Problem
from shoal.text import hint, nearest

_NEEDS = frozenset({"names", "numbers"})
_SHOWN = 3

Ints = NDArray[np.int64]
_NOBODY: Ints = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class _Stated:
    """What one file says: everybody it speaks of, once, and for each edge the places of its two ends among these."""

    path: Path
    ends: Sequence[EdgeEnd]
    sources: NDArray[np.int32]
    targets: NDArray[np.int32]
    #: Where an edge stands, by its number.
    place: Callable[[int], str]


@dataclass(frozen=True, slots=True)
class Links:
    """What files say, in numbers, and what is wrong with it."""

    sources: Ints
    targets: Ints
    problems: Sequence[Problem]
    notes: Sequence[str]


def read_links(entries: PopulationEntries, follows: FollowSettings) -> Links:
    """Everybody looked up. Nobody follows themselves or anybody twice; edges that say so are left out, and noted."""
    ends: list[tuple[Ints, Ints]] = [(_NOBODY, _NOBODY)]
    problems: list[Problem] = []
    notes: list[str] = []
    stated = [*_from_follows(follows), *_from_columns(entries)]
    register = _Register(entries) if stated else None
    for each in stated:
        by = follows.by if each.path == ("follows", "file") else None
        if by is not None and by not in (known := _traits(entries)):
            problems.append(
                Problem(("follows", "by"), f"nobody has a trait {by!r}", suggestion=nearest(by, known), needs=_NEEDS)
            )
            continue
        people = _Traits(entries, by) if by is not None else register
        assert people is not None
        found = _ResolvedEdges(each, people)
        ends.append((found.sources, found.targets))
        problems += [Problem(each.path, text, needs=_NEEDS) for text in limit_problems(found.unknown, found.strangers)]
        notes += found.notes
    sources, targets = (np.concatenate(column) for column in zip(*ends, strict=True))
    return Links(sources, targets, problems, notes)


class _Register:
    """Finds people by name, username or number."""

    def __init__(self, entries: PopulationEntries) -> None:
        self.names = number_own_names(entries)
        self._usernames = {name: number for number, name in reversed(find_own_names(entries, "username").items())}
        self._size = count_people(entries)

    def number(self, who: EdgeEnd) -> int | None:
        if isinstance(who, tuple):
            return next((number for one in who if (number := self.number(one)) is not None), None)
        if isinstance(who, str):
            found = self.names.get(who, self._usernames.get(who))
            if found is not None or not (who.isascii() and who.isdecimal()):
                return found
            who = int(who)
        return who if 0 <= who < self._size else None

    def unknown(self, who: EdgeEnd) -> str:
        if isinstance(who, tuple):
            who = who[0]
        near = hint(who, self.names)
        return f"unknown person {who!r}{near or f'; expected a name, a username or a number, 0 to {self._size - 1}'}"


class _Traits:
    """Finds people by a trait of theirs, such as the number that they have elsewhere."""

    def __init__(self, entries: PopulationEntries, trait: str) -> None:
        self._trait = trait
        self._numbers: dict[str, int] = {}
        for start, entry in number_entries(entries):
            if isinstance(entry, FileEntry):
                values = entry.roster.traits.get(trait, ())
                self._numbers |= {str(value): start + row for row, value in enumerate(values) if value is not None}
            elif isinstance(entry, PersonEntry) and trait in entry.traits:
                self._numbers[str(entry.traits[trait])] = start

    def number(self, who: EdgeEnd) -> int | None:
        if isinstance(who, tuple):
            return next((number for one in who if (number := self.number(one)) is not None), None)
        return self._numbers.get(str(who))

    def unknown(self, who: EdgeEnd) -> str:
        shown = who[-1] if isinstance(who, tuple) else who
        return f"nobody has {shown!r} as their {self._trait!r}{hint(shown, self._numbers)}"


def _traits(entries: PopulationEntries) -> dict[str, None]:
    owners = (entry.roster if isinstance(entry, FileEntry) else entry for entry in entries)
    return dict.fromkeys(name for owner in owners for name in owner.traits)


class _ResolvedEdges:
    """The edges of one file, looked up."""

    def __init__(self, stated: _Stated, people: _Register | _Traits) -> None:
        known = (people.number(end) for end in stated.ends)
        numbers = np.array([-1 if number is None else number for number in known], dtype=np.int64)
        sources, targets = numbers[stated.sources], numbers[stated.targets]
        strangers = np.flatnonzero((sources < 0) | (targets < 0))
        themselves = np.flatnonzero((sources == targets) & (sources >= 0))
        usable = (sources >= 0) & (targets >= 0) & (sources != targets)
        first = np.zeros(len(sources), dtype=bool)
        rows = np.flatnonzero(usable)
        size = int(numbers.max(initial=0)) + 1
        first[rows[np.unique(sources[rows] * size + targets[rows], return_index=True)[1]]] = True
        self.sources, self.targets = sources[first], targets[first]
        #: The first of them in words, and how many there are.
        self.strangers = len(strangers)
        self.unknown = [_stranger(stated, people, numbers, int(edge)) for edge in strangers[:MAX_PROBLEMS]]
        self.notes = [
            f"edges {what}: {len(rows):,}, left out ({_shown(stated, rows)})"
            for rows, what in (
                (themselves, "of people who follow themselves"),
                (np.flatnonzero(usable & ~first), "that stand twice"),
            )
            if len(rows)
        ]


def _stranger(stated: _Stated, people: _Register | _Traits, numbers: Ints, edge: int) -> str:
    ends = (int(stated.sources[edge]), int(stated.targets[edge]))
    stranger = next(end for end in ends if numbers[end] < 0)
    return f"{stated.place(edge)}: {people.unknown(stated.ends[stranger])}"


def _shown(stated: _Stated, edges: Ints) -> str:
    places = [stated.place(int(edge)) for edge in edges[:_SHOWN]]
    return f"{', '.join(places)}{', ...' if len(edges) > _SHOWN else ''}"


def _from_follows(follows: FollowSettings) -> Iterator[_Stated]:
    edges = follows.from_file
    if edges is not None:

        def place(edge: int) -> str:
            return f"{edges.name}:{edges.lines[edge]}"

        yield _Stated(("follows", "file"), edges.ends, edges.sources, edges.targets, place)


def _from_columns(entries: PopulationEntries) -> Iterator[_Stated]:
    for index, (start, entry) in enumerate(number_entries(entries)):
        if isinstance(entry, FileEntry) and "follows" in entry.roster.fields:
            stated = list(_column_edges(start, entry))
            rows = [row for row, _ in stated]
            coded = encode_edges([start + row for row in rows], [end for _, end in stated])

            def place(edge: int, roster: PeopleTable = entry.roster, rows: Sequence[int] = rows) -> str:
                return roster.table.place(rows[edge])

            yield _Stated(("population", index, "file"), *coded, place)


def _column_edges(start: int, file: FileEntry) -> Iterator[tuple[int, str | int]]:
    """Who follows, as the row, and whom. Names are anybody's, numbers those of people in the same file."""
    roster = file.roster
    own_names = {name for name in roster.column("name") if name is not None}
    for row, followed in enumerate(roster.fields["follows"]):
        for who in followed or ():
            is_number = isinstance(who, int) or (str(who).isdecimal() and who not in own_names)
            yield row, start + int(who) if is_number else str(who)
