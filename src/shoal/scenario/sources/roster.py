"""The people of one file: read, checked and told apart, column by column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel

from shoal.errors import ScenarioInvalid
from shoal.scenario.distributions import MAX_INTERESTS
from shoal.scenario.problems import show
from shoal.scenario.sources.cells import BadCell, Reader, as_list, plain_texts, reader_of
from shoal.scenario.sources.imported import FieldUse
from shoal.scenario.sources.mapping import Mapped, Wanted, mapped
from shoal.scenario.sources.tables import Table, told

#: Fields of which no two people may have the same: how a second one is told apart, and when two are the same.
_DISTINCT: Mapping[str, tuple[str, Callable[[str], str]]] = {"name": (" {}", str), "username": ("_{}", str.casefold)}
_SHOWN = 3


@dataclass(frozen=True, slots=True, eq=False)
class Roster:
    """The people of one file. A row of every column is one person; None where the file does not say."""

    #: Of what it was made from; two of the same are the same people.
    digest: str
    count: int
    #: Fields that a person written by hand has as well.
    fields: Mapping[str, Sequence[Any]]
    traits: Mapping[str, Sequence[Any]]
    uses: tuple[FieldUse, ...] = ()
    notes: tuple[str, ...] = ()
    #: For each person where it stands in the file, to be told in problems.
    table: Table = field(default=Table("", {}, ()), repr=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Roster) and other.digest == self.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def column(self, name: str) -> Sequence[Any]:
        return self.fields.get(name) or [None] * self.count


def roster_of(table: Table, person: type[BaseModel], wanted: Sequence[Wanted], digest: str) -> Roster:
    """The people in a table. ScenarioInvalid holds the first cells that are wrong, and how many there are."""
    if not len(table):
        raise ScenarioInvalid([f"{table.name}: nobody in it"])
    filled = mapped(table, person.model_fields, wanted)
    problems: list[str] = []
    fields = {item.field: _values(table, item, _reader(person, item), problems) for item in filled}
    if problems:
        raise ScenarioInvalid(told(problems))
    notes = list(table.notes)
    if "name" not in fields:
        notes.append("no column with names: names are drawn, as they are for groups")
    rest = {name: plain_texts(cells) for name, cells in table.columns.items() if name not in _columns(filled)}
    traits = {name: cells for name, cells in rest.items() if any(cell is not None for cell in cells)}
    traits |= _given_traits(fields.pop("traits", ()), traits)
    traits |= _shortened(fields, notes)
    for name in _DISTINCT:
        if name in fields:
            fields[name], more = distinct(fields[name], name)
            notes += more
    uses = (*(table.uses or (*_uses(table, filled), *_rest_uses(table, rest))), *table.beside)
    return Roster(digest, len(table), fields, traits, uses, tuple(notes), replace(table, columns={}, uses=()))


def _columns(filled: Sequence[Mapped]) -> set[str]:
    return {item.column for item in filled}


def _reader(person: type[BaseModel], item: Mapped) -> Reader:
    if item.field == "follows":
        return lambda cell: tuple(as_list(cell, item.separator))
    if item.field == "interests":
        return lambda cell: tuple(map(str, dict.fromkeys(as_list(cell, item.separator)))) or None
    return reader_of(item.field, person.model_fields[item.field], item.separator)


def _values(table: Table, item: Mapped, read: Reader, problems: list[str]) -> list[Any]:
    """A column of values. What is the same in many cells is looked at once."""
    known: dict[Any, Any] = {}
    values: list[Any] = []
    for row, cell in enumerate(table.columns[item.column]):
        if cell is None:
            values.append(None)
            continue
        try:
            key = cell if type(cell) in (str, int, float) else None
            if key is None or (value := known.get(key)) is None:
                value = read(cell)
                if key is not None:
                    known[key] = value
            values.append(value)
        except BadCell as error:
            problems.append(f"{table.place(row)}: column {item.column!r}: {error}")
            values.append(None)
    return values


def distinct(values: Sequence[str | None], field: str, taken: Iterable[str] = ()) -> tuple[list[str | None], list[str]]:
    """The values with a number behind each that somebody has already, and a note if there is one."""
    pattern, fold = _DISTINCT[field]
    counts = Counter(fold(value) for value in values if value is not None)
    seen = Counter({fold(value): 1 for value in taken})
    if len(counts) == len(values) - list(values).count(None) and seen.keys().isdisjoint(counts):
        return list(values), []
    used = {*counts, *seen}
    result, changed = list(values), []
    for row, value in enumerate(values):
        if value is None:
            continue
        seen[fold(value)] += 1
        if seen[fold(value)] > 1:
            result[row] = _free(value, pattern, seen[fold(value)], fold, used)
            changed.append(result[row])
    shown = f"{', '.join(map(repr, changed[:_SHOWN]))}{', ...' if len(changed) > _SHOWN else ''}"
    return result, [f"{field}s that somebody else has already: {len(changed):,}; they became {shown}"]


def _free(value: str, pattern: str, number: int, fold: Callable[[str], str], used: set[str]) -> str:
    """The value with the first number behind it, from this one on, that makes it nobody's yet."""
    while fold(candidate := value + pattern.format(number)) in used:
        number += 1
    used.add(fold(candidate))
    return candidate


def _given_traits(column: Sequence[Any], others: Mapping[str, Any]) -> dict[str, list[Any]]:
    """A column of whole mappings, key by key."""
    keys = dict.fromkeys(key for given in column if given for key in given)
    clear = {key: key if key not in others else f"traits.{key}" for key in keys}
    return {clear[key]: [(given or {}).get(key) for given in column] for key in keys}


def _shortened(fields: dict[str, list[Any]], notes: list[str]) -> dict[str, list[Any]]:
    """People with more interests than there is room for keep the first ones; all of them stay as a trait."""
    whole = fields.get("interests", ())
    long = [interests is not None and len(interests) > MAX_INTERESTS for interests in whole]
    if not any(long):
        return {}
    fields["interests"] = [None if given is None else given[:MAX_INTERESTS] for given in whole]
    notes.append(
        f"people with more than {MAX_INTERESTS} interests: {sum(long):,}; the first {MAX_INTERESTS} count, "
        "all of them are kept as the trait 'all_interests'"
    )
    return {"all_interests": [list(given) if cut else None for given, cut in zip(whole, long, strict=True)]}


def _uses(table: Table, filled: Sequence[Mapped]) -> Iterator[FieldUse]:
    for item in filled:
        count = sum(cell is not None for cell in table.columns[item.column])
        yield FieldUse(table.name, item.column, "used", item.field, count)


def _rest_uses(table: Table, rest: Mapping[str, Sequence[Any]]) -> Iterator[FieldUse]:
    for name, cells in rest.items():
        count = sum(cell is not None for cell in cells)
        if count:
            example = show(next(cell for cell in cells if cell is not None))
            yield FieldUse(table.name, name, "kept", f"trait, for example {example}", count)
        else:
            yield FieldUse(table.name, name, "unused", "empty in every record", 0)
