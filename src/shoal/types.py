"""The shared nouns: actions, decisions, observations, events, worlds, minds, people."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from enum import Enum
from inspect import iscoroutinefunction
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
S = TypeVar("S")

#: The most actions of one agent in one turn. With the events in its name, it bounds the numbers of new posts.
MAX_ACTIONS_PER_TURN = 32
#: How much of its strength a question leans against the claim that it doubts.
_DOUBT = 0.25


Truth = Literal["true", "false", "open"]


class Claim(msgspec.Struct, frozen=True):
    """A statement that people may believe or not."""

    id: str
    text: str
    truth: Truth = "open"
    #: What believing it means for the topic: 1 speaks for it, -1 against it, 0 neither.
    bearing: float = 0.0
    #: What people think of it at the start, -1 (sure it is false) to 1.
    belief: float = 0.0
    #: How much likelier people are to pass it on than anything else.
    appeal: float = 1.0


class Mention(msgspec.Struct, frozen=True, gc=False):
    """What a text says of a claim."""

    claim: str
    #: 1 supports it, -1 denies it; a question leans a little against it.
    lean: float

    @classmethod
    def of(cls, supports: str | None, denies: str | None, questions: str | None, strength: float) -> Mention | None:
        """Return what a text says that was declared to support, deny or question a claim; None where it was not."""
        for claim, lean in ((supports, 1.0), (denies, -1.0), (questions, -_DOUBT)):
            if claim is not None:
                return cls(claim, lean * strength)
        return None


class Action(msgspec.Struct, frozen=True, gc=False):
    """What an agent wants to do: `Action("LIKE_POST", {"post_id": 17})`."""

    kind: str
    args: dict[str, Any] = {}


class Decision(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One agent's whole turn, or why there is none."""

    actions: tuple[Action, ...] = ()
    #: What went wrong: `timeout`, `error` or `unusable`; None for a decision.
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
    """What one agent sees in its turn. Each kind of world extends it."""

    world: str
    round: int
    agent: int
    name: str
    #: Simulated time, ISO 8601.
    time: str
    #: The agent's own actions that are not visible yet (only with visibility above 1).
    pending: tuple[Action, ...] = ()
    #: The situation that the agent is in, until it changes; unset where none is declared.
    context: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET

    def sources(self) -> Iterable[tuple[int, object]]:
        """Return the agents it shows something of, and what, so that a difference can be traced to agents."""
        return ()


class Event(msgspec.Struct, frozen=True, gc=False):
    """The result of one action: a line of actions.jsonl."""

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
    """Something that happened without an agent: a line of actions.jsonl."""

    event_type: str
    round: int
    content: str
    #: The agents it was shown to; empty means all.
    to: tuple[int, ...]
    timestamp: str
    #: What it says of a claim, where the scenario declares that.
    mention: Mention | msgspec.UnsetType = msgspec.UNSET


class Happening(msgspec.Struct, frozen=True, gc=False):
    """Something caused by the scenario, by a user from outside, or by an intervention.

    Every world knows `broadcast`, `mute` and `change`. Other kinds depend on the world. `stop` ends it.
    """

    kind: str
    content: str = ""
    #: The agent in whose name it happens.
    agent: int | None = None
    #: The agents it concerns; empty means all.
    to: tuple[int, ...] = ()
    args: dict[str, Any] = {}

    #: What it says of a claim.
    mention: Mention | None = None

    def notice(self, round: int, timestamp: str) -> Notice:
        return Notice(self.kind, round, self.content, self.to, timestamp, self.mention or msgspec.UNSET)


@dataclass(frozen=True, slots=True)
class Versioned(Generic[T]):
    """A value that may change at the start of some rounds, as in a fork."""

    first: T
    changes: tuple[tuple[int, T], ...] = ()

    def at(self, round: int) -> T:
        """Return the version that is in force in a round."""
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
    """Decides what an agent sees and what an action does. It has one history and one writer, no I/O and no clock.

    The engine calls, for each round in order: `turns`, then per group `observe` for all of the group, then `apply` for
    every turn of the group in seeded order, and `writes` once at the end of the round. `begin` comes before the
    first `apply` of a round; round 0 has only `begin`. `happen` comes before `turns`, so that agents act on it. A post
    is made right after `begin`, and becomes visible as late as any other.
    """

    name: str
    #: Rounds until other agents see an action. The engine keeps that many rounds in flight.
    visibility: int
    #: SQL that creates the world's tables.
    schema: str
    #: SQL that creates the indexes, run when a complete history is closed.
    indexes: str

    @property
    def absent(self) -> Set[int]:
        """The agents that have not joined yet, or have left."""
        ...

    @property
    def over(self) -> bool:
        """Whether nothing more will happen, whatever the number of rounds."""
        ...

    def turns(self, round: int) -> Sequence[Sequence[int]]:
        """Return the agents that act, in groups. The agents of a group see the same state of the world."""
        ...

    def observe(self, round: int, agents: Sequence[int]) -> Sequence[Observation]:
        """Return what each of the agents sees. A pure read."""
        ...

    def begin(self, round: int) -> None:
        """Begin a round. From here on the world changes."""
        ...

    def happen(self, round: int, happening: Happening) -> Sequence[Event | Notice]:
        """Carry out a happening, and return its events."""
        ...

    def apply(self, round: int, agent: int, decision: Decision) -> Sequence[Event]:
        """Carry out one agent's turn. A rejected action and a failed turn are events too."""
        ...

    def writes(self) -> Writes:
        """Return the database rows since the last call."""
        ...

    def figures(self) -> Mapping[tuple[str, str], float]:
        """Return figures of the world as it is, by name and what they are about: `("reach", "bridge")`."""
        ...

    def timestamp(self, round: int) -> str:
        """Return the simulated time of the round, ISO 8601 with offset."""
        ...

    def hours(self, round: int) -> float:
        """Return the simulated hours that have passed at the end of the round."""
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
    """Makes the decisions of the agents of one world. Subclass it and define `decide`; the docs have an example.

    A mind that is a pure function of seed and past observations returns its decision at once. A mind that asks
    something outside (a model, a person) sets `outside`, and its `decide` is a coroutine. Each of its decisions is
    journaled under what `request` says it depends on, and is never asked for twice.
    """

    outside: ClassVar[bool] = False

    def __init_subclass__(cls, **more: Any) -> None:
        """Take a coroutine for what it is: a mind that is awaited asks outside."""
        super().__init_subclass__(**more)
        if iscoroutinefunction(cls.decide):
            cls.outside = True

    def __init__(self, given: Any = None, settings: Mapping[str, Any] | None = None) -> None:
        """Take the context of the world (`shoal.worlds.WorldContext`) and the settings of the scenario."""
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
        """Return the agent's decision, or a coroutine if `outside` is set."""
        raise NotImplementedError

    async def prepare(self, observation: Observation) -> None:
        """Wait for what the agent should know by now. Called once before each decision of a self-journaling mind."""

    def absorb(self, observation: Observation, decision: Decision) -> None:
        """Remember the turn. Called once per turn in order, also if the decision came from the journal."""

    @property
    def learns(self) -> bool:
        """Whether the mind wants to know what happened in each round, by anybody."""
        return False

    def learn(self, round: int, happened: Sequence[Event | Notice]) -> None:
        """Take in what happened in a round of the world, once it is complete. Called if `learns`, in order."""

    def take_results(self, round: int, agent: int, events: Sequence[Event]) -> None:
        """Take over the results of a turn: an event for each action. Called once per turn if `outside` is set.

        With visibility above 1, an agent may decide again before this is called.
        """

    def change(self, agent: int, traits: Mapping[str, Any]) -> None:
        """Take over a change by an intervention, as `{"stance": 0.5}`. Called before the agent's next decision."""

    def opinions(self) -> Sequence[float]:
        """Return every agent's current opinion on the scenario's topic, -1 to 1; empty if they are unknown."""
        return ()

    async def measure(self, round: int) -> None:
        """Find out what agents think at the end of a round, where they must be asked for that. Changes no history."""

    def beliefs(self) -> Mapping[str, Sequence[float]]:
        """Return every agent's belief in each claim by its id, -1 (sure it is false) to 1; empty if unknown."""
        return {}

    def explain(self, observation: Observation) -> Mapping[str, Any]:
        """Return what a decision depends on besides the observation: memory, chances, prompt. Decides nothing."""
        return {}

    async def close(self) -> None:
        """End what is still under way, as the run is over or stops."""


@dataclass(frozen=True, slots=True)
class Persona:
    """One person, as other agents and language models see them."""

    name: str
    username: str
    bio: str
    persona: str
    interests: tuple[str, ...]
    #: Opinion on the scenario's topic, -1 to 1; None where nothing is said about it.
    stance: float | None
    activity: float
    traits: Mapping[str, Any] = field(default_factory=dict)
    #: Traits that the persona tells already.
    told: frozenset[str] = frozenset()


@dataclass(slots=True)
class Habits:
    """Optional behaviour of people, column by column; None if no person sets it."""

    #: How much a person's words count with others; 1 is usual.
    influence: NDArray[np.float32] | None = None
    #: The mood of what a person writes, -1 (gloomy) to 1 (bright); 0 is usual.
    sentiment: NDArray[np.float32] | None = None
    #: Posts and comments per simulated hour of activity; NaN leaves it to the mind.
    posts_per_hour: NDArray[np.float32] | None = None
    comments_per_hour: NDArray[np.float32] | None = None
    #: [people, 2]: shortest and longest time in minutes until a person sees a post; 0 is usual.
    response_delay: NDArray[np.int32] | None = None


#: Habits with one number, and their default.
USUAL_HABITS: Mapping[str, float] = {
    "influence": 1.0,
    "sentiment": 0.0,
    "posts_per_hour": math.nan,
    "comments_per_hour": math.nan,
}


class Population(Protocol):
    """All people, column by column, so that a million fit into memory. Agent i is row i everywhere."""

    names: Sequence[str]
    #: The vocabulary that `interests` indexes.
    topics: Sequence[str]
    #: [people, k] indices into topics, padded with -1.
    interests: NDArray[np.int16]
    #: Opinion on the scenario's topic, -1 (against) to 1 (for).
    stances: NDArray[np.float32]
    #: Chance to act in a round, before the hour of the day is considered.
    activity: NDArray[np.float32]
    #: Bit h set: awake in hour h.
    active_hours: NDArray[np.uint32]
    habits: Habits
    #: Agents that are no people but assistants under test.
    assistants: frozenset[int]

    def __len__(self) -> int: ...

    def __getitem__(self, agent: int) -> Persona: ...


@dataclass(frozen=True, slots=True)
class FollowGraph:
    """The follow relations as compressed rows: agent i follows `targets[starts[i]:starts[i + 1]]`, sorted."""

    starts: NDArray[np.int64]
    targets: NDArray[np.int32]

    @property
    def edges(self) -> int:
        return len(self.targets)

    def leave_out(self, absent: Set[int]) -> FollowGraph:
        """Return the graph without the edges of people who are not there."""
        if not absent:
            return self
        away = np.zeros(len(self.starts) - 1, np.bool_)
        away[list(absent)] = True
        sources = np.repeat(np.arange(len(away)), np.diff(self.starts))
        kept = ~(away[sources] | away[self.targets])
        counts = np.bincount(sources[kept], minlength=len(away))
        return FollowGraph(np.concatenate([[0], np.cumsum(counts)]), self.targets[kept])

    def list_edges_of(self, agent: int) -> list[tuple[int, int, int]]:
        """List the edges from and to an agent: the place of each in the graph, the follower and the followed."""
        first, end = int(self.starts[agent]), int(self.starts[agent + 1])
        edges = [(place, agent, int(self.targets[place])) for place in range(first, end)]
        places = np.flatnonzero(self.targets == agent)
        followers = np.searchsorted(self.starts, places, side="right") - 1
        return edges + [(place, who, agent) for place, who in zip(places.tolist(), followers.tolist(), strict=True)]

    def enlarge(self, people: int) -> FollowGraph:
        """Return the graph with further people, who have no ties yet."""
        more = people + 1 - len(self.starts)
        return FollowGraph(np.append(self.starts, [self.edges] * more), self.targets) if more else self
