"""Follow edges in files: in the file of the follow graph, and in columns of the population's files."""

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
_MAX_PLACES_SHOWN = 3

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _StatedEdges:
    """The edges of one file: each person it mentions once, and for each edge the places of its two ends among these."""

    path: Path
    ends: Sequence[EdgeEnd]
    sources: NDArray[np.int32]
    targets: NDArray[np.int32]
    #: Returns the file and line of an edge, by its number.
    place: Callable[[int], str]


@dataclass(frozen=True, slots=True)
class Links:
    """The edges of all files as numbers of people, and what is wrong with the files."""

    sources: Ints
    targets: Ints
    problems: Sequence[Problem]
    notes: Sequence[str]


def read_links(entries: PopulationEntries, follows: FollowSettings) -> Links:
    """Look up the people in all edges. Edges to oneself and repeated edges are left out, and noted."""
    sources, targets = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    problems: list[Problem] = []
    notes: list[str] = []
    stated = list(_list_edges_in_files(entries, follows))
    by_name = _PeopleIndex(entries) if stated else None
    for edges in stated:
        trait = follows.by if edges.path == ("follows", "file") else None
        owners = (entry.roster if isinstance(entry, FileEntry) else entry for entry in entries)
        if trait is not None and trait not in (known := {name: None for owner in owners for name in owner.traits}):
            message, suggestion = f"nobody has a trait {trait!r}", nearest(trait, known)
            problems.append(Problem(("follows", "by"), message, suggestion=suggestion, needs=_NEEDS))
            continue
        people = by_name if trait is None else _PeopleIndex(entries, trait)
        assert people is not None
        found = _ResolvedEdges(edges, people)
        sources.append(found.sources)
        targets.append(found.targets)
        unknown = limit_problems(found.unknown, found.unknown_count)
        problems += [Problem(edges.path, text, needs=_NEEDS) for text in unknown]
        notes += found.notes
    return Links(np.concatenate(sources), np.concatenate(targets), problems, notes)


class _PeopleIndex:
    """Finds people by name, username or number, or by a trait such as their number in another system.

    Unlike `NameIndex` it knows only names that are not drawn, and takes them literally.
    """

    def __init__(self, entries: PopulationEntries, trait: str | None = None) -> None:
        self._trait = trait
        self._count = count_people(entries)
        if trait is None:
            usernames = find_own_names(entries, "username").items()
            self._names = number_own_names(entries)
            self._numbers = {name: number for number, name in reversed(usernames)} | self._names
            return
        self._numbers = self._names = {}
        for start, entry in number_entries(entries):
            if isinstance(entry, FileEntry):
                values = entry.roster.traits.get(trait, ())
                self._numbers |= {str(value): start + row for row, value in enumerate(values) if value is not None}
            elif isinstance(entry, PersonEntry) and trait in entry.traits:
                self._numbers[str(entry.traits[trait])] = start

    def find(self, who: EdgeEnd) -> int | None:
        if isinstance(who, tuple):
            return next((number for one in who if (number := self.find(one)) is not None), None)
        if self._trait is not None:
            return self._numbers.get(str(who))
        if isinstance(who, str):
            found = self._numbers.get(who)
            if found is not None or not (who.isascii() and who.isdecimal()):
                return found
            who = int(who)
        return who if 0 <= who < self._count else None

    def explain_unknown(self, who: EdgeEnd) -> str:
        if self._trait is not None:
            shown = who[-1] if isinstance(who, tuple) else who
            return f"nobody has {shown!r} as their {self._trait!r}{hint(shown, self._numbers)}"
        shown = who[0] if isinstance(who, tuple) else who
        near = hint(shown, self._names) or f"; expected a name, a username or a number, 0 to {self._count - 1}"
        return f"unknown person {shown!r}{near}"


class _ResolvedEdges:
    """The edges of one file as numbers of people, without those that cannot be used."""

    def __init__(self, stated: _StatedEdges, people: _PeopleIndex) -> None:
        known = (people.find(end) for end in stated.ends)
        numbers = np.array([-1 if number is None else number for number in known], dtype=np.int64)
        sources, targets = numbers[stated.sources], numbers[stated.targets]
        usable = (sources >= 0) & (targets >= 0) & (sources != targets)
        rows = np.flatnonzero(usable)
        count = int(numbers.max(initial=0)) + 1
        first = np.zeros(len(sources), dtype=bool)
        first[rows[np.unique(sources[rows] * count + targets[rows], return_index=True)[1]]] = True
        self.sources, self.targets = sources[first], targets[first]

        unknown = np.flatnonzero((sources < 0) | (targets < 0))
        self.unknown_count = len(unknown)
        #: Messages about the first edges with an unknown person.
        self.unknown: list[str] = []
        for edge in unknown[:MAX_PROBLEMS].tolist():
            end = next(int(end) for end in (stated.sources[edge], stated.targets[edge]) if numbers[end] < 0)
            self.unknown.append(f"{stated.place(edge)}: {people.explain_unknown(stated.ends[end])}")

        self.notes: list[str] = []
        for edges, what in (
            (np.flatnonzero((sources == targets) & (sources >= 0)), "of people who follow themselves"),
            (np.flatnonzero(usable & ~first), "that stand twice"),
        ):
            places = [stated.place(edge) for edge in edges[:_MAX_PLACES_SHOWN].tolist()]
            more = ", ..." if len(edges) > _MAX_PLACES_SHOWN else ""
            if len(edges):
                self.notes.append(f"edges {what}: {len(edges):,}, left out ({', '.join(places)}{more})")


def _list_edges_in_files(entries: PopulationEntries, follows: FollowSettings) -> Iterator[_StatedEdges]:
    """Yield the edges of the follow graph's file, and those in columns of the population's files.

    In a column a name is that of any person, a number that of a person in the same file.
    """
    edges = follows.from_file
    if edges is not None:
        name, lines = edges.name, edges.lines
        yield _StatedEdges(
            ("follows", "file"), edges.ends, edges.sources, edges.targets, lambda edge: f"{name}:{lines[edge]}"
        )
    for index, (start, entry) in enumerate(number_entries(entries)):
        if not isinstance(entry, FileEntry) or "follows" not in entry.roster.fields:
            continue
        roster = entry.roster
        own_names = {name for name in roster.column("name") if name is not None}
        rows: list[int] = []
        targets: list[str | int] = []
        for row, followed in enumerate(roster.fields["follows"]):
            for who in followed or ():
                is_number = isinstance(who, int) or (str(who).isdecimal() and who not in own_names)
                rows.append(row)
                targets.append(start + int(who) if is_number else str(who))

        def place(edge: int, roster: PeopleTable = roster, rows: Sequence[int] = rows) -> str:
            return roster.table.locate(rows[edge])

        yield _StatedEdges(("population", index, "file"), *encode_edges([start + row for row in rows], targets), place)
