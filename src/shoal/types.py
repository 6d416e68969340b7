"""The shared nouns: what the rooms say to one another."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
S = TypeVar("S")

#: What one agent may do in one turn; together with what events do in its name it bounds the numbers of new things.
MAX_ACTIONS_PER_TURN = 32


class Action(msgspec.Struct, frozen=True, gc=False):
    """What an agent wants to do: `Action("LIKE_POST", {"post_id": 17})`."""

    kind: str
    args: dict[str, Any] = {}


class Decision(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One agent's whole turn, or why there is none."""

    actions: tuple[Action, ...] = ()
    #: None, or what went wrong: `timeout`, `error` or `unusable`.
    failure: str | None = None
    reason: str | None = None

    @classmethod
    def timed_out(cls, seconds: float) -> Decision:
        return cls(failure="timeout", reason=f"no decision within {seconds:g} s")

    @classmethod
    def failed(cls, error: BaseException) -> Decision:
        return cls(failure="error", reason=f"{type(error).__name__}: {error}")

    @classmethod
    def unusable(cls, reason: str) -> Decision:
        return cls(failure="unusable", reason=reason)


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """What one agent sees when its turn comes. Worlds extend it with what there is to see in them."""

    world: str
    round: int
    agent: int
    name: str
    #: Simulated time, ISO 8601.
    time: str
    #: The agent's own actions that nobody can see yet (only with visibility above 1).
    pending: tuple[Action, ...] = ()

    def sources(self) -> Iterable[tuple[int, object]]:
        """Whom the agent sees something of, and what: so that a change in the picture can be traced to people."""
        return ()


class Event(msgspec.Struct, frozen=True, gc=False):
    """What became of one action; a line of actions.jsonl."""

    round: int
    agent_id: int
    agent_name: str
    action_type: str
    action_args: dict[str, Any]
    success: bool
    result: str | None
    timestamp: str
    id: str


class Notice(msgspec.Struct, frozen=True, gc=False):
    """Something that happened which no agent did; a line of actions.jsonl."""

    event_type: str
    round: int
    content: str
    #: Who was told; empty means everybody.
    to: tuple[int, ...]
    timestamp: str


class Happening(msgspec.Struct, frozen=True, gc=False):
    """Something that is made to happen: by the scenario, by a person from outside, or by an intervention.

    Every world knows `broadcast`, `mute` and `change`; what else there is depends on the world. `stop` ends it.
    """

    kind: str
    content: str = ""
    #: In whose name.
    agent: int | None = None
    #: Whom it concerns; empty means everybody.
    to: tuple[int, ...] = ()
    args: dict[str, Any] = {}

    def notice(self, round: int, timestamp: str) -> Notice:
        return Notice(self.kind, round, self.content, self.to, timestamp)


@dataclass(frozen=True, slots=True)
class Versioned(Generic[T]):
    """A setting that may change at the start of some rounds, as it does where a run was forked."""

    first: T
    changes: tuple[tuple[int, T], ...] = ()

    def at(self, round: int) -> T:
        found = self.first
        for since, changed in self.changes:
            if round >= since:
                found = changed
        return found

    @property
    def latest(self) -> T:
        return self.changes[-1][1] if self.changes else self.first

    def versions(self) -> tuple[T, ...]:
        return (self.first, *(changed for _, changed in self.changes))

    def map(self, part: Callable[[T], S]) -> Versioned[S]:
        return Versioned(part(self.first), tuple((since, part(changed)) for since, changed in self.changes))


#: Rows for the world's database: SQL statement -> parameter rows, in the order in which they must be executed.
Writes = Mapping[str, Iterable[tuple[Any, ...]]]


class WorldProtocol(Protocol):
    """What an agent sees and what an action does. One history, one writer, no I/O and no clock of its own.

    The engine calls, for each round in order: `turns`, then per group `observe` for all of the group, then `apply` for
    every turn of the group in seeded order, and `writes` once at the end of the round. `begin` comes before the
    first `apply` of a round; round 0 has only `begin`. `happen` comes before `turns`, so that people act on what they
    are told; a post is made right after `begin`, and is seen as late as any other.
    """

    name: str
    #: Rounds until others see an action; the engine keeps that many rounds in flight.
    visibility: int
    #: SQL that creates the world's tables.
    schema: str
    #: SQL for what makes looking things up fast, and is only made when the history is complete.
    indexes: str

    @property
    def over(self) -> bool:
        """Whether nothing more will happen, whatever the number of rounds."""
        ...

    def turns(self, round: int) -> Sequence[Sequence[int]]:
        """Groups of agents; a group acts on the same picture of the world."""
        ...

    def observe(self, round: int, agents: Sequence[int]) -> Sequence[Observation]:
        """What each of them sees. A pure read."""
        ...

    def begin(self, round: int) -> None:
        """Enter the round: from here on it is changed."""
        ...

    def happen(self, round: int, happening: Happening) -> Sequence[Event | Notice]:
        """Let something happen that no agent decided on."""
        ...

    def apply(self, round: int, agent: int, decision: Decision) -> Sequence[Event]:
        """Carry out one agent's turn. A rejected action, and a turn that failed, is an event too."""
        ...

    def writes(self) -> Writes:
        """The database rows since the last call."""
        ...

    def timestamp(self, round: int) -> str:
        """Simulated time of the round, ISO 8601 with offset."""
        ...

    def hours(self, round: int) -> float:
        """Simulated hours gone by at the end of the round."""
        ...


class MindMode(Enum):
    """How an agent's decisions are made, and what of them is journaled."""

    #: By computation alone, at once. Nothing is journaled.
    PURE = "pure"
    #: By asking outside. The engine journals each decision.
    EXTERNAL = "external"
    #: By asking outside through a model that journals every reply. The engine journals only turns that failed.
    SELF_JOURNALING = "self-journaling"


class Mind:
    """Makes the decisions of the agents of one world. Subclass and fill in `decide`; see docs for an example.

    A mind that is a pure function of seed and past observations returns its decision at once. A mind that asks
    something outside (a model, a person) sets `outside`, and its `decide` is a coroutine. Each of its decisions is
    journaled under what `request` says it depends on, and is never asked for twice.
    """

    outside: ClassVar[bool] = False

    def __init__(self, given: Any = None, settings: Mapping[str, Any] | None = None) -> None:
        """Take the context of the world (`shoal.worlds.context.WorldContext`) and the settings of the scenario."""
        self.given = given
        self.settings = settings or {}

    def mode(self, agent: int) -> MindMode:
        """Return how this agent's decisions are made. Called only if `outside` is set."""
        return MindMode.EXTERNAL if self.outside else MindMode.PURE

    def deadline(self, agent: int, seconds: float) -> float | None:
        """Return how long this agent may take, given the scenario's deadline; None means any time."""
        return seconds

    def request(self, observation: Observation) -> object:
        """Return all that an outside decision depends on. A journaled reply answers only a request of equal digest."""
        return observation

    def decide(self, observation: Observation) -> Decision | Awaitable[Decision]:
        raise NotImplementedError

    async def prepare(self, observation: Observation) -> None:
        """Wait for what the agent should know by now. Called once before each decision of a self-journaling mind."""

    def absorb(self, observation: Observation, decision: Decision) -> None:
        """Remember the turn. Called once per turn in order, also when the decision came from the journal."""

    def change(self, agent: int, traits: Mapping[str, Any]) -> None:
        """An intervention changed something about an agent: `{"stance": 0.5}`. Called before its next decision."""

    def opinions(self) -> Sequence[float]:
        """What everybody thinks of the scenario's topic at the moment, -1 to 1; empty where that is not known."""
        return ()

    def explain(self, observation: Observation) -> Mapping[str, Any]:
        """What a decision about this observation rests on besides it: memory, chances, prompt. Decides nothing."""
        return {}

    async def close(self) -> None:
        """The run is over, or stops here: end what is still under way."""


@dataclass(frozen=True, slots=True)
class Persona:
    """One person, as others and language models get to know them."""

    name: str
    username: str
    bio: str
    persona: str
    interests: tuple[str, ...]
    stance: float
    activity: float
    traits: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Habits:
    """How people differ in what most leave to their mind, column by column; None where nobody does."""

    #: How much somebody's words count with others; 1 is usual.
    influence: NDArray[np.float32] | None = None
    #: Colours what somebody writes, -1 (gloomy) to 1 (bright); 0 is usual.
    sentiment: NDArray[np.float32] | None = None
    #: Posts and comments per simulated hour in which somebody acts; not a number: as the mind has it.
    posts_per_hour: NDArray[np.float32] | None = None
    comments_per_hour: NDArray[np.float32] | None = None
    #: [people, 2]: shortest and longest time in minutes until somebody comes across a post; 0 is usual.
    response_delay: NDArray[np.int32] | None = None


#: Habits that a number says, and what those have who do not say.
USUAL_HABITS: Mapping[str, float] = {
    "influence": 1.0,
    "sentiment": 0.0,
    "posts_per_hour": math.nan,
    "comments_per_hour": math.nan,
}


class Population(Protocol):
    """Everybody, column by column, so that a million people fit. Agent i is row i everywhere."""

    names: Sequence[str]
    #: The vocabulary that `interests` points into.
    topics: Sequence[str]
    #: [people, k] indices into topics, -1 where there are fewer.
    interests: NDArray[np.int16]
    #: Opinion on the scenario's topic, -1 (against) to 1 (for).
    stances: NDArray[np.float32]
    #: Chance to act in a round, before the hour of the day is taken into account.
    activity: NDArray[np.float32]
    #: Bit h set: awake in hour h.
    active_hours: NDArray[np.uint32]
    habits: Habits

    def __len__(self) -> int: ...

    def __getitem__(self, agent: int) -> Persona: ...


@dataclass(frozen=True, slots=True)
class FollowGraph:
    """Who follows whom, as compressed rows: agent i follows `targets[starts[i]:starts[i + 1]]`, sorted."""

    starts: NDArray[np.int64]
    targets: NDArray[np.int32]

    @property
    def edges(self) -> int:
        return len(self.targets)
