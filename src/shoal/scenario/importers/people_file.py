"""Reads a file or folder of people in any supported format. The same content is parsed once."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from pydantic import BaseModel

from shoal.errors import ScenarioInvalid
from shoal.formats import decode_json, decode_text
from shoal.scenario.declared.distributions import MAX_INTERESTS
from shoal.scenario.importers.columns import (
    LIST_FIELDS,
    BadCell,
    ColumnRequests,
    FileColumn,
    assign_columns,
    make_reader,
    parse_numbers,
    replace_decimal_commas,
)
from shoal.scenario.importers.fields import FieldUse, raise_problems
from shoal.scenario.importers.tables import (
    RecordTable,
    read_csv_table,
    read_json_table,
    read_jsonl_table,
    read_parquet_table,
)
from shoal.scenario.importers.tinytroupe import build_spec_table, is_spec
from shoal.scenario.validation.problems import show_value
from shoal.text import hint

PeopleFormat = Literal["csv", "jsonl", "json", "parquet", "oasis-reddit", "oasis-twitter", "tinytroupe"]

#: How the name of a file with a TinyTroupe specification ends.
AGENT_SUFFIX = ".agent.json"
_FORMATS: Mapping[str, PeopleFormat] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_TABS = (".tsv", ".tab")
#: Columns that the profiles of OASIS always have, and columns that only they have.
_REDDIT_COLUMNS, _TWITTER_COLUMNS = ("username", "bio", "persona"), ("username", "user_char")
_OASIS_COLUMNS = frozenset({"mbti", "karma", "realname", "interested_topics", "user_id"})
#: Fields that must be unique: what is appended to a repeated value, and how values are compared.
_UNIQUE: Mapping[str, tuple[str, Callable[[str], str]]] = {"name": (" {}", str), "username": ("_{}", str.casefold)}
_MAX_SHOWN = 3
#: Cells in which nothing stands; many tools write an empty list or mapping so.
_EMPTY = (None, "[]", "{}")
_TABLES_KEPT = 4


@dataclass(frozen=True, slots=True)
class PeopleTable:
    """The people of one source, column by column. None means that the source does not say it."""

    #: The digest of the content and of how it was read; tables with the same digest are equal.
    digest: str
    count: int = field(compare=False)
    #: Columns that are fields of a person.
    fields: Mapping[str, Sequence[Any]] = field(compare=False)
    traits: Mapping[str, Sequence[Any]] = field(compare=False)
    uses: tuple[FieldUse, ...] = field(default=(), compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)
    #: Knows where each person stands in the file, for problems.
    table: RecordTable = field(default=RecordTable("", {}, ()), repr=False, compare=False)

    def column(self, name: str) -> Sequence[Any]:
        return self.fields.get(name) or [None] * self.count


# files


@dataclass(frozen=True, slots=True)
class _Source:
    """A file or folder of people with its content, and how to read it.

    Two with the same digest are equal, wherever the files stand.
    """

    digest: str
    person: type[BaseModel]
    path: Path = field(compare=False)
    format: PeopleFormat | None = field(compare=False)
    columns: ColumnRequests = field(compare=False)
    limit: int | None = field(compare=False)
    files: tuple[tuple[str, bytes], ...] = field(compare=False)
    fragments: tuple[tuple[str, bytes], ...] = field(compare=False)


def read_people(
    path: Path,
    person: type[BaseModel],
    format: PeopleFormat | None = None,
    columns: ColumnRequests = MappingProxyType({}),
    fragments: Iterable[Path] = (),
    limit: int | None = None,
) -> PeopleTable:
    """Read the people of a file or folder, with the fields of the given model.

    Raise ScenarioInvalid with every problem.
    """
    files = tuple((each.name, read_content(each)) for each in list_files(path))
    merged = tuple((each.name, read_content(each)) for each in fragments)
    # The names of the files do not count, except for the suffix.
    digest = hashlib.sha256(repr((format, dict(columns), limit, path.suffix)).encode())
    for part in (files, merged):
        for _, content in part:
            digest.update(f"{len(content)}:".encode())
            digest.update(content)
        digest.update(b"/")
    return _parse_people(_Source(digest.hexdigest(), person, path, format, columns, limit, files, merged))


def list_files(path: Path) -> list[Path]:
    """Return the file itself, or the specifications in a folder sorted by name."""
    if not path.is_dir():
        return [path]
    found = sorted(path.glob(f"*{AGENT_SUFFIX}"))
    if not found:
        raise ScenarioInvalid([f"{path}: a folder without any *{AGENT_SUFFIX} files"])
    return found


def read_content(path: Path) -> bytes:
    """Read a file. Raise ScenarioInvalid if it cannot be read."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise ScenarioInvalid([f"{path}: not a plain file; people are read again when the run goes on"])
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        names = (other.name for other in path.parent.iterdir()) if path.parent.is_dir() else ()
        raise ScenarioInvalid([f"{path}: no such file{hint(path.name, names)}"]) from error
    except IsADirectoryError as error:
        raise ScenarioInvalid([f"{path}: a folder; expected a file"]) from error
    except OSError as error:
        raise ScenarioInvalid([f"{path}: cannot be read: {error.strerror}"]) from error


def read_records(path: Path) -> RecordTable:
    """Read a table whose records need not be people: CSV, JSON Lines, JSON or Parquet."""
    if (kind := _FORMATS.get(path.suffix.lower())) is None:
        raise ScenarioInvalid([f"{path}: expected a table that ends in {', '.join(_FORMATS)}"])
    return _parse_table(_Source("", BaseModel, path, kind, {}, None, ((str(path), read_content(path)),), ()))


@lru_cache(maxsize=_TABLES_KEPT)
def _parse_people(source: _Source) -> PeopleTable:
    return build_people_table(_parse_table(source), source.person, source.columns, source.digest)


def _parse_table(source: _Source) -> RecordTable:
    """Read the records of a source in its format."""
    path, limit, kind = source.path, source.limit, source.format
    name, content = source.files[0]
    if kind is None and (path.is_dir() or path.name.lower().endswith(AGENT_SUFFIX)):
        kind = "tinytroupe"
    if kind is None and (kind := _FORMATS.get(path.suffix.lower())) is None:
        raise ScenarioInvalid([f"{path}: expected a file that ends in {', '.join(_FORMATS)}, or say its `format`"])
    if source.fragments and kind not in ("json", "tinytroupe"):
        raise ScenarioInvalid([f"{name}: fragments are merged into TinyTroupe's specifications, and this is {kind}"])
    if kind == "tinytroupe":
        return _parse_specs(source, [(file, decode_json(decode_text(each, file), file)) for file, each in source.files])
    if kind == "parquet":
        return read_parquet_table(content, name, limit)
    text = decode_text(content, name)
    if kind == "jsonl":
        return read_jsonl_table(text, name, limit)
    if kind in ("csv", "oasis-twitter"):
        delimiter = "\t" if path.suffix.lower() in _TABS else None
        return _check_oasis(read_csv_table(text, name, delimiter, limit), kind, _TWITTER_COLUMNS)
    value = decode_json(text, name)
    specs = value if isinstance(value, list) else [value]
    if kind == "json" and source.format is None and specs and all(map(is_spec, specs)):
        return _parse_specs(source, [(name, spec) for spec in specs])
    if source.fragments:
        raise ScenarioInvalid([f"{name}: fragments are merged into TinyTroupe's specifications, and this has none"])
    return _check_oasis(read_json_table(value, name, limit), kind, _REDDIT_COLUMNS)


def _parse_specs(source: _Source, specs: Sequence[tuple[str, Any]]) -> RecordTable:
    flat = [(file, one) for file, spec in specs for one in (spec if isinstance(spec, list) else [spec])]
    fragments = [(file, decode_json(decode_text(each, file), file)) for file, each in source.fragments]
    return build_spec_table(flat[: source.limit], fragments, source.path.name)


def detect_oasis(columns: Iterable[str]) -> PeopleFormat | None:
    """Return which profiles of OASIS have these columns, or None."""
    found = set(columns)
    # MiroFish writes its Twitter profiles with all that it knows until all are there.
    if found.issuperset(_TWITTER_COLUMNS) or found.issuperset((*_REDDIT_COLUMNS, "friend_count")):
        return "oasis-twitter"
    return "oasis-reddit" if found.issuperset(_REDDIT_COLUMNS) and found & _OASIS_COLUMNS else None


def _check_oasis(table: RecordTable, kind: str, required: Sequence[str]) -> RecordTable:
    """Check the columns of OASIS profiles. In OASIS the place in the file is the number of a person."""
    missing = [column for column in required if column not in table.columns]
    if kind.startswith("oasis-") and missing:
        raise ScenarioInvalid([f"{table.name}: no column {missing[0]!r}, which every {kind} profile has"])
    numbers = [str(cell) for cell in table.columns.get("user_id", ())]
    if detect_oasis(table.columns) is None or numbers in ([], [str(place) for place in range(len(table))]):
        return table
    note = "people are numbered by their place in the file, as in OASIS; `user_id` differs from it, and is a trait"
    return replace(table, notes=(*table.notes, note))


# people


def build_people_table(
    table: RecordTable, person: type[BaseModel], requests: ColumnRequests, digest: str
) -> PeopleTable:
    """Convert records to people. Raise ScenarioInvalid with the first wrong cells and their number."""
    if not len(table):
        raise ScenarioInvalid([f"{table.name}: nobody in it"])
    notes, problems, fields = list(table.notes), [], {}
    # What says how to draw something is no fact about a person.
    assigned = assign_columns(table, [name for name in person.model_fields if name != "interests_from"], requests)
    if table.has_decimal_commas:
        lists = {choice.column for field, choice in assigned.items() if field in LIST_FIELDS}
        read = {
            name: cells if name in lists else replace_decimal_commas(cells) for name, cells in table.columns.items()
        }
        table = replace(table, columns=read)
    for name, choice in [*assigned.items()]:
        wrong: list[str] = []
        values = _convert_column(table, name, choice, person, wrong)
        if wrong and name not in requests and name != choice.column:
            # The column only sounds like the field. One that never fits it means something else.
            if len(wrong) == sum(cell is not None for cell in table.columns[choice.column]):
                del assigned[name]
                reason = wrong[0].partition(f"column {choice.column!r}: ")[2]
                notes.append(f"column {choice.column!r} is a trait and not read as {name}: {reason}")
                continue
            wrong[0] += f" (to keep the column out of {name}: --map {name}=, or columns: {{{name}: null}})"
        fields[name] = values
        problems += wrong
    raise_problems(problems)
    if "name" not in fields:
        notes.append("no column with names: names are drawn, as they are for groups")
    columns = {choice.column for choice in assigned.values()}
    rest = {name: parse_numbers(cells) for name, cells in table.columns.items() if name not in columns}
    traits = {name: cells for name, cells in rest.items() if any(cell is not None for cell in cells)}
    # A column of whole mappings becomes one trait for each key.
    mappings = fields.pop("traits", [])
    keys = dict.fromkeys(key for mapping in mappings if mapping for key in mapping)
    traits |= {
        f"traits.{key}" if key in traits else key: [(mapping or {}).get(key) for mapping in mappings] for key in keys
    }
    interests = fields.get("interests", [])
    if any(is_long := [words is not None and len(words) > MAX_INTERESTS for words in interests]):
        # The first interests of each person count. The whole list is a trait where it was cut.
        traits["all_interests"] = [list(each) if long else None for each, long in zip(interests, is_long, strict=True)]
        fields["interests"] = [None if words is None else words[:MAX_INTERESTS] for words in interests]
        notes.append(
            f"people with more than {MAX_INTERESTS} interests: {sum(is_long):,}; the first {MAX_INTERESTS} count, "
            "all of them are kept as the trait 'all_interests'"
        )
    for name in _UNIQUE:
        if name in fields:
            fields[name], more = make_unique(fields[name], name)
            notes += more
    uses = (*(table.uses or _list_uses(table, assigned, rest)), *table.beside)
    return PeopleTable(digest, len(table), fields, traits, uses, tuple(notes), replace(table, columns={}, uses=()))


def _convert_column(
    table: RecordTable, name: str, column: FileColumn, person: type[BaseModel], problems: list[str]
) -> list[Any]:
    """Convert the cells of a column. A value that occurs in many cells is converted once."""
    read = make_reader(name, person.model_fields[name], column.separator)
    known: dict[Any, Any] = {}
    values: list[Any] = []
    for row, cell in enumerate(table.columns[column.column]):
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
            problems.append(f"{table.locate(row)}: column {column.column!r}: {error}")
            values.append(None)
    return values


def make_unique(
    values: Sequence[str | None], field: str, taken: Iterable[str] = ()
) -> tuple[list[str | None], list[str]]:
    """Append a number to each value that is taken or repeated. Return the values, and a note if any has changed."""
    pattern, fold = _UNIQUE[field]
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
        number = seen[fold(value)]
        if number > 1:
            while fold(candidate := value + pattern.format(number)) in used:
                number += 1
            used.add(fold(candidate))
            result[row] = candidate
            changed.append(candidate)
    shown = f"{', '.join(map(repr, changed[:_MAX_SHOWN]))}{', ...' if len(changed) > _MAX_SHOWN else ''}"
    return result, [f"{field}s that somebody else has already: {len(changed):,}; they became {shown}"]


def _list_uses(
    table: RecordTable, assigned: Mapping[str, FileColumn], rest: Mapping[str, Sequence[Any]]
) -> list[FieldUse]:
    """List how the columns of a table were used: assigned ones fill a field, the rest become traits."""
    uses = []
    for becomes, choice in assigned.items():
        count = sum(cell not in _EMPTY for cell in table.columns[choice.column])
        uses.append(FieldUse(table.name, choice.column, "used", becomes, count))
    for name, cells in rest.items():
        filled = [cell for cell in cells if cell not in _EMPTY]
        if filled:
            uses.append(FieldUse(table.name, name, "kept", f"trait, for example {show_value(filled[0])}", len(filled)))
        else:
            uses.append(FieldUse(table.name, name, "unused", "empty in every record", 0))
    return uses
