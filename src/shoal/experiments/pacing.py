"""Decides how many simulations of a batch run side by side, and at which hours."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from pathlib import Path

from shoal.errors import ArgumentInvalid
from shoal.machine import Pressure, Throttle, advise, inspect_disk, inspect_machine
from shoal.runs import DoctorTarget
from shoal.runs.launchers import LOCAL, read_place
from shoal.scenario import Scenario

#: With a larger share of failures, fewer simulations run side by side.
FAILED_SHARE = 0.10
#: The share is that of the last attempts, and means something from the fewest on.
_FEWEST, _WINDOW = 10, 20
#: With at most this share in a whole window, one more is tried again.
_CALM_SHARE = 0.05
#: Simulations that are begun side by side on a cluster; each has a small process on this machine.
_ON_CLUSTER = 100


def recommend_simulations(scenario: Scenario, folder: Path, on: str = LOCAL) -> int:
    """Return how many simulations of this size the machine bears side by side, as `shoal doctor` says.

    On a cluster, more of them are begun than most clusters have room for: Ray starts them as there is room.
    """
    if read_place(on) is not None:
        return _ON_CLUSTER
    (need,) = DoctorTarget.of_scenario(scenario).needs
    bounds = advise(inspect_machine(), inspect_disk(folder), need).simulations
    return max(bounds[0].count, 1) if bounds else 1


class SimulationLimit:
    """How many simulations run side by side: half as many when too many fail, and slowly more again.

    While the machine is too busy there are fewer, too. What runs goes on; it takes longer until the next one starts.
    """

    def __init__(self, most: int, cores: int = 1) -> None:
        self.most = most
        #: As many simulations may always keep the machine's cores busy.
        self._cores = min(cores, most)
        self._by_failures = self._by_load = most
        self._has_memory = True
        self._failed: deque[bool] = deque(maxlen=_WINDOW)

    @property
    def now(self) -> int:
        return min(self._by_failures, self._by_load)

    def has_room(self, running: int) -> bool:
        """Return whether another simulation may start beside those that run. One always may."""
        return not running or (running < self.now and self._has_memory)

    def heed(self, throttle: Throttle) -> list[str]:
        """Take in the load of the machine, and return sentences for the user where it begins to matter, or ends to."""
        self._by_load = max(round(self.most * throttle.factor), self._cores)
        notes = []
        if not throttle.may_start and self._has_memory:
            notes.append("memory is short, so no further simulation starts until it is free")
        self._has_memory = throttle.may_start
        if any(alarm.kind is Pressure.CPU for alarm in throttle.began) and self._cores < self.most:
            notes.append("the CPU is too busy, so fewer simulations run side by side")
        if any(alarm.kind is Pressure.CPU for alarm in throttle.ended) and self._cores < self.most:
            notes.append("the CPU is less busy, so more simulations run side by side again")
        return notes

    def add(self, failed: bool) -> str | None:
        """Take in how an attempt ended, and return a sentence for the user where the number changes."""
        self._failed.append(failed)
        count, before = len(self._failed), self._by_failures
        share = sum(self._failed) / count
        if count >= _FEWEST and share > FAILED_SHARE and before > 1:
            self._change(before // 2)
            return (
                f"{share:.0%} of the last {count} simulations failed (more than {FAILED_SHARE:.0%}), so "
                f"{self._by_failures} instead of {before} run side by side"
            )
        if count == _WINDOW and share <= _CALM_SHARE and before < self.most:
            self._change(before + 1)
            return f"few simulations fail now, so {self._by_failures} instead of {before} run side by side"
        return None

    def _change(self, number: int) -> None:
        self._by_failures = number
        self._failed.clear()


_HOURS = re.compile(r"(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})")


@dataclass(frozen=True, slots=True)
class DailyWindow:
    """The hours of each day at which simulations may run, in local time; they may go past midnight."""

    opens: time
    closes: time

    @classmethod
    def parse(cls, text: str) -> DailyWindow:
        """Parse hours such as 22:00-06:00; ArgumentInvalid where they are none."""
        found = _HOURS.fullmatch(text.strip())
        try:
            if found is None:
                raise ValueError
            hours = [int(part) for part in found.groups()]
            window = cls(time(hours[0], hours[1]), time(hours[2], hours[3]))
        except ValueError:
            raise ArgumentInvalid("between", f"expected hours such as 22:00-06:00, found {text!r}.") from None
        if window.opens == window.closes:
            raise ArgumentInvalid("between", f"{text} has no hours in it; leave it out to run at any time.")
        return window

    def is_open(self, now: datetime) -> bool:
        if self.opens < self.closes:
            return self.opens <= now.time() < self.closes
        return now.time() >= self.opens or now.time() < self.closes

    def seconds_until_change(self, now: datetime) -> float:
        """Return the time until it closes, or opens where it is closed."""
        at = datetime.combine(now.date(), self.closes if self.is_open(now) else self.opens)
        return (at - now if at > now else at + timedelta(days=1) - now).total_seconds()
