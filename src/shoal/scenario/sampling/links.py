"""Follow edges in files: in the file of the follow graph, and in columns of the population's files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shoal.scenario.declared.follows import FollowSettings
from shoal.scenario.declared.population import (
    FileEntry,
    GroupEntry,
    PopulationEntries,
    count_people,
    find_own_names,
    number_entries,
    number_own_names,
)
from shoal.scenario.importers.edges import EdgeEnd, Edges, encode_edges
from shoal.scenario.importers.fields import MAX_PROBLEMS, limit_problems
from shoal.scenario.validation.problems import Path, Problem
from shoal.text import hint, nearest
from shoal.worlds import NameIndex

_NEEDS = frozenset({"names", "numbers"})
_MAX_PLACES_SHOWN = 3

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Links:
    """The edges of all files as numbers of people, and what is wrong with the files."""

    sources: Ints
    targets: Ints
    problems: Sequence[Problem]
    notes: Sequence[str]


def read_links(entries: PopulationEntries, follows: FollowSettings) -> Links:
    """Look up the people in all edges. Edges to oneself and repeated edges are left out, and noted."""
    none = np.empty(0, dtype=np.int64)
    found = [Links(none, none, (), ())]
    stated = list(_list_edges_in_files(entries, follows))
    by_name = _PeopleIndex(entries) if stated else None
    for path, edges in stated:
        # Where there is no file of edges, the trait is that of the people in columns.
        is_column = path != ("follows", "file")
        trait = follows.by if not is_column or follows.from_file is None else None
        owners = (entry if isinstance(entry, GroupEntry) else entry.roster for entry in entries)
        if trait is not None and trait not in (known := {name: None for owner in owners for name in owner.traits}):
            message, suggestion = f"nobody has a trait {trait!r}", nearest(trait, known)
            problem = Problem(("follows", "by"), message, suggestion=suggestion, needs=_NEEDS)
            found.append(Links(none, none, [problem], ()))
        else:
            people = by_name if by_name is not None and trait is None else _PeopleIndex(entries, trait, is_column)
            found.append(_resolve_edges(path, edges, people))
    return Links(
        np.concatenate([links.sources for links in found]),
        np.concatenate([links.targets for links in found]),
        [problem for links in found for problem in links.problems],
        [note for links in found for note in links.notes],
    )


class _PeopleIndex:
    """Finds people by name, username or number, or by a trait such as their number in another system.

    Unlike `NameIndex` it knows only names that are not drawn, and takes them literally.
    """

    def __init__(self, entries: PopulationEntries, trait: str | None = None, numbers_count: bool = False) -> None:
        self._trait = trait
        #: Whether whole numbers count people all the same, as the owners of columns are given by number.
        self._numbers_count = numbers_count
        self._count = count_people(entries)
        self._rosters = [entry.roster for entry in entries if isinstance(entry, FileEntry)]
        if trait is None:
            usernames = find_own_names(entries, "username").items()
            self._names = number_own_names(entries)
            self._numbers = {name: number for number, name in reversed(usernames)} | self._names
            return
        self._numbers = self._names = {}
        for start, entry in number_entries(entries):
            values = () if isinstance(entry, GroupEntry) else entry.roster.traits.get(trait, ())
            self._numbers |= {str(value): start + row for row, value in enumerate(values) if value is not None}

    @cached_property
    def _index(self) -> NameIndex:
        return NameIndex(list(self._names))

    def find(self, who: EdgeEnd) -> int | None:
        if isinstance(who, tuple):
            return next((number for one in who if (number := self.find(one)) is not None), None)
        if self._trait is not None and not (self._numbers_count and isinstance(who, int)):
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
        near = self._index.list_candidates(str(shown)) or hint(shown, self._names)
        if not near and str(shown).isdecimal():
            # Where a number counts people, it may have been meant for a trait.
            traits = (trait for roster in self._rosters for trait in roster.traits.items())
            found = next((name for name, values in traits if str(shown) in map(str, values)), None)
            if found is not None:
                near = f"; if it is a {found!r}, say `follows: {{by: {found}}}`, or --by of an import"
        near = near or f"; expected a name, a username or a number, 0 to {self._count - 1}"
        return f"unknown person {shown!r}{near}"


def _resolve_edges(path: Path, stated: Edges, people: _PeopleIndex) -> Links:
    """Return the edges of one file as numbers of people, without those that cannot be used."""
    known = (people.find(end) for end in stated.ends)
    numbers = np.array([-1 if number is None else number for number in known], dtype=np.int64)
    sources, targets = numbers[stated.sources], numbers[stated.targets]
    usable = (sources >= 0) & (targets >= 0) & (sources != targets)
    rows = np.flatnonzero(usable)
    count = int(numbers.max(initial=0)) + 1
    first = np.zeros(len(sources), dtype=bool)
    first[rows[np.unique(sources[rows] * count + targets[rows], return_index=True)[1]]] = True

    unknown = np.flatnonzero((sources < 0) | (targets < 0))
    problems = []
    for edge in unknown[:MAX_PROBLEMS].tolist():
        end = next(int(end) for end in (stated.sources[edge], stated.targets[edge]) if numbers[end] < 0)
        problems.append(f"{stated.locate(edge)}: {people.explain_unknown(stated.ends[end])}")
    notes = []
    for edges, what in (
        (np.flatnonzero((sources == targets) & (sources >= 0)), "of people who follow themselves"),
        (np.flatnonzero(usable & ~first), "that stand twice"),
    ):
        places = [stated.locate(edge) for edge in edges[:_MAX_PLACES_SHOWN].tolist()]
        more = ", ..." if len(edges) > _MAX_PLACES_SHOWN else ""
        if len(edges):
            notes.append(f"edges {what}: {len(edges):,}, left out ({', '.join(places)}{more})")
    listed = [Problem(path, text, needs=_NEEDS) for text in limit_problems(problems, len(unknown))]
    return Links(sources[first], targets[first], listed, notes)


def _list_edges_in_files(entries: PopulationEntries, follows: FollowSettings) -> Iterator[tuple[Path, Edges]]:
    """Yield the edges of the follow graph's file, and those in columns of the population's files, each with its path.

    In a column a name is that of any person, a number that of a person in the same file.
    """
    if follows.from_file is not None:
        yield ("follows", "file"), follows.from_file
    for index, (start, entry) in enumerate(number_entries(entries)):
        if not isinstance(entry, FileEntry) or "follows" not in entry.roster.fields:
            continue
        table = entry.roster.table
        own_names = {name for name in entry.roster.column("name") if name is not None}
        rows: list[int] = []
        targets: list[str | int] = []
        for row, followed in enumerate(entry.roster.fields["follows"]):
            for who in followed or ():
                is_number = isinstance(who, int) or (str(who).isdecimal() and who not in own_names)
                is_number = is_number and (follows.by is None or follows.from_file is not None)
                rows.append(row)
                targets.append(start + int(who) if is_number else str(who))
        encoded, lines = encode_edges([start + row for row in rows], targets), [table.lines[row] for row in rows]
        yield ("population", index, "file"), Edges("", table.name, *encoded, lines, unit=table.unit)
