"""Reads demographic tables: how many people have each value of an attribute, or each combination of several.

A table has a column for each attribute, and one that says how many: counts, shares or per cent. A row that leaves
attributes empty belongs to a table of the others, so one file can hold several tables. The long form, with the columns
`attribute` and `value`, holds tables of one attribute each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from shoal.errors import ScenarioInvalid
from shoal.scenario.declared.distributions import STANCE_WORDS
from shoal.scenario.importers.columns import read_gender, replace_decimal_commas
from shoal.scenario.importers.people_file import read_records
from shoal.scenario.importers.tables import RecordTable
from shoal.text import join_words, one_of

Cell = tuple[str, ...]

_COUNTS = ("count", "counts", "people", "population", "number", "n", "weight", "freq", "frequency", "total")
_SHARES = ("share", "proportion", "fraction", "percent", "percentage", "%")
_LONG = frozenset({"attribute", "value"})
#: Attributes that fill a field of a person, by the names they are known by. All others are traits.
_FIELDS: Mapping[str, str] = {
    "age": "age", "age group": "age", "age_group": "age", "agegroup": "age",
    "gender": "gender", "sex": "gender",
    "country": "country",
    "profession": "profession", "occupation": "profession", "job": "profession",
    "stance": "stance", "opinion": "stance",
}  # fmt: skip
_SINGULAR = {"women": "woman", "men": "man", "females": "female", "males": "male", "others": "other"}
#: Rows that are sums of others.
_TOTALS = frozenset({"total", "all", "sum", "overall"})
_WHOLES = (1.0, 100.0)
_WHOLE_TOLERANCE = 0.01
_MAX_AGE = 120
#: How far above its start an age group reaches that has no end, and the oldest age in it unless it starts later.
_OPEN_YEARS, _OLDEST = 10, 90
_THOUSANDS = re.compile(r"\d{1,3}(?:[ ,']\d{3})+(?:\.\d+)?")
_AGES = (
    (re.compile(r"(\d+)\s*(?:-|–|—|to)\s*(\d+)"), lambda low, high: (low, high)),
    (re.compile(r"(\d+)\s*(?:\+|and (?:over|older|above)|or (?:over|older|more))"), lambda low: (low, None)),
    (re.compile(r"(?:under|below|<)\s*(\d+)"), lambda high: (0, high - 1)),
    (re.compile(r"(?:over|above|>)\s*(\d+)"), lambda low: (low + 1, None)),
    (re.compile(r"(\d+)"), lambda age: (age, age)),
)


@dataclass(frozen=True, slots=True)
class MarginalTable:
    """The shares of all combinations of some attributes; together they are 1."""

    #: The file, for messages.
    source: str
    attributes: tuple[str, ...]
    shares: Mapping[Cell, float]

    @property
    def title(self) -> str:
        return f"{' by '.join(self.attributes)} ({self.source})"

    def sum_over(self, attributes: Sequence[str]) -> dict[Cell, float]:
        """Return the shares of the combinations of some of its attributes."""
        places = [self.attributes.index(attribute) for attribute in attributes]
        sums: dict[Cell, float] = {}
        for cell, share in self.shares.items():
            part = tuple(cell[place] for place in places)
            sums[part] = sums.get(part, 0.0) + share
        return sums


def read_marginals(paths: Iterable[Path], person: type[BaseModel]) -> tuple[MarginalTable, ...]:
    """Read the tables of some files; ScenarioInvalid says everything that is wrong with one of them.

    `person` is the model of a person: of its fields, only some can be attributes.
    """
    tables = [table for path in paths for table in _read_file(path, person)]
    seen: dict[tuple[str, ...], MarginalTable] = {}
    for table in tables:
        key = tuple(sorted(table.attributes))
        if key in seen:
            raise ScenarioInvalid([f"there are two tables of {table.title} and {seen[key].source}; leave one out"])
        seen[key] = table
    return tuple(tables)


def parse_ages(text: str) -> tuple[int, int] | None:
    """Read an age group such as `18-34`, `65+`, `under 18` or `40`: its first and last age; None where it is none."""
    for pattern, bounds in _AGES:
        found = pattern.fullmatch(text.strip().casefold())
        if found:
            low, high = bounds(*map(int, found.groups()))
            last = max(_OLDEST, low + _OPEN_YEARS) if high is None else high
            return (low, min(last, _MAX_AGE)) if low <= min(last, _MAX_AGE) else None
    return None


def _read_file(path: Path, person: type[BaseModel]) -> Iterator[MarginalTable]:
    table = read_records(path)
    found = [name for name in table.columns if name.strip().casefold() in (*_COUNTS, *_SHARES)]
    if len(found) != 1:
        why = "no column says how many" if not found else f"the columns {one_of(found)} all say how many"
        raise ScenarioInvalid([f"{table.name}: {why}; one column is called count, share or percent"])
    measure = found[0]
    plain = table.columns[measure]
    if table.has_decimal_commas:
        plain = replace_decimal_commas(plain)
    amounts = [_read_amount(table, row, cell) for row, cell in enumerate(plain)]
    rows: dict[tuple[str, ...], dict[Cell, float]] = {}
    problems = []
    for row, (cell, amount) in enumerate(zip(_list_cells(table, measure, person), amounts, strict=True)):
        if not cell:
            problems.append(f"{table.locate(row)}: no attribute has a value in this row")
            continue
        known = rows.setdefault(tuple(cell), {})
        values = tuple(cell.values())
        if values in known:
            problems.append(f"{table.locate(row)}: {join_words(values, 5)} is there twice")
        known[values] = amount
    if not rows and not problems:
        problems.append(f"{table.name}: no rows in it")
    if problems:
        raise ScenarioInvalid(problems[:10])
    for attributes, cells in rows.items():
        yield MarginalTable(path.name, attributes, _to_shares(table.name, attributes, cells, measure))


def _read_amount(table: RecordTable, row: int, cell: Any) -> float:
    text = str(cell).strip().removesuffix("%").strip()
    if _THOUSANDS.fullmatch(text):
        text = re.sub(r"[ ,']", "", text)
    try:
        amount = -1.0 if isinstance(cell, bool) else float(text)
    except ValueError:
        amount = -1.0
    if not isfinite(amount) or amount < 0:
        raise ScenarioInvalid([f"{table.locate(row)}: expected how many, a number not below 0, found {cell!r}"])
    return amount


def _list_cells(table: RecordTable, measure: str, person: type[BaseModel]) -> Iterator[dict[str, str]]:
    """Yield, for each row, the attributes that have a value in it."""
    columns = {name.strip(): cells for name, cells in table.columns.items() if name != measure}
    if {name.casefold() for name in columns} == _LONG:
        long = {name.casefold(): cells for name, cells in columns.items()}
        for row, (attribute, value) in enumerate(zip(long["attribute"], long["value"], strict=True)):
            name = _name_attribute(table, str(attribute or ""), person)
            yield {} if value is None else {name: _read_value(table, row, name, value)}
        return
    names = {_name_attribute(table, name, person): cells for name, cells in columns.items()}
    if len(names) < len(columns):
        raise ScenarioInvalid([f"{table.name}: two columns say the same: {one_of(columns)}"])
    for row in range(len(table)):
        filled = {name: cells[row] for name, cells in names.items() if cells[row] is not None}
        yield {name: _read_value(table, row, name, value) for name, value in filled.items()}


def _name_attribute(table: RecordTable, name: str, person: type[BaseModel]) -> str:
    """Return the attribute of a column; ScenarioInvalid where it is a field that no table can set."""
    field = _FIELDS.get(name.casefold(), name)
    if not name or (field in person.model_fields and field not in _FIELDS.values()):
        what = f"{name!r} cannot be an attribute of a table" if name else "an attribute has no name"
        raise ScenarioInvalid([f"{table.name}: {what}; there is {one_of(dict.fromkeys(_FIELDS.values()))}, and traits"])
    return field


def _read_value(table: RecordTable, row: int, attribute: str, value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value).strip()
    expected = None
    if text.casefold() in _TOTALS:
        expected = "a value and no sum of others; remove this row"
    elif attribute == "age" and parse_ages(text) is None:
        expected = "ages such as 18-34, 65+, under 18 or 40"
    elif attribute == "gender" and (text := read_gender(_SINGULAR.get(text.casefold(), text)) or "") not in (
        "female",
        "male",
        "other",
    ):
        expected = "female, male or other"
    elif attribute == "stance" and text not in STANCE_WORDS and not _is_stance(text):
        expected = f"{one_of(STANCE_WORDS)}, or a number from -1 to 1"
    if expected:
        raise ScenarioInvalid([f"{table.locate(row)}: {attribute}: expected {expected}, found {value!r}"])
    return text


def _is_stance(text: str) -> bool:
    try:
        return -1 <= float(text) <= 1
    except ValueError:
        return False


def _to_shares(name: str, attributes: tuple[str, ...], cells: dict[Cell, float], measure: str) -> dict[Cell, float]:
    total = sum(cells.values())
    title = " by ".join(attributes)
    if not total:
        raise ScenarioInvalid([f"{name}: the table of {title} has nobody in it"])
    if measure.strip().casefold() in _SHARES and not any(
        abs(total / whole - 1) <= _WHOLE_TOLERANCE for whole in _WHOLES
    ):
        raise ScenarioInvalid([f"{name}: the shares of {title} add up to {total:g}; they are parts of 1 or of 100"])
    return {cell: amount / total for cell, amount in cells.items()}
