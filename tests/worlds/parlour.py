"""A small room that a test leads round by round."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import Any

from shoal.types import Action, Decision, Event, Happening, Versioned
from shoal.worlds.clock import Clock, TimeSettings
from shoal.worlds.context import WorldContext
from shoal.worlds.lexicon import TextReader
from shoal.worlds.room.observations import RoomObservation
from shoal.worlds.room.settings import RoomSettings
from shoal.worlds.room.world import Room
from tests.worlds.stage import SUBJECT, crowd, graph

MIRA, BO, ANNA, LUIS = range(4)


class Parlour:
    """Mira, Bo, Anna, Luis, ... in a room."""

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
        crew, time = crowd(people), TimeSettings(minutes_per_round=30)
        clock = Clock(time, skips)
        given = WorldContext(
            crew, graph(people, follows), Versioned(time), clock, seed, TextReader(crew.topics, SUBJECT)
        )
        changes = tuple((since, RoomSettings.model_validate({**settings, **changed})) for since, changed in later)
        self.room = Room("room", Versioned(RoomSettings.model_validate(settings), changes), given)
        self.round = 0
        self._written: list[tuple[str, list[tuple[Any, ...]]]] = []
        self.room.begin(0)
        self._commit()

    def play(self, *turns: tuple[int, Sequence[Action]], events: Sequence[Happening] = ()) -> list[Event]:
        """One round in which these agents take these turns, in this order; everybody else does nothing."""
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
        """A round in which one agent does one thing."""
        (event,) = self.play((agent, [Action(kind, args)]))
        return event

    def done(self, agent: int, kind: str, **args: Any) -> dict[str, Any]:
        event = self.do(agent, kind, **args)
        assert (event.success, event.result) == (True, None)
        return event.action_args

    def refused(self, agent: int, kind: str, **args: Any) -> str:
        event = self.do(agent, kind, **args)
        assert not event.success
        assert event.result
        return event.result

    def look(self, agent: int) -> RoomObservation:
        """What the agent perceives at the start of the next round."""
        (seen,) = self.room.observe(self.round + 1, [agent])
        return seen

    def heard(self, agent: int) -> list[str]:
        return [stimulus.content for stimulus in self.look(agent).stimuli]

    def hearers(self) -> list[int]:
        """Who heard something in the last round."""
        return [agent for agent in self.room.people if self.heard(agent)]

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(":memory:")) as database:
            database.executescript(self.room.schema)
            for statement, rows in self._written:
                database.executemany(statement, rows)
            return database.execute(query).fetchall()

    def _commit(self) -> None:
        self._written += [(statement, list(rows)) for statement, rows in self.room.writes().items()]


def talk(content: str, **more: Any) -> list[Action]:
    return [Action("TALK", {"content": content, **more})]
