"""The runs of a server: found by their ids, listed, and made of what clients send."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections import OrderedDict
from collections.abc import Mapping
from itertools import chain, count
from pathlib import Path
from threading import Lock
from typing import Any
from uuid import uuid4

import msgspec

from shoal.errors import RunMissing, ScenarioInvalid
from shoal.experiments import RESULTS_FOLDER
from shoal.runs import (
    CONFIG,
    JOURNAL,
    Config,
    RunDirectory,
    adopt_mirofish,
    create_run,
    fork_run,
    is_archived,
    plan_fork,
    storage_errors,
)
from shoal.scenario import Problem, Scenario, TextProblem, check_text, is_mirofish, validate
from shoal.server.api.references import find_references, find_references_in_changes
from shoal.server.messages.base import ID_PATTERN
from shoal.server.messages.lifecycle import ForkBody, MirofishBody, ScenarioBody, TextBody

_ID = re.compile(ID_PATTERN)
#: Between the parts of the id of a run in an experiment.
IN_EXPERIMENT = "~"
_ID_DIGITS = 12
_NO_ID = re.compile(r"[^A-Za-z0-9_-]+")
_MAX_NAME_CHARS = 60
_MAX_CONFIGS = 4096
_MAX_OPENED = 64


class RunFolder:
    """The folder that holds the runs of a server. Nothing outside of it is ever opened."""

    def __init__(
        self, path: Path, key_variables: frozenset[str], model: str | None = None, results: Path = RESULTS_FOLDER
    ) -> None:
        self.path = path.absolute()
        self._results = results.absolute()
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
        # A run of an experiment is named by its place, as EXPERIMENT~TIER~ARM~SEED.
        name, *places = identity.split(IN_EXPERIMENT)
        path = (self._results if places else self.path).joinpath(name, *places)
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

    def create(self, request: ScenarioBody | TextBody | MirofishBody) -> RunDirectory:
        """Make a run of what a client sent; ScenarioInvalid says everything that is wrong with it."""
        path = self.path / f"sim_{uuid4().hex[:_ID_DIGITS]}"
        if isinstance(request, MirofishBody):
            # Write the files as MiroFish would, and make a run of them. They are removed again where that fails.
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
        value = request.scenario if isinstance(request, ScenarioBody) else self._read(request.text)
        scenario = self._check(value)
        with storage_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        return create_run(scenario, path)

    def read_scenario(self, text: str) -> Scenario:
        """Read a scenario that a client sent as the text of its file; ScenarioInvalid says what is wrong with it."""
        return self._check(self._read(text))

    def check(self, text: str) -> list[TextProblem]:
        """List every mistake in the text of a scenario, with its line."""
        return check_text(text, self._find_references)[1]

    def fork(self, request: ForkBody) -> RunDirectory:
        """Fork a run; ScenarioInvalid or ArgumentInvalid says what is wrong with the changes."""
        parent, changes = self.find(request.simulation_id), request.set
        if problems := find_references_in_changes(parent.scenario, changes, self._key_variables):
            raise ScenarioInvalid(list(map(str, problems)))
        plan = plan_fork(
            parent,
            request.at,
            changes=[f"{path}={msgspec.json.encode(value).decode()}" for path, value in changes.items()],
            events=request.events,
            without=request.without,
        )
        # A fork of a run in an experiment is none of that experiment's.
        is_in_experiment = IN_EXPERIMENT in request.simulation_id
        name = request.name or (request.simulation_id if is_in_experiment else None)
        if name is None:
            return fork_run(plan, None)
        words = _NO_ID.sub("-", name).strip("-_")[:_MAX_NAME_CHARS] or "fork"
        paths = chain([self.path / words], (self.path / f"{words}-{number}" for number in count(2)))
        return fork_run(plan, next(path for path in paths if not path.exists()))

    def _read(self, text: str) -> Mapping[str, Any]:
        value, problems = check_text(text, self._find_references)
        if problems:
            raise ScenarioInvalid(
                [f"line {one.line}: {one.path}: {one.text}".replace(": : ", ": ") for one in problems]
            )
        found: Mapping[str, Any] = value
        return found

    def _check(self, value: Any) -> Scenario:
        """Validate a scenario that is data: it names no code, no file and no variable of this machine."""
        if problems := self._find_references(value):
            raise ScenarioInvalid(list(map(str, problems)))
        return validate(dict(value))

    def _find_references(self, value: Mapping[str, Any]) -> list[Problem]:
        return list(find_references(value, self._key_variables))


def _find_time(path: str) -> int:
    """Return when a file was written; 0 without a file."""
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
