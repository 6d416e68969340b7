"""When a run should do less at once: the machine is too busy, its memory too full, or too many calls come to nothing.

Pure: fed with samples, it says what begins and ends, and by which factor the run should lower how many calls it makes
at once. What a provider rejects because of its rate limit does not count here; the limit learns from that by itself.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum

from shoal.machine.sampling import Sample, Sampler


class Pressure(StrEnum):
    CPU = "cpu"
    MEMORY = "memory"
    FAILURES = "failures"


@dataclass(frozen=True, slots=True)
class Threshold:
    """It begins above one share and ends below another, so that a value in between does not flicker."""

    above: float
    below: float
    #: How long it must be above before anything is said.
    for_seconds: float
    #: The part of the calls at once that is left at the least.
    least: float


THRESHOLDS = {
    # CPU is often all used for a moment, when many answers come at once, and nobody is harmed by that.
    Pressure.CPU: Threshold(above=0.90, below=0.80, for_seconds=10.0, least=0.25),
    # Whoever runs out of memory is killed, so there is little to wait for.
    Pressure.MEMORY: Threshold(above=0.85, below=0.80, for_seconds=2.0, least=0.1),
    # The share is one of a window already. Many servers fail now and then however few ask, so where it ends is not far
    # from where it begins, and not much is given up for it.
    Pressure.FAILURES: Threshold(above=0.10, below=0.09, for_seconds=0.0, least=0.5),
}
#: How long it must be below before it is over: about what a round of calls takes, so that the effect has been seen.
CALM_SECONDS = 10.0

#: By how much less each time, and how long to wait for the effect.
LOWERED = 0.8
LOWERED_EVERY_SECONDS = 5.0
#: Back again more slowly than down, so that what caused it is not caused again at once.
RAISED = 1.25
RAISED_EVERY_SECONDS = 10.0

#: Samples that are further apart say nothing about the time between them: the machine was asleep, or stuck.
LONGEST_GAP_SECONDS = 30.0

#: Over how long failures are counted, and how many calls there must be for a share to mean anything.
WINDOW_SECONDS = 30.0
FEWEST_CALLS = 20


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something that is too much, in words."""

    kind: Pressure
    text: str


@dataclass(frozen=True, slots=True)
class Throttle:
    #: What is too much now, and which of it was not before.
    strained: tuple[Alarm, ...] = ()
    began: tuple[Alarm, ...] = ()
    ended: tuple[Alarm, ...] = ()
    #: In (0, 1]: multiplies how many calls the run makes at once.
    factor: float = 1.0
    #: Whether there is memory for a further simulation.
    may_start: bool = True

    def at_once(self, calls: int) -> int:
        """How many calls to make at once, of so many; at least one."""
        return max(round(calls * self.factor), 1)


class LoadMonitor:
    """What the samples so far come to."""

    def __init__(self) -> None:
        self._gauges = {kind: _Gauge(threshold) for kind, threshold in THRESHOLDS.items()}
        self._told: dict[Pressure, Alarm] = {}
        self._factor = 1.0
        self._changed_at = -math.inf
        self._at: float | None = None

    def update(self, sample: Sample, failed: float | None = None) -> Throttle:
        """`failed` is the share of calls that came to nothing: timeouts, errors of the server, unusable answers."""
        shares = {Pressure.CPU: sample.cpu, Pressure.MEMORY: sample.memory, Pressure.FAILURES: failed}
        self._notice_gap(sample.at)
        for kind, gauge in self._gauges.items():
            gauge.update(sample.at, shares[kind])
        began, ended = self._news(shares)
        self._adapt(sample.at)
        memory = self._gauges[Pressure.MEMORY]
        return Throttle(
            strained=tuple(self._told.values()),
            began=began,
            ended=ended,
            factor=self._factor,
            may_start=not (memory.is_on or memory.is_above),
        )

    def _news(self, shares: dict[Pressure, float | None]) -> tuple[tuple[Alarm, ...], tuple[Alarm, ...]]:
        """What began and what ended."""
        now = [kind for kind, gauge in self._gauges.items() if gauge.is_on]
        began = {kind: Alarm(kind, _in_words(kind, shares[kind] or 0.0)) for kind in now if kind not in self._told}
        ended = tuple(Alarm(kind, _over(kind)) for kind in self._told if kind not in now)
        self._told = {kind: self._told.get(kind) or began[kind] for kind in now}
        return tuple(began.values()), ended

    def _notice_gap(self, at: float) -> None:
        if self._at is not None and at - self._at > LONGEST_GAP_SECONDS:
            for gauge in self._gauges.values():
                gauge.forget_times()
        self._at = at

    def _adapt(self, at: float) -> None:
        """Lower while something is above its threshold, raise when nothing is strained, and hold in between."""
        waited = at - self._changed_at
        above = [THRESHOLDS[kind].least for kind, gauge in self._gauges.items() if gauge.is_on and gauge.is_above]
        if above:
            if waited >= LOWERED_EVERY_SECONDS:
                self._change(at, min(self._factor, max(self._factor * LOWERED, min(above))))
        elif not self._told and self._factor < 1 and waited >= RAISED_EVERY_SECONDS:
            self._change(at, min(self._factor * RAISED, 1.0))

    def _change(self, at: float, factor: float) -> None:
        self._factor, self._changed_at = factor, at


class _Gauge:
    """One share against its threshold. A share that is not known is no reason to do less."""

    def __init__(self, threshold: Threshold) -> None:
        self._threshold = threshold
        self._above_since: float | None = None
        self._below_since: float | None = None
        self.is_on = False

    @property
    def is_above(self) -> bool:
        return self._above_since is not None

    def update(self, at: float, share: float | None) -> None:
        above = share is not None and share > self._threshold.above
        below = share is None or share < self._threshold.below
        self._above_since = (at if self._above_since is None else self._above_since) if above else None
        self._below_since = (at if self._below_since is None else self._below_since) if below else None
        if self._above_since is not None and at - self._above_since >= self._threshold.for_seconds:
            self.is_on = True
        elif self._below_since is not None and at - self._below_since >= CALM_SECONDS:
            self.is_on = False

    def forget_times(self) -> None:
        self._above_since = self._below_since = None


class Failures:
    """Which share of the last calls came to nothing. Counts by the second, so that any number of calls costs little."""

    def __init__(self, window_seconds: float = WINDOW_SECONDS, fewest: int = FEWEST_CALLS) -> None:
        self._window_seconds = window_seconds
        self._fewest = fewest
        #: Second, calls, and those that failed.
        self._seconds: deque[list[int]] = deque()

    def add(self, at: float, failed: bool) -> None:
        if not self._seconds or self._seconds[-1][0] != int(at):
            self._forget(at)
            self._seconds.append([int(at), 0, 0])
        last = self._seconds[-1]
        last[1] += 1
        last[2] += failed

    def share(self, at: float) -> float | None:
        """None: too few calls to say."""
        self._forget(at)
        calls = sum(second[1] for second in self._seconds)
        return sum(second[2] for second in self._seconds) / calls if calls >= self._fewest else None

    def _forget(self, at: float) -> None:
        while self._seconds and self._seconds[0][0] < at - self._window_seconds:
            self._seconds.popleft()


def _in_words(kind: Pressure, share: float) -> str:
    above = f"{THRESHOLDS[kind].above:.0%}"
    match kind:
        case Pressure.CPU:
            return (
                f"the CPU is {share:.0%} busy (more than {above} for {THRESHOLDS[kind].for_seconds:.0f} s), so fewer "
                "calls are made at once. Run fewer simulations side by side, end other programs, or use more cores."
            )
        case Pressure.MEMORY:
            return (
                f"memory is {share:.0%} full (more than {above}), so fewer calls are made at once. Run fewer "
                "simulations side by side, end other programs, or raise the container's limit."
            )
        case Pressure.FAILURES:
            return (
                f"{share:.0%} of the calls of the last {WINDOW_SECONDS:.0f} s failed (more than {above}), so fewer are "
                "made at once. If it goes on, `shoal doctor` checks the server; what failed is counted in the run's "
                "state."
            )


def _over(kind: Pressure) -> str:
    what = {Pressure.CPU: "the CPU is", Pressure.MEMORY: "memory is", Pressure.FAILURES: "failed calls are"}[kind]
    return f"{what} below {THRESHOLDS[kind].below:.0%} again"


EVERY_SECONDS = 1.0


async def watch_machine(
    tell: Callable[[Throttle], None],
    failed: Callable[[float], float | None],
    sampler: Sampler | None = None,
    every_seconds: float = EVERY_SECONDS,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Tell, again and again, what the run should do; ends when it is cancelled.

    `failed` is asked for the share of failed calls at a moment, as `Failures.share` has it.
    """
    sampler = sampler or Sampler()
    strain = LoadMonitor()
    while True:
        await sleep(every_seconds)
        sample = sampler.take()
        tell(strain.update(sample, failed(sample.at)))
