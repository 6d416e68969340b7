"""Measured times of rounds and decisions. Nothing here enters the history."""

from __future__ import annotations

import math
from bisect import bisect_left
from itertools import accumulate
from typing import Any, NamedTuple

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
        return self._find_percentiles(percent)[0]

    def _find_percentiles(self, *percents: float) -> list[float]:
        """Find several in one go."""
        buckets = sorted(self.buckets)
        ends = list(accumulate(map(self.buckets.__getitem__, buckets)))
        places = [bisect_left(ends, percent / 100 * ends[-1]) for percent in percents] if ends else []
        found = [min(_SHORTEST_SECONDS * math.exp((buckets[n] + 0.5) * _GROWTH), self.longest) for n in places]
        return found or [0.0] * len(percents)

    def milliseconds(self) -> dict[str, float]:
        p50, p90, p99 = self._find_percentiles(50, 90, 99)
        figures = {"p50": p50, "p90": p90, "p99": p99, "max": self.longest}
        return {name: round(seconds * 1000, 3) for name, seconds in figures.items()}


class DecisionTimings(NamedTuple):
    """How long some decisions took, in total and each, and how many kept all others waiting."""

    seconds: float
    latencies: Latencies
    blocked: int


class Step(msgspec.Struct, frozen=True):
    """The timing of one round."""

    #: `parallel`: all agents acted on one view; `sequential`: each saw what the one before did; `idle`: none acted.
    mode: str = "idle"
    seconds: float = 0.0
    #: Total time of all decisions, without waiting for a free worker.
    deciding_seconds: float = 0.0
    latencies: Latencies = msgspec.field(default_factory=Latencies)
    #: Decisions that kept all others waiting.
    blocked: int = 0

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
    #: Decisions that kept all others waiting.
    blocked: int = 0

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
        self.blocked += step.blocked

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
            "blocked": self.blocked,
            "latency_ms": self.latencies.milliseconds(),
        }


def _ratio(deciding: float, seconds: float) -> float | None:
    return round(deciding / seconds, 3) if deciding and seconds else None
