"""What the pictures of a world show, read from its database: figures, opinions, who is connected, how posts spread."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from sqlite3 import Connection

import numpy as np
from numpy.typing import NDArray

from shoal.runs.directory import RunDirectory
from shoal.runs.reports import SharedPost, open_database, read_cascades
from shoal.runs.store import database_path
from shoal.runs.views.marks import TimelineMark, list_marks

#: The posts that were passed on most, of which the trees are drawn.
MAX_CASCADES = 3

_TABLES = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
_ROUNDS = "SELECT round FROM shoal_round ORDER BY round"
_FIGURES = "SELECT name, about, round, value FROM figure ORDER BY round"
_CHANGES = "SELECT about, round, agent_id, value FROM opinion_change ORDER BY round"
_NAMES = "SELECT coalesce(agent_id, user_id), name FROM user"
#: Kind of tie -> the pairs that are tied.
_TIES = {
    "follow": "SELECT follower_id, followee_id FROM follow",
    "relation": "SELECT DISTINCT user_id, other_id FROM relation",
    "pair": "SELECT first_id, second_id FROM pair",
}
#: Kind of mark -> how those begin that are drawn.
_MARKED = {"event": "broadcast", "intervention": ""}
Opinions = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class WorldHistory:
    """One world of one run, as pictures need it."""

    label: str
    world: str
    rounds: Sequence[int]
    #: Name and what it is about -> round -> value.
    figures: Mapping[tuple[str, str], Mapping[int, float]]
    #: `topic` or a claim -> what each person thinks after each round; NaN where it is not known.
    opinions: Mapping[str, Opinions]
    names: Mapping[int, str]
    #: What connects people (`follow`, `relation`, `pair`), and who is connected.
    tie: str
    edges: Sequence[tuple[int, int]]
    cascades: Sequence[Sequence[SharedPost]]
    #: Interventions and announcements.
    marks: Sequence[TimelineMark] = ()

    def find_subject(self) -> str | None:
        """Return what opinions changed most about, the topic or a claim: what pictures of people are coloured by."""
        moved = {}
        for about, values in self.opinions.items():
            known = values[~np.isnan(values).all(axis=1)]
            if len(known):
                moved[about] = float(np.nan_to_num(np.abs(known[-1] - known[0])).mean())
        return max(moved, key=moved.__getitem__, default=None)


def read_history(run: RunDirectory, world: str, label: str) -> WorldHistory | None:
    """Read what pictures need of one world; None where no round was committed."""
    with open_database(database_path(run.path, world)) as database:
        if database is None:
            return None
        tables = {name for (name,) in database.execute(_TABLES)}
        rounds = [round for (round,) in database.execute(_ROUNDS)]
        names = dict(database.execute(_NAMES).fetchall())
        figures: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
        if "figure" in tables:
            for name, about, round, value in database.execute(_FIGURES):
                figures[name, about][round] = value
        tie = next((tie for tie in _TIES if tie in tables), "")
        edges = database.execute(_TIES[tie]).fetchall() if tie else []
        return WorldHistory(
            label=label,
            world=world,
            rounds=rounds,
            figures=figures,
            opinions=_read_opinions(database, rounds, len(names)) if "opinion_change" in tables else {},
            names=names,
            tie=tie,
            edges=edges,
            cascades=read_cascades(database, MAX_CASCADES) if "post" in tables else (),
            marks=[mark for mark in list_marks(run, None, ()) if mark.text.startswith(_MARKED.get(mark.kind, "-"))],
        )


def _read_opinions(database: Connection, rounds: Sequence[int], people: int) -> dict[str, Opinions]:
    """Return a row for each round. Only changes are stored, so each round begins as the one before ended."""
    changes: dict[str, list[tuple[int, int, float]]] = defaultdict(list)
    for about, round, agent, value in database.execute(_CHANGES):
        changes[about].append((round, agent, value))
    opinions = {}
    for about, rows in changes.items():
        values = np.full((len(rounds), people), np.nan)
        at, now = 0, np.full(people, np.nan)
        for row, round in enumerate(rounds):
            while at < len(rows) and rows[at][0] <= round:
                now[rows[at][1]] = rows[at][2]
                at += 1
            values[row] = now
        opinions[about] = values
    return opinions
