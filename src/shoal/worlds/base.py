"""A world in a few lines: say what agents see and what their actions do, the rest is here.

Rooms and dialogues are made of it, and so can be worlds of your own; see docs/writing-a-world.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from shoal.types import MAX_ACTIONS_PER_TURN, Action, Decision, Event, Happening, Notice, Observation, Writes
from shoal.worlds.clock import MutedAgents
from shoal.worlds.context import WorldContext

DO_NOTHING = "DO_NOTHING"

_TABLES = """
CREATE TABLE user (user_id INTEGER PRIMARY KEY, agent_id INTEGER, user_name TEXT, name TEXT, bio TEXT, created_at);
CREATE TABLE trace (user_id INTEGER, created_at, action TEXT, info TEXT);
"""
_USER = "INSERT INTO user VALUES (?,?,?,?,?,?)"
_SIGN_UP = """INSERT INTO trace SELECT user_id, created_at, 'sign_up',
    json_object('name', name, 'user_name', user_name, 'bio', bio) FROM user"""
_TRACE = "INSERT INTO trace VALUES (?,?,?,?)"

_encode = msgspec.json.Encoder().encode

#: What an action needs: the names of its arguments and their types.
Needs = Mapping[str, type]


class Rejected(Exception):
    """An action that cannot be carried out, and why."""


class ViewObservation(Observation, frozen=True, kw_only=True):
    """What an agent sees in a world that says so in plain values."""

    view: dict[str, Any] = msgspec.field(default_factory=dict)
    #: News since the agent's last turn.
    announcements: tuple[str, ...] = ()


class BaseWorld:
    """Subclass it, name the actions, and fill in `view` and `act`. Agents are numbers, `names` says who they are."""

    #: Kind of action -> what it needs. Doing nothing is always possible.
    actions: ClassVar[Mapping[str, Needs]] = {}
    #: SQL for tables of the world's own; `add` writes to them.
    tables: ClassVar[str] = ""
    indexes: str = "CREATE INDEX IF NOT EXISTS trace_by_user ON trace (user_id);"
    visibility: int = 1

    def __init__(self, name: str, given: WorldContext, settings: Any = None) -> None:
        self.name = name
        self.schema = _TABLES + self.tables
        self.given = given
        self.settings = settings
        self.names = given.population.names
        self.people = range(len(given.population))
        self.muted = MutedAgents()
        self._rows: dict[str, list[tuple[Any, ...]]] = {}
        self._news: dict[int, list[str]] = {}

    # To be filled in

    def view(self, round: int, agent: int) -> dict[str, Any]:
        """What the agent sees. A pure read."""
        return {}

    def act(self, round: int, agent: int, action: Action) -> dict[str, Any] | None:
        """Carry out an action whose arguments are there and of the right type; raise `Rejected` to refuse it.

        Returns what the stream shall say about it, if that is more than its arguments.
        """
        raise NotImplementedError

    @property
    def over(self) -> bool:
        return False

    def turns(self, round: int) -> Sequence[Sequence[int]]:
        """One group of everybody: they all act on the same picture."""
        acting = self.unmuted(round, self.people)
        return [acting] if acting else []

    def explain_absence(self, round: int, agent: int) -> str:
        """Return why an agent has no turn in a round."""
        until = self.muted.until(agent)
        return f"muted until round {until}" if until > round else "no turn"

    # What comes with it

    def unmuted(self, round: int, agents: Iterable[int]) -> list[int]:
        return [agent for agent in agents if (round, agent) not in self.muted]

    def add(self, statement: str, *row: Any) -> None:
        """A row for the database."""
        self._rows.setdefault(statement, []).append(row)

    def observe(self, round: int, agents: Sequence[int]) -> Sequence[Observation]:
        time = self.timestamp(round)
        return [
            ViewObservation(
                world=self.name,
                round=round,
                agent=agent,
                name=self.names[agent],
                time=time,
                view=self.view(round, agent),
                announcements=tuple(self._news.get(agent, ())),
            )
            for agent in agents
        ]

    def begin(self, round: int) -> None:
        if round == 0:
            for agent in self.people:
                who = self.given.population[agent]
                self.add(_USER, agent, agent, who.username, who.name, who.bio, 0)
            self.add(_SIGN_UP)

    def happen(self, round: int, happening: Happening) -> Sequence[Event | Notice]:
        if happening.kind == "broadcast":
            for agent in happening.to or self.people:
                self._news.setdefault(agent, []).append(happening.content)
        elif happening.kind == "mute":
            self.muted.add(round, happening)
        return [happening.notice(round, self.timestamp(round))]

    def apply(self, round: int, agent: int, decision: Decision) -> Sequence[Event]:
        self._news.pop(agent, None)
        if decision.failure is not None:
            why = "timeout" if decision.failure == "timeout" else f"{decision.failure}: {decision.reason}"
            return [self._event(round, agent, 0, Action(DO_NOTHING), why)]
        actions = decision.actions or (Action(DO_NOTHING),)
        return [self._carry_out(round, agent, n, action) for n, action in enumerate(actions)]

    def writes(self) -> Writes:
        rows, self._rows = self._rows, {}
        return rows

    def timestamp(self, round: int) -> str:
        return self.given.clock.stamp(round)

    def hours(self, round: int) -> float:
        return self.given.clock.hours_gone(round)

    def _carry_out(self, round: int, agent: int, n: int, action: Action) -> Event:
        try:
            args = self._try(round, agent, n, action)
        except Rejected as refusal:
            return self._event(round, agent, n, action, str(refusal))
        self.add(_TRACE, agent, round, action.kind.lower(), _encode(args).decode())
        return self._event(round, agent, n, Action(action.kind, args), None)

    def _try(self, round: int, agent: int, n: int, action: Action) -> dict[str, Any]:
        if n >= MAX_ACTIONS_PER_TURN:
            raise Rejected(f"more than {MAX_ACTIONS_PER_TURN} actions in one turn")
        if action.kind == DO_NOTHING:
            return action.args
        if action.kind not in self.actions:
            raise Rejected(f"there is no action {action.kind}")
        check_args(action, self.actions[action.kind])
        told = self.act(round, agent, action)
        return action.args if told is None else told

    def _event(self, round: int, agent: int, n: int, action: Action, refusal: str | None) -> Event:
        return Event(
            round,
            agent,
            self.names[agent],
            action.kind,
            action.args,
            refusal is None,
            refusal,
            self.timestamp(round),
            f"{self.name}-{round}-{agent}-{n}",
        )


_IN_WORDS: Mapping[type, str] = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


def check_args(action: Action, needs: Needs) -> None:
    """Refuse an action that lacks something it needs. A whole number may stand where a number is needed."""
    for name, kind in needs.items():
        given = action.args.get(name)
        fits = type(given) in (int, float) if kind is float else type(given) is kind
        if not fits:
            raise Rejected(f"{action.kind} needs {name} ({_IN_WORDS.get(kind, kind.__name__)})")
