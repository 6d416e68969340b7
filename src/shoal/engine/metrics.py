"""What running cost in time, measured and never estimated. Nothing here enters the history."""

from __future__ import annotations

import math
from typing import Any

import msgspec

#: Buckets of latencies grow by 4 %, so a percentile is right within 2 %.
_GROWTH = math.log(1.04)
_SHORTEST_SECONDS = 1e-7


class Latencies(msgspec.Struct):
    """How long decisions took: counts in buckets, so that millions of them take no room and can be added up."""

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
        """Seconds within which so many of a hundred decisions were made; 0 if there were none."""
        left = percent / 100 * self.count
        for bucket in sorted(self.buckets):
            left -= self.buckets[bucket]
            if left <= 0:
                return min(_SHORTEST_SECONDS * math.exp((bucket + 0.5) * _GROWTH), self.longest)
        return self.longest

    def milliseconds(self) -> dict[str, float]:
        shown = {f"p{percent}": self.percentile(percent) for percent in (50, 90, 99)} | {"max": self.longest}
        return {name: round(seconds * 1000, 3) for name, seconds in shown.items()}


class Step(msgspec.Struct, frozen=True):
    """One round, timed."""

    #: `parallel`: all acted on one picture; `sequential`: each saw what the one before did; `idle`: nobody acted.
    mode: str = "idle"
    seconds: float = 0.0
    #: The time that decisions took, summed; waiting for a free worker is not part of it.
    deciding_seconds: float = 0.0
    latencies: Latencies = msgspec.field(default_factory=Latencies)

    @property
    def speedup(self) -> float | None:
        """How much longer the decisions would have taken one after another; None where none was made."""
        return self.deciding_seconds / self.seconds if self.seconds and self.deciding_seconds else None


class Metrics(msgspec.Struct):
    """Steps of a run so far, added up. Decisions that came from a journal took no time and are not in it."""

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

    def take_in(self, step: Step, errors: int, timeouts: int) -> None:
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
        """Of the parallel steps: time that decisions took, summed, over the time that the steps took."""
        return _ratio(self.parallel_deciding_seconds, self.parallel_seconds)

    @property
    def sequential_speedup(self) -> float | None:
        """The same of the sequential steps; at most 1, and less by what is not deciding."""
        return _ratio(self.sequential_deciding_seconds, self.sequential_seconds)

    def shown(self) -> dict[str, Any]:
        """The figures that people read."""
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
