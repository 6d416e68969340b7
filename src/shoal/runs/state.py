"""The observable state of a run, `run_state.json`."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import msgspec

from shoal.engine import Metrics
from shoal.scenario import Scenario, build_clock
from shoal.types import Versioned


class Status(StrEnum):
    """Where a run stands. A status knows its successors."""

    IDLE = "idle"
    RUNNING = "running"
    STOPPED = "stopped"
    COMPLETED = "completed"
    FAILED = "failed"

    def check_next(self, status: Status) -> None:
        if status not in _SUCCESSORS[self]:
            raise AssertionError(f"a run that is {self} cannot become {status}")

    @property
    def resumable(self) -> bool:
        """Whether starting it would continue it."""
        return self is not Status.COMPLETED


_SUCCESSORS = {
    Status.IDLE: {Status.RUNNING},
    # A worker that was killed leaves `running` behind; the next one starts from there.
    Status.RUNNING: {Status.RUNNING, Status.STOPPED, Status.COMPLETED, Status.FAILED},
    Status.STOPPED: {Status.RUNNING},
    # A complete run may be extended.
    Status.COMPLETED: {Status.RUNNING},
    Status.FAILED: {Status.RUNNING},
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
    process_pid: int | None = None
    metrics: Metrics = msgspec.field(default_factory=Metrics)
    #: What language models cost: calls, tokens, retries, failures by kind.
    spending: dict[str, Any] | None = None
    #: How much of the prompts repeats the beginning of an earlier one, over the rounds that were run or repeated.
    prefixes: dict[str, Any] | None = None
    #: How many calls at once: this run's, and what was learned about each model's server.
    limits: dict[str, Any] | None = None

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
            world.running = status is Status.RUNNING and not world.completed

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


def wall_clock() -> str:
    """Return the time now, for files that say when something was written; never for what happens in a run."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
