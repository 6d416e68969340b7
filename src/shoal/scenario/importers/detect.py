"""Detects what kind of source a path is, and makes a scenario of it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shoal.errors import ScenarioInvalid
from shoal.scenario.declared.population import FileEntry
from shoal.scenario.importers.fields import ImportResult, note_language
from shoal.scenario.importers.mirofish import (
    CONFIG,
    REDDIT,
    TWITTER,
    import_mirofish,
    is_mirofish,
    is_run_directory,
    refuse_simulations,
)
from shoal.scenario.importers.people_file import AGENT_SUFFIX, detect_oasis
from shoal.scenario.loading import validate
from shoal.scenario.sampling.links import read_links
from shoal.scenario.scenario import Scenario
from shoal.text import format_count

_KINDS = {
    **dict.fromkeys((".tsv", ".tab"), "TSV of people"),
    **dict.fromkeys((".jsonl", ".ndjson"), "JSONL of people"),
    **dict.fromkeys((".parquet", ".pq"), "Parquet of people"),
    ".csv": "CSV of people",
    ".json": "JSON list of people",
}
_OASIS = {"oasis-reddit": "OASIS Reddit profiles", "oasis-twitter": "OASIS Twitter profiles"}
#: The kind of world in which another system places its people.
_WORLDS = {"oasis-reddit": "reddit", "oasis-twitter": "twitter", "tinytroupe": "room"}
#: Columns that often hold the numbers of people.
_ID_COLUMNS = ("id", "user_id", "userid", "uid", "agent_id", "node_id")
_MAX_NAME_CHARS = 40


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How the user wants a source to be read."""

    #: Field of a person -> column of the file; None: the field stays empty.
    columns: Mapping[str, str | None] = field(default_factory=dict)
    fragments: Sequence[Path] = ()
    #: A file with the follow graph.
    follows: Path | None = None
    #: The column of the people in which the ends of edges are found.
    by: str | None = None


def import_path(path: Path, options: ImportOptions = ImportOptions()) -> ImportResult:  # noqa: B008  # frozen
    """Make a scenario from a file or folder, and report how each of its fields was used."""
    if is_run_directory(path):
        raise ScenarioInvalid([f"{path}: this is a run of Shoal; go on with `shoal resume` or `shoal fork`"])
    if is_mirofish(path):
        if options != ImportOptions():
            raise ScenarioInvalid(
                [f"{path}: a MiroFish directory is read as it is, without --map, --fragment or --follows"]
            )
        return import_mirofish(path)
    if path.is_dir() and not any(path.glob(f"*{AGENT_SUFFIX}")):
        refuse_simulations(path, "import")
        profiles = [path / name for name in (REDDIT, TWITTER) if (path / name).exists()]
        if profiles:
            command = f"shoal import {profiles[0]}"
            raise ScenarioInvalid([f"{path}: profiles, but no {CONFIG}; bring the profiles alone with `{command}`"])
        raise ScenarioInvalid([f"{path}: a folder with neither *{AGENT_SUFFIX} nor {CONFIG}; name the file itself"])
    return _import_people(path, options)


def _import_people(path: Path, options: ImportOptions) -> ImportResult:
    entry: dict[str, Any] = {"file": _make_absolute(path)}
    if options.columns:
        entry["columns"] = dict(options.columns)
    if options.fragments:
        entry["fragments"] = [_make_absolute(fragment) for fragment in options.fragments]
    stem = path.name.removesuffix(AGENT_SUFFIX) if path.name.endswith(AGENT_SUFFIX) else path.stem
    name = re.sub(r"[^A-Za-z0-9]+", "-", stem)[:_MAX_NAME_CHARS].strip("-") or "scenario"
    content: dict[str, Any] = {"name": name, "population": [entry]}
    follows = {} if options.follows is None else {"file": _make_absolute(options.follows)}
    follows |= {} if options.by is None else {"by": options.by}
    if follows:
        content["follows"] = follows
    scenario = validate(content, str(path))
    [people] = (entry.roster for entry in scenario.population if isinstance(entry, FileEntry))
    edges = scenario.follows.from_file
    uses = (*people.uses, *(edges.uses if edges else ()))
    notes = [*people.notes]
    for fragment in sorted(path.glob("*.agent.fragment.json")) if path.is_dir() else ():
        if _make_absolute(fragment) not in entry.get("fragments", ()):
            about = "a fragment says something about whoever it is merged into (--fragment)"
            notes.append(f"{fragment.name} is not used: {about}")
    fields = [use.field for use in people.uses]
    if any(field.startswith("persona.") for field in fields):
        origin: str | None = "tinytroupe"
        kind = "TinyTroupe specifications" if people.count > 1 else "TinyTroupe specification"
    else:
        origin = detect_oasis(fields)
        kind = _OASIS[origin] if origin else _KINDS[path.suffix.lower()]
    if origin is not None:
        content["worlds"] = [_WORLDS[origin]]
    if not any(use.use == "used" for use in people.uses):
        notes.append("no column is a field of a person: are these people? --map FIELD=COLUMN fills a field")
    notes += note_language([*people.column("persona"), *people.column("bio")])
    notes += _note_follows(scenario, on_platform=origin != "tinytroupe")
    return ImportResult(kind, content, uses, tuple(notes))


def _make_absolute(path: Path) -> str:
    return os.path.abspath(path)  # noqa: PTH100  # symlinks stay as they are


def _note_follows(scenario: Scenario, on_platform: bool) -> Iterator[str]:
    """Note how the files with follows were read, or that a platform has no follows."""
    edges = scenario.follows.from_file
    if edges is not None:
        yield from (f"{edges.name}: {note}" for note in edges.notes)
        # A number in a file of edges is a place among the people, but the user may have meant an id column.
        for entry in scenario.population if scenario.follows.by is None else ():
            for name, values in entry.roster.traits.items() if isinstance(entry, FileEntry) else ():
                if name.casefold() in _ID_COLUMNS and list(values) != list(range(len(values))):
                    yield (
                        f"ends that are numbers count people from 0; to find them in {name!r} instead, add --by {name}"
                    )
    found = read_links(scenario.population, scenario.follows)
    if len(found.sources):
        yield f"who follows whom: {format_count(len(found.sources), 'edge')}"
    elif on_platform:
        yield "nobody follows anybody at the start; `follows: scale-free` in the scenario draws a graph"
    yield from found.notes
