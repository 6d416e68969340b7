"""The state of a platform, and one agent's turn on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from shoal.types import MAX_ACTIONS_PER_TURN, Mention, Versioned
from shoal.worlds.base import WorldContext
from shoal.worlds.names import NameIndex
from shoal.worlds.social import database
from shoal.worlds.social.feed import Feed
from shoal.worlds.social.follow_table import FollowTable
from shoal.worlds.social.meaning import Meanings
from shoal.worlds.social.observations import LookedUp
from shoal.worlds.social.posts import Comments, Posts
from shoal.worlds.social.ranking import HotPosts, Ranking

_TREND_DAYS = 7


class Done(msgspec.Struct, frozen=True, gc=False):
    """An action carried out: its arguments as the stream shows them, and what the trace table keeps."""

    args: dict[str, Any]
    trace: dict[str, Any]


@dataclass(slots=True)
class GroupChat:
    group_id: int
    name: str
    members: set[int] = field(default_factory=set)
    messages: list[tuple[int, str]] = field(default_factory=list)


class Ratings:
    """Ratings of one kind, such as the likes of comments."""

    def __init__(self, what: str, noun: str, done: str) -> None:
        #: What is rated: `post` or `comment`.
        self.what = what
        #: The column that counts them, and their table in the database.
        self.counter = f"{noun}s"
        self.table = noun if what == "post" else f"{what}_{noun}"
        #: What has been done, for the sentence that refuses to do it twice.
        self.done = done
        #: Agent -> row -> the number of its rating, so that the ratings of one agent lie together in memory.
        self.by_agent: dict[int, dict[int, int]] = {}

    def has(self, agent: int, row: int) -> bool:
        return row in self.by_agent.get(agent, ())

    def give(self, agent: int, row: int, rating_id: int) -> None:
        self.by_agent.setdefault(agent, {})[row] = rating_id


class State:
    """Everything that a platform remembers. Only the rules in `actions/` change it."""

    def __init__(
        self, name: str, given: WorldContext, decade_minutes: int, reached: Mapping[str, set[int]] | None = None
    ) -> None:
        population, minutes_per_round = given.population, given.time.first.minutes_per_round
        #: How many people there are in each round, and the rounds from which on there are more.
        self.turns = database.TurnNumbers(given.sizes or Versioned(len(population)))
        self.people = len(population)
        #: The agents without an account: they have not joined yet.
        self.unknown = set(given.absent)
        #: The agents that have left, and have not come back.
        self.gone: set[int] = set()
        self.names = population.names
        self.index = NameIndex(self.names)
        self.reader = given.reader
        self.topics = given.reader.vocabulary
        #: Every combination of topics that was ever shown, so that equal ones are one object.
        self.themes: dict[tuple[str, ...], tuple[str, ...]] = {}
        self.minutes_per_round = minutes_per_round
        self.posts, self.comments = Posts(), Comments()
        self.follows = FollowTable(given.graph.leave_out(self.unknown))
        self.ranking = Ranking(self.posts, population, minutes_per_round)
        self.pools = HotPosts(self.posts, len(self.topics), minutes_per_round, decade_minutes, population.habits)
        #: Compares posts by meaning; None where that cannot be done.
        self.meanings = None if given.embed is None else Meanings(self.posts, population, given.embed)
        self.feed = Feed(self.posts, self.follows, self.ranking, self.pools, self.meanings, given, name)
        self.searches_meaning = False
        self.likes, self.dislikes = Ratings("post", "like", "liked"), Ratings("post", "dislike", "disliked")
        self.shares, self.reports = Ratings("post", "share", "shared"), Ratings("post", "report", "reported")
        self.comment_likes = Ratings("comment", "like", "liked")
        self.comment_dislikes = Ratings("comment", "dislike", "disliked")
        #: Agent -> the rows of everything it liked, disliked or shared.
        self.reacted: dict[int, set[int]] = {}
        self.groups: dict[int, GroupChat] = {}
        self.group_ids_of: dict[int, list[int]] = {}
        self.sales: dict[str, int] = {}
        #: Agent -> what it looked up, with the round in which it did.
        self.answers: dict[int, list[tuple[int, LookedUp]]] = {}
        self.self_rating = True
        self.comments_shown = 0
        self.counts_shown = True
        self.first_follow_id = given.graph.edges + 1
        #: Claim -> the agents who wrote something about it, passed it on, or reacted to it.
        self.reached = reached or {}
        #: Texts whose meaning was not stated, and whose words cannot be read.
        self.unread = 0
        #: Counts the turns that may have changed something.
        self.version = 0
        self.rows = database.Rows()
        self._written = 0
        self.touched_posts: set[int] = set()
        self.touched_comments: set[int] = set()
        self.touched_people: set[int] = set()
        #: The row of the most liked post of the last days, when the round began.
        self.trending: int | None = None

    def write_counts(self) -> None:
        """Write the counters that changed since the last call."""
        posts, comments, follows = self.posts, self.comments, self.follows
        rows = np.array(sorted(self.touched_posts), np.int64)
        # A new post has its zeros from being inserted.
        counted = posts.likes[rows] + posts.dislikes[rows] + posts.shares[rows] + posts.reports[rows] > 0
        rows = rows[counted | (rows < self._written)]
        self._written = posts.count
        columns = (posts.likes, posts.dislikes, posts.shares, posts.reports, posts.post_id)
        self.rows.extend(database.POST_COUNTS, zip(*(column[rows].tolist() for column in columns), strict=True))
        for row in sorted(self.touched_comments):
            self.rows.add(
                database.COMMENT_COUNTS, comments.likes[row], comments.dislikes[row], comments.comment_id[row]
            )
        people = np.array(sorted(self.touched_people), np.int64)
        counts = (follows.followings[people].tolist(), follows.followers[people].tolist(), people.tolist())
        self.rows.extend(database.USER_COUNTS, zip(*counts, strict=True))
        for touched in (self.touched_posts, self.touched_comments, self.touched_people):
            touched.clear()

    def reach(self, agent: int, mention: Mention | None) -> None:
        """Note that an agent had to do with a claim."""
        if mention is not None:
            self.reached[mention.claim].add(agent)

    def answer(self, actor: Actor, answer: LookedUp) -> None:
        """Keep what the agent looked up until it can see it."""
        self.answers.setdefault(actor.agent, []).append((actor.round, answer))

    def find_trend(self, round: int) -> None:
        """Find the most liked post of the last days, at the start of a round."""
        oldest = round - _TREND_DAYS * 24 * 60 // self.minutes_per_round
        first = int(np.searchsorted(self.posts.round[: self.posts.count], oldest))
        likes = self.posts.likes[first : self.posts.count]
        self.trending = first + int(np.argmax(likes)) if len(likes) else None


class Actor:
    """One agent acting in one round. Numbers of new things depend only on their author and round.

    A counter over all would do for a single run; but then one more post in a fork would renumber all later ones, and
    every agent would seem to see something new.
    """

    __slots__ = ("_next", "agent", "created_at", "round")

    def __init__(
        self, state: State, round: int, agent: int, created_at: int | str, *, event: int | None = None
    ) -> None:
        self.round = round
        self.agent = agent
        self.created_at = created_at
        first = 1 if event is None else 1 + MAX_ACTIONS_PER_TURN + event
        self._next = state.turns.number(round, agent) * database.NUMBERS_PER_TURN + first

    def new_id(self) -> int:
        number = self._next
        self._next = number + 1
        return number
