"""How long it takes until somebody comes across a post."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.seeds import derive, uniforms
from shoal.types import Population
from shoal.worlds.social.posts import Posts


class Delays:
    """Hides posts from those who have not come across them yet. The delay is drawn for each person and post."""

    def __init__(self, population: Population, minutes_per_round: int, seed: int, world: str) -> None:
        delays = population.habits.response_delay
        #: Nobody sees a post before it is a round old, so shorter delays make no difference.
        self._slow = None if delays is None else delays[:, 1] > minutes_per_round
        self._delays = delays
        self._minutes_per_round = minutes_per_round
        self._key = derive(seed, world, "delay")

    def without_unseen(
        self, posts: Posts, round: int, agents: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """The rows, a line for each agent, with -1 for what the agent has not come across."""
        if self._slow is None or self._delays is None or not self._slow[agents].any():
            return rows
        some = np.flatnonzero(self._slow[agents])
        shown = np.maximum(rows[some], 0)
        age = (round - posts.round[shown]) * self._minutes_per_round
        low, high = self._delays[agents[some]].T[:, :, None]
        lots = uniforms(self._key, agents[some][:, None], posts.post_id[shown])
        rows = rows.copy()
        rows[some] = np.where(age < low + np.floor(lots * (high - low + 1)), -1, rows[some])
        return rows
