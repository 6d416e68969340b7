"""Decides how many simulations of a batch run side by side, and at which hours."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from datetime import datetime, time, timedelta

from shoal.errors import ArgumentInvalid

#: With a larger share of failures, fewer simulations run side by side.
FAILED_SHARE = 0.10
#: The share is that of the last attempts, and means something from the fewest on.
_FEWEST, _WINDOW = 10, 20
#: With at most this share in a whole window, one more is tried again.
_CALM_SHARE = 0.05


class SimulationLimit:
    """How many simulations run side by side: half as many when too many fail, and slowly more again."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.now = most
        self._failed: deque[bool] = deque(maxlen=_WINDOW)

    def add(self, failed: bool) -> str | None:
        """Take in how an attempt ended, and return a sentence for the user where the number changes."""
        self._failed.append(failed)
        count, before = len(self._failed), self.now
        share = sum(self._failed) / count
        if count >= _FEWEST and share > FAILED_SHARE and before > 1:
            self._change(before // 2)
            return (
                f"{share:.0%} of the last {count} simulations failed (more than {FAILED_SHARE:.0%}), so {self.now} "
                f"instead of {before} run side by side"
            )
        if count == _WINDOW and share <= _CALM_SHARE and before < self.most:
            self._change(before + 1)
            return f"few simulations fail now, so {self.now} instead of {before} run side by side"
        return None

    def _change(self, number: int) -> None:
        self.now = number
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
