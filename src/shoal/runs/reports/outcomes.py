"""What came of a run: the figures of its population at the start and at the end."""

from __future__ import annotations

from dataclasses import dataclass

from shoal.runs.directory import RunDirectory
from shoal.runs.reports.database import open_database
from shoal.runs.store import database_path

_STATE_KNOWN = "SELECT 1 FROM sqlite_master WHERE name = 'figure'"
_FIGURES = "SELECT name, about, value FROM figure WHERE round <= ? ORDER BY rowid"
_EVER = 1 << 60


@dataclass(frozen=True, slots=True)
class Outcome:
    """One figure of the population: when it was first known, and at the end."""

    name: str
    #: `topic`, the id of a claim, or nothing.
    about: str
    first: float
    last: float


def read_outcomes(directory: RunDirectory, world: str, until: int | None = None) -> tuple[Outcome, ...]:
    """Read the figures of a world up to a round; none where a run of an earlier version did not record them."""
    with open_database(database_path(directory.path, world)) as database:
        if database is None or database.execute(_STATE_KNOWN).fetchone() is None:
            return ()
        found: dict[tuple[str, str], list[float]] = {}
        for name, about, value in database.execute(_FIGURES, (_EVER if until is None else until,)):
            # Only the first value and the latest.
            found.setdefault((name, about), [value])[1:] = [value]
    return tuple(Outcome(name, about, values[0], values[-1]) for (name, about), values in found.items())
