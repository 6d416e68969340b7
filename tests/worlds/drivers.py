"""Drive small worlds round by round."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any, cast

from shoal.types import Action, Decision, Event, Happening, Notice, Versioned, WorldProtocol
from shoal.worlds import EmbedTexts
from shoal.worlds.clock import TimeSettings
from shoal.worlds.dialogue.observations import DialogueObservation
from shoal.worlds.dialogue.settings import DialogueSettings
from shoal.worlds.dialogue.world import Dialogue
from shoal.worlds.room.observations import RoomObservation
from shoal.worlds.room.settings import RoomSettings
from shoal.worlds.room.world import Room
from shoal.worlds.social.observations import LookedUp, PostView, SocialObservation
from shoal.worlds.social.platform import Platform
from shoal.worlds.social.settings import FeedSettings, SocialSettings
from tests.worlds.context import Crowd, make_context

Move = tuple[int, str, dict[str, Any]]
MIRA, BO, ANNA, LUIS = range(4)


class WorldDriver:
    """A world, the round it is in, and what it wrote to its database."""

    def __init__(self, world: WorldProtocol) -> None:
        self._driven = world
        self.round = 0
        self._written: list[tuple[str, list[tuple[Any, ...]]]] = []

    def do(self, agent: int, kind: str, **args: Any) -> Event:
        """Play a round in which one agent does one thing."""
        raise NotImplementedError

    def succeed(self, agent: int, kind: str, **args: Any) -> dict[str, Any]:
        """Do something that must succeed, and return its arguments in the stream."""
        event = self.do(agent, kind, **args)
        assert (event.success, event.result) == (True, None)
        return event.action_args

    def fail(self, agent: int, kind: str, **args: Any) -> str:
        """Do something that must be refused, and return the reason."""
        event = self.do(agent, kind, **args)
        assert not event.success
        assert event.result
        return event.result

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Query a database with everything written so far."""
        with self.database() as database:
            return database.execute(query).fetchall()

    @contextmanager
    def database(self) -> Iterator[sqlite3.Connection]:
        """Open a new database with everything written so far."""
        with closing(sqlite3.connect(":memory:")) as database:
            database.executescript(self._driven.schema)
            for statement, rows in self._written:
                database.executemany(statement, rows)
            database.executescript(self._driven.indexes)
            yield database

    def _commit(self) -> None:
        self._written += [(statement, list(rows)) for statement, rows in self._driven.writes().items()]


class PlatformDriver(WorldDriver):
    """A platform, and what happened on it."""

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
        embed: EmbedTexts | None = None,
        **settings: Any,
    ) -> None:
        first = SocialSettings.model_validate({"kind": kind, "feed": feed or FeedSettings(), **settings})
        time = TimeSettings(minutes_per_round=minutes, daily_rhythm=False)
        context = replace(make_context(people, follows, time=time, seed=seed), embed=embed)
        self.world = Platform(kind, Versioned(first, changes), context)
        super().__init__(self.world)
        self._scheduled = events
        self.happened: list[Event | Notice] = []
        self.announce(0)
        self.begin(0)
        self._commit()

    def announce(self, round: int) -> None:
        """Let the events of a round happen that come before agents look."""
        self._happen(round, posts=False)

    def begin(self, round: int) -> None:
        self.world.begin(round)
        self._happen(round, posts=True)

    def _happen(self, round: int, posts: bool) -> None:
        for when, happening in self._scheduled:
            if when == round and (happening.kind == "post") is posts:
                self.happened += self.world.happen(round, happening)

    def play(self, *moves: Move) -> list[Event]:
        """Play a round in which these agents do these things, one after another."""
        self.round += 1
        self.announce(self.round)
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
        (event,) = self.play((agent, kind, args))
        return event

    def post(self, agent: int, content: str = "Hello.") -> int:
        return int(self.succeed(agent, "CREATE_POST", content=content)["post_id"])

    def quote(self, agent: int, post_id: int, words: str = "Look at that.") -> int:
        return int(self.succeed(agent, "QUOTE_POST", post_id=post_id, quote_content=words)["new_post_id"])

    def repost(self, agent: int, post_id: int) -> int:
        return int(self.succeed(agent, "REPOST", post_id=post_id)["new_post_id"])

    def comment(self, agent: int, post_id: int, content: str = "I see.") -> int:
        return int(self.succeed(agent, "CREATE_COMMENT", post_id=post_id, content=content)["comment_id"])

    def look(self, agent: int) -> SocialObservation:
        """Return what the agent sees at the start of the next round."""
        (seen,) = self.world.observe(self.round + 1, [agent])
        return seen

    def feed(self, agent: int) -> list[PostView]:
        seen = self.look(agent)
        return [*seen.followed, *seen.recommended]

    def find(self, agent: int, post_id: int) -> PostView:
        """Return the post as the agent sees it."""
        return next(post for post in self.feed(agent) if post.post_id == post_id)

    def answer(self, agent: int) -> LookedUp:
        (answer,) = self.look(agent).answers
        return answer


class RoomDriver(WorldDriver):
    """Mira, Bo, Anna, Luis and others in a room."""

    def __init__(
        self,
        people: int = 4,
        follows: Iterable[tuple[int, int]] = (),
        *,
        seed: int = 7,
        skips: Iterable[tuple[int, int]] = (),
        later: Sequence[tuple[int, dict[str, Any]]] = (),
        **settings: Any,
    ) -> None:
        context = make_context(people, follows, time=TimeSettings(minutes_per_round=30), skips=skips, seed=seed)
        changes = tuple((since, RoomSettings.model_validate({**settings, **changed})) for since, changed in later)
        self.room = Room("room", Versioned(RoomSettings.model_validate(settings), changes), context)
        super().__init__(self.room)
        self.room.begin(0)
        self._commit()

    def play(self, *turns: tuple[int, Sequence[Action]], events: Sequence[Happening] = ()) -> list[Event]:
        """Play a round in which these agents take these turns, in this order; all others do nothing."""
        self.round += 1
        for event in events:
            self.room.happen(self.round, event)
        acting = [agent for group in self.room.turns(self.round) for agent in group]
        self.room.begin(self.round)
        moves = dict(turns)
        done: list[Event] = []
        for agent in [*moves, *(agent for agent in acting if agent not in moves)]:
            done += self.room.apply(self.round, agent, Decision(tuple(moves.get(agent, ()))))
        self._commit()
        return [event for event in done if event.agent_id in moves]

    def do(self, agent: int, kind: str, **args: Any) -> Event:
        (event,) = self.play((agent, [Action(kind, args)]))
        return event

    def look(self, agent: int) -> RoomObservation:
        """Return what the agent perceives at the start of the next round."""
        (seen,) = self.room.observe(self.round + 1, [agent])
        return seen

    def stimuli(self, agent: int) -> list[str]:
        return [stimulus.content for stimulus in self.look(agent).stimuli]

    def hearers(self) -> list[int]:
        """Return the agents that heard something in the last round."""
        return [agent for agent in self.room.people if self.stimuli(agent)]


class DialogueDriver(WorldDriver):
    """Conversations of two."""

    def __init__(self, people: int | Crowd = 2, **settings: Any) -> None:
        self.world = make_dialogue(people, **settings)
        super().__init__(self.world)
        self.world.begin(0)
        self._commit()

    @property
    def acting(self) -> list[int]:
        """The agents that act in the next round."""
        return [agent for group in self.world.turns(self.round + 1) for agent in group]

    def look(self, agent: int) -> DialogueObservation:
        """Return what the agent sees before the next round."""
        (seen,) = self.world.observe(self.round + 1, [agent])
        return cast(DialogueObservation, seen)

    def happen(self, kind: str, content: str = "", to: tuple[int, ...] = (), **args: Any) -> None:
        self.world.happen(self.round + 1, Happening(kind, content, to=to, args=args))

    def step(self, decisions: dict[int, Decision] | None = None) -> list[Event]:
        """Play a round with these decisions; other agents whose turn it is do nothing."""
        acting, self.round = self.acting, self.round + 1
        decisions = decisions or {}
        assert decisions.keys() <= set(acting)
        self.world.begin(self.round)
        turns = [(agent, decisions.get(agent, Decision())) for agent in acting]
        events = [event for agent, decision in turns for event in self.world.apply(self.round, agent, decision)]
        self._commit()
        return events

    def do(self, agent: int, kind: str, **args: Any) -> Event:
        events = self.step({agent: Decision((Action(kind, args),))})
        return next(event for event in events if event.agent_id == agent)

    def say(self, content: str, **args: Any) -> Event:
        """Let the agent whose turn it is say something."""
        (agent,) = self.acting
        event = self.do(agent, "SAY", content=content, **args)
        assert event.success, event.result
        return event


def make_dialogue(
    people: int | Crowd = 2, seed: int = 7, changes: Sequence[tuple[int, dict[str, Any]]] = (), **settings: Any
) -> Dialogue:
    """Make conversations; `changes` are settings that hold from a round on."""
    versions = tuple((since, DialogueSettings.model_validate(settings | changed)) for since, changed in changes)
    declared = Versioned(DialogueSettings.model_validate(settings), versions)
    return Dialogue("talk", declared, make_context(people, seed=seed))


def talk(content: str, **more: Any) -> list[Action]:
    return [Action("TALK", {"content": content, **more})]


def ids(posts: Iterable[PostView]) -> list[int]:
    return [post.post_id for post in posts]


def make_feed(followed: int = 0, recommended: int = 0, **feed: Any) -> FeedSettings:
    """Make a feed in which only the given weights count."""
    nothing = {"recency": 0, "popularity": 0, "relevance": 0, "echo_chamber": 0, "viral_threshold": 1000}
    return FeedSettings.model_validate({**nothing, "followed": followed, "recommended": recommended, **feed})
