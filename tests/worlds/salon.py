"""Conversations that a test leads turn by turn."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any, cast

from shoal.types import Action, Decision, Event, Happening, Versioned
from shoal.worlds.clock import Clock, TimeSettings
from shoal.worlds.context import WorldContext
from shoal.worlds.dialogue.observations import DialogueObservation
from shoal.worlds.dialogue.settings import DialogueSettings
from shoal.worlds.dialogue.world import Dialogue
from shoal.worlds.lexicon import TextReader
from tests.worlds.stage import SUBJECT, Crowd, crowd, graph


def dialogue(
    people: int | Crowd = 2, seed: int = 7, changes: Sequence[tuple[int, dict[str, Any]]] = (), **settings: Any
) -> Dialogue:
    """A world; `changes` are settings that hold from a round on."""
    who = crowd(people) if isinstance(people, int) else people
    time = TimeSettings(daily_rhythm=False)
    reader = TextReader(who.topics, SUBJECT)
    given = WorldContext(who, graph(len(who), []), Versioned(time), Clock(time), seed=seed, reader=reader)
    versions = tuple((since, DialogueSettings.model_validate(settings | changed)) for since, changed in changes)
    return Dialogue("talk", Versioned(DialogueSettings.model_validate(settings), versions), given)


class Salon:
    """A world of conversations, and what it wrote to its database."""

    def __init__(self, people: int | Crowd = 2, **settings: Any) -> None:
        self.world = dialogue(people, **settings)
        self.round = 0
        self.world.begin(0)
        self._written = [self._rows()]

    @property
    def acting(self) -> list[int]:
        """Whose turn it is in the next round."""
        return [agent for group in self.world.turns(self.round + 1) for agent in group]

    def look(self, agent: int) -> DialogueObservation:
        """What the agent sees before the next round."""
        (seen,) = self.world.observe(self.round + 1, [agent])
        return cast(DialogueObservation, seen)

    def happen(self, kind: str, content: str = "", to: tuple[int, ...] = (), **args: Any) -> None:
        self.world.happen(self.round + 1, Happening(kind, content, to=to, args=args))

    def step(self, decisions: dict[int, Decision] | None = None) -> list[Event]:
        """A round in which those whose turn it is decide so; who is not mentioned does nothing."""
        acting, self.round = self.acting, self.round + 1
        decisions = decisions or {}
        assert decisions.keys() <= set(acting)
        self.world.begin(self.round)
        turns = [(agent, decisions.get(agent, Decision())) for agent in acting]
        events = [event for agent, decision in turns for event in self.world.apply(self.round, agent, decision)]
        self._written.append(self._rows())
        return events

    def do(self, agent: int, kind: str, **args: Any) -> Event:
        """A round in which one agent does one thing, and everybody else nothing."""
        events = self.step({agent: Decision((Action(kind, args),))})
        return next(event for event in events if event.agent_id == agent)

    def say(self, content: str, **args: Any) -> Event:
        """Whoever's turn it is says something."""
        (agent,) = self.acting
        event = self.do(agent, "SAY", content=content, **args)
        assert event.success, event.result
        return event

    def refused(self, agent: int, kind: str, **args: Any) -> str:
        event = self.do(agent, kind, **args)
        assert not event.success
        assert event.result
        return event.result

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """What the database holds."""
        with closing(sqlite3.connect(":memory:")) as database:
            database.executescript(self.world.schema)
            for round in self._written:
                for statement, rows in round:
                    database.executemany(statement, rows)
            database.executescript(self.world.indexes)
            return database.execute(query).fetchall()

    def _rows(self) -> list[tuple[str, list[tuple[Any, ...]]]]:
        return [(statement, list(rows)) for statement, rows in self.world.writes().items()]
