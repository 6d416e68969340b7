"""Decides when a run should do less at once: the CPU is too busy, memory too full, or too many calls fail.

The monitor is pure: fed with samples, it says which alarms begin and end, and by which factor the run should lower its
calls at once. Calls that a provider refuses because of its limits do not count: the adaptive limit learns from them.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from enum import StrEnum

from shoal.machine.sampling import Sample, Sampler


class Pressure(StrEnum):
    """What there can be too much of."""

    CPU = "cpu"
    MEMORY = "memory"
    FAILURES = "failures"


@dataclass(frozen=True, slots=True)
class Threshold:
    """An alarm begins above one share and ends below a lower one, so that a value in between does not flicker."""

    above: float
    below: float
    #: How long the share must be above before the alarm begins.
    for_seconds: float
    #: The smallest factor that the calls at once are lowered to.
    least: float


THRESHOLDS = {
    # CPU is often fully used for a moment, when many answers come at once, which does no harm.
    Pressure.CPU: Threshold(above=0.90, below=0.80, for_seconds=10.0, least=0.25),
    # A process that runs out of memory is killed, so there is no time to wait.
    Pressure.MEMORY: Threshold(above=0.85, below=0.80, for_seconds=2.0, least=0.1),
    # The share covers a window of time already. Many servers fail now and then at any load, so the alarm ends not far
    # below where it begins, and costs at most half of the calls.
    Pressure.FAILURES: Threshold(above=0.10, below=0.09, for_seconds=0.0, least=0.5),
}
#: How long the share must be below before the alarm ends: about a round of calls, so that the effect shows.
CALM_SECONDS = 10.0

#: The factor of each step down, and the time until its effect shows.
LOWERED = 0.8
LOWERED_EVERY_SECONDS = 5.0
#: The factor of each step up, slower than down so that the cause does not return at once.
RAISED = 1.25
RAISED_EVERY_SECONDS = 10.0

#: Samples further apart say nothing about the time between them: the machine was asleep or stuck.
LONGEST_GAP_SECONDS = 30.0

#: The time over which failures are counted, and the fewest calls for which their share means anything.
WINDOW_SECONDS = 30.0
FEWEST_CALLS = 20

SAMPLE_EVERY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Alarm:
    """A kind of pressure that is too high, or was, with a sentence for the user."""

    kind: Pressure
    text: str

    @classmethod
    def on(cls, kind: Pressure, share: float) -> Alarm:
        above, seconds = f"{THRESHOLDS[kind].above:.0%}", THRESHOLDS[kind].for_seconds
        match kind:
            case Pressure.CPU:
                text = (
                    f"the CPU is {share:.0%} busy (more than {above} for {seconds:.0f} s), so fewer calls are made at "
                    "once. Run fewer simulations side by side, end other programs, or use more cores."
                )
            case Pressure.MEMORY:
                text = (
                    f"memory is {share:.0%} full (more than {above}), so fewer calls are made at once. Run fewer "
                    "simulations side by side, end other programs, or raise the container's limit."
                )
            case Pressure.FAILURES:
                text = (
                    f"{share:.0%} of the calls of the last {WINDOW_SECONDS:.0f} s failed (more than {above}), so fewer "
                    "are made at once. If it goes on, `shoal doctor` checks the server; what failed is counted in the "
                    "run's state."
                )
        return cls(kind, text)

    @classmethod
    def off(cls, kind: Pressure) -> Alarm:
        what = {Pressure.CPU: "the CPU is", Pressure.MEMORY: "memory is", Pressure.FAILURES: "failed calls are"}[kind]
        return cls(kind, f"{what} below {THRESHOLDS[kind].below:.0%} again")


@dataclass(frozen=True, slots=True)
class Throttle:
    """What the monitor decided at one moment."""

    #: All alarms that are on, and those that began and ended just now.
    alarms: tuple[Alarm, ...] = ()
    began: tuple[Alarm, ...] = ()
    ended: tuple[Alarm, ...] = ()
    #: In (0, 1]: multiplies the calls at once of the run.
    factor: float = 1.0
    #: Whether there is memory for a further simulation.
    may_start: bool = True

    def at_once(self, calls: int) -> int:
        """Return how many calls to make at once instead of `calls`; at least one."""
        return max(round(calls * self.factor), 1)


class LoadMonitor:
    """Turns samples into alarms and a factor for the calls at once."""

    def __init__(self, kinds: Collection[Pressure] = tuple(Pressure)) -> None:
        self._gauges = {kind: _Gauge(THRESHOLDS[kind]) for kind in Pressure if kind in kinds}
        self._alarms: dict[Pressure, Alarm] = {}
        self._factor = 1.0
        self._changed_at = -math.inf
        self._at: float | None = None

    def update(self, sample: Sample, failed: float | None = None) -> Throttle:
        """Take in a sample; `failed` is the share of calls with timeouts, server errors or unusable answers."""
        shares = {Pressure.CPU: sample.cpu, Pressure.MEMORY: sample.memory, Pressure.FAILURES: failed}
        is_gap = self._at is not None and sample.at - self._at > LONGEST_GAP_SECONDS
        self._at = sample.at
        for kind, gauge in self._gauges.items():
            if is_gap:
                gauge.above_since = gauge.below_since = None
            gauge.update(sample.at, shares[kind])
        now = [kind for kind, gauge in self._gauges.items() if gauge.is_on]
        began = {kind: Alarm.on(kind, shares[kind] or 0.0) for kind in now if kind not in self._alarms}
        ended = tuple(Alarm.off(kind) for kind in self._alarms if kind not in now)
        self._alarms = {kind: self._alarms.get(kind) or began[kind] for kind in now}
        # Lower the factor while a share is above its threshold, raise it when no alarm is on, hold it in between.
        waited = sample.at - self._changed_at
        above = [THRESHOLDS[kind].least for kind in now if self._gauges[kind].above_since is not None]
        if above and waited >= LOWERED_EVERY_SECONDS:
            self._factor, self._changed_at = min(self._factor, max(self._factor * LOWERED, min(above))), sample.at
        elif not now and self._factor < 1 and waited >= RAISED_EVERY_SECONDS:
            self._factor, self._changed_at = min(self._factor * RAISED, 1.0), sample.at
        memory = self._gauges.get(Pressure.MEMORY)
        return Throttle(
            alarms=tuple(self._alarms.values()),
            began=tuple(began.values()),
            ended=ended,
            factor=self._factor,
            may_start=memory is None or not (memory.is_on or memory.above_since is not None),
        )


class _Gauge:
    """One share against its threshold. An unknown share is no reason to do less."""

    def __init__(self, threshold: Threshold) -> None:
        self._threshold = threshold
        self.above_since: float | None = None
        self.below_since: float | None = None
        self.is_on = False

    def update(self, at: float, share: float | None) -> None:
        above = share is not None and share > self._threshold.above
        below = share is None or share < self._threshold.below
        self.above_since = (at if self.above_since is None else self.above_since) if above else None
        self.below_since = (at if self.below_since is None else self.below_since) if below else None
        if self.above_since is not None and at - self.above_since >= self._threshold.for_seconds:
            self.is_on = True
        elif self.below_since is not None and at - self.below_since >= CALM_SECONDS:
            self.is_on = False


class Failures:
    """The share of the last calls that failed. Counts by the second, so that any number of calls costs little."""

    def __init__(self) -> None:
        #: Second, calls, failed calls.
        self._seconds: deque[list[int]] = deque()

    def add(self, at: float, failed: bool) -> None:
        if not self._seconds or self._seconds[-1][0] != int(at):
            self._forget(at)
            self._seconds.append([int(at), 0, 0])
        last = self._seconds[-1]
        last[1] += 1
        last[2] += failed

    def share(self, at: float) -> float | None:
        """Return the share of failed calls; None if there are too few calls to say."""
        self._forget(at)
        calls = sum(second[1] for second in self._seconds)
        return sum(second[2] for second in self._seconds) / calls if calls >= FEWEST_CALLS else None

    def _forget(self, at: float) -> None:
        while self._seconds and self._seconds[0][0] < at - WINDOW_SECONDS:
            self._seconds.popleft()


async def watch_machine(
    tell: Callable[[Throttle], None],
    failed: Callable[[float], float | None],
    sampler: Sampler | None = None,
    kinds: Collection[Pressure] = tuple(Pressure),
    every_seconds: float = SAMPLE_EVERY_SECONDS,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Sample the machine and call `tell` with each decision, until cancelled.

    `failed` returns the share of failed calls at a moment, as `Failures.share` does. Only pressure of `kinds` counts.
    """
    sampler, monitor = sampler or Sampler(), LoadMonitor(kinds)
    while True:
        await sleep(every_seconds)
        sample = sampler.take()
        tell(monitor.update(sample, failed(sample.at)))
