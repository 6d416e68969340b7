"""State over time: what people think after each round, and figures of the population.

Of opinions only changes are kept, as most people do not act in most rounds. The view `opinion` has a row for every
person and round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from shoal.errors import MeasurementFailed
from shoal.types import Writes

TOPIC = "topic"
STATE_TABLES = """
CREATE TABLE IF NOT EXISTS opinion_change (round INTEGER, agent_id INTEGER, about TEXT, value REAL);
CREATE TABLE IF NOT EXISTS figure (round INTEGER, name TEXT, about TEXT, value REAL);
CREATE TABLE IF NOT EXISTS opinion_count (round INTEGER, about TEXT, counts TEXT);
CREATE VIEW IF NOT EXISTS opinion AS
    WITH span AS (SELECT agent_id, about, value, round AS first,
        lead(round, 1, 1 << 60) OVER (PARTITION BY about, agent_id ORDER BY round) AS next FROM opinion_change)
    SELECT round, agent_id, about, value FROM shoal_round JOIN span ON round >= first AND round < next;
"""
#: Made when a history is complete, as the indexes of worlds are.
STATE_INDEXES = """
CREATE INDEX IF NOT EXISTS opinion_by_agent ON opinion_change (agent_id, about, round, value);
CREATE INDEX IF NOT EXISTS figure_by_round ON figure (round, name, about, value);
CREATE INDEX IF NOT EXISTS count_by_round ON opinion_count (round, about, counts);
"""
_ADD_OPINION = "INSERT INTO opinion_change VALUES (?,?,?,?)"
_ADD_FIGURE = "INSERT INTO figure VALUES (?,?,?,?)"
_ADD_COUNT = "INSERT INTO opinion_count VALUES (?,?,?)"
#: How many equal parts the scale of opinions has, from -1 to 1.
OPINION_PARTS = 11
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


class Variable:
    """A figure of the user's own: a function of the state of the population after a round that returns a number.

    Write it as `@shoal.variable` above the function, and name it in the scenario: `variables: [module:function]`.
    """

    def __init__(self, function: Callable[[PopulationState], float]) -> None:
        self.function = function
        self.name = function.__name__
        #: What to write into a scenario so that it is found again.
        self.place = f"{function.__module__}:{function.__qualname__}"

    def __call__(self, state: PopulationState) -> float:
        """Return the figure; MeasurementFailed where the function fails or returns something else."""
        try:
            return float(self.function(state))
        except Exception as error:
            # The function is the user's own code, and may fail in any way.
            reason = f"{type(error).__name__}: {error}"
            raise MeasurementFailed(f"the variable {self.name} failed in round {state.round}: {reason}") from error


def variable(function: Callable[[PopulationState], float]) -> Variable:
    """Make a variable of a function."""
    return Variable(function)


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


def count_opinions(opinions: Values) -> list[int]:
    """Count the people in each part of the scale."""
    counts, _ = np.histogram(opinions[~np.isnan(opinions)], OPINION_PARTS, (-1.0, 1.0))
    return [int(count) for count in counts]


class StateRecorder:
    """Turns what minds and a world say of themselves after each round into rows. Called once per round, in order."""

    def __init__(self, people: int, variables: Sequence[Variable] = ()) -> None:
        self._people = people
        self._variables = variables
        self._known: dict[str, Values] = {}

    def record(
        self,
        round: int,
        opinions: Mapping[str, Sequence[float]],
        actions: Mapping[str, int],
        figures: Mapping[tuple[str, str], float],
        absent: int = 0,
    ) -> Writes:
        """Return the rows of a round: opinions that changed, and all figures, those of the world included.

        `absent`: how many people are not there.
        """
        now: dict[str, Values] = {
            about: np.asarray(values, np.float64).round(_DIGITS) for about, values in opinions.items()
        }
        state = PopulationState(round, self._people - absent, now, actions)
        own = {(variable.name, ""): variable(state) for variable in self._variables}
        measured = {**state.measure(), **figures, **own}
        changes: list[tuple[int, int, str, float]] = []
        for about, opinion in now.items():
            before = self._known.get(about)
            is_new = ~np.isnan(opinion) if before is None else (opinion != before) & ~np.isnan(opinion)
            self._known[about] = opinion
            agents = np.flatnonzero(is_new)
            changes += zip(repeat(round), agents.tolist(), repeat(about), opinion[agents].tolist(), strict=False)
        return {
            _ADD_OPINION: changes,
            _ADD_FIGURE: [(round, name, about, value) for (name, about), value in measured.items()],
            _ADD_COUNT: [(round, about, str(count_opinions(values))) for about, values in now.items()],
        }
