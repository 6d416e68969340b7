"""What people thought after each round, for a few people at once."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from sqlite3 import Connection

from shoal.engine import TOPIC
from shoal.runs.directory import RunDirectory
from shoal.runs.store import has_table
from shoal.runs.views.pages import make_placeholders


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
