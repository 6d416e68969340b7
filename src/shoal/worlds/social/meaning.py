"""Compares posts with people and with what they search for, by meaning instead of words.

All numbers are whole until the last step, which rounds correctly everywhere: the same posts are found on every machine.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.types import Population
from shoal.worlds.base import EmbedTexts
from shoal.worlds.social.posts import Posts
from shoal.worlds.social.ranking import FULL, Rows, Scores

#: A post that is less like a query than this is not what was searched for.
FOUND_FROM = 0.3
_FIRST_CAPACITY = 256

Vectors = NDArray[np.int8]


class Meanings:
    """The vectors of all posts, and of the people as they describe themselves. Each text is embedded once."""

    def __init__(self, posts: Posts, population: Population, embed: EmbedTexts) -> None:
        self._posts = posts
        self._population = population
        self._embed = embed
        self._count = 0
        self._vectors: Vectors | None = None
        self._profiles: dict[int, Vectors] = {}

    def score_for_people(self, agents: NDArray[np.int64], newest: NDArray[np.int64], rows: Rows) -> Scores:
        """Return how well posts suit each agent, 0 to FULL: a line for each agent, a column for each post.

        What suits an agent is like its bio and like its own newest post; -1: it has written none.
        """
        if not len(agents) or not len(rows):
            return np.zeros((len(agents), len(rows)), np.int64)
        new = [agent for agent in agents.tolist() if agent not in self._profiles]
        if new:
            bios = [self._population[agent].bio for agent in new]
            self._profiles.update(zip(new, self._embed(bios), strict=True))
        tastes = np.array([self._profiles[agent] for agent in agents.tolist()]).astype(np.int16)
        tastes += np.where((newest >= 0)[:, None], self._find_vectors(np.maximum(newest, 0)), 0)
        return np.rint(FULL * np.clip(_compare(tastes, self._find_vectors(rows)), 0, 1)).astype(np.int64)

    def search(self, query: str, rows: Rows, count: int) -> list[int]:
        """Return the rows that are most like a query, best first, the first of the given ones among equals."""
        if not len(rows):
            return []
        alike = _compare(self._embed([query]).astype(np.int16), self._find_vectors(rows))[0]
        order = np.argsort(-alike, kind="stable")[:count]
        return [int(rows[place]) for place in order if alike[place] >= FOUND_FROM]

    def _find_vectors(self, rows: Rows) -> Vectors:
        posts = self._posts
        if self._count < posts.count:
            new = range(self._count, posts.count)
            vectors = self._embed([posts.quote[row] or posts.content[posts.root[row]] for row in new])
            end = self._count + len(vectors)
            if self._vectors is None or end > len(self._vectors):
                grown = np.zeros((max(2 * end, _FIRST_CAPACITY), vectors.shape[1]), np.int8)
                if self._vectors is not None:
                    grown[: self._count] = self._vectors[: self._count]
                self._vectors = grown
            self._vectors[self._count : end] = vectors
            self._count = end
        assert self._vectors is not None
        return self._vectors[rows]


def _compare(left: NDArray[np.int16], right: Vectors) -> NDArray[np.float64]:
    """Return how alike vectors are, -1 to 1, a line for each of the left."""
    # These sums are whole numbers below 2 ** 24, which floating point holds exactly, whatever their order.
    dots = left.astype(np.float32) @ right.astype(np.float32).T
    lengths = np.outer(*(np.square(rows.astype(np.int64)).sum(axis=1) for rows in (left, right)))
    alike: NDArray[np.float64] = dots.astype(np.float64) / np.sqrt(np.maximum(lengths, 1))
    return alike
