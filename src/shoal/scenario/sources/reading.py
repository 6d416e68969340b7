"""Reads a file or folder of people, of whatever format it is. The same content is worked through once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from shoal.errors import ScenarioInvalid
from shoal.scenario.problems import hint
from shoal.scenario.sources import tables
from shoal.scenario.sources.mapping import Wanted
from shoal.scenario.sources.roster import Roster, roster_of
from shoal.scenario.sources.tables import Table, json_value, text_of
from shoal.scenario.sources.tinytroupe import is_spec, spec_table

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
    wanted: tuple[Wanted, ...] = ()
    fragments: tuple[Path, ...] = ()
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A source with what its files hold. Two with the same digest are the same, wherever they lie."""

    digest: str
    person: type[BaseModel]
    source: Source = field(compare=False)
    files: tuple[tuple[str, bytes], ...] = field(compare=False)
    fragments: tuple[tuple[str, bytes], ...] = field(compare=False)


def read(source: Source, person: type[BaseModel]) -> Roster:
    """The people of a source, with the fields of the given model. ScenarioInvalid says everything that is wrong."""
    files = tuple((path.name, content(path)) for path in files_of(source.path))
    fragments = tuple((path.name, content(path)) for path in source.fragments)
    return _roster(_Loaded(_digest(source, files, fragments), person, source, files, fragments))


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
def _roster(loaded: _Loaded) -> Roster:
    return roster_of(_table(loaded), loaded.person, loaded.source.wanted, loaded.digest)


def _table(loaded: _Loaded) -> Table:
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


def _from_json(loaded: _Loaded, kind: str, value: Any) -> Table:
    """A list of records, or TinyTroupe's specifications, which are told by their content."""
    name, source = loaded.files[0][0], loaded.source
    specs = value if isinstance(value, list) else [value]
    if kind == "json" and source.format is None and specs and all(map(is_spec, specs)):
        return _specs(loaded, [(name, spec) for spec in specs])
    if loaded.fragments:
        raise ScenarioInvalid([f"{name}: fragments are merged into TinyTroupe's specifications, and this has none"])
    return _as_oasis(tables.json_table(value, name, source.limit), kind, OASIS_REDDIT)


def _specs(loaded: _Loaded, specs: Sequence[tuple[str, Any]]) -> Table:
    flat = [(file, one) for file, spec in specs for one in (spec if isinstance(spec, list) else [spec])]
    fragments = [(file, json_value(text_of(each, file), file)) for file, each in loaded.fragments]
    name = loaded.source.path.name
    return spec_table(flat[: loaded.source.limit], fragments, name)


def kind_of(columns: Sequence[str] | Mapping[str, Any]) -> Format | None:
    """Which of OASIS's profiles have these columns."""
    if set(OASIS_TWITTER) <= set(columns):
        return "oasis-twitter"
    return "oasis-reddit" if set(OASIS_REDDIT) <= set(columns) and _ONLY_OASIS & set(columns) else None


def _as_oasis(table: Table, kind: str, required: Sequence[str]) -> Table:
    """In OASIS a person's number is the place in the file, whatever the file says beside it."""
    missing = [column for column in required if column not in table.columns]
    if kind.startswith("oasis-") and missing:
        raise ScenarioInvalid([f"{table.name}: no column {missing[0]!r}, which every {kind} profile has"])
    numbers = [str(cell) for cell in table.columns.get("user_id", ())]
    if kind_of(table.columns) is None or numbers in ([], [str(place) for place in range(len(table))]):
        return table
    note = "people are numbered by their place in the file, as in OASIS; `user_id` differs from it, and is a trait"
    return replace(table, notes=(*table.notes, note))
