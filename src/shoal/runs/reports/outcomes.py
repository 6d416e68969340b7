"""The outcome of a run: the figures of its population at the start and at the end."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from sqlite3 import Connection

from shoal.runs.directory import RunDirectory
from shoal.runs.reports.database import open_database
from shoal.runs.store import database_path, has_table

_STATE_KNOWN = "SELECT 1 FROM sqlite_master WHERE name = 'figure'"
_FIGURES = "SELECT name, about, value FROM figure WHERE round <= ? ORDER BY rowid"
_SERIES = "SELECT name, about, round, value FROM figure ORDER BY round"
_EVER = 1 << 60
_LAST_OPINIONS = """SELECT opinion_change.about, coalesce(user.name, opinion_change.agent_id), opinion_change.value
FROM opinion_change JOIN (
    SELECT agent_id, about, max(rowid) AS last FROM opinion_change GROUP BY agent_id, about
) AS latest ON latest.last = opinion_change.rowid
LEFT JOIN user ON coalesce(user.agent_id, user.user_id) = opinion_change.agent_id
ORDER BY opinion_change.about, opinion_change.agent_id"""
#: The index is made when a history is complete. With it, one row is looked at for each person, however long the run is.
_INDEX = "opinion_by_agent"
_OPINIONS_BY_INDEX = """SELECT person, (
    SELECT value FROM opinion_change WHERE agent_id = person AND about = ? AND round <= ? ORDER BY round DESC LIMIT 1
) FROM (SELECT coalesce(agent_id, user_id) AS person FROM user {who})"""
_OPINIONS = "SELECT agent_id, value FROM opinion_change WHERE about = ? AND round <= ? {who} ORDER BY rowid"


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


def read_figures(directory: RunDirectory, world: str) -> dict[tuple[str, str], dict[int, float]]:
    """Read the figures of a world over its rounds: name and what it is about -> round -> value."""
    found: dict[tuple[str, str], dict[int, float]] = {}
    with open_database(database_path(directory.path, world)) as database:
        if database is not None and database.execute(_STATE_KNOWN).fetchone() is not None:
            for name, about, round, value in database.execute(_SERIES):
                found.setdefault((name, about), {})[round] = value
    return found


def read_last_opinions(directory: RunDirectory, world: str) -> list[tuple[str, str, float]]:
    """Read what every person thinks at the end: what it is about, who, and the opinion."""
    with open_database(database_path(directory.path, world)) as database:
        if database is None or database.execute(_STATE_KNOWN).fetchone() is None:
            return []
        return [(about, str(name), value) for about, name, value in database.execute(_LAST_OPINIONS)]


def find_opinions(
    database: Connection, about: str, round: int | None = None, agents: Collection[int] | None = None
) -> dict[int, float]:
    """Find what all people, or the named agents, think after a round, or now."""
    if not has_table(database, "opinion_change"):
        return {}
    is_indexed = has_table(database, _INDEX)
    query = _OPINIONS_BY_INDEX if is_indexed else _OPINIONS
    if agents is not None:
        marks = ",".join("?" * len(agents))
        query = query.format(who=f"WHERE person IN ({marks})" if is_indexed else f"AND agent_id IN ({marks})")
    values = (about, _EVER if round is None else round, *(agents or ()))
    # Of several changes of one person, the last one is kept.
    found = dict(database.execute(query.format(who=""), values).fetchall())
    return {agent: value for agent, value in found.items() if value is not None}
