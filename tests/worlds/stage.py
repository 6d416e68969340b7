"""A small social platform that a test leads round by round."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.types import Action, Decision, Event, FollowGraph, Habits, Happening, Notice, Persona, Versioned
from shoal.worlds.clock import Clock, TimeSettings
from shoal.worlds.context import WorldContext
from shoal.worlds.lexicon import TextReader
from shoal.worlds.social.observations import LookedUp, PostView, SocialObservation
from shoal.worlds.social.platform import Platform
from shoal.worlds.social.settings import FeedSettings, SocialSettings

TOPICS = ("gardening", "football", "cooking", "travel")
SUBJECT = "the campus curfew"
NAMES = ("Mira Berg", "Bo Li", "Anna Diaz", "Luis Berg", "Chen Wu", "Omar Haas", "Ida Noor", "Sam Roy")
ALL_HOURS = (1 << 24) - 1

Move = tuple[int, str, dict[str, Any]]


@dataclass
class Crowd:
    """`Population` for tests."""

    interests: NDArray[np.int16]
    topics: Sequence[str] = TOPICS
    habits: Habits = field(default_factory=Habits)
    names: Sequence[str] = field(init=False)
    stances: NDArray[np.float32] = field(init=False)
    activity: NDArray[np.float32] = field(init=False)
    active_hours: NDArray[np.uint32] = field(init=False)

    def __post_init__(self) -> None:
        people = len(self.interests)
        self.names = [NAMES[i] if i < len(NAMES) else f"Person {i}" for i in range(people)]
        self.stances = np.zeros(people, np.float32)
        self.activity = np.ones(people, np.float32)
        self.active_hours = np.full(people, ALL_HOURS, np.uint32)

    def __len__(self) -> int:
        return len(self.interests)

    def __getitem__(self, agent: int) -> Persona:
        return Persona(self.names[agent], f"user{agent}", f"bio of {agent}", "", (), 0.0, 1.0)


def crowd(people: int = 6, interests: Sequence[int] = (0, 1)) -> Crowd:
    """Everybody awake at all hours, with the same interests."""
    return Crowd(np.tile(np.array(interests, np.int16), (people, 1)))


def graph(people: int, edges: Iterable[tuple[int, int]]) -> FollowGraph:
    """(follower, followed) pairs as a table."""
    keys = np.array(sorted({follower * people + followed for follower, followed in edges}), np.int64)
    counts = np.bincount(keys // people, minlength=people)
    return FollowGraph(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), (keys % people).astype(np.int32))


class Stage:
    """A platform, what happened on it, and what it wrote to its database."""

    def __init__(
        self,
        people: int | Crowd = 6,
        follows: Iterable[tuple[int, int]] = (),
        *,
        kind: str = "twitter",
        feed: FeedSettings | None = None,
        events: Sequence[tuple[int, Happening]] = (),
        minutes: int = 60,
        seed: int = 7,
        changes: tuple[tuple[int, SocialSettings], ...] = (),
        **settings: Any,
    ) -> None:
        self.people = crowd(people) if isinstance(people, int) else people
        first = SocialSettings.model_validate({"kind": kind, "feed": feed or FeedSettings(), **settings})
        time = TimeSettings(minutes_per_round=minutes, daily_rhythm=False)
        given = WorldContext(
            self.people,
            graph(len(self.people), follows),
            Versioned(time),
            Clock(time),
            seed=seed,
            reader=TextReader(self.people.topics, SUBJECT),
        )
        self.world = Platform(kind, Versioned(first, changes), given)
        self.round = 0
        self._agenda = events
        self.happened: list[Event | Notice] = []
        self.tell(0)
        self.begin(0)
        self._written: list[tuple[str, list[tuple[Any, ...]]]] = []
        self._commit()

    def tell(self, round: int) -> None:
        """What happens in a round before anybody looks."""
        self._happen(round, posts=False)

    def begin(self, round: int) -> None:
        self.world.begin(round)
        self._happen(round, posts=True)

    def _happen(self, round: int, posts: bool) -> None:
        for when, happening in self._agenda:
            if when == round and (happening.kind == "post") is posts:
                self.happened += self.world.happen(round, happening)

    def play(self, *moves: Move) -> list[Event]:
        """One round in which these agents do these things, one after another."""
        self.round += 1
        self.tell(self.round)
        self.world.turns(self.round)
        self.begin(self.round)
        turns: dict[int, list[Action]] = {}
        for agent, kind, args in moves:
            turns.setdefault(agent, []).append(Action(kind, args))
        events = [
            event
            for agent, actions in turns.items()
            for event in self.world.apply(self.round, agent, Decision(tuple(actions)))
        ]
        self.happened += events
        self._commit()
        return events

    def pass_rounds(self, count: int) -> None:
        for _ in range(count):
            self.play()

    def do(self, agent: int, kind: str, **args: Any) -> Event:
        """A round in which one agent does one thing."""
        (event,) = self.play((agent, kind, args))
        return event

    def done(self, agent: int, kind: str, **args: Any) -> dict[str, Any]:
        """What a thing that succeeds looks like in the stream."""
        event = self.do(agent, kind, **args)
        assert (event.success, event.result) == (True, None)
        return event.action_args

    def refused(self, agent: int, kind: str, **args: Any) -> str:
        """Why a thing is not possible."""
        event = self.do(agent, kind, **args)
        assert not event.success
        assert event.result
        return event.result

    def post(self, agent: int, content: str = "Hello.") -> int:
        return int(self.done(agent, "CREATE_POST", content=content)["post_id"])

    def quote(self, agent: int, post_id: int, words: str = "Look at that.") -> int:
        return int(self.done(agent, "QUOTE_POST", post_id=post_id, quote_content=words)["new_post_id"])

    def repost(self, agent: int, post_id: int) -> int:
        return int(self.done(agent, "REPOST", post_id=post_id)["new_post_id"])

    def comment(self, agent: int, post_id: int, content: str = "I see.") -> int:
        return int(self.done(agent, "CREATE_COMMENT", post_id=post_id, content=content)["comment_id"])

    def look(self, agent: int) -> SocialObservation:
        """What the agent sees at the start of the next round."""
        (seen,) = self.world.observe(self.round + 1, [agent])
        return seen

    def shown(self, agent: int) -> list[PostView]:
        seen = self.look(agent)
        return [*seen.followed, *seen.recommended]

    def find(self, agent: int, post_id: int) -> PostView:
        """The post as the agent sees it."""
        return next(post for post in self.shown(agent) if post.post_id == post_id)

    def answer(self, agent: int) -> LookedUp:
        (answer,) = self.look(agent).answers
        return answer

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """What the database holds."""
        with self.database() as database:
            return database.execute(query).fetchall()

    @contextmanager
    def database(self) -> Iterator[sqlite3.Connection]:
        """A new database with everything written so far."""
        with closing(sqlite3.connect(":memory:")) as database:
            database.executescript(self.world.schema)
            for statement, rows in self._written:
                database.executemany(statement, rows)
            yield database

    def _commit(self) -> None:
        self._written += [(statement, list(rows)) for statement, rows in self.world.writes().items()]


def ids(posts: Iterable[PostView]) -> list[int]:
    return [post.post_id for post in posts]


def plain(followed: int = 0, recommended: int = 0, **feed: Any) -> FeedSettings:
    """A feed in which nothing counts but what is given."""
    nothing = {"recency": 0, "popularity": 0, "relevance": 0, "echo_chamber": 0, "viral_threshold": 1000}
    return FeedSettings.model_validate({**nothing, "followed": followed, "recommended": recommended, **feed})
