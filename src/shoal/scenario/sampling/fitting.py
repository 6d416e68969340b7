"""Grows a population from demographic tables: people who fit all of them at once.

Tables that share attributes are joined by iterative proportional fitting. The fitted shares become whole people by
systematic rounding, and single people are then moved to where the tables still miss one. Groups of attributes that no
table joins are independent of one another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.errors import ScenarioInvalid
from shoal.scenario.importers.marginals import Cell, MarginalTable
from shoal.seeds import extend, hashes
from shoal.text import join_words

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MAX_CELLS = 2_000_000
#: Tables may say different things about the same attribute by this much, as rounded ones do.
TOLERANCE = 0.005
_CONVERGED, _MAX_SWEEPS = 1e-9, 500
#: Shares are rounded to this, so that every machine draws the same people.
_SHARE_UNIT = 1 << 36
_MAX_MOVES = 20_000


class GrownAttribute(NamedTuple):
    """One attribute of all people: the values there are, and the number of each person's value."""

    values: tuple[str, ...]
    codes: Ints


@dataclass(frozen=True, slots=True)
class MarginalFit:
    """How well people fit a table: where they differ most from it, in percentage points."""

    table: MarginalTable
    largest: float
    cell: Cell


@dataclass(frozen=True, slots=True)
class _Constraint:
    """A table as the fitting sees it: the number of the table's cell for each combination of all attributes."""

    table: MarginalTable
    #: Places of its attributes among all of them, in their order.
    axes: tuple[int, ...]
    shares: Floats


def check_tables(tables: Sequence[MarginalTable]) -> None:
    """Raise ScenarioInvalid where tables contradict one another, or have too many combinations."""
    for group in _join_groups(tables):
        _fit(group)


def grow_people(tables: Sequence[MarginalTable], count: int, key: int) -> dict[str, GrownAttribute]:
    """Grow people who fit all tables. Who is who is drawn, and how many there are of each kind is not."""
    grown: dict[str, GrownAttribute] = {}
    for place, group in enumerate(_join_groups(tables)):
        values, shares, constraints = _fit(group)
        shape = tuple(map(len, values.values()))
        weights = np.rint(shares * _SHARE_UNIT).astype(np.int64)
        ends = np.cumsum(weights)
        # Every 1/count of the way through all combinations stands one person.
        points = (2 * np.arange(count, dtype=np.int64) + 1) * int(ends[-1]) // (2 * count)
        people = np.bincount(np.searchsorted(ends, points, side="right"), minlength=len(weights))
        mover = _Mover(people.astype(np.int64), weights > 0, constraints, count)
        for _ in range(_MAX_MOVES):
            if not mover.move_somebody():
                break
        cells = np.repeat(np.arange(shares.size), mover.people)
        cells = cells[np.argsort(hashes(extend(key, place), np.arange(count)), kind="stable")]
        for (attribute, labels), codes in zip(values.items(), np.unravel_index(cells, shape), strict=True):
            grown[attribute] = GrownAttribute(labels, codes.astype(np.int64))
    return grown


def measure_fit(tables: Sequence[MarginalTable], grown: Mapping[str, GrownAttribute]) -> Iterator[MarginalFit]:
    """Measure how far the people are from each table."""
    for table in tables:
        columns = [grown[attribute] for attribute in table.attributes]
        shape = tuple(len(column.values) for column in columns)
        cells = np.ravel_multi_index(tuple(column.codes for column in columns), shape)
        found = np.bincount(cells, minlength=prod(shape)) / len(cells)
        wanted = np.zeros(shape)
        for cell, share in table.shares.items():
            wanted[tuple(column.values.index(value) for column, value in zip(columns, cell, strict=True))] = share
        far = np.abs(found - wanted.ravel())
        worst = np.unravel_index(int(far.argmax()), shape)
        cell = tuple(column.values[int(code)] for column, code in zip(columns, worst, strict=True))
        yield MarginalFit(table, float(far.max()) * 100, cell)


def _join_groups(tables: Sequence[MarginalTable]) -> list[list[MarginalTable]]:
    """Return the tables in groups that share no attribute with one another."""
    groups: list[list[MarginalTable]] = []
    for table in tables:
        joined = [group for group in groups if any(set(table.attributes) & set(other.attributes) for other in group)]
        groups = [group for group in groups if group not in joined]
        groups.append([*(each for group in joined for each in group), table])
    return groups


def _check_overlaps(tables: Sequence[MarginalTable]) -> None:
    """Raise ScenarioInvalid where two tables divide an attribute differently, or disagree about its shares."""
    for one, other in combinations(tables, 2):
        shared = [attribute for attribute in one.attributes if attribute in other.attributes]
        for attribute in shared:
            mine, theirs = one.sum_over([attribute]), other.sum_over([attribute])
            for table, (value,) in [(other, cell) for cell in mine if mine[cell] and cell not in theirs] + [
                (one, cell) for cell in theirs if theirs[cell] and cell not in mine
            ]:
                raise ScenarioInvalid(
                    [f"{table.title} has no {attribute} {value!r}, which another table has; use the same values"]
                )
        if shared:
            mine, theirs = one.sum_over(shared), other.sum_over(shared)
            far, cell = max((abs(share - theirs.get(cell, 0.0)), cell) for cell, share in mine.items())
            if far > TOLERANCE:
                raise ScenarioInvalid(
                    [
                        f"the tables contradict each other about {' by '.join(shared)} {join_words(cell, 5)}: "
                        f"{mine[cell]:.1%} in {one.title}, {theirs.get(cell, 0.0):.1%} in {other.title}"
                    ]
                )


def _fit(tables: Sequence[MarginalTable]) -> tuple[dict[str, tuple[str, ...]], Floats, list[_Constraint]]:
    """Fit the shares of all combinations to all tables; ScenarioInvalid where none fits them."""
    _check_overlaps(tables)
    # In the order in which they occur.
    known: dict[str, dict[str, None]] = {}
    for table in tables:
        for place, attribute in enumerate(table.attributes):
            known.setdefault(attribute, {}).update(dict.fromkeys(cell[place] for cell in table.shares))
    values = {attribute: tuple(labels) for attribute, labels in known.items()}
    shape = tuple(map(len, values.values()))
    if prod(shape) > MAX_CELLS:
        raise ScenarioInvalid(
            [
                f"{join_words(values, 8)} have {prod(shape):,} combinations; at most {MAX_CELLS:,} can be fitted: "
                "leave out an attribute, or divide one into fewer values"
            ]
        )
    constraints = [_constrain(table, values) for table in tables]
    shares = np.full(shape, 1.0 / prod(shape))
    worst = 1.0
    for _ in range(_MAX_SWEEPS):
        for constraint in constraints:
            found = _sum_to(shares, constraint.axes)
            ratio = np.divide(constraint.shares, found, out=np.zeros_like(found), where=found > 0)
            lacking = tuple(axis for axis in range(len(shape)) if axis not in constraint.axes)
            shares = shares * np.expand_dims(ratio, lacking)
        worst = max(float(np.abs(_sum_to(shares, each.axes) - each.shares).max()) for each in constraints)
        if worst <= _CONVERGED:
            break
    if worst > TOLERANCE:
        raise ScenarioInvalid([_describe_impossible(shares, constraints, values)])
    return values, shares.ravel(), constraints


def _constrain(table: MarginalTable, values: Mapping[str, tuple[str, ...]]) -> _Constraint:
    names = list(values)
    axes = tuple(sorted(names.index(attribute) for attribute in table.attributes))
    shares = np.zeros(tuple(len(values[names[axis]]) for axis in axes))
    places = [table.attributes.index(names[axis]) for axis in axes]
    numbers = {attribute: {value: n for n, value in enumerate(known)} for attribute, known in values.items()}
    for cell, share in table.shares.items():
        shares[tuple(numbers[table.attributes[place]][cell[place]] for place in places)] = share
    return _Constraint(table, axes, shares)


def _sum_to(shares: Floats, axes: tuple[int, ...]) -> Floats:
    summed: Floats = shares.sum(axis=tuple(axis for axis in range(shares.ndim) if axis not in axes))
    return summed


def _describe_impossible(
    shares: Floats, constraints: Sequence[_Constraint], values: Mapping[str, tuple[str, ...]]
) -> str:
    far = [np.abs(_sum_to(shares, each.axes) - each.shares) for each in constraints]
    worst = max(range(len(far)), key=lambda number: float(far[number].max()))
    constraint, names = constraints[worst], list(values)
    cell = np.unravel_index(int(far[worst].argmax()), far[worst].shape)
    called = [values[names[axis]][int(code)] for axis, code in zip(constraint.axes, cell, strict=True)]
    found = float(_sum_to(shares, constraint.axes)[cell])
    return (
        f"no population fits all tables at once: {join_words(called, 5)} has {float(constraint.shares[cell]):.1%} in "
        f"{constraint.table.title}, and the other tables leave {found:.1%}; correct the tables or leave one out"
    )


class _Mover:
    """Moves single people between combinations while that brings the tables nearer."""

    def __init__(self, people: Ints, possible: NDArray[np.bool_], constraints: Sequence[_Constraint], count: int):
        self.people = people
        self._possible = possible
        sizes = {axis: size for each in constraints for axis, size in zip(each.axes, each.shares.shape, strict=True)}
        self._shape = tuple(sizes[axis] for axis in sorted(sizes))
        self._axes = [each.axes for each in constraints]
        places = np.unravel_index(np.arange(prod(self._shape)), self._shape)
        #: Table -> the number of its cell that each combination is in.
        self._codes: list[Ints] = []
        for axes in self._axes:
            shape = tuple(self._shape[axis] for axis in axes)
            self._codes.append(np.ravel_multi_index(tuple(places[axis] for axis in axes), shape).astype(np.int64))
        wanted = [_apportion(each.shares.ravel(), count) for each in constraints]
        #: Table -> how many people too many each of its cells has.
        self._surplus = [
            np.bincount(codes, weights=people, minlength=len(target)).astype(np.int64) - target
            for codes, target in zip(self._codes, wanted, strict=True)
        ]

    def move_somebody(self) -> bool:
        """Move one person from the fullest cell of a table to its emptiest; False where no move helps."""
        for table in sorted(range(len(self._axes)), key=lambda each: -int(np.abs(self._surplus[each]).max())):
            surplus = self._surplus[table]
            full, empty = int(surplus.argmax()), int(surplus.argmin())
            if surplus[full] <= 0 or surplus[empty] >= 0:
                continue
            source = np.flatnonzero((self._codes[table] == full) & (self.people > 0))
            places = list(np.unravel_index(source, self._shape))
            axes = self._axes[table]
            cell = np.unravel_index(empty, tuple(self._shape[axis] for axis in axes))
            for axis, code in zip(axes, cell, strict=True):
                places[axis] = np.full(len(source), int(code))
            target: Ints = np.ravel_multi_index(tuple(places), self._shape).astype(np.int64)
            fits = self._possible[target]
            source, target = source[fits], target[fits]
            if not len(source):
                continue
            costs = sum(
                np.where(codes[source] == codes[target], 0, extra[codes[target]] - extra[codes[source]] + 1)
                for codes, extra in zip(self._codes, self._surplus, strict=True)
            )
            best = int(np.argmin(costs))
            if int(np.asarray(costs)[best]) < 0:
                for place, change in ((int(source[best]), -1), (int(target[best]), 1)):
                    self.people[place] += change
                    for codes, extra in zip(self._codes, self._surplus, strict=True):
                        extra[codes[place]] += change
                return True
        return False


def _apportion(shares: Floats, count: int) -> Ints:
    """Divide people among cells by largest remainders."""
    exact = np.round(shares * (count / shares.sum()), 6)
    whole: Ints = np.floor(exact).astype(np.int64)
    missing = count - int(whole.sum())
    whole[np.argsort(whole - exact, kind="stable")[:missing]] += 1
    return whole
