"""Running a scenario from Python."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shoal.api.results import Results
from shoal.api.session import Session
from shoal.api.waiting import wait_for
from shoal.errors import Stopped
from shoal.scenario.files import load, validate
from shoal.scenario.models import Scenario


def run(
    scenario: Scenario | Mapping[str, Any] | str | Path, out: str | Path | None = None, *, quiet: bool = False
) -> Results:
    """Run a scenario to its end: a `Scenario`, what its YAML would hold, or the path of a file.

    The run is kept in `out`, or in runs/NAME-N. Where `out` holds a run of the same scenario already, that is finished.
    """
    session = Session(None if out is None else Path(out))
    session.declare(_scenario(scenario))
    path = str(session.directory.path)
    return finish(session, f"running {path}", quiet, f"shoal.run(..., out={path!r})")


def finish(session: Session, title: str, quiet: bool, again: str) -> Results:
    """Work on what was declared. An interrupt stops it cleanly and says how to go on: with this call again."""

    def work(stop: asyncio.Event) -> Any:
        return session.work(stop, title, quiet)

    try:
        wait_for(work)
    except Stopped:
        path = session.directory.path
        raise KeyboardInterrupt(
            f"stopped after round {session.rounds}; nothing is lost. Go on with {again}, or with `shoal resume {path}`."
        ) from None
    return Results(session.directory)


def _scenario(scenario: Scenario | Mapping[str, Any] | str | Path) -> Scenario:
    if isinstance(scenario, Scenario):
        return scenario
    return validate(dict(scenario)) if isinstance(scenario, Mapping) else load(Path(scenario))
