"""Figures of a run over its rounds: how lively it was, what people think, how far claims went."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from sqlite3 import Connection

import msgspec
import numpy as np

from shoal.engine import TOPIC, count_opinions
from shoal.runs.directory import RunDirectory
from shoal.runs.reports import open_world
from shoal.runs.store import has_table
from shoal.runs.views.pages import make_placeholders

#: How many rounds are answered at most; of longer runs these are every second round, every third, and so on.
MAX_POINTS = 2_000
_SHOWN = "round IN (SELECT value FROM json_each(?))"
_ACTIONS = f"SELECT round, actions FROM shoal_round WHERE {_SHOWN} ORDER BY round"
_FIGURES = f"SELECT round, name, about, value FROM figure WHERE {_SHOWN}"
_COUNTS = f"SELECT round, counts FROM opinion_count WHERE {_SHOWN} AND about = ? ORDER BY round"
_CHANGES = "SELECT round, agent_id, value FROM opinion_change WHERE about = ? ORDER BY rowid"
#: What is measured of a claim, by the name that the figures have.
_REACH, _BELIEF = "reach", "mean"


@dataclass(frozen=True, slots=True)
class ClaimFigures:
    """How far a claim went in the world where it went furthest, and what people think of it on average."""

    reach: list[float | None]
    belief: list[float | None]


@dataclass(frozen=True, slots=True)
class RunFigures:
    """Figures of a run; every list has an entry for each of `rounds`."""

    rounds: list[int]
    activity: list[int]
    #: Name -> world -> values. What is measured of the topic goes by its name alone.
    figures: dict[str, dict[str, list[float | None]]]
    #: The id of a claim -> its figures.
    claims: dict[str, ClaimFigures]
    #: How many people are in each of 11 parts of the scale from -1 to 1; an empty list where none is known.
    opinions: list[list[int]]


def read_run_figures(
    run: RunDirectory, since: int = 0, until: int | None = None, points: int = MAX_POINTS
) -> RunFigures:
    """Read the figures of all worlds from a round on: of the last round, and of rounds at equal distances before it."""
    last = max(run.read_last_rounds().values()) if until is None else until
    step = max(1, -(-(last - since + 1) // points))
    shown = msgspec.json.encode([*range(last, since - 1, -step)]).decode()
    about = name_subject(run)
    activity: defaultdict[int, int] = defaultdict(int)
    values: defaultdict[tuple[str, str, str], dict[int, float]] = defaultdict(dict)
    opinions: defaultdict[int, list[int]] = defaultdict(list)
    for world in run.worlds:
        with open_world(run, world) as database:
            if database is None:
                continue
            for round, actions in database.execute(_ACTIONS, (shown,)):
                activity[round] += actions
            if has_table(database, "figure"):
                for round, name, subject, value in database.execute(_FIGURES, (shown,)):
                    values[name, subject, world][round] = value
                for round, counts in _read_opinions(database, about, shown):
                    if before := opinions.get(round):
                        counts = [one + other for one, other in zip(before, counts, strict=True)]
                    opinions[round] = counts
    rounds = sorted(activity)
    return RunFigures(
        rounds=rounds,
        activity=[activity[round] for round in rounds],
        figures=_name_figures(run, values, rounds),
        claims={claim.id: _collect_claim(claim.id, values, rounds) for claim in run.scenario.claims},
        opinions=[opinions[round] for round in rounds],
    )


def _name_figures(
    run: RunDirectory, values: dict[tuple[str, str, str], dict[int, float]], rounds: list[int]
) -> dict[str, dict[str, list[float | None]]]:
    claims = {claim.id for claim in run.scenario.claims}
    named: dict[str, dict[str, list[float | None]]] = {}
    for (name, about, world), series in sorted(values.items()):
        if about not in claims:
            label = name if about in ("", TOPIC) else f"{name} {about}"
            named.setdefault(label, {})[world] = [series.get(round) for round in rounds]
    return named


def _collect_claim(claim: str, values: dict[tuple[str, str, str], dict[int, float]], rounds: list[int]) -> ClaimFigures:
    def collect(wanted: str) -> list[list[float]]:
        found = [series for (name, about, _), series in values.items() if (name, about) == (wanted, claim)]
        return [[series[round] for series in found if round in series] for round in rounds]

    beliefs = collect(_BELIEF)
    return ClaimFigures(
        reach=[max(each) if each else None for each in collect(_REACH)],
        belief=[round(sum(each) / len(each), 4) if each else None for each in beliefs],
    )


def _read_opinions(database: Connection, about: str, shown: str) -> Iterator[tuple[int, list[int]]]:
    """Yield for each round how many people are in each part of the scale.

    Runs of Shoal 0.2 did not count them; then they are counted from all changes of opinion.
    """
    if has_table(database, "opinion_count"):
        found = database.execute(_COUNTS, (shown, about)).fetchall()
        if found:
            # One text is read several times as fast as hundreds.
            counts = msgspec.json.decode(f"[{','.join(counts for _, counts in found)}]")
            yield from zip((round for round, _ in found), counts, strict=True)
            return
    rounds = [round for round, _ in database.execute(_ACTIONS, (shown,))]
    changes = np.array(database.execute(_CHANGES, (about,)).fetchall(), np.float64).reshape(-1, 3)
    people = int(changes[:, 1].max()) + 1 if len(changes) else 0
    held, ends = np.full(people, np.nan), np.searchsorted(changes[:, 0], rounds, side="right")
    start = 0
    for round, end in zip(rounds, ends.tolist(), strict=True):
        held[changes[start:end, 1].astype(int)] = changes[start:end, 2]
        start = end
        if people:
            yield round, count_opinions(held)


def name_subject(run: RunDirectory) -> str:
    """Return what the opinions are about that pages show: the topic, or the first claim where there is no topic."""
    scenario = run.scenario
    return TOPIC if scenario.topic or not scenario.claims else scenario.claims[0].id


@dataclass(frozen=True, slots=True)
class OpinionPast:
    """The opinions of some people over the rounds."""

    #: Person -> the rounds in which the opinion changed, and the opinions from then on.
    _changes: dict[int, tuple[list[int], list[float]]]

    @classmethod
    def read(cls, database: Connection, about: str, agents: Collection[int]) -> OpinionPast:
        """Read how the opinions of these people changed; nothing where the run did not record that."""
        changes: defaultdict[int, tuple[list[int], list[float]]] = defaultdict(lambda: ([], []))
        if agents and has_table(database, "opinion_change"):
            query = f"""SELECT agent_id, round, value FROM opinion_change
            WHERE agent_id IN ({make_placeholders(len(agents))}) AND about = ? ORDER BY agent_id, round"""
            for agent, round, value in database.execute(query, (*agents, about)):
                rounds, values = changes[agent]
                rounds.append(round)
                values.append(value)
        return cls(dict(changes))

    def items(self) -> Iterable[tuple[int, tuple[list[int], list[float]]]]:
        """Return each person with the rounds in which the opinion changed, and the opinions from then on."""
        return self._changes.items()

    def find(self, agent: int, round: int | None = None) -> float | None:
        """Return what a person thought after a round, or thinks now; None where that is not known."""
        rounds, values = self._changes.get(agent, ([], []))
        place = len(rounds) if round is None else bisect_right(rounds, round)
        return values[place - 1] if place else None
