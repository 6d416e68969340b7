"""Random refusals: some servers refuse a share of all calls, however few there are.

Reacting to these refusals lowers the throughput without lowering their share. So calls are counted by the hundred: when
the refused share stays about the same although less and less is sent, it is noise. From then on a refusal counts only
together with more others than noise explains, as at a wall or above a rate.
"""

from __future__ import annotations

from collections import deque
from math import ceil, sqrt
from typing import NamedTuple

#: Calls that are counted together.
CALLS = 100
#: How many such groups in a row must agree.
HUNDREDS = 4
#: The bounds of a refused share that can be noise.
LEAST_SHARE, MOST_SHARE = 0.015, 0.3
#: How many times as large as the smallest share the largest may be.
ALIKE = 6.0
#: The last group must have sent at most this share of the first one's calls per second: else less was never tried.
LESS = 0.7
#: How many of the last calls are checked for more refusals than noise explains.
LATELY = 12
#: Refusals beyond this many standard deviations, and one more, are no noise.
SURPRISE = 4.0
#: How fast the share follows later groups.
GAIN = 0.3
#: Noise is over below this part of the least share.
OVER = 0.5


class Hundred(NamedTuple):
    """One group of calls."""

    share: float
    per_second: float
    #: The window at its beginning.
    limit: float


class NoiseDetector:
    """Finds the share of calls that is refused at random."""

    def __init__(self) -> None:
        #: The share of calls that is refused at random; 0: none.
        self.share = self._found = 0.0
        self._calls = self._refused = 0
        self._began_at: float | None = None
        self._limit = 0.0
        #: Groups in a row with about the same share.
        self._alike: list[Hundred] = []
        self._lately: deque[bool] = deque(maxlen=LATELY)

    @property
    def is_surprising(self) -> bool:
        """Whether there are more refusals lately than noise explains."""
        if not self.share:
            return True
        usual = LATELY * self.share
        return sum(self._lately) >= ceil(usual + SURPRISE * sqrt(usual * (1 - self.share)) + 1)

    def count(self, now: float, limit: float, *, refused: bool) -> float | None:
        """Count a call that was refused or answered. If noise is found, return the window before it lowered."""
        self._lately.append(refused)
        if self._began_at is None:
            self._began_at, self._limit = now, limit
        self._calls += 1
        self._refused += refused
        if self._calls < CALLS:
            return None
        seconds = max(now - self._began_at, 1e-3)
        done = Hundred(self._refused / self._calls, self._calls / seconds, self._limit)
        self._calls = self._refused = 0
        self._began_at, self._limit = now, limit
        if self.share:
            # Refusals at a wall are counted too, so the share never rises above what was found.
            self.share += GAIN * (min(done.share, self._found) - self.share)
            if self.share < OVER * LEAST_SHARE:
                self.share = 0.0
            return None
        self._alike.append(done)
        shares = [each.share for each in self._alike]
        if not LEAST_SHARE <= min(shares) <= max(shares) <= min(ALIKE * min(shares), MOST_SHARE):
            self._alike = [done] if LEAST_SHARE <= done.share <= MOST_SHARE else []
            return None
        if len(shares) < HUNDREDS or done.per_second > LESS * self._alike[0].per_second:
            return None
        self.share = self._found = sum(shares) / len(shares)
        before = self._alike[0].limit
        self._alike = []
        return before
