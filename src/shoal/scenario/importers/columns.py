"""Assigns the columns of a file to the fields of a person, and converts cells to the types of the fields."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from shoal.errors import ScenarioInvalid
from shoal.scenario.importers.tables import RecordTable
from shoal.scenario.validation.problems import describe_mismatch, read_problems
from shoal.text import hint

#: Other names of columns that fill a field unasked. Only names that can hardly mean anything else.
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
#: Texts that stand for a missing number in many files.
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


@dataclass(frozen=True, slots=True)
class ColumnRequest:
    """The column that the user wants for a field; None: the field stays empty."""

    field: str
    column: str | None
    separator: str | None = None


@dataclass(frozen=True, slots=True)
class ColumnAssignment:
    """The column that fills a field."""

    field: str
    column: str
    separator: str | None = None


def assign_columns(
    table: RecordTable, fields: Iterable[str], requests: Sequence[ColumnRequest]
) -> list[ColumnAssignment]:
    """Assign requested columns first, then columns with the name of a field, then columns with a synonym of it."""
    known = list(fields)
    problems = []
    assigned: dict[str, ColumnAssignment] = {}
    #: Column -> the field that it fills.
    taken: dict[str, str] = {}
    for request in requests:
        field, column = request.field, request.column
        if field not in known:
            problems.append(f"people have no field {field!r}{hint(field, known)}")
        if column is None:
            continue
        assigned[field] = ColumnAssignment(field, column, request.separator)
        if column not in table.columns:
            there = hint(column, table.columns) or f"; there is {', '.join(map(repr, table.columns))}"
            problems.append(f"{table.name}: no column {column!r}{there}")
        elif (first := taken.setdefault(column, field)) != field:
            problems.append(f"{table.name}: column {column!r} is asked for by {first} and by {field}")
    if problems:
        raise ScenarioInvalid(problems)
    asked = {request.field for request in requests}
    folded = {column.casefold().replace(" ", "_").replace("-", "_"): column for column in reversed(list(table.columns))}
    for field in known:
        if field in asked or (table.only and field not in table.only):
            continue
        names = (folded.get(name) for name in (field, *SYNONYMS.get(field, ())))
        column = next((name for name in names if name is not None and name not in taken), None)
        if column is not None:
            assigned[field] = ColumnAssignment(field, column)
            taken[column] = field
    return [assigned[field] for field in known if field in assigned]


class BadCell(Exception):
    """A cell that does not fit its field; the message says what was expected."""


def make_reader(name: str, field: FieldInfo, separator: str | None = None) -> Reader:
    """Return a function that converts a cell to a value of the field, or raises BadCell."""
    convert = _choose_converter(name, _strip_annotation(field.annotation), separator)
    annotated: Any = Annotated
    kind: Any = annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
    adapter: TypeAdapter[Any] = TypeAdapter(kind, config=ConfigDict(allow_inf_nan=False))

    def read(cell: Any) -> Any:
        try:
            value = convert(cell)
            return None if value is None else adapter.validate_python(value)
        except ValidationError as error:
            raise BadCell(read_problems(error.errors(include_url=False)[0])[0].text) from error

    return read


def _strip_annotation(annotation: Any) -> Any:
    """Return a type without constraints and None."""
    if get_origin(annotation) is Annotated:
        return _strip_annotation(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return _strip_annotation(next(kind for kind in get_args(annotation) if kind is not NoneType))
    return annotation


def _choose_converter(name: str, kind: Any, separator: str | None) -> Reader:
    """Return a function that converts a cell to what the validators of the field expect."""
    origin, args = get_origin(kind), get_args(kind)
    if kind in (int, float):
        return _to_number
    if origin is Literal:
        words = {**_WORDS.get(name, {}), **{word: word for word in args}}
        return lambda cell: words.get(cell.casefold(), cell) if isinstance(cell, str) else cell
    if origin is dict:
        return _to_mapping
    if origin is tuple and _strip_annotation(args[0]) is str:
        return lambda cell: list(dict.fromkeys(split_list(cell, separator)))
    if origin is tuple and args[-1] is not Ellipsis:
        return _to_range
    if kind is str:
        return _to_text
    return lambda cell: split_list(cell, None) if isinstance(cell, str) and cell.startswith("[") else cell


def _to_text(cell: Any) -> Any:
    """Convert numbers, because JSON may hold names such as 4711 as numbers."""
    return f"{cell:g}" if isinstance(cell, (int, float)) and not isinstance(cell, bool) else cell


def _to_number(cell: Any) -> Any:
    """Convert to a number; a text that is none is folded, because a field may accept words as well."""
    if isinstance(cell, float) and cell.is_integer():
        return int(cell)
    if not isinstance(cell, str):
        return cell
    folded = cell.casefold()
    if folded in _MISSING:
        return None
    for convert in (int, float):
        try:
            return convert(folded.partition(".")[0] if _ROUND.fullmatch(folded) else folded)
        except ValueError:
            continue
    return folded


def _to_mapping(cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    try:
        return msgspec.json.decode(cell)
    except msgspec.DecodeError:
        return cell


def _to_range(cell: Any) -> Any:
    """Convert `5-30`, `5;30` and `[5, 30]` to two numbers; a single number is both ends."""
    if isinstance(cell, str):
        found = [_to_number(number) for number in _NUMBERS.findall(cell)]
        return found * 2 if len(found) == 1 else found or cell
    return [cell, cell] if isinstance(cell, (int, float)) and not isinstance(cell, bool) else cell


def split_list(cell: Any, separator: str | None) -> list[Any]:
    """Return the items of a list, of a list written as JSON or Python text, or of text with separators."""
    if not isinstance(cell, (str, list, tuple)):
        cell = [_to_text(cell)]
    if isinstance(cell, str) and separator is None and cell.startswith("[") and cell.endswith("]"):
        for parse in (msgspec.json.decode, literal_eval):
            try:
                return split_list(list(parse(cell)), None)
            except (msgspec.DecodeError, ValueError, SyntaxError, RecursionError, MemoryError):
                continue
        raise BadCell(describe_mismatch("a list", cell))
    if isinstance(cell, str):
        if separator is None:
            separator = next((known for known in _SEPARATORS if known in cell), ";")
        return [item for part in cell.split(separator) if (item := part.strip())]
    items = [item for item in cell if item not in (None, "")]
    for item in items:
        if isinstance(item, bool) or not isinstance(item, (str, int, float)):
            raise BadCell(describe_mismatch("text", item))
    return items


def parse_numbers(cells: Sequence[Any]) -> Sequence[Any]:
    """Convert a column of text to numbers if every cell is a number. Text such as 007 is not a number."""
    texts = [cell for cell in cells if cell is not None]
    if not all(isinstance(cell, str) for cell in texts):
        return cells
    values: dict[str, int | float] = {}
    for text in dict.fromkeys(texts):
        digits = text.lstrip("-")
        if "_" in text or text != text.strip() or (len(digits) > 1 and digits[0] == "0" and digits[1] != "."):
            return cells
        try:
            value = float(text)
        except ValueError:
            return cells
        if not isfinite(value) or digits[:1] in ("+", "i", "n", "I", "N"):
            return cells
        values[text] = int(text) if digits.isdecimal() and len(digits) < 16 else value
    return [None if cell is None else values[cell] for cell in cells]
