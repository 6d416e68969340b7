"""Measured times of rounds and decisions. Nothing here enters the history."""

from __future__ import annotations

import math
from typing import Any

import msgspec

#: Buckets of latencies grow by 4 %, so a percentile is right within 2 %.
_GROWTH = math.log(1.04)
_SHORTEST_SECONDS = 1e-7


class Latencies(msgspec.Struct):
    """A histogram of how long decisions took, so that millions of them take little memory and can be merged."""

    buckets: dict[int, int] = {}
    longest: float = 0.0

    def add(self, seconds: float) -> None:
        bucket = int(math.log(max(seconds, _SHORTEST_SECONDS) / _SHORTEST_SECONDS) / _GROWTH)
        self.buckets[bucket] = self.buckets.get(bucket, 0) + 1
        self.longest = max(self.longest, seconds)

    def merge(self, other: Latencies) -> None:
        for bucket, count in other.buckets.items():
            self.buckets[bucket] = self.buckets.get(bucket, 0) + count
        self.longest = max(self.longest, other.longest)

    @property
    def count(self) -> int:
        return sum(self.buckets.values())

    def percentile(self, percent: float) -> float:
        """Return the seconds within which this percentage of decisions was made; 0 if there were none."""
        left = percent / 100 * self.count
        for bucket in sorted(self.buckets):
            left -= self.buckets[bucket]
            if left <= 0:
                return min(_SHORTEST_SECONDS * math.exp((bucket + 0.5) * _GROWTH), self.longest)
        return self.longest

    def milliseconds(self) -> dict[str, float]:
        figures = {f"p{percent}": self.percentile(percent) for percent in (50, 90, 99)} | {"max": self.longest}
        return {name: round(seconds * 1000, 3) for name, seconds in figures.items()}


class Step(msgspec.Struct, frozen=True):
    """The timing of one round."""

    #: `parallel`: all agents acted on one view; `sequential`: each saw what the one before did; `idle`: none acted.
    mode: str = "idle"
    seconds: float = 0.0
    #: Total time of all decisions, without waiting for a free worker.
    deciding_seconds: float = 0.0
    latencies: Latencies = msgspec.field(default_factory=Latencies)

    @property
    def speedup(self) -> float | None:
        """How much longer the decisions would have taken one after another; None if none was made."""
        return self.deciding_seconds / self.seconds if self.seconds and self.deciding_seconds else None


class Metrics(msgspec.Struct):
    """Sums over the steps of a run so far. Decisions from the journal took no time and are not counted."""

    parallel_steps: int = 0
    sequential_steps: int = 0
    parallel_seconds: float = 0.0
    parallel_deciding_seconds: float = 0.0
    sequential_seconds: float = 0.0
    sequential_deciding_seconds: float = 0.0
    decisions: int = 0
    errors: int = 0
    timeouts: int = 0
    latencies: Latencies = msgspec.field(default_factory=Latencies)

    @property
    def steps(self) -> int:
        return self.parallel_steps + self.sequential_steps

    def add_step(self, step: Step, errors: int, timeouts: int) -> None:
        if step.mode == "parallel":
            self.parallel_steps += 1
            self.parallel_seconds += step.seconds
            self.parallel_deciding_seconds += step.deciding_seconds
        elif step.mode == "sequential":
            self.sequential_steps += 1
            self.sequential_seconds += step.seconds
            self.sequential_deciding_seconds += step.deciding_seconds
        self.decisions += step.latencies.count
        self.errors += errors
        self.timeouts += timeouts
        self.latencies.merge(step.latencies)

    @property
    def speedup(self) -> float | None:
        """Of the parallel steps: total time of the decisions, divided by the time of the steps."""
        return _ratio(self.parallel_deciding_seconds, self.parallel_seconds)

    @property
    def sequential_speedup(self) -> float | None:
        """Of the sequential steps: at most 1, and less by all that is not deciding."""
        return _ratio(self.sequential_deciding_seconds, self.sequential_seconds)

    def as_dict(self) -> dict[str, Any]:
        """Return the figures for summaries."""
        return {
            "parallel_steps": self.parallel_steps,
            "sequential_steps": self.sequential_steps,
            "speedup": self.speedup,
            "sequential_speedup": self.sequential_speedup,
            "decisions": self.decisions,
            "errors": self.errors,
            "timeouts": self.timeouts,
            "latency_ms": self.latencies.milliseconds(),
        }


def _ratio(deciding: float, seconds: float) -> float | None:
    return round(deciding / seconds, 3) if deciding and seconds else None
