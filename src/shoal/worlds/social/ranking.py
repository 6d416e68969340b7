"""Scores posts for agents, and keeps pools of the hottest posts.

All scores are whole numbers computed from tables, so that they are the same on every machine. A candidate is one
number, its score in the high bits and its row in the low ones: sorting candidates sorts by score, newer posts first
among equals, and no two candidates are ever equal.

The cost of a round grows with new posts and active agents. Pools of the hottest posts, one per topic and one for
all, are kept up to date from the posts that were written or reacted to in the round; the hot score of a post does not
change while no agent touches it (the age is in it as the time of writing, as Reddit does), so nothing else moves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from shoal.types import Habits, Population
from shoal.worlds.social.posts import Posts
from shoal.worlds.social.settings import FeedRules

Rows = NDArray[np.int64]
Scores = NDArray[np.int64]

#: Every part of a score is between 0 and this, before its weight.
FULL = 1000
_ROW_BITS = 31
_ROW_MASK = (1 << _ROW_BITS) - 1
#: Posts older than this many rounds are not shown unless they are in a pool.
WINDOW_ROUNDS = 48
_MOST_ENGAGEMENT = 4095
#: A smaller influence counts as this one.
_LEAST_INFLUENCE = 0.01
POOL_SIZE = 16
HOT_POOL_SIZE = 48


class Ranking:
    """Scores posts for agents."""

    def __init__(self, posts: Posts, population: Population, minutes_per_round: int) -> None:
        self._posts = posts
        self._interests = population.interests
        #: What each agent seems to agree with, from what it wrote and liked; -100 to 100.
        self.leaning = np.zeros(len(population), np.int16)
        half_life_rounds = max(6 * 60 / minutes_per_round, 2.0)
        self._recency = np.array([round(FULL * 0.5 ** (age / half_life_rounds)) for age in range(WINDOW_ROUNDS + 1)])
        self._popularity = np.minimum(_logarithm_table(FULL), FULL)
        #: How much an author's posts count, in thousandths; None: all count the same.
        self._influence: NDArray[np.int64] | None = None
        if population.habits.influence is not None:
            self._influence = np.rint(population.habits.influence.astype(np.float64) * FULL).astype(np.int64)

    def change_influence(self, agents: Sequence[int], influence: float) -> None:
        """Set how much the posts of these agents count from now on."""
        if self._influence is None:
            self._influence = np.full(len(self.leaning), FULL, np.int64)
        self._influence[list(agents)] = round(influence * FULL)

    def general(self, rules: FeedRules, first_row: int, now: int) -> Scores:
        """Return the part of the score that is the same for all agents, of all posts from a row on."""
        rows = np.arange(first_row, self._posts.count)
        rated = self._posts.find_rated(rows)
        age = np.minimum(now - self._posts.round[rows], WINDOW_ROUNDS)
        popularity = self._popularity[np.clip(self._posts.engagement(rated), 0, _MOST_ENGAGEMENT)]
        popularity = np.where(self._posts.shares[rated] >= rules.viral_threshold, FULL, popularity)
        newness = round(FULL * rules.recency) * self._recency[age]
        scores = np.asarray(newness + round(FULL * rules.popularity) * popularity, np.int64)
        return scores if self._influence is None else scores * self._influence[self._posts.author[rows]] // FULL

    def personal(self, rules: FeedRules, agents: NDArray[np.int64], rows: Rows) -> Scores:
        """Return the part of the score that depends on the agent, for one line of rows per agent."""
        topics = self._posts.topics[self._posts.root[rows]]
        interests = self._interests[agents]
        # There are few topics and interests, and -1 stands for none: pairs of columns take a tenth of all at once.
        interests = np.where(interests < 0, -2, interests)
        match = np.zeros(rows.shape, np.bool_)
        for topic, interest in product(range(topics.shape[2]), range(interests.shape[1])):
            match |= topics[:, :, topic] == interests[:, interest, None]
        relevance = FULL * match
        agreement = FULL - 5 * np.abs(self.leaning[agents].astype(np.int32)[:, None] - self._posts.lean[rows])
        scores = round(FULL * rules.relevance) * relevance + round(FULL * rules.echo_chamber) * agreement
        return np.asarray(scores, np.int64)

    def learn(self, agent: int, lean: int) -> None:
        """Note the leaning of something that the agent wrote or liked. Rounds towards zero, which favours no side."""
        self.leaning[agent] = int((3 * int(self.leaning[agent]) + lean) / 4)


def best(scores: Scores, rows: Rows, count: int) -> Rows:
    """Return the `count` rows with the best scores of each line, best first; -1, here and there, stands for no post."""
    candidates = np.where(rows >= 0, (scores << _ROW_BITS) | np.maximum(rows, 0), -1)
    excess = rows.shape[1] - count
    if excess > 0:
        candidates = np.partition(candidates, excess, axis=1)[:, excess:]
    elif excess < 0:
        candidates = np.pad(candidates, ((0, 0), (0, -excess)), constant_values=-1)
    candidates = -np.sort(-candidates, axis=1)
    return np.where(candidates >= 0, candidates & _ROW_MASK, -1)


class HotPosts:
    """The hottest posts of every topic, and of all.

    A pool keeps twice as many as it shows, and the heat of the hottest post that it may have left out. When its posts
    have cooled down so far that a post left out might belong among those shown, it is filled anew from all posts.
    """

    def __init__(self, posts: Posts, topics: int, minutes_per_round: int, decade_minutes: int, habits: Habits) -> None:
        self._posts = posts
        #: The heat that each author's influence is worth: tenfold influence as much as tenfold engagement.
        self._lead: NDArray[np.int64] | None = None
        if habits.influence is not None:
            known, places = np.unique(habits.influence, return_inverse=True)
            heat = [round(FULL * FULL * math.log(max(influence, _LEAST_INFLUENCE), 11)) for influence in known.tolist()]
            self._lead = np.array(heat, np.int64)[places]
        self._heat_of_engagement = _logarithm_table(FULL * FULL, of=10.0)
        self._heat_per_round = max(1, FULL * FULL * minutes_per_round // decade_minutes)
        self._kept = np.full((topics, 2 * POOL_SIZE), -1, np.int64)
        self._kept_of_all = np.full(2 * HOT_POOL_SIZE, -1, np.int64)
        #: Topic (None: all) -> heat and row of the hottest post that the pool may have left out.
        self._left_out: dict[int | None, tuple[int, int]] = {}
        #: What is shown, hottest first, -1 for none.
        self.topics = self._kept[:, :POOL_SIZE]
        self.hot = self._kept_of_all[:HOT_POOL_SIZE]

    def heat(self, rows: Rows) -> Scores:
        """Return the hot score: tenfold engagement is worth as much as being written `decade_minutes` later."""
        engagement = self._posts.engagement(rows)
        size = self._heat_of_engagement[np.minimum(np.abs(engagement), _MOST_ENGAGEMENT)]
        heat = np.asarray(np.sign(engagement) * size + self._posts.round[rows].astype(np.int64) * self._heat_per_round)
        return heat if self._lead is None else heat + self._lead[self._posts.author[rows]]

    def update(self, touched: Rows) -> None:
        """Add the posts that were written or reacted to. Only originals and quotes are recommended."""
        new = self._find_recommendable(touched)
        if not len(new):
            return
        self._refill(None, self._kept_of_all, new)
        of_topic = self._posts.topics[new]
        for topic in np.unique(of_topic[of_topic >= 0]).tolist():
            self._refill(topic, self._kept[topic], new[(of_topic == topic).any(axis=1)])

    def _find_recommendable(self, rows: Rows) -> Rows:
        own: NDArray[np.bool_] = self._posts.find_rated(rows) == rows
        return rows[own]

    def _refill(self, topic: int | None, kept: Rows, new: Rows) -> None:
        """Fill the pool in place from its posts and the new ones."""
        heat, rows = self._sort_by_heat(np.union1d(kept[kept >= 0], new))
        last_shown = len(kept) // 2 - 1
        left_out = self._left_out.get(topic)
        if left_out is not None and (heat[last_shown], rows[last_shown]) < left_out:
            rows = self._find_recommendable(np.arange(self._posts.count))
            in_pool = slice(None) if topic is None else (self._posts.topics[rows] == topic).any(axis=1)
            heat, rows = self._sort_by_heat(rows[in_pool])
            left_out = None
        if len(rows) > len(kept):
            first_out = (int(heat[len(kept)]), int(rows[len(kept)]))
            self._left_out[topic] = first_out if left_out is None else max(first_out, left_out)
        count = min(len(rows), len(kept))
        kept[:count] = rows[:count]

    def _sort_by_heat(self, rows: Rows) -> tuple[Scores, Rows]:
        """Sort rows: hottest first, newer ones first among equals."""
        heat = self.heat(rows)
        order = np.lexsort((rows, heat))[::-1]
        return heat[order], rows[order]


@cache
def _logarithm_table(full: int, of: float = 1000.0) -> NDArray[np.int64]:
    """Return log(1 + n) for n = 0, 1, ..., scaled so that n = `of` has `full`."""
    table = np.array([round(full * math.log1p(n) / math.log1p(of)) for n in range(_MOST_ENGAGEMENT + 1)], np.int64)
    table.flags.writeable = False
    return table
