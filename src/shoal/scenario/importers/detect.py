"""Tells what somebody brought, and makes a scenario of it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shoal.errors import ScenarioInvalid
from shoal.scenario.declared.population import FileEntry
from shoal.scenario.importers.mirofish import scenario as mirofish
from shoal.scenario.importers.people_file import AGENT, PeopleTable, kind_of
from shoal.scenario.importers.result import ImportResult
from shoal.scenario.loading import validate
from shoal.scenario.sampling.links import read_links
from shoal.scenario.scenario import Scenario

_KINDS: Mapping[str, str] = {
    ".csv": "CSV of people",
    ".tsv": "TSV of people",
    ".tab": "TSV of people",
    ".jsonl": "JSONL of people",
    ".ndjson": "JSONL of people",
    ".json": "JSON list of people",
    ".parquet": "Parquet of people",
    ".pq": "Parquet of people",
}
_OASIS = {"oasis-reddit": "OASIS Reddit profiles", "oasis-twitter": "OASIS Twitter profiles"}
_PROFILES = ("reddit_profiles.json", "twitter_profiles.csv")
#: Columns that often hold numbers of people.
_IDS = ("id", "user_id", "userid", "uid", "agent_id", "node_id")
_NOT_NAME = re.compile(r"[^A-Za-z0-9]+")
_NAME_LENGTH = 40


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What the user says about what was brought."""

    #: Field of a person -> column of the file.
    columns: Mapping[str, str] = field(default_factory=dict)
    fragments: Sequence[Path] = ()
    #: A file that says who follows whom.
    follows: Path | None = None
    #: The column of the people that the ends of its edges are found in.
    by: str | None = None


def import_path(path: Path, wishes: ImportOptions = ImportOptions()) -> ImportResult:  # noqa: B008  # frozen
    """A scenario made from a file or folder, with what became of each of its fields."""
    if mirofish.is_own(path):
        raise ScenarioInvalid([f"{path}: this is a run of Shoal; go on with `shoal resume` or `shoal fork`"])
    if mirofish.is_mirofish(path):
        return _mirofish(path, wishes)
    if path.is_dir() and not any(path.glob(f"*{AGENT}")):
        raise ScenarioInvalid([_nothing_known(path)])
    return _people(path, wishes)


def _mirofish(path: Path, wishes: ImportOptions) -> ImportResult:
    if wishes != ImportOptions():
        raise ScenarioInvalid(
            [f"{path}: a MiroFish directory is read as it is, without --map, --fragment or --follows"]
        )
    return mirofish.import_mirofish(path)


def _nothing_known(path: Path) -> str:
    profiles = [name for name in _PROFILES if (path / name).exists()]
    if profiles:
        alone = f"shoal import {path / profiles[0]}"
        return f"{path}: profiles, but no {mirofish.CONFIG}; bring the profiles alone with `{alone}`"
    return f"{path}: a folder with neither *{AGENT} nor {mirofish.CONFIG}; name the file itself"


def _people(path: Path, wishes: ImportOptions) -> ImportResult:
    entry: dict[str, Any] = {"file": _whole(path)}
    if wishes.columns:
        entry["columns"] = dict(wishes.columns)
    if wishes.fragments:
        entry["fragments"] = [_whole(fragment) for fragment in wishes.fragments]
    content: dict[str, Any] = {"name": _name(path), "population": [entry]}
    if wishes.follows is not None:
        content["follows"] = {"file": _whole(wishes.follows), **({"by": wishes.by} if wishes.by else {})}
    scenario = validate(content, str(path))
    [file] = (entry for entry in scenario.population if isinstance(entry, FileEntry))
    notes = (*file.roster.notes, *_fragments_left(path, wishes), *_notes_of_links(scenario))
    edges = scenario.follows.from_file
    return ImportResult(_kind(path, file.roster), content, (*file.roster.uses, *(edges.uses if edges else ())), notes)


def _whole(path: Path) -> str:
    return os.path.abspath(path)  # noqa: PTH100  # symlinks stay as they are


def _name(path: Path) -> str:
    stem = path.name.removesuffix(AGENT) if path.name.endswith(AGENT) else path.stem
    return _NOT_NAME.sub("-", stem)[:_NAME_LENGTH].strip("-") or "scenario"


def _kind(path: Path, roster: PeopleTable) -> str:
    fields = [use.field for use in roster.uses]
    if any(name.startswith("persona.") for name in fields):
        return "TinyTroupe specifications" if roster.count > 1 else "TinyTroupe specification"
    oasis = kind_of(fields)
    return _OASIS[oasis] if oasis else _KINDS[path.suffix.lower()]


def _fragments_left(path: Path, wishes: ImportOptions) -> Iterator[str]:
    """Fragments that lie there and that nobody asked for."""
    asked = {_whole(fragment) for fragment in wishes.fragments}
    for fragment in sorted(path.glob("*.agent.fragment.json")) if path.is_dir() else ():
        if _whole(fragment) not in asked:
            yield f"{fragment.name} is not used: a fragment says something about whoever it is merged into (--fragment)"


def _numbers_of_their_own(scenario: Scenario) -> Iterator[str]:
    """A number in a file of edges is a place; somebody may have meant the number that people have elsewhere."""
    for entry in scenario.population if scenario.follows.by is None else ():
        for name, values in entry.roster.traits.items() if isinstance(entry, FileEntry) else ():
            if name.casefold() in _IDS and list(values) != list(range(len(values))):
                yield f"ends that are numbers count people from 0; to find them in {name!r} instead, add --by {name}"


def _notes_of_links(scenario: Scenario) -> Iterator[str]:
    edges = scenario.follows.from_file
    if edges is not None:
        yield from (f"{edges.name}: {note}" for note in edges.notes)
        yield from _numbers_of_their_own(scenario)
    found = read_links(scenario.population, scenario.follows)
    if len(found.sources):
        yield f"who follows whom: {len(found.sources):,} edges"
    yield from found.notes
