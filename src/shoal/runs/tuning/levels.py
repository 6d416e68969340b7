"""Measures one level after another: more and more calls or simulations at once, until more brings nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles

from shoal.models import Spending
from shoal.runs.tuning.knee import MeasuredLevel, is_end_found, next_level

BUDGET_USED = "the budget is used up"
TIME_USED = "the time is used up"
STOPPED = "stopped"


@dataclass(slots=True)
class Gauge:
    """How far a measurement is. It can be read at any time, also after the measurement was cancelled."""

    #: Called with each level that was measured.
    tell: Callable[[MeasuredLevel], None] | None = None
    levels: list[MeasuredLevel] = field(default_factory=list)
    at_once: int = 0
    wanted: int = 0
    done: int = 0
    failed: int = 0
    #: Seconds that the server asked to wait, while it is waited for.
    waiting: float = 0.0
    spending: Spending | None = None

    def begin(self, at_once: int, wanted: int) -> None:
        self.at_once, self.wanted, self.done, self.failed = at_once, wanted, 0, 0

    def add(self, level: MeasuredLevel) -> None:
        self.levels.append(level)
        if self.tell is not None:
            self.tell(level)


async def measure_levels(gauge: Gauge, up_to: int, measure: Callable[[int], Awaitable[str | None]]) -> str:
    """Measure level after level, and return why it ended; empty if the end of what more brings was found.

    `measure` adds the level to the gauge, or returns why no more can be measured.
    """
    while (at_once := next_level(gauge.levels, up_to)) is not None:
        if ended := await measure(at_once):
            return ended
    return "" if is_end_found(gauge.levels) else f"--up-to is {up_to}"


def compute_percentiles(seconds: Sequence[float]) -> tuple[float, float]:
    """Return the median and the 95th percentile; zeros for no values."""
    if not seconds:
        return 0.0, 0.0
    return median(seconds), quantiles(seconds, n=20, method="inclusive")[-1] if len(seconds) > 1 else seconds[0]
