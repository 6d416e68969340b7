"""Assigns the columns of a file to the fields of a person, and converts cells to the types of the fields."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from typing import Annotated, Any

import msgspec
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from shoal.errors import ScenarioInvalid
from shoal.scenario.fields import DeclaredModel, Text
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
_GENDERS: Mapping[str, str | None] = {
    **dict.fromkeys(("female", "f", "w", "woman", "girl"), "female"),
    **dict.fromkeys(("male", "m", "man", "boy"), "male"),
    **dict.fromkeys(("other", "non-binary", "nonbinary", "non binary", "nb", "diverse", "d", "x"), "other"),
    **dict.fromkeys(("unknown", "not stated", "n/a", "na"), None),
}
#: Words of longer texts.
_GENDER_WORDS = {
    **{word: gender for word, gender in _GENDERS.items() if gender and len(word) > 2},
    **dict.fromkeys(("genderqueer", "genderfluid", "agender", "binary"), "other"),
}
_WORDS = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_SEPARATORS = ";|,"
#: Fields in which a comma separates values.
LIST_FIELDS = frozenset({"interests", "follows", "active_hours", "response_delay"})
_DECIMAL_COMMA = re.compile(r"[+-]?(?:\d{1,3}(?:\.\d{3})+|\d+),\d+")
_NUMBER_WITH_DOTS = re.compile(r"[+-]?\d{1,3}(?:\.\d{3})+")
_NUMBERS = re.compile(r"\d+(?:\.\d+)?")
_ROUND = re.compile(r"-?[0-9]+\.0+")

Reader = Callable[[Any], Any]


class FileColumn(DeclaredModel):
    """A column of a file, and how to read it."""

    column: Text = Field(description="What the column is called in the file.")
    separator: Text | None = Field(
        default=None,
        description="What stands between the items of a list; default: a semicolon, bar or comma, found in the cell.",
    )


#: Field of a person -> the column that the user wants for it; None: the field stays empty.
ColumnRequests = Mapping[str, FileColumn | None]


def assign_columns(table: RecordTable, fields: Iterable[str], requests: ColumnRequests) -> dict[str, FileColumn]:
    """Assign requested columns first, then columns with the name of a field, then columns with a synonym of it."""
    known = list(fields)
    problems = []
    assigned: dict[str, FileColumn] = {}
    #: Column -> the field that it fills.
    taken: dict[str, str] = {}
    for field, request in requests.items():
        if field not in known:
            problems.append(f"people have no field {field!r}{hint(field, known)}")
        if request is None:
            continue
        assigned[field], column = request, request.column
        if column not in table.columns:
            there = hint(column, table.columns) or f"; there is {', '.join(map(repr, table.columns))}"
            problems.append(f"{table.name}: no column {column!r}{there}")
        elif (first := taken.setdefault(column, field)) != field:
            problems.append(f"{table.name}: column {column!r} is asked for by {first} and by {field}")
    if problems:
        raise ScenarioInvalid(problems)
    folded = {column.casefold().replace(" ", "_").replace("-", "_"): column for column in reversed(list(table.columns))}
    for field in known:
        if field in requests or (table.only and field not in table.only):
            continue
        names = (folded.get(name) for name in (field, *SYNONYMS.get(field, ())))
        free = next((name for name in names if name is not None and name not in taken), None)
        if free is not None:
            assigned[field] = FileColumn(column=free)
            taken[free] = field
    return {field: assigned[field] for field in known if field in assigned}


class BadCell(Exception):
    """A cell that does not fit its field; the message says what was expected."""


def make_reader(name: str, field: FieldInfo, separator: str | None = None) -> Reader:
    """Return a function that converts a cell to a value of the field, or raises BadCell."""
    if name == "follows":
        return lambda cell: tuple(split_list(cell, separator))
    if name == "interests":
        return lambda cell: tuple(map(str, dict.fromkeys(split_list(cell, separator)))) or None
    convert = _CONVERTERS.get(name, _to_number)
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


def read_gender(text: str) -> str | None:
    """Read a gender out of a text such as `Cisgender woman`: the first word that says one; else the text itself."""
    if text.casefold() in _GENDERS:
        return _GENDERS[text.casefold()]
    return next((gender for word in _WORDS.findall(text.casefold()) if (gender := _GENDER_WORDS.get(word))), text)


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


def _to_hours(cell: Any) -> Any:
    return split_list(cell, None) if isinstance(cell, str) and cell.startswith("[") else cell


#: Turns a cell into what the validators of the field expect; fields that are not listed are numbers.
_CONVERTERS: Mapping[str, Reader] = {
    **dict.fromkeys(("name", "username", "bio", "persona", "country", "profession"), _to_text),
    "gender": lambda cell: read_gender(cell) if isinstance(cell, str) else cell,
    "active_hours": _to_hours,
    "response_delay": _to_range,
    "traits": _to_mapping,
}


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


def replace_decimal_commas(cells: Sequence[Any]) -> Sequence[Any]:
    """Write 1.234,5 as 1234.5 in a column of numbers with decimal commas; words may stand among them."""
    texts = [cell for cell in cells if isinstance(cell, str)]
    with_comma = [text for text in texts if "," in text]
    if not with_comma or not all(map(_DECIMAL_COMMA.fullmatch, with_comma)):
        return cells
    return [
        cell.replace(".", "").replace(",", ".")
        if isinstance(cell, str) and (_DECIMAL_COMMA.fullmatch(cell) or _NUMBER_WITH_DOTS.fullmatch(cell))
        else cell
        for cell in cells
    ]


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
