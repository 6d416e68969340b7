"""One run as a script sees it: every call to run stands for one version of the scenario, in order.

So a script that is started again on the same directory finds there what it asked for the last time, which costs
nothing, and goes on where that ended.
"""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path
from typing import Any

from shoal.api.progress import progress
from shoal.errors import RunRefused, ScenarioInvalid
from shoal.runs import inputs, verbs, worker
from shoal.runs.config import Config
from shoal.runs.directory import CONFIG, RunDirectory
from shoal.runs.outside import Outside
from shoal.runs.places import RUNS, place_for
from shoal.runs.state import Status
from shoal.runs.summary import committed_rounds
from shoal.scenario.models import Scenario
from shoal.types import Timeline


class Session:
    """A run that is begun by the first version of a scenario, and goes on with later ones."""

    def __init__(self, out: Path | None = None) -> None:
        self._out = out
        self._directory: RunDirectory | None = None
        self._first: Scenario | None = None
        #: Versions that were asked for so far.
        self._asked = 0
        #: The last round of the versions that were asked for.
        self.rounds = 0

    @property
    def has_begun(self) -> bool:
        return self._directory is not None

    @property
    def directory(self) -> RunDirectory:
        if self._directory is None:
            raise RunRefused("nothing has been run yet; call run() first")
        return self._directory

    @property
    def is_over(self) -> bool:
        """Whether the history has come to its end by itself, before the rounds that were planned."""
        if self._directory is None:
            return False
        state = self._directory.state()
        return state.runner_status is Status.COMPLETED and state.current_round < state.total_rounds

    def declare(self, scenario: Scenario) -> None:
        """What the run shall be from here on. It is made to go on, unless the same was asked for before."""
        if self._directory is None:
            self._directory = self._begun(scenario)
            self._first = scenario
        else:
            self._go_on(self._directory, scenario)
        self._asked += 1

    async def work(self, stop: asyncio.Event, title: str, quiet: bool) -> None:
        """Work on the run until what was declared has happened."""
        directory = self.directory
        later = directory.history().changes[self._asked - 1 :]
        if later:
            self.rounds = later[0][0] - 1
            return
        known = committed_rounds(directory)
        total = directory.history().versions()[-1].rounds
        try:
            with progress(title, total, known, quiet) as watch:
                await worker.work(directory, stop, watch, Outside.of_user(os.environ))
        finally:
            self.rounds = max(committed_rounds(directory).values())

    def _begun(self, scenario: Scenario) -> RunDirectory:
        if self._out is not None and (self._out / CONFIG).exists():
            found = RunDirectory(self._out)
            copies = inputs.names(Timeline(scenario))
            asked = inputs.kept(Config.of(self._out.name, Timeline(scenario)), copies).scenario
            _compare(found, found.config().scenario, asked)
            return found
        with place_for(self._out, RUNS, scenario.name) as path:
            return verbs.create(scenario, path)

    def _go_on(self, directory: RunDirectory, scenario: Scenario) -> None:
        assert self._first is not None
        if scenario.population != self._first.population:
            raise ScenarioInvalid(
                [
                    "the people have changed since the run began; change them in the run with "
                    "world.change(person, stance=0.5), or make a new World"
                ]
            )
        history = directory.history()
        # The run keeps its own copies of files of people.
        lasting = {"population": history.first.population, "follows": history.first.follows}
        scenario = scenario.model_copy(update=lasting)
        versions = history.versions()
        if self._asked < len(versions):
            known, asked = (inputs.portable(one, directory.path) for one in (versions[self._asked], scenario))
            _compare(directory, known, asked)
        else:
            verbs.extend(directory, scenario)


def _compare(directory: RunDirectory, known: dict[str, Any], asked: dict[str, Any]) -> None:
    different = [field for field, value in known.items() if asked.get(field) != value]
    if different:
        raise RunRefused(
            f"{directory.path} already holds a run of another scenario ({', '.join(different)} differ).\n"
            "Give `out` another directory, or leave it away to have a new one each time."
        )


def slug(name: str, usual: str = "world") -> str:
    """A name as files and folders are called: small letters, digits and hyphens."""
    found = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40].strip("-")
    return found if found[:1].isalpha() else f"{usual}-{found}".strip("-")[:40]
