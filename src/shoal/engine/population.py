"""State over time: what people think after each round, and figures of the population.

Of opinions only changes are kept, as most people do not act in most rounds. The view `opinion` has a row for every
person and round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from shoal.types import Writes

TOPIC = "topic"
STATE_TABLES = """
CREATE TABLE IF NOT EXISTS opinion_change (round INTEGER, agent_id INTEGER, about TEXT, value REAL);
CREATE TABLE IF NOT EXISTS figure (round INTEGER, name TEXT, about TEXT, value REAL);
CREATE VIEW IF NOT EXISTS opinion AS
    WITH span AS (SELECT agent_id, about, value, round AS first,
        lead(round, 1, 1 << 60) OVER (PARTITION BY about, agent_id ORDER BY round) AS next FROM opinion_change)
    SELECT round, agent_id, about, value FROM shoal_round JOIN span ON round >= first AND round < next;
"""
_ADD_OPINION = "INSERT INTO opinion_change VALUES (?,?,?,?)"
_ADD_FIGURE = "INSERT INTO figure VALUES (?,?,?,?)"
_DIGITS = 4

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PopulationState:
    """What is known of the people of one world after a round."""

    round: int
    people: int
    #: Each person's opinion on the topic and belief in each claim by its id, -1 to 1; NaN where it is not known.
    opinions: Mapping[str, Values]
    #: Kind of action -> how often it was done in the round.
    actions: Mapping[str, int]

    def measure(self) -> dict[tuple[str, str], float]:
        """Return the figures of the population: mean, spread and polarisation of opinions, and activity."""
        done = sum(self.actions.values()) - self.actions.get("DO_NOTHING", 0)
        figures = {("activity", ""): done / max(self.people, 1)}
        for about, values in self.opinions.items():
            known = values[~np.isnan(values)]
            if len(known):
                figures["mean", about] = float(known.mean())
                figures["spread", about] = float(known.std())
                figures["polarisation", about] = measure_polarisation(known)
        return figures


def measure_polarisation(opinions: Values) -> float:
    """Return 0 where all are on one side, and 1 where one half is at each end.

    The index of Morales, Borondo, Losada and Benito (2015): how far the mean of those for and of those against are
    apart, less the more one side is larger.
    """
    above, below = opinions[opinions > 0], opinions[opinions < 0]
    if not len(above) or not len(below):
        return 0.0
    balance = 1 - abs(len(above) - len(below)) / len(opinions)
    return float(balance * (above.mean() - below.mean()) / 2)


class StateRecorder:
    """Turns what minds and a world say of themselves after each round into rows. Called once per round, in order."""

    def __init__(self, people: int) -> None:
        self._people = people
        self._known: dict[str, Values] = {}

    def record(
        self,
        round: int,
        opinions: Mapping[str, Sequence[float]],
        actions: Mapping[str, int],
        figures: Mapping[tuple[str, str], float],
    ) -> Writes:
        """Return the rows of a round: opinions that changed, and all figures, those of the world included."""
        now: dict[str, Values] = {
            about: np.asarray(values, np.float64).round(_DIGITS) for about, values in opinions.items()
        }
        state = PopulationState(round, self._people, now, actions)
        measured = {**state.measure(), **figures}
        rows = [row for about, values in now.items() for row in self._list_changes(round, about, values)]
        return {
            _ADD_OPINION: rows,
            _ADD_FIGURE: [(round, name, about, value) for (name, about), value in measured.items()],
        }

    def _list_changes(self, round: int, about: str, values: Values) -> zip[tuple[int, int, str, float]]:
        before = self._known.get(about)
        is_new = ~np.isnan(values) if before is None else (values != before) & ~np.isnan(values)
        self._known[about] = values
        changed = np.flatnonzero(is_new)
        return zip(repeat(round), changed.tolist(), repeat(about), values[changed].tolist(), strict=False)
