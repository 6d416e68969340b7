"""Plays calls to a provider in virtual time, and keeps what happened."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bench.loads import Load, flood
from bench.providers import KnownLimits, Provider
from bench.virtual import Alone, Learning, drive
from shoal.rehearsal.settings import RehearsalSettings
from shoal.slots.adaptive.limiter import Adaptive, Learned
from shoal.slots.leases import CallEnd, CallOutcome, Control

TOKENS = 1000


class CallEnding(NamedTuple):
    at: float
    end: CallEnd


@dataclass
class WatchedControl:
    """Hands everything on, and sees that a limit says only what makes sense."""

    control: Control
    begun: list[float] = field(default_factory=list)
    ended: list[CallEnding] = field(default_factory=list)
    #: How many were in flight at most.
    peak: int = 0

    def wait(self, now: float, tokens: int, waiting: int) -> float:
        wait = self.control.wait(now, tokens, waiting)
        assert wait >= 0, wait
        assert wait < math.inf or self.in_flight, "nothing is under way, and nothing may ever begin"
        return wait

    def begin(self, now: float, tokens: int) -> Any:
        self.begun.append(now)
        self.peak = max(self.peak, self.in_flight)
        return self.control.begin(now, tokens)

    def end(self, now: float, sent: Any, outcome: CallOutcome) -> None:
        self.ended.append(CallEnding(now, outcome.end))
        self.control.end(now, sent, outcome)

    def resume(self, now: float, tokens: int) -> Any:
        return self.control.resume(now, tokens)

    def describe(self, now: float) -> dict[str, Any]:
        return self.control.describe(now)

    @property
    def in_flight(self) -> int:
        return len(self.begun) - len(self.ended)

    def answers(self, first: float = 0.0, last: float = math.inf) -> int:
        return sum(first <= each.at < last for each in self.ended if each.end is CallEnd.OK)

    def refusals(self, first: float = 0.0, last: float = math.inf) -> int:
        return sum(first <= each.at < last for each in self.ended if each.end is not CallEnd.OK)


class Simulation(NamedTuple):
    control: Adaptive
    watched: WatchedControl
    seconds: float
    #: Seconds that a client would have taken that knows the limits.
    ideal: float

    @property
    def times(self) -> float:
        return self.seconds / self.ideal

    @property
    def refusals(self) -> int:
        return self.watched.refusals()

    @property
    def learned(self) -> Learned:
        learned = self.control.get_learned()
        assert learned is not None
        return learned


def provider_settings(**settings: Any) -> RehearsalSettings:
    """Answers within 0.4 s or so, refuses within 20 ms, and says only when to come back."""
    usual = {"latency_seconds": 0.4, "latency_sigma": 0.6, "refusal_seconds": 0.02, "labelled": False, "seed": 5}
    return RehearsalSettings(**{"headers": "retry-after", **usual, **settings})


def simulate(
    load: Load | int,
    *,
    control: Adaptive | None = None,
    uneven: bool = False,
    jitter_seconds: float = 0.0,
    **settings: Any,
) -> Simulation:
    """Send a load, or so many calls at once, as fast as they are allowed; with jitter they overtake one another."""
    load = flood(load, uneven=uneven) if isinstance(load, int) else load
    chosen = provider_settings(**settings)
    control = control or Adaptive()
    watched = WatchedControl(control)
    seconds = drive(Provider(chosen), Learning(watched), load, seed=3, jitter_seconds=jitter_seconds).seconds
    provider = Provider(chosen)
    ideal = drive(provider, Alone(KnownLimits(provider)), load, seed=3).seconds
    return Simulation(control, watched, seconds, ideal)
