"""The base of worlds: a subclass says what agents see and what their actions do.

Rooms and dialogues are built on it, and so can be worlds of your own; see docs/writing-a-world.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.types import (
    MAX_ACTIONS_PER_TURN,
    Action,
    Decision,
    Event,
    FollowGraph,
    Happening,
    Mention,
    Notice,
    Observation,
    Population,
    Versioned,
    Writes,
)
from shoal.worlds.clock import Clock, TimeSettings
from shoal.worlds.figures import measure_inequality
from shoal.worlds.lexicon import TextReader

DO_NOTHING = "DO_NOTHING"

_TABLES = """
CREATE TABLE user (user_id INTEGER PRIMARY KEY, agent_id INTEGER, user_name TEXT, name TEXT, bio TEXT, created_at);
CREATE TABLE trace (user_id INTEGER, created_at, action TEXT, info TEXT);
"""
_USER = "INSERT INTO user VALUES (?,?,?,?,?,?)"
SIGN_UP = """INSERT INTO trace SELECT user_id, created_at, 'sign_up',
    json_object('name', name, 'user_name', user_name, 'bio', bio) FROM user"""
SIGN_UP_LATER = f"{SIGN_UP} WHERE user_id = ?"
TRACE = "INSERT INTO trace VALUES (?,?,?,?)"

_encode = msgspec.json.Encoder().encode

#: Turns each text into a row of whole numbers from -127 to 127 that stands for its meaning.
EmbedTexts = Callable[[Sequence[str]], NDArray[np.int8]]

#: The names and types of the arguments that an action needs.
Needs = Mapping[str, type]


class Rejected(Exception):
    """An action cannot be carried out; the message says why."""


@dataclass(frozen=True, slots=True)
class WorldContext:
    """What every world is built from: the people, the follow graph, time and randomness of a run."""

    population: Population
    graph: FollowGraph
    time: Versioned[TimeSettings]
    clock: Clock
    seed: int
    reader: TextReader
    #: The agents that are not there at the start.
    absent: frozenset[int] = frozenset()
    #: How many people the scenario has in each round; None: as many as the population.
    sizes: Versioned[int] | None = None
    #: The declared edges of people that were added to the run later: follower and followed.
    late_follows: tuple[tuple[int, int], ...] = ()
    #: Compares texts by meaning, where the scenario wants that.
    embed: EmbedTexts | None = None

    def count_people(self, round: int) -> int:
        """Return how many people the scenario has in a round, whether they are there or not."""
        return len(self.population) if self.sizes is None else self.sizes.at(round)


class ViewObservation(Observation, frozen=True, kw_only=True):
    """What an agent sees, as plain values."""

    view: dict[str, Any] = msgspec.field(default_factory=dict)
    #: News since the agent's last turn.
    announcements: tuple[str, ...] = ()


class BaseWorld:
    """A world. Subclass it, name the actions, and fill in `view` and `act`. Agents are numbers; `names` names them."""

    #: Kind of action -> the arguments it needs. DO_NOTHING is always possible.
    actions: ClassVar[Mapping[str, Needs]] = {}
    #: SQL that creates more tables; `add` writes to them.
    tables: ClassVar[str] = ""
    #: SQL that adds columns for claims to them; runs of Shoal 0.2 go without.
    claim_columns: ClassVar[str] = ""
    indexes: str = "CREATE INDEX IF NOT EXISTS trace_by_user ON trace (user_id);"
    visibility: int = 1
    #: Whether people can join and leave.
    is_open: ClassVar[bool] = True

    def __init__(self, name: str, given: WorldContext, settings: Any = None) -> None:
        self.name = name
        self.schema = _TABLES + self.tables + (self.claim_columns if given.reader.edition > 1 else "")
        self.given = given
        self.settings = settings
        self.names = given.population.names
        self.people = range(len(given.population))
        #: The agents that have not joined yet, or have left.
        self.absent: set[int] = set(given.absent) if self.is_open else set()
        self._unknown = frozenset(self.absent)
        #: Agent -> the round in which it may act again.
        self.muted_until: dict[int, int] = {}
        #: How much each agent did so far.
        self.done_by = [0] * len(self.people)
        #: Claim -> the agents who wrote or said something about it, passed it on, or reacted to it.
        self.reached: dict[str, set[int]] = {claim: set() for claim in given.reader.claims}
        self._rows: dict[str, list[tuple[Any, ...]]] = {}
        self._news: dict[int, list[str]] = {}

    # To be filled in

    def view(self, round: int, agent: int) -> dict[str, Any]:
        """Return what the agent sees. Must not change anything."""
        return {}

    def act(self, round: int, agent: int, action: Action) -> dict[str, Any] | None:
        """Carry out an action whose arguments are there and of the right type; raise `Rejected` to refuse it.

        Returns the arguments that the stream shows, where they are others than those of the action.
        """
        raise NotImplementedError

    @property
    def over(self) -> bool:
        return False

    def turns(self, round: int) -> Sequence[Sequence[int]]:
        """Return one group with all agents: they act on the same picture."""
        acting = self.exclude_muted(round, self.people)
        return [acting] if acting else []

    def explain_absence(self, round: int, agent: int) -> str:
        """Return why an agent has no turn in a round."""
        if agent in self.absent:
            return "not there"
        return f"muted until round {self.muted_until[agent]}" if self.is_muted(round, agent) else "no turn"

    # What comes with it

    def is_muted(self, round: int, agent: int) -> bool:
        """Return whether an agent takes no turn, as it is kept from it or not there."""
        return agent in self.absent or self.muted_until.get(agent, 0) > round

    def exclude_muted(self, round: int, agents: Iterable[int]) -> list[int]:
        return [agent for agent in agents if not self.is_muted(round, agent)]

    def add(self, statement: str, *row: Any) -> None:
        """Add a row for the database."""
        self._rows.setdefault(statement, []).append(row)

    def observe(self, round: int, agents: Sequence[int]) -> Sequence[Observation]:
        time = self.timestamp(round)
        return [
            ViewObservation(
                world=self.name, round=round, agent=agent, name=self.names[agent], time=time,
                view=self.view(round, agent), announcements=tuple(self._news.get(agent, ())),
            )
            for agent in agents
        ]  # fmt: skip

    def begin(self, round: int) -> None:
        """Add all people who are there from the start, before the first round."""
        if round == 0:
            for agent in self.people:
                if agent not in self._unknown:
                    self._add_user(0, agent)
            self.add(SIGN_UP)

    def _add_user(self, round: int, agent: int) -> None:
        who = self.given.population[agent]
        self.add(_USER, agent, agent, who.username, who.name, who.bio, round)

    def join(self, round: int, agent: int) -> None:
        """Let in an agent that was not there."""
        self.absent.discard(agent)
        if agent in self._unknown:
            self._unknown -= {agent}
            self._add_user(round, agent)
            self.add(SIGN_UP_LATER, agent)

    def leave(self, round: int, agent: int) -> None:
        """Let an agent go."""
        self.absent.add(agent)
        self._news.pop(agent, None)

    def happen(self, round: int, happening: Happening) -> Sequence[Event | Notice]:
        if happening.kind == "broadcast":
            for agent in happening.to or self.people:
                if agent not in self.absent:
                    self._news.setdefault(agent, []).append(happening.content)
        elif happening.kind == "mute":
            until = round + int(happening.args.get("rounds", 1))
            self.muted_until.update((agent, max(until, self.muted_until.get(agent, 0))) for agent in happening.to)
        elif happening.kind in ("join", "leave"):
            for agent in happening.to:
                if (agent in self.absent) == (happening.kind == "join"):
                    getattr(self, happening.kind)(round, agent)
        return [happening.notice(round, self.timestamp(round))]

    def apply(self, round: int, agent: int, decision: Decision) -> Sequence[Event]:
        self._news.pop(agent, None)
        failure = decision.failure
        if failure not in (None, "timeout"):
            failure = f"{failure}: {decision.reason}"
        actions = decision.actions if failure is None else ()
        name, time, events = self.names[agent], self.timestamp(round), []
        for n, action in enumerate(actions or (Action(DO_NOTHING),)):
            refusal, args = failure, action.args
            if refusal is None:
                try:
                    args = self._try(round, agent, n, action)
                except Rejected as rejected:
                    refusal = str(rejected)
            number = f"{self.name}-{round}-{agent}-{n}"
            events.append(Event(round, agent, name, action.kind, args, refusal is None, refusal, time, number))
        return events

    def _try(self, round: int, agent: int, n: int, action: Action) -> dict[str, Any]:
        """Carry out the n-th action of a turn, and return the arguments that the stream shows."""
        args: dict[str, Any] | None = None
        if n >= MAX_ACTIONS_PER_TURN:
            raise Rejected(f"more than {MAX_ACTIONS_PER_TURN} actions in one turn")
        if action.kind != DO_NOTHING:
            if action.kind not in self.actions:
                raise Rejected(f"there is no action {action.kind}")
            check_args(action, self.actions[action.kind])
            args = self.act(round, agent, action)
            self.done_by[agent] += 1
        if args is None:
            args = action.args
        self.add(TRACE, agent, round, action.kind.lower(), encode_info(args))
        return args

    def writes(self) -> Writes:
        rows, self._rows = self._rows, {}
        return rows

    def figures(self) -> Mapping[tuple[str, str], float]:
        """Return how unequally people take part, and which share of them each claim has reached."""
        there = max(len(self.people) - len(self.absent), 1)
        reach = {("reach", claim): len(agents - self.absent) / there for claim, agents in self.reached.items()}
        done_by = self.done_by
        if self.absent:
            done_by = [done for agent, done in enumerate(done_by) if agent not in self.absent]
        return {("inequality", ""): measure_inequality(done_by), **reach}

    def timestamp(self, round: int) -> str:
        return self.given.clock.stamp(round)

    def hours(self, round: int) -> float:
        return self.given.clock.hours_gone(round)


def encode_info(info: Mapping[str, Any]) -> str:
    """Return what the trace table keeps of an action."""
    return _encode(info).decode()


def read_mention(reader: TextReader, args: Mapping[str, Any], words: str) -> Mention | None:
    """Return what a text says of a claim: as its author states it, else as the words are read."""
    claim = args.get("claim")
    if claim is None:
        return reader.find_mention(words)
    if claim not in reader.claims:
        raise Rejected(f"there is no claim {claim!r}")
    return Mention(claim, check_lean(args.get("lean", 0.0)))


def check_lean(lean: object) -> float:
    """Return which way a text leans, as its author states it."""
    if not isinstance(lean, int | float) or isinstance(lean, bool) or not -1 <= lean <= 1:
        raise Rejected("lean must be a number between -1 and 1")
    return float(lean)


def show_stated(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an author states about a text, as the stream shows it beside the text."""
    return {name: args[name] for name in ("claim", "lean") if args.get(name) is not None}


_IN_WORDS: Mapping[type, str] = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


def check_args(action: Action, needs: Needs) -> None:
    """Refuse an action that lacks an argument it needs. A whole number may stand where a number is needed."""
    for name, kind in needs.items():
        given = type(action.args.get(name))
        if given is not kind and (kind is not float or given is not int):
            raise Rejected(f"{action.kind} needs {name} ({_IN_WORDS.get(kind, kind.__name__)})")
