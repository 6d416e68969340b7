"""The frozen input of a run: `simulation_config.json` and copies of the files that the scenario names.

Both are written once, before the run, so that the run stays the same whatever happens to the originals. A copy is named
after its content. So nothing is ever overwritten, and a directory in which a killed process left some copies can be
used again.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from math import inf
from pathlib import Path
from typing import Any

import msgspec

import shoal
from shoal.errors import ArgumentInvalid, RunFromNewer, RunMissing, StorageFailed
from shoal.runs.files import storage_errors
from shoal.runs.state import wall_clock
from shoal.scenario import (
    EVERYDAY_INTERESTS,
    BudgetSettings,
    FileEntry,
    MarginalsEntry,
    Scenario,
    list_files,
    read_content,
    validate,
)
from shoal.text import one_of
from shoal.types import Versioned

#: Raised when a directory written by this version could not be read by an older one.
FORMAT = 4
_FORMAT_OF_DIRECTED_RELATIONS = 3
_FORMAT_OF_PROMPT_TEMPLATES = 4
_FORMAT_OF_CLAIMS = 4
INPUTS = "inputs"
_DIGEST_DIGITS = 12
_COPY_NAME = re.compile(rf"\.?[0-9a-f]{{{_DIGEST_DIGITS}}}-")
_MAX_CACHED_SCENARIOS = 256

#: Path of a file -> path of its copy, relative to the run directory.
InputNames = Mapping[str, str]


class ScenarioChange(msgspec.Struct, frozen=True):
    """The scenario of a fork from a round on."""

    at: int
    scenario: dict[str, Any]


class Parent(msgspec.Struct, frozen=True):
    """The run that a fork branches from, and the round from which on it differs."""

    name: str
    round: int


class Config(msgspec.Struct, frozen=True):
    """The fields of the file that Shoal reads; `runs.mirofish` adds others for MiroFish's clients."""

    simulation_id: str
    format: int
    shoal_version: str
    scenario: dict[str, Any]
    changes: tuple[ScenarioChange, ...] = ()
    parent: str | None = None
    #: None in forks that versions made which did not write it down.
    parent_round: int | None = None
    generated_at: str = ""

    @classmethod
    def of(cls, name: str, versions: Versioned[Scenario], copies: InputNames, parent: Parent | None = None) -> Config:
        """Make the config of a new run. It names the copies of files, not the originals."""

        def freeze(scenario: Scenario) -> dict[str, Any]:
            return rename_inputs(scenario.model_dump(mode="json"), lambda path: copies.get(path, path))

        changes = tuple(ScenarioChange(at, freeze(version)) for at, version in versions.changes)
        return cls(
            name,
            FORMAT,
            shoal.__version__,
            freeze(versions.first),
            changes,
            parent=None if parent is None else parent.name,
            parent_round=None if parent is None else parent.round,
            generated_at=wall_clock(),
        )

    def scenario_versions(self, folder: Path) -> Versioned[Scenario]:
        """Restore the scenario and its changes by forks. Copies of files are looked up in the folder."""
        changes = tuple((change.at, self.restore_scenario(change.scenario, folder)) for change in self.changes)
        return Versioned(self.restore_scenario(self.scenario, folder), changes)

    def restore_scenario(self, scenario: dict[str, Any], folder: Path) -> Scenario:
        """Validate a scenario that was written down in this run. One without files is validated once and cached."""
        scenario = _restate(scenario, self.format)
        parts = (*scenario["population"], scenario.get("follows") or {})
        if any(part.get(field) is not None for part in parts for field in ("file", "marginals")):
            return validate(scenario, folder=folder)
        return _validate_cached(msgspec.json.encode(scenario))

    @property
    def planned_rounds(self) -> int:
        """The number of rounds that was planned when the run was made."""
        rounds: int = (self.changes[-1].scenario if self.changes else self.scenario)["rounds"]
        return rounds


_FRACTIONAL = ("max_cost", "patience")


class LimitSettings(msgspec.Struct, frozen=True, omit_defaults=True):
    """Limits that users gave a run beside its scenario. They hold for all its sessions, until others are given."""

    #: US dollars.
    max_cost: float | None = None
    max_tokens: int | None = None
    max_calls: int | None = None
    #: How many agents act at once, over all runs that set this.
    parallel: int | None = None
    #: Seconds to wait for a server that does not answer; 0: not at all.
    patience: float | None = None
    #: Over how many processes the agents of the run are spread.
    shards: int | None = None

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> LimitSettings:
        """Check limits that a user gave; ArgumentInvalid names the one that is wrong. None: this one is not given."""
        for name, value in values.items():
            if name not in cls.__struct_fields__:
                raise ArgumentInvalid("limits", f"there is no limit {name!r}, only {one_of(cls.__struct_fields__)}.")
            is_number = isinstance(value, int | float if name in _FRACTIONAL else int) and not isinstance(value, bool)
            if value is not None and not (is_number and 0 <= value < inf and (value or name == "patience")):
                least = "not below 0" if name == "patience" else "above 0"
                raise ArgumentInvalid(name.replace("_", "-"), f"expected a number {least}, found {value!r}.")
        return cls(**values)

    def replace_with(self, given: LimitSettings) -> LimitSettings:
        """Return these limits, except for those that are given anew."""
        return msgspec.structs.replace(self, **given.list_given())

    def list_given(self) -> dict[str, Any]:
        return {name: value for name, value in msgspec.structs.asdict(self).items() if value is not None}

    def apply_to(self, budget: BudgetSettings) -> BudgetSettings:
        """Return a scenario's budget with these limits in place of the declared ones; those that are not given stay."""
        return budget.model_copy(
            update={name: at for name, at in self.list_given().items() if name in BudgetSettings.model_fields}
        )

    def format_options(self) -> str:
        """Write the limits as options of a command, each with a space before it."""
        units = {"patience": "s"}
        given = self.list_given().items()
        return "".join(f" --{name.replace('_', '-')} {value:g}{units.get(name, '')}" for name, value in given)


class _Header(msgspec.Struct):
    """The fields that decide whether the rest can be read."""

    format: int
    shoal_version: str


def read_config(path: Path) -> Config:
    """Read the config; RunMissing if there is no such file, RunFromNewer if a newer Shoal wrote it."""
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise RunMissing(f"there is no run in {path.parent}; `shoal list` shows those there are") from None
    except OSError as error:
        raise StorageFailed(f"cannot read {path}: {error.strerror}") from error
    try:
        header = msgspec.json.decode(text, type=_Header)
        if header.format > FORMAT:
            raise RunFromNewer(
                f"{path.parent} was written by Shoal {header.shoal_version}, which is newer than this one "
                f"({shoal.__version__}).\n"
                "Nothing was changed. Use that version, or install it with `pip install -U shoal`."
            )
        return msgspec.json.decode(text, type=Config)
    except msgspec.DecodeError as error:
        raise RunMissing(f"{path} was not written by Shoal ({error})") from error


def _restate(scenario: dict[str, Any], format: int) -> dict[str, Any]:
    """State what went without saying when a run of an earlier format was written, so that its history stays the same.

    What this version wrote into such a run, for example when it went on, states it already.
    """
    if format < _FORMAT_OF_DIRECTED_RELATIONS:
        worlds = {
            name: {"one_relation": True, **world} if world["kind"] == "room" else world
            for name, world in scenario["worlds"].items()
        }
        scenario = {**scenario, "worlds": worlds}
    if format < _FORMAT_OF_PROMPT_TEMPLATES:
        restated = []
        for entry in scenario["population"]:
            if "count" not in entry:
                entry = {"interests_from": list(EVERYDAY_INTERESTS), **entry}
            restated.append({"stance": 0.0, **entry} if "file" in entry else entry)
        scenario = {**scenario, "population": restated}
        if scenario["mind"]["kind"] == "language":
            scenario = {**scenario, "mind": {"prompt": {"version": 1}, **scenario["mind"]}}
    return scenario if format >= _FORMAT_OF_CLAIMS else {"edition": 1, **scenario}


@lru_cache(maxsize=_MAX_CACHED_SCENARIOS)
def _validate_cached(text: bytes) -> Scenario:
    return validate(msgspec.json.decode(text))


# Copies of files


def freeze_scenario(scenario: Scenario) -> dict[str, Any]:
    """Return a scenario in plain values, its files named by their content: the same for all runs that are alike."""
    versions = Versioned(scenario)
    return Config.of("", versions, name_inputs(versions)).scenario


def name_inputs(versions: Versioned[Scenario]) -> InputNames:
    """Name the copy of every file that any version of the scenario names."""
    paths = dict.fromkeys(path for version in versions.versions() for path in _list_files(version))
    names = {}
    for name in paths:
        path, digest = Path(name), hashlib.sha256()
        for file in list_files(path):
            content = read_content(file)
            digest.update(f"{file.name if path.is_dir() else ''}:{len(content)}:".encode())
            digest.update(content)
        names[name] = f"{INPUTS}/{digest.hexdigest()[:_DIGEST_DIGITS]}-{_COPY_NAME.sub('', path.name)}"
    return names


def copy_inputs(copies: InputNames, folder: Path) -> None:
    """Copy the files into the run directory. Each copy appears whole or not at all."""
    if not copies:
        return
    with storage_errors(folder / INPUTS):
        (folder / INPUTS).mkdir(exist_ok=True)
        for original, name in copies.items():
            path, target = Path(original), folder / name
            if target.exists():
                continue
            beside = target.with_name(f".{target.name}.{os.getpid()}")
            files = {path: beside}
            if path.is_dir():
                shutil.rmtree(beside, ignore_errors=True)
                beside.mkdir()
                files = {file: beside / file.name for file in list_files(path)}
            for file, copy in files.items():
                with file.open("rb") as source, copy.open("wb") as written:
                    shutil.copyfileobj(source, written)
                    written.flush()
                    os.fsync(written.fileno())
            beside.replace(target)


def is_leftover_inputs(path: Path) -> bool:
    """Return whether this is a folder that holds nothing but copies of ours."""
    return path.name == INPUTS and path.is_dir() and all(_COPY_NAME.match(file.name) for file in path.iterdir())


def make_portable(scenario: Scenario, folder: Path) -> dict[str, Any]:
    """Dump a scenario to plain values. Paths of files in the run directory become relative to it."""
    dumped = scenario.model_dump(mode="json")
    if not (files := list(_list_files(scenario))):
        return dumped
    whole = os.path.abspath(folder)  # noqa: PTH100  # as the paths in the scenario are made
    inside = {path: os.path.relpath(path, whole) for path in files if Path(path).is_relative_to(whole)}
    return rename_inputs(dumped, lambda path: inside.get(path, path))


def rename_inputs(scenario: Mapping[str, Any], rename: Callable[[str], str]) -> dict[str, Any]:
    """Rename the files that a scenario in plain values names."""

    def rename_in(part: Any) -> Any:
        if not isinstance(part, Mapping):
            return part
        files = {"file": rename(part["file"])} if part.get("file") else {}
        lists = {
            field: [rename(path) for path in ([named] if isinstance(named, str) else named)]
            for field in ("fragments", "marginals")
            if (named := part.get(field))
        }
        return {**part, **files, **lists}

    result = dict(scenario)
    if isinstance(population := scenario.get("population"), list):
        result["population"] = [rename_in(entry) for entry in population]
    elif population is not None:
        result["population"] = rename_in(population)
    if "follows" in scenario:
        result["follows"] = rename_in(scenario["follows"])
    return result


def _list_files(scenario: Scenario) -> Iterator[str]:
    for entry in scenario.population:
        if isinstance(entry, FileEntry):
            yield entry.file
            yield from entry.fragments
        elif isinstance(entry, MarginalsEntry):
            yield from entry.marginals
    if scenario.follows.file is not None:
        yield scenario.follows.file
