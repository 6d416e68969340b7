"""The observable state of a run, `run_state.json`."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from shoal.engine import Metrics, Seats
from shoal.journal import JournalMark, digest
from shoal.models import Pause
from shoal.scenario import Scenario, build_clock
from shoal.types import Versioned
from shoal.unix import read_lock

#: How the sinks of a run stand, and the lock of the process that copies into them.
SINKS, SINKS_LOCK = "sinks.json", "sinks.lock"


class Status(StrEnum):
    """Where a run stands. A status knows its successors."""

    IDLE = "idle"
    #: A process is starting a worker. The lock that it holds says so; the state's file never does.
    STARTING = "starting"
    RUNNING = "running"
    #: A worker waits: until a user lets it go on, or for a model's server that does not answer.
    PAUSED = "paused"
    #: A process is stopping the worker; as with `STARTING`, a lock says it.
    STOPPING = "stopping"
    STOPPED = "stopped"
    COMPLETED = "completed"
    FAILED = "failed"

    def check_next(self, status: Status) -> None:
        if status not in SUCCESSORS[self]:
            raise AssertionError(f"a run that is {self} cannot become {status}")

    @property
    def is_working(self) -> bool:
        """Whether a worker is on the run, unless it was killed."""
        return self in (Status.RUNNING, Status.PAUSED)

    @property
    def is_live(self) -> bool:
        """Whether something may still happen by itself."""
        return self.is_working or self in (Status.STARTING, Status.STOPPING)

    @property
    def resumable(self) -> bool:
        """Whether starting it would continue it."""
        return self is not Status.COMPLETED


#: Everything that may become of a run. A worker that was killed leaves `running` or `paused` behind, and the next one
#: starts from there; a complete run may be extended.
SUCCESSORS: Mapping[Status, frozenset[Status]] = {
    Status.IDLE: frozenset({Status.RUNNING, Status.FAILED}),
    Status.STARTING: frozenset({Status.RUNNING, Status.FAILED}),
    Status.RUNNING: frozenset({Status.RUNNING, Status.PAUSED, Status.STOPPED, Status.COMPLETED, Status.FAILED}),
    Status.PAUSED: frozenset({Status.RUNNING, Status.STOPPED, Status.FAILED}),
    Status.STOPPING: frozenset({Status.STOPPED, Status.COMPLETED, Status.FAILED}),
    Status.STOPPED: frozenset({Status.RUNNING, Status.FAILED}),
    Status.COMPLETED: frozenset({Status.RUNNING, Status.FAILED}),
    Status.FAILED: frozenset({Status.RUNNING, Status.FAILED}),
}


class WorldState(msgspec.Struct):
    """How far one world is."""

    current_round: int = 0
    simulated_hours: float = 0.0
    running: bool = False
    completed: bool = False
    #: Whether its history came to its own end, and not just to the last round.
    ended: bool = False
    actions_count: int = 0
    rejected: int = 0
    digest: str = ""
    #: The last round whose time is in the run's metrics: rounds that are only repeated are not measured again.
    measured_round: int = -1


class WaitState(msgspec.Struct, frozen=True):
    """What a paused run waits for."""

    model: str
    reason: str
    since: str
    #: When it stops, if nothing changes.
    until: str

    @classmethod
    def of(cls, pause: Pause) -> WaitState:
        until = pause.since + pause.patience_seconds
        return cls(pause.model, pause.reason, format_moment(pause.since), format_moment(until))


class SeatTurn(msgspec.Struct, frozen=True):
    """A turn that waits for the person in a seat."""

    world: str
    round: int
    since: str
    until: str


class SeatState(msgspec.Struct, frozen=True):
    """A seat that a person has taken, and the turns that wait for that person."""

    agent: int
    name: str
    since_round: int
    #: How long the person may take for a turn, and who decides after that.
    seconds: float
    otherwise: str
    turns: list[SeatTurn] = []

    @classmethod
    def list_all(cls, seats: Seats, names: Sequence[str]) -> list[SeatState]:
        """List the seats of a run that are taken."""
        return [
            cls(
                agent,
                names[agent],
                since,
                terms.seconds,
                terms.otherwise,
                [
                    SeatTurn(
                        turn.observation.world,
                        turn.observation.round,
                        format_moment(turn.since),
                        format_moment(turn.until),
                    )
                    for turn in seats.list_waiting(agent)
                ],
            )
            for agent, (since, terms) in seats.list_taken().items()
        ]

    def without_turns(self) -> SeatState:
        return msgspec.structs.replace(self, turns=[])


class SinkStatus(StrEnum):
    """How a place stands that a run is copied to."""

    FOLLOWS = "follows"
    COMPLETE = "complete"
    FAILED = "failed"
    HANGS = "hangs"
    #: No process copies any more, and not everything was copied.
    LEFT = "left"


class SinkState(msgspec.Struct):
    """How far a run was copied to one place."""

    status: SinkStatus = SinkStatus.FOLLOWS
    #: Copied by the process that follows now, or did last.
    episodes: int = 0
    retries: int = 0
    error: str | None = None
    since: str | None = None
    updated_at: str | None = None


def read_sinks(run: Path) -> dict[str, SinkState]:
    """Read how the sinks of a run stand; what cannot be read is not known."""
    try:
        found = msgspec.json.decode((run / SINKS).read_bytes(), type=dict[str, SinkState])
    except (OSError, msgspec.DecodeError):
        return {}
    if read_lock(run / SINKS_LOCK) is None:
        for sink in found.values():
            if sink.status is SinkStatus.FOLLOWS:
                sink.status, sink.error = SinkStatus.LEFT, "the process that copied was killed; start the run again"
    return found


class RunState(msgspec.Struct):
    """How far a run is. The counts are copied from the worker's `RunProgress` whenever the file is written."""

    simulation_id: str
    worlds: dict[str, WorldState]
    total_rounds: int = 0
    total_simulation_hours: float = 0.0
    runner_status: Status = Status.IDLE
    calls: int = 0
    #: Dollars; None where a model's price is not known.
    cost: float | None = 0.0
    errors: int = 0
    timeouts: int = 0
    started_at: str | None = None
    updated_at: str | None = None
    completed_at: str | None = None
    error: str | None = None
    #: The model's server that it waits for; None while it goes on, and while a user has paused it.
    waiting: WaitState | None = None
    process_pid: int | None = None
    #: Whether its worker answers commands, as `env_status.json` says to their senders.
    takes_commands: bool = False
    metrics: Metrics = msgspec.field(default_factory=Metrics)
    #: What language models cost: calls, tokens, retries, failures by kind.
    spending: dict[str, Any] | None = None
    #: How much of the prompts repeats the beginning of an earlier one, over the rounds that were run or repeated.
    prefixes: dict[str, Any] | None = None
    #: How many calls at once: this run's, and what was learned about each model's server.
    limits: dict[str, Any] | None = None
    #: The verdict about the run and its reasons, once it is complete.
    quality: dict[str, Any] | None = None
    #: The places that the run is copied to, by their kind. Read from `sinks.json`: the worker knows nothing of them.
    sinks: dict[str, SinkState] = {}
    #: The seats that people have taken, and what waits for them.
    seats: list[SeatState] = []
    #: How far the journal was written; None in states of versions that did not write it down.
    journal: JournalMark | None = None

    def plan(self, versions: Versioned[Scenario]) -> None:
        """Set how far the run is to go."""
        self.total_rounds = versions.latest.rounds
        self.total_simulation_hours = build_clock(versions).hours_gone(self.total_rounds)

    def become(self, status: Status, error: str | None = None) -> None:
        self.runner_status.check_next(status)
        self.runner_status = status
        self.error = error
        now = wall_clock()
        if status is Status.RUNNING:
            self.started_at = self.started_at or now
        if status is Status.COMPLETED:
            self.completed_at = now
        for world in self.worlds.values():
            world.running = status.is_working and not world.completed

    def is_over(self, rounds: int) -> bool:
        """Return whether nothing is left to do up to a round. A run that was extended has something left."""
        return self.runner_status is Status.COMPLETED and self.total_rounds == rounds

    @property
    def has_ended(self) -> bool:
        """Whether the history came to its own end in every world: it has no more rounds."""
        return bool(self.worlds) and all(world.ended for world in self.worlds.values())

    @property
    def completed_seconds(self) -> float | None:
        """When it completed, in seconds since 1970."""
        return None if self.completed_at is None else datetime.fromisoformat(self.completed_at).timestamp()

    @property
    def current_round(self) -> int:
        return max((world.current_round for world in self.worlds.values()), default=0)

    @property
    def actions_count(self) -> int:
        return sum(world.actions_count for world in self.worlds.values())

    @property
    def progress_percent(self) -> float:
        """A world that ended by itself is complete, however many rounds were planned."""
        if self.worlds and all(world.completed for world in self.worlds.values()):
            return 100.0
        return round(100 * self.current_round / max(self.total_rounds, 1), 1)

    def to_json(self) -> dict[str, Any]:
        """Return the content of the file, except for the fields that only MiroFish's clients read."""
        content: dict[str, Any] = msgspec.to_builtins(self)
        return content | {
            "current_round": self.current_round,
            "simulated_hours": max((world.simulated_hours for world in self.worlds.values()), default=0.0),
            "progress_percent": self.progress_percent,
            "resumable": self.runner_status.resumable,
            "measured": self.metrics.as_dict() if self.metrics.steps else None,
        }


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How far a run has come."""

    run: str
    status: Status
    digest: str
    rounds: int
    actions: int
    calls: int
    #: Dollars; None where a model's price is not known.
    cost: float | None
    errors: int
    timeouts: int
    #: The verdict about the run and its reasons, once it is complete.
    quality: dict[str, Any] | None = None

    @classmethod
    def of(cls, run: Path, state: RunState) -> RunOutcome:
        return cls(
            run=str(run),
            status=state.runner_status,
            digest=digest(sorted((name, world.digest) for name, world in state.worlds.items())),
            rounds=state.current_round,
            actions=state.actions_count,
            calls=state.calls,
            cost=state.cost,
            errors=state.errors,
            timeouts=state.timeouts,
            quality=state.quality,
        )


def wall_clock() -> str:
    """Return the time now, for files that say when something was written; never for what happens in a run."""
    return format_moment(time.time())


def format_moment(seconds: float) -> str:
    """Return a moment, given in seconds since 1970."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
