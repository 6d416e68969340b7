"""Chooses the posts that agents are shown: the best by people they follow, and the best of what is recommended."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.seeds import derive, extend, hashes, uniforms
from shoal.types import Population
from shoal.worlds.social.follow_table import FollowTable
from shoal.worlds.social.posts import Posts
from shoal.worlds.social.ranking import WINDOW_ROUNDS, HotPosts, Ranking, RankingWeights, Rows, best, candidates
from shoal.worlds.social.settings import Recommendation

Agents = NDArray[np.int64]

#: The newest posts of an author that can reach a follower's feed.
_NEWEST_PER_AUTHOR = 2
#: A ranking looks closely at this many posts at least; the others are left out by what is the same for all agents.
_SHORTLIST = 16
#: Interests that recommendation looks into in one round; they are drawn.
_INTERESTS_PER_ROUND = 2
#: Recent posts that random recommendation draws from.
_RANDOM_POOL = 64
#: Agents are handled together with others that follow about as many people, in tables of these widths.
_WIDTHS = 1 << np.arange(3, 32, dtype=np.int64)


class Delays:
    """Hides posts from agents that have not come across them yet. The delay is drawn for each agent and post."""

    def __init__(self, population: Population, minutes_per_round: int, seed: int, world: str) -> None:
        delays = population.habits.response_delay
        #: No agent sees a post before it is a round old, so shorter delays make no difference.
        self._slow = None if delays is None else delays[:, 1] > minutes_per_round
        self._delays = delays
        self._minutes_per_round = minutes_per_round
        self._key = derive(seed, world, "delay")

    def hide_unseen(
        self, posts: Posts, round: int, agents: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return the rows, a line for each agent, with -1 for what the agent has not come across."""
        if self._slow is None or self._delays is None or not self._slow[agents].any():
            return rows
        some = np.flatnonzero(self._slow[agents])
        shown = np.maximum(rows[some], 0)
        age = (round - posts.round[shown]) * self._minutes_per_round
        low, high = self._delays[agents[some]].T[:, :, None]
        draws = uniforms(self._key, agents[some][:, None], posts.post_id[shown])
        rows = rows.copy()
        rows[some] = np.where(age < low + np.floor(draws * (high - low + 1)), -1, rows[some])
        return rows


@dataclass(frozen=True, slots=True)
class FeedShape:
    """How many posts and comments an agent is shown."""

    followed: int
    recommended: int
    recommendation: Recommendation
    comments: int


@dataclass(frozen=True, slots=True)
class Picture:
    """The platform at one moment, for all agents that look at it then."""

    round: int
    #: The first row that is recent enough to be shown.
    first: int
    #: Scores of all rows from there on, before they are personal.
    general: NDArray[np.int64]
    muted: NDArray[np.int64]
    muters: frozenset[int]
    weights: RankingWeights


class Feed:
    """Chooses posts for many agents at once."""

    def __init__(
        self, posts: Posts, follows: FollowTable, ranking: Ranking, pools: HotPosts, delays: Delays, key: int
    ) -> None:
        self._posts = posts
        self._follows = follows
        self._ranking = ranking
        self._pools = pools
        self._delays = delays
        #: Where the paths of all draws for feeds begin.
        self._key = key
        self._people = len(follows.followers)
        self._newest = np.full((self._people, _NEWEST_PER_AUTHOR), -1, np.int32)
        self._first_row_of_round: list[int] = []
        self._muted: set[int] = set()
        #: Agents that ever muted another one; the others need not be looked at.
        self._has_muted = np.zeros(self._people, np.bool_)

    def open_round(self) -> None:
        """Begin a round; posts from here on belong to it."""
        self._first_row_of_round.append(self._posts.count)

    def add(self, row: int, author: int) -> None:
        self._newest[author, 1:] = self._newest[author, :-1]
        self._newest[author, 0] = row

    def mute(self, muter: int, mutee: int) -> None:
        self._muted.add(muter * self._people + mutee)
        self._has_muted[muter] = True

    def unmute(self, muter: int, mutee: int) -> None:
        self._muted.remove(muter * self._people + mutee)

    def is_muted(self, muter: int, mutee: int) -> bool:
        return muter * self._people + mutee in self._muted

    def take_picture(self, round: int, weights: RankingWeights) -> Picture:
        """Return what choosing needs to know about this moment."""
        first = self._first_row_of_round[max(len(self._first_row_of_round) - WINDOW_ROUNDS, 0)]
        muted = np.array(sorted(self._muted), np.int64)
        muters = frozenset((muted // self._people).tolist())
        return Picture(round, first, self._ranking.general(weights, first, round), muted, muters, weights)

    def choose(self, picture: Picture, agents: Agents, shape: FeedShape) -> tuple[Rows, Rows]:
        """Return rows of posts by the followed and of recommended posts: a line per agent, best first, -1 for none."""
        # More than are to be shown, because several people can post the same words.
        followed = self._choose_followed(picture, agents, 2 * shape.followed)
        recommended = self._choose_recommended(picture, agents, shape)
        followed = self._drop_repeated(followed, np.empty((len(agents), 0), np.int64), shape.followed)
        return followed, self._drop_repeated(recommended, followed, shape.recommended)

    def _drop_repeated(self, rows: Rows, shown: Rows, count: int) -> Rows:
        """Return the first rows of each line whose words are not shown already."""
        roots = np.where(rows >= 0, self._posts.root[np.maximum(rows, 0)], -1)
        repeated = (roots[:, :, None] == roots[:, None, :]) & np.tri(rows.shape[1], k=-1, dtype=np.bool_)
        new = (rows >= 0) & ~repeated.any(axis=2)
        if shown.shape[1]:
            already = np.where(shown >= 0, self._posts.root[np.maximum(shown, 0)], -2)
            new &= ~(roots[:, :, None] == already[:, None, :]).any(axis=2)
        first = np.argsort(~new, axis=1, kind="stable")[:, :count]
        return np.take_along_axis(np.where(new, rows, -1), first, axis=1)

    # Posts by people that an agent follows

    def _choose_followed(self, picture: Picture, agents: Agents, count: int) -> Rows:
        chosen = np.full((len(agents), count), -1, np.int64)
        starts, _ = self._follows.table()
        degrees = starts[agents + 1] - starts[agents]
        sizes = _WIDTHS[np.searchsorted(_WIDTHS, degrees)]
        for size in np.unique(sizes).tolist() if count else ():
            of_size = np.flatnonzero(sizes == size)
            people = self._find_followees(agents[of_size], size)
            rows = self._newest[people].reshape(len(of_size), -1).astype(np.int64)
            rows[np.repeat(people < 0, _NEWEST_PER_AUTHOR, axis=1) | (rows < picture.first)] = -1
            chosen[of_size] = self._rank(picture, agents[of_size], rows, count)
        return chosen

    def _find_followees(self, agents: Agents, size: int) -> NDArray[np.int32]:
        """Return the people that each agent follows, a line each, -1 at the end."""
        starts, targets = self._follows.table()
        added, removed = self._follows.changes()
        places = starts[agents][:, None] + np.arange(size)
        inside = places < starts[agents + 1][:, None]
        if len(targets):
            followees = np.where(inside, targets[np.minimum(places, len(targets) - 1)], np.int32(-1))
        else:
            followees = np.full(places.shape, -1, np.int32)
        if len(removed):
            some = np.flatnonzero(self._follows.has_removed[agents])
            gone = np.isin(agents[some][:, None] * self._people + followees[some], removed)
            followees[some] = np.where(gone, np.int32(-1), followees[some])
        if not len(added):
            return followees
        low = np.searchsorted(added, agents * self._people)
        high = np.searchsorted(added, (agents + 1) * self._people)
        places = low[:, None] + np.arange(int((high - low).max()))
        more = np.where(places < high[:, None], added[np.minimum(places, len(added) - 1)] % self._people, -1)
        return np.concatenate([followees, more.astype(np.int32)], axis=1)

    # Posts that the platform recommends

    def _choose_recommended(self, picture: Picture, agents: Agents, shape: FeedShape) -> Rows:
        count = 2 * shape.recommended
        if not count or shape.recommendation == "none":
            return np.full((len(agents), count), -1, np.int64)
        if shape.recommendation == "random":
            return self._draw_random(picture, agents, count)
        hot = np.broadcast_to(self._pools.hot, (len(agents), len(self._pools.hot)))
        if shape.recommendation == "interest":
            # At most half of the shortlist, so that what is hot for all does not crowd out what matters to few.
            rows = self._find_interesting(picture, agents, hot[:, : max(_SHORTLIST, count) // 2])
        else:
            rows = hot
        return self._rank(picture, agents, self._drop_own(agents, rows), count)

    def _find_interesting(self, picture: Picture, agents: Agents, hot: Rows) -> Rows:
        """Return the hottest posts on some of each agent's interests, and the hottest of all."""
        interests = self._ranking.interests_of(agents)
        if not interests.shape[1] or not len(self._pools.topics):
            return hot
        known = np.maximum((interests >= 0).sum(axis=1), 1)
        key = extend(self._key, picture.round, "interests")
        parts = [hot]
        for n in range(_INTERESTS_PER_ROUND):
            pick = (hashes(key, agents, n) % known.astype(np.uint64)).astype(np.int64)
            topic = interests[np.arange(len(agents)), pick]
            parts.append(np.where((topic >= 0)[:, None], self._pools.topics[np.maximum(topic, 0)], -1))
        rows = np.sort(np.concatenate(parts, axis=1), axis=1)
        # Each row only once per line.
        rows[:, 1:][rows[:, 1:] == rows[:, :-1]] = -1
        return rows

    def _draw_random(self, picture: Picture, agents: Agents, count: int) -> Rows:
        """Draw recent posts. A draw depends on the post and the agent alone, so a new post moves no other."""
        recent = np.arange(picture.first, self._posts.count, dtype=np.int64)
        recent = recent[self._posts.root[recent] == recent]
        ids = self._posts.post_id[recent]
        draws = hashes(extend(self._key, picture.round, "random"), ids)
        pool = recent[np.argsort(draws, kind="stable")[:_RANDOM_POOL]]
        rows = self._drop_own(agents, np.broadcast_to(pool, (len(agents), len(pool))))
        key = extend(self._key, picture.round, "random", "agent")
        scores = (hashes(key, agents[:, None], self._posts.post_id[np.maximum(rows, 0)]) >> np.uint64(34)).astype(
            np.int64
        )
        return _pad(best(candidates(scores, self._hide(picture, agents, rows)), count), count)

    def _drop_own(self, agents: Agents, rows: Rows) -> Rows:
        """Return the rows without those that the agent wrote itself."""
        own = self._posts.author[np.maximum(rows, 0)] == agents[:, None]
        return np.where(own, -1, rows)

    def _rank(self, picture: Picture, agents: Agents, rows: Rows, count: int) -> Rows:
        """Return the best of these rows: first by the score that all agents share, then by each agent's own."""
        rows = self._hide(picture, agents, rows)
        general = self._general(picture, rows)
        shortlist = best(candidates(general, rows), max(_SHORTLIST, count))
        scores = self._general(picture, shortlist) + self._ranking.personal(
            picture.weights, agents, np.maximum(shortlist, 0)
        )
        return _pad(best(candidates(scores, shortlist), count), count)

    def _general(self, picture: Picture, rows: Rows) -> NDArray[np.int64]:
        """Return the shared scores. A post from before the window is here only because it is in a pool, and has 0."""
        if not len(picture.general):
            return np.zeros(rows.shape, np.int64)
        return np.where(rows >= picture.first, picture.general[np.maximum(rows - picture.first, 0)], 0)

    def _hide(self, picture: Picture, agents: Agents, rows: Rows) -> Rows:
        """Return the rows without what an agent has not come across yet, and without the people it has muted."""
        if len(picture.muted):
            some = np.flatnonzero(self._has_muted[agents])
            shown = np.maximum(rows[some], 0)
            mine = agents[some][:, None] * self._people
            gone = np.isin(mine + self._posts.author[shown], picture.muted)
            gone |= np.isin(mine + self._posts.author[self._posts.root[shown]], picture.muted)
            rows = rows.copy()
            rows[some] = np.where(gone, -1, rows[some])
        return self._delays.hide_unseen(self._posts, picture.round, agents, rows)


def _pad(rows: Rows, count: int) -> Rows:
    """Fill lines up to this length with -1."""
    missing = count - rows.shape[1]
    return rows if missing <= 0 else np.pad(rows, ((0, 0), (0, missing)), constant_values=-1)
