"""Reads a file or folder of people, of whatever format it is. The same content is worked through once."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from shoal.errors import ScenarioInvalid
from shoal.scenario.declared.distributions import MAX_INTERESTS
from shoal.scenario.importers import tables
from shoal.scenario.importers.columns import (
    BadCell,
    ColumnAssignment,
    ColumnRequest,
    Reader,
    as_list,
    assign_columns,
    plain_texts,
    reader_of,
)
from shoal.scenario.importers.result import FieldUse
from shoal.scenario.importers.tables import RecordTable, describe_table, json_value, text_of
from shoal.scenario.importers.tinytroupe import is_spec, spec_table
from shoal.scenario.validation.problems import show
from shoal.text import hint

#: Fields of which no two people may have the same: how a second one is told apart, and when two are the same.
_DISTINCT: Mapping[str, tuple[str, Callable[[str], str]]] = {"name": (" {}", str), "username": ("_{}", str.casefold)}
_SHOWN = 3


@dataclass(frozen=True, slots=True, eq=False)
class PeopleTable:
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
    table: RecordTable = field(default=RecordTable("", {}, ()), repr=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PeopleTable) and other.digest == self.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def column(self, name: str) -> Sequence[Any]:
        return self.fields.get(name) or [None] * self.count


def people_table(
    table: RecordTable, person: type[BaseModel], wanted: Sequence[ColumnRequest], digest: str
) -> PeopleTable:
    """The people in a table. ScenarioInvalid holds the first cells that are wrong, and how many there are."""
    if not len(table):
        raise ScenarioInvalid([f"{table.name}: nobody in it"])
    filled = assign_columns(table, person.model_fields, wanted)
    problems: list[str] = []
    fields = {item.field: _values(table, item, _reader(person, item), problems) for item in filled}
    if problems:
        raise ScenarioInvalid(describe_table(problems))
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
    return PeopleTable(digest, len(table), fields, traits, uses, tuple(notes), replace(table, columns={}, uses=()))


def _columns(filled: Sequence[ColumnAssignment]) -> set[str]:
    return {item.column for item in filled}


def _reader(person: type[BaseModel], item: ColumnAssignment) -> Reader:
    if item.field == "follows":
        return lambda cell: tuple(as_list(cell, item.separator))
    if item.field == "interests":
        return lambda cell: tuple(map(str, dict.fromkeys(as_list(cell, item.separator)))) or None
    return reader_of(item.field, person.model_fields[item.field], item.separator)


def _values(table: RecordTable, item: ColumnAssignment, read: Reader, problems: list[str]) -> list[Any]:
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


def _uses(table: RecordTable, filled: Sequence[ColumnAssignment]) -> Iterator[FieldUse]:
    for item in filled:
        count = sum(cell is not None for cell in table.columns[item.column])
        yield FieldUse(table.name, item.column, "used", item.field, count)


def _rest_uses(table: RecordTable, rest: Mapping[str, Sequence[Any]]) -> Iterator[FieldUse]:
    for name, cells in rest.items():
        count = sum(cell is not None for cell in cells)
        if count:
            example = show(next(cell for cell in cells if cell is not None))
            yield FieldUse(table.name, name, "kept", f"trait, for example {example}", count)
        else:
            yield FieldUse(table.name, name, "unused", "empty in every record", 0)


Format = Literal["csv", "jsonl", "json", "parquet", "oasis-reddit", "oasis-twitter", "tinytroupe"]

AGENT = ".agent.json"
_BY_SUFFIX: Mapping[str, Format] = {
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
#: Columns by which the profiles of OASIS are known, and without which they are not.
OASIS_REDDIT, OASIS_TWITTER = ("username", "bio", "persona"), ("username", "user_char")
_ONLY_OASIS = frozenset({"mbti", "karma", "realname", "interested_topics", "user_id"})
_ROSTERS_KEPT = 4


@dataclass(frozen=True, slots=True)
class Source:
    """Where people come from, and how to read it."""

    path: Path
    format: Format | None = None
    wanted: tuple[ColumnRequest, ...] = ()
    fragments: tuple[Path, ...] = ()
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class _LoadedSource:
    """A source with what its files hold. Two with the same digest are the same, wherever they lie."""

    digest: str
    person: type[BaseModel]
    source: Source = field(compare=False)
    files: tuple[tuple[str, bytes], ...] = field(compare=False)
    fragments: tuple[tuple[str, bytes], ...] = field(compare=False)


def read_people(source: Source, person: type[BaseModel]) -> PeopleTable:
    """The people of a source, with the fields of the given model. ScenarioInvalid says everything that is wrong."""
    files = tuple((path.name, content(path)) for path in files_of(source.path))
    fragments = tuple((path.name, content(path)) for path in source.fragments)
    return _roster(_LoadedSource(_digest(source, files, fragments), person, source, files, fragments))


def files_of(path: Path) -> list[Path]:
    """The file itself, or the specifications in a folder, in the order of their names."""
    if not path.is_dir():
        return [path]
    found = sorted(path.glob(f"*{AGENT}"))
    if not found:
        raise ScenarioInvalid([f"{path}: a folder without any *{AGENT} files"])
    return found


def content(path: Path) -> bytes:
    """What is in a file, or ScenarioInvalid with why it cannot be read."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise ScenarioInvalid([f"{path}: not a plain file; people are read again when the run goes on"])
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ScenarioInvalid([f"{path}: no such file{_similar(path)}"]) from error
    except IsADirectoryError as error:
        raise ScenarioInvalid([f"{path}: a folder; expected a file"]) from error
    except OSError as error:
        raise ScenarioInvalid([f"{path}: cannot be read: {error.strerror}"]) from error


def _similar(path: Path) -> str:
    return hint(path.name, (other.name for other in path.parent.iterdir())) if path.parent.is_dir() else ""


def _digest(source: Source, *parts: Sequence[tuple[str, bytes]]) -> str:
    """Of the content and of how it is read; not of what the files are called, except for how the name ends."""
    digest = hashlib.sha256(repr((source.format, source.wanted, source.limit, source.path.suffix)).encode())
    for part in parts:
        for _, each in part:
            digest.update(f"{len(each)}:".encode())
            digest.update(each)
        digest.update(b"/")
    return digest.hexdigest()


@lru_cache(maxsize=_ROSTERS_KEPT)
def _roster(loaded: _LoadedSource) -> PeopleTable:
    return people_table(_table(loaded), loaded.person, loaded.source.wanted, loaded.digest)


def _table(loaded: _LoadedSource) -> RecordTable:
    source, (name, first) = loaded.source, loaded.files[0]
    kind = source.format or _format_by_name(source.path)
    if loaded.fragments and kind not in ("json", "tinytroupe"):
        raise ScenarioInvalid([f"{name}: fragments are merged into TinyTroupe's specifications, and this is {kind}"])
    if kind == "tinytroupe":
        return _specs(loaded, [(file, json_value(text_of(each, file), file)) for file, each in loaded.files])
    if kind in ("json", "oasis-reddit"):
        return _from_json(loaded, kind, json_value(text_of(first, name), name))
    if kind in ("csv", "oasis-twitter"):
        delimiter = "\t" if source.path.suffix.lower() in _TABS else None
        return _as_oasis(tables.csv_table(text_of(first, name), name, delimiter, source.limit), kind, OASIS_TWITTER)
    if kind == "jsonl":
        return tables.jsonl_table(text_of(first, name), name, source.limit)
    return tables.parquet_table(first, name, source.limit)


def _format_by_name(path: Path) -> Format:
    if path.is_dir() or path.name.lower().endswith(AGENT):
        return "tinytroupe"
    if path.suffix.lower() not in _BY_SUFFIX:
        endings = ", ".join(dict.fromkeys(_BY_SUFFIX))
        raise ScenarioInvalid([f"{path}: expected a file that ends in {endings}, or say its `format`"])
    return _BY_SUFFIX[path.suffix.lower()]


def _from_json(loaded: _LoadedSource, kind: str, value: Any) -> RecordTable:
    """A list of records, or TinyTroupe's specifications, which are told by their content."""
    name, source = loaded.files[0][0], loaded.source
    specs = value if isinstance(value, list) else [value]
    if kind == "json" and source.format is None and specs and all(map(is_spec, specs)):
        return _specs(loaded, [(name, spec) for spec in specs])
    if loaded.fragments:
        raise ScenarioInvalid([f"{name}: fragments are merged into TinyTroupe's specifications, and this has none"])
    return _as_oasis(tables.json_table(value, name, source.limit), kind, OASIS_REDDIT)


def _specs(loaded: _LoadedSource, specs: Sequence[tuple[str, Any]]) -> RecordTable:
    flat = [(file, one) for file, spec in specs for one in (spec if isinstance(spec, list) else [spec])]
    fragments = [(file, json_value(text_of(each, file), file)) for file, each in loaded.fragments]
    name = loaded.source.path.name
    return spec_table(flat[: loaded.source.limit], fragments, name)


def kind_of(columns: Sequence[str] | Mapping[str, Any]) -> Format | None:
    """Which of OASIS's profiles have these columns."""
    if set(OASIS_TWITTER) <= set(columns):
        return "oasis-twitter"
    return "oasis-reddit" if set(OASIS_REDDIT) <= set(columns) and _ONLY_OASIS & set(columns) else None


def _as_oasis(table: RecordTable, kind: str, required: Sequence[str]) -> RecordTable:
    """In OASIS a person's number is the place in the file, whatever the file says beside it."""
    missing = [column for column in required if column not in table.columns]
    if kind.startswith("oasis-") and missing:
        raise ScenarioInvalid([f"{table.name}: no column {missing[0]!r}, which every {kind} profile has"])
    numbers = [str(cell) for cell in table.columns.get("user_id", ())]
    if kind_of(table.columns) is None or numbers in ([], [str(place) for place in range(len(table))]):
        return table
    note = "people are numbered by their place in the file, as in OASIS; `user_id` differs from it, and is a trait"
    return replace(table, notes=(*table.notes, note))
