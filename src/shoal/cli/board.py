"""What is known of a run while it runs: counters that cost next to nothing to keep, read by whoever shows them."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from shoal.engine.metrics import Metrics
from shoal.engine.record import Record
from shoal.models.spending import Spending
from shoal.worlds.clock import Clock

if TYPE_CHECKING:
    from shoal.runs.limits import RunLimits

#: The rate is that of the last seconds, sampled now and then; a shorter time says nothing yet.
_RATE_SECONDS = 8.0
_SAMPLE_SECONDS = 0.25
_FIRST_RATE_SECONDS = 0.4


@dataclass(slots=True)
class WorldCount:
    """How far one world is."""

    name: str
    rounds: int
    #: Rounds that were committed by an earlier worker; until then the run is catching up from its journal.
    known: int = 0
    round: int = 0
    acting: int = 0
    steps: int = 0
    actions: int = 0
    rejected: int = 0
    errors: int = 0
    timeouts: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    #: Decisions asked for outside; only then is it worth saying how long they take.
    calls: int = 0
    metrics: Metrics = field(default_factory=Metrics)
    ended: bool = False
    samples: deque[tuple[float, int, int]] = field(default_factory=deque)

    @property
    def catching_up(self) -> bool:
        return self.round < self.known

    @property
    def done(self) -> bool:
        return self.ended or self.round >= self.rounds

    @property
    def speedup(self) -> float | None:
        """Measured, of the rounds that this worker did itself."""
        return self.metrics.speedup or self.metrics.sequential_speedup

    def take_in(self, record: Record, now: float) -> None:
        tally = record.tally
        self.round = record.round
        self.acting = tally.acting
        self.steps += tally.acting
        self.actions += tally.actions
        self.rejected += tally.rejected
        self.errors += tally.errors
        self.timeouts += tally.timeouts
        self.kinds.update(tally.kinds)
        self.calls += tally.calls
        self.ended = record.last
        if record.step is not None and record.round > self.known:
            self.metrics.take_in(record.step, tally.errors, tally.timeouts)
        if record.round == self.known:
            self.samples.clear()
        if not self.samples or now - self.samples[-1][0] > _SAMPLE_SECONDS:
            self.samples.append((now, self.steps, self.round))
            while now - self.samples[0][0] > _RATE_SECONDS and len(self.samples) > 2:
                self.samples.popleft()

    def rates(self, now: float) -> tuple[float, float]:
        """Agent-steps and rounds per second, lately; zero while that is not known."""
        since, steps, rounds = self.samples[0] if self.samples else (now, 0, 0)
        seconds = now - since
        if seconds < _FIRST_RATE_SECONDS:
            return 0.0, 0.0
        return (self.steps - steps) / seconds, (self.round - rounds) / seconds

    def seconds_left(self, now: float) -> float | None:
        per_second = self.rates(now)[1]
        return (self.rounds - self.round) / per_second if per_second > 0 and not self.catching_up else None

    def top(self, count: int) -> list[tuple[str, int]]:
        """What is done most. The copy is made in one step, so that it may be asked for from another thread."""
        kinds = dict(self.kinds)
        return sorted(kinds.items(), key=lambda kind: (-kind[1], kind[0]))[:count]


class Board:
    """All worlds of one run."""

    def __init__(
        self, rounds: int, known: Mapping[str, int], clock: Clock, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.worlds = {name: WorldCount(name, rounds, count) for name, count in known.items()}
        self.now = now
        self.began = now()
        self.stopping = False
        self._clock = clock
        self._spending: Spending | None = None
        self._limits: RunLimits | None = None

    def watch(self, record: Record) -> None:
        """A round was committed."""
        self.worlds[record.world].take_in(record, self.now())

    def watch_spending(self, spending: Spending) -> None:
        """From now on this is where the cost is counted."""
        self._spending = spending

    def watch_limits(self, limits: RunLimits) -> None:
        """The same for what limits them."""
        self._limits = limits

    def at_once(self) -> str:
        """How many calls are under way; nothing where none are made."""
        if self._limits is None:
            return ""
        waiting = f", {self._limits.waiting:,} waiting" if self._limits.waiting else ""
        return f"{self._limits.in_flight:,} in flight{waiting}"

    def strained(self) -> list[str]:
        """What is too much for the machine or the server, in words."""
        return [] if self._limits is None else [each.text for each in self._limits.strained]

    def spent(self) -> str:
        """What language models took so far; nothing where none is asked."""
        if self._spending is None:
            return ""
        total = self._spending.total
        cost = "cost unknown" if total.cost is None else f"${total.cost:,.2f}"
        retries = f"  {self._spending.retries:,} retries" if self._spending.retries else ""
        return f"{total.calls:,} calls  {total.tokens:,} tokens  {cost}{retries}  {self.at_once()}".rstrip()

    def simulated(self, world: WorldCount) -> str:
        """Day and time in the world."""
        start, at = self._clock.at(0), self._clock.at(world.round)
        return f"day {_days(start, at) + 1}, {at:%H:%M}"


def _days(start: datetime, at: datetime) -> int:
    return (at.date() - start.date()).days


def duration(seconds: float) -> str:
    """Read at a glance: 0:07, 12:30, 3:05:00."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
