"""How the people of the offline mind go about it, and what all its minds have in common."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate

import numpy as np

from shoal.agents.heuristic import actions as turns
from shoal.agents.heuristic.actions import Reaction
from shoal.agents.heuristic.perception import TextReadings
from shoal.agents.settings import HeuristicSettings
from shoal.seeds import derive
from shoal.types import Mind, Population, Versioned
from shoal.worlds.lexicon import TextReader

#: Chance to write a post of one's own in a turn.
ORIGINAL_CHANCE = 0.12

#: What to do about a post, by attitude towards it, with relative chances.
REACTION_CHANCES: Mapping[int, Mapping[str, float]] = {
    1: {
        "LIKE_POST": 56,
        "REPOST": 17,
        "QUOTE_POST": 5,
        "CREATE_COMMENT": 17,
        "FOLLOW": 9,
        "LIKE_COMMENT": 5,
        "DO_NOTHING": 3,
    },
    0: {
        "LIKE_POST": 56,
        "REPOST": 11,
        "QUOTE_POST": 3,
        "CREATE_COMMENT": 18,
        "FOLLOW": 5,
        "LIKE_COMMENT": 5,
        "DO_NOTHING": 8,
    },
    -1: {
        "CREATE_COMMENT": 42,
        "QUOTE_POST": 18,
        "DISLIKE_POST": 15,
        "DISLIKE_COMMENT": 6,
        "MUTE": 2,
        "REPORT_POST": 2,
        "UNFOLLOW": 3,
        "DO_NOTHING": 12,
    },
}


class Behaviour:
    """How agents go about it: what the scenario sets, and what the platform offers (None: everything)."""

    def __init__(
        self, settings: HeuristicSettings, actions: Collection[str] | None = None, minutes_per_round: int = 60
    ) -> None:
        self.settings = settings
        self._allowed = None if actions is None else frozenset(actions)
        self.tables = {attitude: self._table(chances) for attitude, chances in REACTION_CHANCES.items()}
        #: The same for those who comment at a rate of their own.
        self.other_tables = {
            attitude: self._table({kind: chance for kind, chance in chances.items() if kind != "CREATE_COMMENT"})
            for attitude, chances in REACTION_CHANCES.items()
        }
        #: What a rate per hour is multiplied by to get that of a turn.
        self.hours_per_turn = minutes_per_round / 60 * settings.talkativeness
        self.original_chance = min(ORIGINAL_CHANCE * settings.talkativeness, 0.9) if self.may("CREATE_POST") else 0.0

    def may(self, kind: str) -> bool:
        return self._allowed is None or kind in self._allowed

    def _table(self, chances: Mapping[str, float]) -> tuple[list[float], list[Reaction]]:
        """Running sums of the chances of the reactions that the platform offers, and the reactions."""
        kinds = [kind for kind in chances if self.may(kind)]
        talk = self.settings.talkativeness
        weights = [chances[kind] * (talk if kind in turns.TEXTS else 1.0) for kind in kinds]
        return list(accumulate(weights)), [turns.REACTIONS[kind] for kind in kinds]


class OpinionMind(Mind):
    """A mind whose agents hold opinions. What they remember changes in `absorb` and `change`, and nowhere else."""

    def __init__(
        self, population: Population, manners: Versioned[Behaviour], seed: int, world: str, reader: TextReader
    ) -> None:
        self._population = population
        self._manners = manners
        self._seed = seed
        self._world = world
        self._round = -1
        self._enter(0)
        self._readings = TextReadings(reader)
        self._stances: list[float] = np.clip(population.stances, -1.0, 1.0).tolist()

    def opinions(self) -> Sequence[float]:
        return self._stances

    def _enter(self, round: int) -> None:
        """What everybody's decisions of a round have in common: the manner, and the first part of the draws' path."""
        if round != self._round:
            self._round = round
            self._manner = self._manners.at(round)
            self._key = derive(self._seed, self._world, round)
