"""Which column of a file fills which field of a person, and what becomes of the others."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from shoal.errors import ScenarioInvalid
from shoal.scenario.importers.tables import RecordTable
from shoal.scenario.validation.problems import OURS, describe_error, expected
from shoal.text import hint

#: Other names under which columns are taken without being asked for. Only such as can hardly mean anything else.
SYNONYMS: Mapping[str, Sequence[str]] = {
    "name": ("full_name", "fullname", "realname", "real_name", "display_name", "person_name", "agent_name"),
    "username": ("user_name", "handle", "screen_name", "account_name"),
    "bio": ("description", "biography", "about", "about_me"),
    "persona": ("user_char", "backstory", "persona_description"),
    "age": ("age_years",),
    "gender": ("sex",),
    "country": ("residence", "nationality", "country_of_residence"),
    "profession": ("occupation", "job", "job_title"),
    "interests": ("interested_topics", "hobbies"),
    "activity": ("activity_level",),
    "influence": ("influence_weight",),
    "sentiment": ("sentiment_bias",),
    "follows": ("following_agentid_list",),
}


@dataclass(frozen=True, slots=True)
class ColumnRequest:
    """What somebody said about where a field comes from; no column means: from none."""

    field: str
    column: str | None
    separator: str | None = None


@dataclass(frozen=True, slots=True)
class ColumnAssignment:
    """Which column fills a field."""

    field: str
    column: str
    separator: str | None = None


def assign_columns(
    table: RecordTable, fields: Iterable[str], wanted: Sequence[ColumnRequest]
) -> list[ColumnAssignment]:
    """Columns that were asked for, then columns that are called like a field, then those with another name for one."""
    known = list(fields)
    _check(table, known, wanted)
    found = {
        want.field: ColumnAssignment(want.field, want.column, want.separator)
        for want in wanted
        if want.column is not None
    }
    refused = {want.field for want in wanted if want.column is None}
    taken = {assign_columns.column for assign_columns in found.values()}
    plain = {_folded(column): column for column in reversed(list(table.columns))}
    for field in known:
        if field in found or field in refused or (table.only and field not in table.only):
            continue
        names = (plain.get(name) for name in (field, *SYNONYMS.get(field, ())))
        column = next((name for name in names if name is not None and name not in taken), None)
        if column is not None:
            found[field] = ColumnAssignment(field, column)
            taken.add(column)
    return [found[field] for field in known if field in found]


def _check(table: RecordTable, known: Sequence[str], wanted: Sequence[ColumnRequest]) -> None:
    problems = []
    users: dict[str, str] = {}
    for want in wanted:
        if want.field not in known:
            problems.append(f"people have no field {want.field!r}{hint(want.field, known)}")
        if want.column is None:
            continue
        if want.column not in table.columns:
            there = hint(want.column, table.columns) or f"; there is {', '.join(map(repr, table.columns))}"
            problems.append(f"{table.name}: no column {want.column!r}{there}")
        elif (first := users.setdefault(want.column, want.field)) != want.field:
            problems.append(f"{table.name}: column {want.column!r} is asked for by {first} and by {want.field}")
    if problems:
        raise ScenarioInvalid(problems)


def _folded(column: str) -> str:
    return column.casefold().replace(" ", "_").replace("-", "_")


#: What stands for a missing number in many files.
_MISSING = frozenset({"na", "n/a", "nan", "null", "none", "-"})
_WORDS: Mapping[str, Mapping[str, str | None]] = {
    "gender": {
        **dict.fromkeys(("f", "w", "woman", "girl"), "female"),
        **dict.fromkeys(("m", "man", "boy"), "male"),
        **dict.fromkeys(("non-binary", "nonbinary", "non binary", "nb", "diverse", "d", "x"), "other"),
        **dict.fromkeys(("unknown", "not stated", "n/a", "na"), None),
    }
}
_SEPARATORS = ";|,"
_NUMBERS = re.compile(r"\d+(?:\.\d+)?")
_ROUND = re.compile(r"-?[0-9]+\.0+")

Reader = Callable[[Any], Any]


class BadCell(Exception):
    """A cell that cannot be what it should be; the message says what was expected."""


def reader_of(name: str, field: FieldInfo, separator: str | None = None) -> Reader:
    """What makes values of this field from cells, or raises BadCell."""
    bare = _bare(field.annotation)
    shaped = _shaper(name, bare, separator)
    annotated: Any = Annotated
    kind: Any = annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
    adapter: TypeAdapter[Any] = TypeAdapter(kind, config=ConfigDict(allow_inf_nan=False))

    def read(cell: Any) -> Any:
        try:
            value = shaped(cell)
            return None if value is None else adapter.validate_python(value)
        except ValidationError as error:
            raise BadCell(_said(error)) from error

    return read


def plain_texts(cells: Sequence[Any]) -> Sequence[Any]:
    """Cells of a column that nobody asked for: numbers where all of them are, else as they stand.

    Text such as 007 is a number to nobody who wrote it.
    """
    texts = [cell for cell in cells if cell is not None]
    if not all(isinstance(cell, str) for cell in texts):
        return cells
    try:
        values = {cell: _number(cell) for cell in dict.fromkeys(texts)}
    except ValueError:
        return cells
    return [None if cell is None else values[cell] for cell in cells]


def _number(text: str) -> int | float:
    digits = text.lstrip("-")
    if "_" in text or text != text.strip() or (len(digits) > 1 and digits[0] == "0" and digits[1] != "."):
        raise ValueError(text)
    value = float(text)
    if value != value or value in (float("inf"), float("-inf")) or digits[:1] in ("+", "i", "n", "I", "N"):
        raise ValueError(text)
    return int(text) if digits.isdecimal() and len(digits) < 16 else value


def _said(error: ValidationError) -> str:
    details = error.errors(include_url=False)[0]
    if details["type"] == OURS:
        return str(details["ctx"]["problems"][0].text)
    return describe_error(details)


def _bare(annotation: Any) -> Any:
    """A type without what may be added to it: constraints, None."""
    if get_origin(annotation) is Annotated:
        return _bare(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return _bare(next(kind for kind in get_args(annotation) if kind is not NoneType))
    return annotation


def _shaper(name: str, bare: Any, separator: str | None) -> Reader:
    """What turns a cell into the kind of value that the field's validators expect."""
    origin, args = get_origin(bare), get_args(bare)
    if bare in (int, float):
        return _as_number
    if origin is Literal:
        return lambda cell: _as_word(cell, args, _WORDS.get(name, {}))
    if origin is dict:
        return _as_mapping
    if origin is tuple and _bare(args[0]) is str:
        return lambda cell: list(dict.fromkeys(as_list(cell, separator)))
    if origin is tuple and args[-1] is not Ellipsis:
        return _as_numbers
    return _as_text if bare is str else _as_is


def _as_is(cell: Any) -> Any:
    if isinstance(cell, str) and cell.startswith("["):
        return as_list(cell, None)
    return cell


def _as_text(cell: Any) -> Any:
    """Names such as 4711 are text, although JSON has numbers."""
    return f"{cell:g}" if isinstance(cell, (int, float)) and not isinstance(cell, bool) else cell


def _as_number(cell: Any) -> Any:
    """A number, or the word that may stand for one."""
    if isinstance(cell, float) and cell.is_integer():
        return int(cell)
    if not isinstance(cell, str):
        return cell
    folded = cell.casefold()
    if folded in _MISSING:
        return None
    try:
        return int(folded.partition(".")[0]) if _ROUND.fullmatch(folded) else int(folded)
    except ValueError:
        pass
    try:
        return float(folded)
    except ValueError:
        return folded


def _as_word(cell: Any, words: Sequence[Any], synonyms: Mapping[str, str | None]) -> Any:
    if not isinstance(cell, str):
        return cell
    folded = cell.casefold()
    if folded in words:
        return folded
    return synonyms.get(folded, cell)


def _as_mapping(cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    try:
        return msgspec.json.decode(cell)
    except msgspec.DecodeError:
        return cell


def _as_numbers(cell: Any) -> Any:
    """`5-30`, `5;30` and `[5, 30]`; one number is both ends."""
    if isinstance(cell, str):
        found = [_as_number(number) for number in _NUMBERS.findall(cell)]
        return found * 2 if len(found) == 1 else found or cell
    return [cell, cell] if isinstance(cell, (int, float)) and not isinstance(cell, bool) else cell


def as_list(cell: Any, separator: str | None) -> list[Any]:
    """The items of a cell: a list, a list written as text, or text with something between its items."""
    if isinstance(cell, (list, tuple)):
        return [_item(item) for item in cell if item not in (None, "")]
    if not isinstance(cell, str):
        return [_item(_as_text(cell))]
    if separator is None and cell.startswith("[") and cell.endswith("]"):
        return as_list(_literal(cell), None)
    if separator is None:
        separator = next((known for known in _SEPARATORS if known in cell), ";")
    return [item for part in cell.split(separator) if (item := part.strip())]


def _item(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise BadCell(expected("text", value))
    return value


def _literal(cell: str) -> list[Any]:
    """A list as JSON or Python writes it."""
    for read in (msgspec.json.decode, literal_eval):
        try:
            value = read(cell)
        except (msgspec.DecodeError, ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(value, list):
            return value
    raise BadCell(expected("a list", cell))
