"""Refusals that nothing helps against: some servers refuse a share of all calls, however few there are.

Whoever reacts to these does less and less, and is refused as often as before. So calls are counted by the hundred: when
the share that is refused stays about the same although ever less is sent, it is noise. From then on a refusal counts
only if it comes with more others than noise would explain, as it does at a wall or above a rate.
"""

from __future__ import annotations

from collections import deque
from math import ceil, sqrt
from typing import NamedTuple

#: Calls that are looked at together, and how many of these in a row must say the same.
CALLS, HUNDREDS = 100, 4
#: What is refused of them: at least and at most, and how far the shares may be from one another.
LEAST_SHARE, MOST_SHARE, ALIKE = 0.015, 0.3, 6.0
#: What is still sent per second in the last of them, against the first, at most: else it was not tried to do less.
LESS = 0.7
#: Of the last so many calls, refusals beyond so many standard deviations, and one more, are no noise.
LATELY, SURPRISE = 12, 4.0
#: How fast the share follows, and below which part of the least it is over.
GAIN, OVER = 0.3, 0.5


class Hundred(NamedTuple):
    share: float
    per_second: float
    #: How many were allowed in flight at its beginning.
    limit: float


class Noise:
    def __init__(self) -> None:
        #: The share of calls that is refused whatever one does; 0: none.
        self.share = self._found = 0.0
        self._calls = self._refused = 0
        self._began_at: float | None = None
        self._limit = 0.0
        #: In a row, each with about the same share.
        self._alike: list[Hundred] = []
        self._lately: deque[bool] = deque(maxlen=LATELY)

    @property
    def is_surprising(self) -> bool:
        """Whether the last refusal is more than noise."""
        if not self.share:
            return True
        usual = LATELY * self.share
        return sum(self._lately) >= ceil(usual + SURPRISE * sqrt(usual * (1 - self.share)) + 1)

    def count(self, now: float, limit: float, *, refused: bool) -> float | None:
        """Count a call that was refused or answered. If that makes it noise: how many were allowed in flight before."""
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
            self._follow(done)
            return None
        return self._find(done)

    def _find(self, done: Hundred) -> float | None:
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

    def _follow(self, done: Hundred) -> None:
        # What was refused at a wall is in it as well, so it never is more than was found.
        self.share += GAIN * (min(done.share, self._found) - self.share)
        if self.share < OVER * LEAST_SHARE:
            self.share = 0.0
