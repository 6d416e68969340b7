"""The runs of a server: found by their ids, listed, and made of what clients send."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Lock
from typing import Any
from uuid import uuid4

import msgspec

from shoal.errors import RunMissing, ScenarioInvalid
from shoal.runs import CONFIG, JOURNAL, Config, RunDirectory, adopt_mirofish, create_run, is_archived, storage_errors
from shoal.scenario import Scenario, is_mirofish, validate
from shoal.server.messages import ID_PATTERN, MirofishBody, ScenarioBody

_ID = re.compile(ID_PATTERN)
_ID_DIGITS = 12
_MAX_CONFIGS = 4096
_MAX_OPENED = 64


class RunFolder:
    """The folder that holds the runs of a server. Nothing outside of it is ever opened."""

    def __init__(self, path: Path, key_variables: frozenset[str], model: str | None = None) -> None:
        self.path = path.absolute()
        #: The language model of directories that MiroFish prepared.
        self._model = model
        self._key_variables = key_variables
        #: Id -> when its config was written, and the config: it is frozen, and may be long.
        self._configs: dict[str, tuple[int, Config]] = {}
        #: The runs that were asked for last. Of their journals, only what was added is read again.
        self._opened: OrderedDict[tuple[str, int, int], RunDirectory] = OrderedDict()
        self._opening = Lock()

    def find(self, identity: str) -> RunDirectory:
        """Open a run; RunMissing where the id is none, before any file is touched.

        A directory that MiroFish prepared becomes a run where it is.
        """
        if not _ID.fullmatch(identity):
            raise RunMissing("this is no id of a simulation")
        path = self.path / identity
        if path.is_symlink() or not (path / CONFIG).is_file():
            raise RunMissing(f"there is no simulation {identity}")
        key = identity, (path / CONFIG).stat().st_mtime_ns, _find_number(path / JOURNAL)
        with self._opening:
            if key in self._opened:
                self._opened.move_to_end(key)
                return self._opened[key]
        run = self._open(identity, path)
        with self._opening:
            self._opened[identity, (path / CONFIG).stat().st_mtime_ns, _find_number(path / JOURNAL)] = run
            if len(self._opened) > _MAX_OPENED:
                self._opened.popitem(last=False)
        return run

    def _open(self, identity: str, path: Path) -> RunDirectory:
        written_at, config = self._configs.get(identity, (0, None))
        if config is not None and (path / CONFIG).stat().st_mtime_ns == written_at:
            run = RunDirectory(path)
            run.config = config
            return run
        with self._opening:
            run = adopt_mirofish(path, self._model) if is_mirofish(path) else RunDirectory.open(path)
        if len(self._configs) >= _MAX_CONFIGS:
            self._configs.clear()
        self._configs[identity] = (path / CONFIG).stat().st_mtime_ns, run.config
        return run

    def list_ids(self) -> list[str]:
        """List the ids of all simulations, newest first."""
        if not self.path.is_dir():
            return []
        with os.scandir(self.path) as entries:
            names = [entry.name for entry in entries if _ID.fullmatch(entry.name) and not entry.is_symlink()]
        dated = [(_find_time(f"{self.path}/{name}/{CONFIG}"), name) for name in names]
        return [name for time, name in sorted(dated, reverse=True) if time]

    def list_shown(self, archived: bool) -> list[str]:
        """List the ids of the simulations that are archived, or of those that are not, newest first."""
        return [name for name in self.list_ids() if is_archived(self.path / name) == archived]

    def create(self, request: ScenarioBody | MirofishBody) -> RunDirectory:
        """Make a run of what a client sent; ScenarioInvalid says everything that is wrong with it."""
        path = self.path / f"sim_{uuid4().hex[:_ID_DIGITS]}"
        if isinstance(request, ScenarioBody):
            scenario = self._check(request.scenario)
            with storage_errors(self.path):
                self.path.mkdir(parents=True, exist_ok=True)
            return create_run(scenario, path)
        return self._create_from_mirofish(request, path)

    def _check(self, value: Mapping[str, Any]) -> Scenario:
        """Validate a scenario that is data: it names no code, no file and no variable of this machine."""
        if problems := list(_find_references(value, self._key_variables)):
            raise ScenarioInvalid(problems)
        return validate(dict(value))

    def _create_from_mirofish(self, request: MirofishBody, path: Path) -> RunDirectory:
        """Write the files as MiroFish would, and make a run of them. They are removed again where that fails."""
        files = {CONFIG: msgspec.json.encode(request.config)}
        if request.reddit_profiles is not None:
            files["reddit_profiles.json"] = msgspec.json.encode(request.reddit_profiles)
        if request.twitter_profiles is not None:
            files["twitter_profiles.csv"] = request.twitter_profiles.encode()
        with storage_errors(path):
            path.mkdir(parents=True)
            for name, content in files.items():
                (path / name).write_bytes(content)
        try:
            return adopt_mirofish(path, self._model)
        except ScenarioInvalid:
            shutil.rmtree(path)
            raise


def _find_time(path: str) -> int:
    """Return when a file was written; 0 where there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116  # a list of thousands of runs looks at each
    except (FileNotFoundError, NotADirectoryError):
        return 0
    return found.st_mtime_ns if stat.S_ISREG(found.st_mode) else 0


def _find_number(path: Path) -> int:
    """Return the number of a file, which is another one when it was replaced."""
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return 0


def _find_references(value: Mapping[str, Any], key_variables: frozenset[str]) -> Iterator[str]:
    """Find what a scenario may not name when somebody else sends it: before it is validated, which reads files."""
    yield from _find_files(value)
    yield from _find_code(value)
    mind = value.get("mind")
    if isinstance(mind, Mapping) and mind.get("key_variable") is not None:
        if mind["key_variable"] not in key_variables:
            yield "mind.key_variable: this variable was not declared; start the server with --key-variable to allow it"
        if mind.get("base_url") is not None:
            yield "mind.base_url: an address that is sent gets no key of this machine; leave out key_variable"
    if value.get("play"):
        yield "play: nobody sits at the server; play from a terminal with `shoal run --play`"


def _find_files(value: Mapping[str, Any]) -> Iterator[str]:
    for part in ("population", "follows"):
        for path, key, _ in _walk(value.get(part), part):
            if key in ("file", "fragments", "marginals"):
                yield f"{path}: a scenario that is sent cannot name files; send what is in them"


def _find_code(value: Mapping[str, Any]) -> Iterator[str]:
    """Find the names of classes and functions, which are imported where a scenario is used."""
    found = ["variables"] if value.get("variables") else []
    for part in ("mind", "worlds"):
        for path, key, named in _walk(value.get(part), part):
            if key in ("kind", "mind", None) and isinstance(named, str) and ":" in named:
                found.append(path)
    found += [path for path, key, _ in _walk(value.get("interventions"), "interventions") if key in ("check", "call")]
    yield from (f"{path}: a scenario that is sent cannot name code" for path in found)


def _walk(value: object, path: str, key: str | None = None) -> Iterator[tuple[str, str | None, object]]:
    """Yield the path, the key and the value of everything inside; what is in a list has no key."""
    yield path, key, value
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _walk(inner, f"{path}.{name}", str(name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _walk(inner, f"{path}.{index}")
