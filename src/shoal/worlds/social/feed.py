"""Chooses the posts that agents are shown: the best by people they follow, and the best of what is recommended."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.seeds import derive, extend, hashes, uniforms
from shoal.worlds.base import WorldContext
from shoal.worlds.social.follow_table import FollowTable
from shoal.worlds.social.meaning import Meanings
from shoal.worlds.social.posts import Posts
from shoal.worlds.social.ranking import FULL, WINDOW_ROUNDS, HotPosts, Ranking, Rows, best
from shoal.worlds.social.settings import FeedRules

Agents = NDArray[np.int64]

#: The newest posts of an author that can reach a follower's feed.
_NEWEST_PER_AUTHOR = 2
#: A ranking looks closely at this many posts at least; the others are left out by what is the same for all agents.
_SHORTLIST = 16
#: Interests that recommendation looks into in one round; they are drawn.
_INTERESTS_PER_ROUND = 2
#: Recent posts that random recommendation draws from.
_RANDOM_POOL = 64
#: The newest posts that recommendation by meaning looks at, beside the hottest.
_MEANT_POOL = 512
#: Agents are handled together with others that follow about as many people, in tables of these widths.
_WIDTHS = 1 << np.arange(3, 32, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Picture:
    """The platform at one moment, for all agents that look at it then."""

    round: int
    #: The first row that is recent enough to be shown.
    first: int
    #: Scores of all rows from there on, before they are personal.
    general: NDArray[np.int64]
    #: Pairs of agents as keys `muter * people + mutee`.
    muted: NDArray[np.int64]
    muters: frozenset[int]
    #: Agents whose posts are shown to no agent.
    suspended: NDArray[np.int64]
    rules: FeedRules


class Feed:
    """Chooses posts for many agents at once."""

    def __init__(  # noqa: PLR0913  # all that a platform has
        self,
        posts: Posts,
        follows: FollowTable,
        ranking: Ranking,
        pools: HotPosts,
        meanings: Meanings | None,
        given: WorldContext,
        world: str,
    ) -> None:
        self._posts = posts
        self._follows = follows
        self._ranking = ranking
        self._pools = pools
        #: Where the paths of all draws for feeds begin.
        self._key = derive(given.seed, world)
        #: None: meaning cannot be compared, as in a plan, and interests stand in for it.
        self._meanings = meanings
        self._people = len(given.population)
        self._interests = given.population.interests
        #: The shortest and longest time in minutes until an agent comes across a post; None: all see it at once.
        self._delays = given.population.habits.response_delay
        self._minutes_per_round = given.time.first.minutes_per_round
        self._newest = np.full((self._people, _NEWEST_PER_AUTHOR), -1, np.int32)
        self._first_row_of_round: list[int] = []
        #: The agent that mutes and the one that is muted -> the number of the mute.
        self.mutes: dict[tuple[int, int], int] = {}
        self.suspended: set[int] = set()

    def open_round(self) -> None:
        """Begin a round; posts from here on belong to it."""
        self._first_row_of_round.append(self._posts.count)

    def add(self, row: int, author: int) -> None:
        self._newest[author, 1:] = self._newest[author, :-1]
        self._newest[author, 0] = row

    def take_picture(self, round: int, rules: FeedRules) -> Picture:
        """Return what choosing needs to know about this moment."""
        first = self._first_row_of_round[max(len(self._first_row_of_round) - WINDOW_ROUNDS, 0)]
        muted = np.array(sorted(muter * self._people + mutee for muter, mutee in self.mutes), np.int64)
        muters = frozenset((muted // self._people).tolist())
        suspended = np.array(sorted(self.suspended), np.int64)
        return Picture(round, first, self._ranking.general(rules, first, round), muted, muters, suspended, rules)

    def is_hidden(self, agent: int, author: int) -> bool:
        """Return whether an agent is shown nothing by an author."""
        return author in self.suspended or (agent, author) in self.mutes

    def choose(self, picture: Picture, agents: Agents) -> tuple[Rows, Rows]:
        """Return rows of posts by the followed and of recommended posts: a line per agent, best first, -1 for none."""
        # More than are to be shown, because several people can post the same words.
        count = 2 * picture.rules.followed
        followed = np.full((len(agents), count), -1, np.int64)
        starts = self._follows.starts
        degrees = starts[agents + 1] - starts[agents]
        sizes = _WIDTHS[np.searchsorted(_WIDTHS, degrees)]
        for size in np.unique(sizes).tolist() if count else ():
            of_size = np.flatnonzero(sizes == size)
            people = self._find_followees(agents[of_size], size)
            rows = self._newest[people].reshape(len(of_size), -1).astype(np.int64)
            rows[np.repeat(people < 0, _NEWEST_PER_AUTHOR, axis=1) | (rows < picture.first)] = -1
            followed[of_size] = self._rank(picture, agents[of_size], rows, count)
        recommended = self._choose_recommended(picture, agents, 2 * picture.rules.recommended)
        followed = self._drop_repeated(followed, np.empty((len(agents), 0), np.int64), picture.rules.followed)
        return followed, self._drop_repeated(recommended, followed, picture.rules.recommended)

    def _drop_repeated(self, rows: Rows, shown: Rows, count: int) -> Rows:
        """Return the first rows of each line whose words are not shown already."""
        everything = np.concatenate([shown, rows], axis=1)
        width = everything.shape[1]
        roots = np.where(everything >= 0, self._posts.root[np.maximum(everything, 0)], -1).astype(np.int64)
        # Sorted by root and place, all but the first of a root come right after another one.
        sorted_roots, places = np.divmod(np.sort(roots * width + np.arange(width), axis=1), width)
        repeated = np.zeros(roots.shape, np.bool_)
        np.put_along_axis(repeated, places[:, 1:], sorted_roots[:, 1:] == sorted_roots[:, :-1], axis=1)
        new = (rows >= 0) & ~repeated[:, shown.shape[1] :]
        first = np.argsort(~new, axis=1, kind="stable")[:, :count]
        return np.take_along_axis(np.where(new, rows, -1), first, axis=1)

    # Posts by people that an agent follows

    def _find_followees(self, agents: Agents, size: int) -> NDArray[np.int32]:
        """Return the people that each agent follows, a line each, -1 at the end."""
        starts, targets = self._follows.starts, self._follows.targets
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

    def _choose_recommended(self, picture: Picture, agents: Agents, count: int) -> Rows:
        how = picture.rules.recommendation
        if not count or how == "none":
            return np.full((len(agents), count), -1, np.int64)
        if how == "meaning" and self._meanings is not None:
            recent = np.arange(max(picture.first, self._posts.count - _MEANT_POOL), self._posts.count, dtype=np.int64)
            pool = np.union1d(self._pools.hot[self._pools.hot >= 0], recent[self._posts.find_rated(recent) == recent])
            rows = np.broadcast_to(pool, (len(agents), len(pool)))
            suits = self._meanings.score_for_people(agents, self._newest[agents, 0].astype(np.int64), pool)
            scores = self._general(picture, rows) + round(FULL * picture.rules.relevance) * suits
            return best(scores, self._hide(picture, agents, self._drop_own(agents, rows)), count)
        if how == "random":
            # A draw depends on the post and the agent alone, so a new post moves no other.
            recent = np.arange(picture.first, self._posts.count, dtype=np.int64)
            recent = recent[self._posts.root[recent] == recent]
            ids = self._posts.post_id[recent]
            draws = hashes(extend(self._key, picture.round, "random"), ids)
            pool = recent[np.argsort(draws, kind="stable")[:_RANDOM_POOL]]
            rows = self._drop_own(agents, np.broadcast_to(pool, (len(agents), len(pool))))
            key = extend(self._key, picture.round, "random", "agent")
            draws = hashes(key, agents[:, None], self._posts.post_id[np.maximum(rows, 0)])
            scores = (draws >> np.uint64(34)).astype(np.int64)
            return best(scores, self._hide(picture, agents, rows), count)
        rows = np.broadcast_to(self._pools.hot, (len(agents), len(self._pools.hot)))
        if how in ("interest", "meaning"):
            # At most half of the shortlist, so that what is hot for all does not crowd out what matters to few.
            rows = self._find_interesting(picture, agents, rows[:, : max(_SHORTLIST, count) // 2])
        return self._rank(picture, agents, self._drop_own(agents, rows), count)

    def _find_interesting(self, picture: Picture, agents: Agents, hot: Rows) -> Rows:
        """Return the hottest posts on some of each agent's interests, and the hottest of all."""
        interests = self._interests[agents]
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

    def _drop_own(self, agents: Agents, rows: Rows) -> Rows:
        """Return the rows without those that the agent wrote itself."""
        own = self._posts.author[np.maximum(rows, 0)] == agents[:, None]
        return np.where(own, -1, rows)

    def _rank(self, picture: Picture, agents: Agents, rows: Rows, count: int) -> Rows:
        """Return the best of these rows: first by the score that all agents share, then by each agent's own."""
        rows = self._hide(picture, agents, rows)
        shortlist = best(self._general(picture, rows), rows, max(_SHORTLIST, count))
        personal = self._ranking.personal(picture.rules, agents, np.maximum(shortlist, 0))
        return best(self._general(picture, shortlist) + personal, shortlist, count)

    def _general(self, picture: Picture, rows: Rows) -> NDArray[np.int64]:
        """Return the shared scores. A post from before the window is here only because it is in a pool, and has 0."""
        if not len(picture.general):
            return np.zeros(rows.shape, np.int64)
        return np.where(rows >= picture.first, picture.general[np.maximum(rows - picture.first, 0)], 0)

    def _hide(self, picture: Picture, agents: Agents, rows: Rows) -> Rows:
        """Replace with -1 posts of suspended or muted authors, and those that have not reached the agent yet."""
        if len(picture.suspended):
            shown = np.maximum(rows, 0)
            authors = np.stack([self._posts.author[shown], self._posts.author[self._posts.root[shown]]])
            rows = np.where(np.isin(authors, picture.suspended).any(axis=0), -1, rows)
        if len(picture.muted):
            some = np.flatnonzero(np.isin(agents, picture.muted // self._people))
            shown = np.maximum(rows[some], 0)
            mine = agents[some][:, None] * self._people
            gone = np.isin(mine + self._posts.author[shown], picture.muted)
            gone |= np.isin(mine + self._posts.author[self._posts.root[shown]], picture.muted)
            rows = rows.copy()
            rows[some] = np.where(gone, -1, rows[some])
        if self._delays is not None:
            # No agent sees a post before it is a round old, so shorter delays make no difference.
            some = np.flatnonzero(self._delays[agents, 1] > self._minutes_per_round)
            shown = np.maximum(rows[some], 0)
            age = (picture.round - self._posts.round[shown]) * self._minutes_per_round
            # The delay is drawn for each agent and post.
            low, high = self._delays[agents[some]].T[:, :, None]
            draws = uniforms(extend(self._key, "delay"), agents[some][:, None], self._posts.post_id[shown])
            rows = rows.copy()
            rows[some] = np.where(age < low + np.floor(draws * (high - low + 1)), -1, rows[some])
        return rows
