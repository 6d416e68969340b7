"""Which posts an agent is shown: the best by the people it follows, and the best of what is recommended."""

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


Agents = NDArray[np.int64]

#: The newest posts of an author that can reach a follower's feed.
_NEWEST_PER_AUTHOR = 2
#: Posts that a ranking looks at closely, at least; the others are left out by what is the same for everybody.
_SHORTLIST = 16
#: Interests that recommendation looks into in one round; which ones is drawn.
_INTERESTS_PER_ROUND = 2
#: Agents are handled together with others that follow about as many people, in tables of these widths.
_WIDTHS = 1 << np.arange(3, 32, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class FeedShape:
    """How much of what an agent is shown."""

    followed: int
    recommended: int
    recommendation: Recommendation
    comments: int


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
        #: Who ever muted somebody; the others need not be looked at.
        self._has_muted = np.zeros(self._people, np.bool_)

    def open_round(self) -> None:
        """A round begins; posts from here on belong to it."""
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

    def picture(self, round: int, weights: RankingWeights) -> Picture:
        """What choosing needs to know about this moment."""
        first = self._first_row_of_round[max(len(self._first_row_of_round) - WINDOW_ROUNDS, 0)]
        muted = np.array(sorted(self._muted), np.int64)
        muters = frozenset((muted // self._people).tolist())
        return Picture(round, first, self._ranking.general(weights, first, round), muted, muters, weights)

    def choose(self, picture: Picture, agents: Agents, shape: FeedShape) -> tuple[Rows, Rows]:
        """Rows of posts by the followed and of recommended posts, a line for each agent, best first, -1 for none."""
        # More than are to be shown, because the same words can come from several people.
        followed = self._followed(picture, agents, 2 * shape.followed)
        recommended = self._recommended(picture, agents, shape)
        nothing = np.empty((len(agents), 0), np.int64)
        followed = self._different(followed, nothing, shape.followed)
        return followed, self._different(recommended, followed, shape.recommended)

    def _different(self, rows: Rows, shown: Rows, count: int) -> Rows:
        """The first rows of each line whose words are not shown already."""
        roots = np.where(rows >= 0, self._posts.root[np.maximum(rows, 0)], -1)
        repeated = (roots[:, :, None] == roots[:, None, :]) & np.tri(rows.shape[1], k=-1, dtype=np.bool_)
        new = (rows >= 0) & ~repeated.any(axis=2)
        if shown.shape[1]:
            already = np.where(shown >= 0, self._posts.root[np.maximum(shown, 0)], -2)
            new &= ~(roots[:, :, None] == already[:, None, :]).any(axis=2)
        first = np.argsort(~new, axis=1, kind="stable")[:, :count]
        return np.take_along_axis(np.where(new, rows, -1), first, axis=1)

    def _followed(self, picture: Picture, agents: Agents, count: int) -> Rows:
        chosen = np.full((len(agents), count), -1, np.int64)
        starts, _ = self._follows.table()
        added, removed = self._follows.changes()
        degrees = starts[agents + 1] - starts[agents]
        sizes = _WIDTHS[np.searchsorted(_WIDTHS, degrees)]
        for size in np.unique(sizes).tolist() if count else ():
            of_size = np.flatnonzero(sizes == size)
            people = self._followees(agents[of_size], size, added, removed)
            rows = self._newest[people].reshape(len(of_size), -1).astype(np.int64)
            rows[np.repeat(people < 0, _NEWEST_PER_AUTHOR, axis=1) | (rows < picture.first)] = -1
            chosen[of_size] = self._rank(picture, agents[of_size], rows, count)
        return chosen

    def _followees(self, agents: Agents, size: int, added: Agents, removed: Agents) -> NDArray[np.int32]:
        """Whom each agent follows, a line each, -1 at the end."""
        starts, targets = self._follows.table()
        places = starts[agents][:, None] + np.arange(size)
        inside = places < starts[agents + 1][:, None]
        if not len(targets):
            followees = np.full(places.shape, -1, np.int32)
        else:
            followees = np.where(inside, targets[np.minimum(places, len(targets) - 1)], np.int32(-1))
        if len(removed):
            followees = self._without(agents, followees, removed)
        return self._with(agents, followees, added) if len(added) else followees

    def _without(self, agents: Agents, followees: NDArray[np.int32], removed: Agents) -> NDArray[np.int32]:
        some = np.flatnonzero(self._follows.has_removed[agents])
        gone = np.isin(agents[some][:, None] * self._people + followees[some], removed)
        followees[some] = np.where(gone, np.int32(-1), followees[some])
        return followees

    def _with(self, agents: Agents, followees: NDArray[np.int32], added: Agents) -> NDArray[np.int32]:
        low = np.searchsorted(added, agents * self._people)
        high = np.searchsorted(added, (agents + 1) * self._people)
        places = low[:, None] + np.arange(int((high - low).max()))
        more = np.where(places < high[:, None], added[np.minimum(places, len(added) - 1)] % self._people, -1)
        return np.concatenate([followees, more.astype(np.int32)], axis=1)

    def _recommended(self, picture: Picture, agents: Agents, shape: FeedShape) -> Rows:
        count = 2 * shape.recommended
        if not count or shape.recommendation == "none":
            return np.full((len(agents), count), -1, np.int64)
        if shape.recommendation == "random":
            return self._random(picture, agents, count)
        hot = np.broadcast_to(self._pools.hot, (len(agents), len(self._pools.hot)))
        if shape.recommendation == "interest":
            # At most half of the shortlist, so that what is hot for all does not crowd out what matters to few.
            rows = self._interesting(picture, agents, hot[:, : max(_SHORTLIST, count) // 2])
        else:
            rows = hot
        return self._rank(picture, agents, self._others(agents, rows), count)

    def _interesting(self, picture: Picture, agents: Agents, hot: Rows) -> Rows:
        """The hottest posts on some of each agent's interests, and of all."""
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
        return _distinct(np.concatenate(parts, axis=1))

    def _random(self, picture: Picture, agents: Agents, count: int) -> Rows:
        """Recent posts drawn by lot. The lot is cast per post and per agent, so a new post moves no other."""
        recent = np.arange(picture.first, self._posts.count, dtype=np.int64)
        recent = recent[self._posts.root[recent] == recent]
        ids = self._posts.post_id[recent]
        lots = hashes(extend(self._key, picture.round, "random"), ids)
        pool = recent[np.argsort(lots, kind="stable")[:64]]
        rows = self._others(agents, np.broadcast_to(pool, (len(agents), len(pool))))
        key = extend(self._key, picture.round, "random", "agent")
        scores = (hashes(key, agents[:, None], self._posts.post_id[np.maximum(rows, 0)]) >> np.uint64(34)).astype(
            np.int64
        )
        return _at_least(best(candidates(scores, self._visible(picture, agents, rows)), count), count)

    def _others(self, agents: Agents, rows: Rows) -> Rows:
        """Without what the agent wrote itself."""
        own = self._posts.author[np.maximum(rows, 0)] == agents[:, None]
        return np.where(own, -1, rows)

    def _rank(self, picture: Picture, agents: Agents, rows: Rows, count: int) -> Rows:
        """The best of these rows: first roughly, by what is the same for everybody, then by what it is to each."""
        rows = self._visible(picture, agents, rows)
        general = self._general(picture, rows)
        shortlist = best(candidates(general, rows), max(_SHORTLIST, count))
        scores = self._general(picture, shortlist) + self._ranking.personal(
            picture.weights, agents, np.maximum(shortlist, 0)
        )
        return _at_least(best(candidates(scores, shortlist), count), count)

    def _general(self, picture: Picture, rows: Rows) -> NDArray[np.int64]:
        """Posts from before the window are in it only by their popularity, which the pools stand for."""
        if not len(picture.general):
            return np.zeros(rows.shape, np.int64)
        return np.where(rows >= picture.first, picture.general[np.maximum(rows - picture.first, 0)], 0)

    def _visible(self, picture: Picture, agents: Agents, rows: Rows) -> Rows:
        """Without what each agent has not come across yet, and what people wrote whom it has muted."""
        return self._delays.without_unseen(self._posts, picture.round, agents, self._unmuted(picture, agents, rows))

    def _unmuted(self, picture: Picture, agents: Agents, rows: Rows) -> Rows:
        if not len(picture.muted):
            return rows
        some = np.flatnonzero(self._has_muted[agents])
        shown = np.maximum(rows[some], 0)
        mine = agents[some][:, None] * self._people
        gone = np.isin(mine + self._posts.author[shown], picture.muted)
        gone |= np.isin(mine + self._posts.author[self._posts.root[shown]], picture.muted)
        rows = rows.copy()
        rows[some] = np.where(gone, -1, rows[some])
        return rows


@dataclass(frozen=True, slots=True)
class Picture:
    """The platform at one moment, for everybody who looks at it then."""

    round: int
    #: The first row that is recent enough to be shown.
    first: int
    #: Scores of all rows from there on, before what they are to whom.
    general: NDArray[np.int64]
    muted: NDArray[np.int64]
    muters: frozenset[int]
    weights: RankingWeights


def _distinct(rows: Rows) -> Rows:
    """Each row only once per line."""
    rows = np.sort(rows, axis=1)
    rows[:, 1:][rows[:, 1:] == rows[:, :-1]] = -1
    return rows


def _at_least(rows: Rows, count: int) -> Rows:
    """Lines of exactly this length."""
    missing = count - rows.shape[1]
    return rows if missing <= 0 else np.pad(rows, ((0, 0), (0, missing)), constant_values=-1)
