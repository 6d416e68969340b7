"""The files that a scenario speaks of, kept with the run: whatever becomes of the originals, the run stays the same.

A file is called after its content. So nothing is ever overwritten, and a directory in which a killed process left some
of them can be used again.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from shoal.runs.config import Config, ScenarioChange
from shoal.runs.files import storage_errors
from shoal.scenario.declared.population import FileEntry
from shoal.scenario.importers.people_file import list_files, read_content
from shoal.scenario.scenario import Scenario
from shoal.types import Versioned

INPUTS = "inputs"
_DIGITS = 12
_OURS = re.compile(rf"\.?[0-9a-f]{{{_DIGITS}}}-")

#: Path of a file -> path of its copy, from the run directory.
InputNames = Mapping[str, str]


def input_names(history: Versioned[Scenario]) -> InputNames:
    """Every file that any version of the scenario speaks of, and what its copy will be called."""
    versions = [history.first, *(version for _, version in history.changes)]
    paths = dict.fromkeys(path for version in versions for path in _files(version))
    return {path: f"{INPUTS}/{_digest(Path(path))}-{_OURS.sub('', Path(path).name)}" for path in paths}


def keep_inputs(config: Config, copies: InputNames) -> Config:
    """The config as it is written: it speaks of the copies."""
    changes = tuple(ScenarioChange(change.at, rename_inputs(change.scenario, _to(copies))) for change in config.changes)
    return msgspec.structs.replace(config, scenario=rename_inputs(config.scenario, _to(copies)), changes=changes)


def portable_scenario(scenario: Scenario, folder: Path) -> dict[str, Any]:
    """A scenario of this run in plain values; files in the run's directory are spoken of as seen from there."""
    whole = os.path.abspath(folder)  # noqa: PTH100  # as the paths in the scenario are made
    inside = {path: os.path.relpath(path, whole) for path in _files(scenario) if Path(path).is_relative_to(whole)}
    return rename_inputs(scenario.model_dump(mode="json"), _to(inside))


def copy_inputs(copies: InputNames, folder: Path) -> None:
    """Put the copies where they belong. Each appears whole or not at all."""
    if not copies:
        return
    with storage_errors(folder / INPUTS):
        (folder / INPUTS).mkdir(exist_ok=True)
        for path, name in copies.items():
            target = folder / name
            if not target.exists():
                _copy(Path(path), target)


def is_left_over(path: Path) -> bool:
    """Whether this is a folder in which there is nothing but copies of ours."""
    return path.name == INPUTS and path.is_dir() and all(_OURS.match(file.name) for file in path.iterdir())


def _files(scenario: Scenario) -> Iterator[str]:
    for entry in scenario.population:
        if isinstance(entry, FileEntry):
            yield entry.file
            yield from entry.fragments
    if scenario.follows.file is not None:
        yield scenario.follows.file


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    for file in list_files(path):
        each = read_content(file)
        digest.update(f"{file.name if path.is_dir() else ''}:{len(each)}:".encode())
        digest.update(each)
    return digest.hexdigest()[:_DIGITS]


def rename_inputs(scenario: Mapping[str, Any], name: Callable[[str], str]) -> dict[str, Any]:
    """A scenario in plain values that speaks of its files by other names."""

    def changed(part: Any) -> Any:
        if not isinstance(part, Mapping):
            return part
        files = {"file": name(part["file"])} if part.get("file") else {}
        fragments = {"fragments": [name(path) for path in part["fragments"]]} if part.get("fragments") else {}
        return {**part, **files, **fragments}

    result = dict(scenario)
    if isinstance(population := scenario.get("population"), list):
        result["population"] = [changed(entry) for entry in population]
    elif population is not None:
        result["population"] = changed(population)
    if "follows" in scenario:
        result["follows"] = changed(scenario["follows"])
    return result


def _to(copies: InputNames) -> Callable[[str], str]:
    return lambda path: copies.get(path, path)


def _copy(path: Path, target: Path) -> None:
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    if path.is_dir():
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir()
        for file in list_files(path):
            _copy_synced(file, beside / file.name)
    else:
        _copy_synced(path, beside)
    beside.replace(target)


def _copy_synced(path: Path, target: Path) -> None:
    with path.open("rb") as source, target.open("wb") as copy_inputs:
        shutil.copyfileobj(source, copy_inputs)
        copy_inputs.flush()
        os.fsync(copy_inputs.fileno())
