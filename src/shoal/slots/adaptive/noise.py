"""Random refusals: some servers refuse a share of all calls, however few there are.

Reacting to these refusals lowers the throughput without lowering their share. A cap is no longer hit once the limit is
below it, and a rate is no longer hit once it is measured. So when calls are refused one by one although the limit was
lowered again and again, that is noise. From then on a refusal counts only together with more others than noise
explains, as at a cap or above a rate.
"""

from __future__ import annotations

from collections import deque
from math import inf

#: Refusals that are looked at together, and the bounds of the share of calls that they must be.
REFUSALS, LEAST_SHARE, MOST_SHARE = 6, 0.015, 0.1
#: This many refusals of calls that were in flight together are no noise.
MOST_TOGETHER = 2
#: Noise explains refusals as long as no more are refused lately than this many times its share, and this share more.
USUAL_TIMES, USUAL_MORE = 1.5, 0.025
#: How fast the share lately follows calls.
GAIN = 0.01
#: Noise is over below this part of the least share, and was never there above twice the highest.
OVER = 0.5


class NoiseDetector:
    """Finds the share of calls that is refused at random."""

    def __init__(self, share: float = 0.0) -> None:
        #: The share of calls that is refused at random; 0: none.
        self.share = share
        #: The share of calls that were refused lately.
        self._lately = share
        self._calls = 0
        #: The last refusals that came one by one: how many calls had ended, and how many might be in flight.
        self._refusals: deque[tuple[int, float]] = deque(maxlen=REFUSALS)
        self._heard_at = -inf
        self._together = 0

    def count(self, *, refused: bool) -> None:
        self._calls += 1
        self._lately += GAIN * (refused - self._lately)
        if not OVER * LEAST_SHARE < self._lately < 2 * MOST_SHARE:
            self.share = 0.0

    def explains_refusal(self, began: float, now: float, limit: float) -> bool:
        """Return whether the refusal of a call is noise; `limit` is how many calls might be in flight."""
        if self.share:
            return self._lately < USUAL_TIMES * self.share + USUAL_MORE
        # Noise refuses calls one by one.
        self._together = self._together + 1 if began < self._heard_at else 0
        if self._together >= MOST_TOGETHER or (self._refusals and limit > self._refusals[-1][1]):
            self._refusals.clear()
        if self._together:
            return False
        self._heard_at = now
        self._refusals.append((self._calls, limit))
        share = (REFUSALS - 1) / max(self._calls - self._refusals[0][0], 1)
        if len(self._refusals) == REFUSALS and LEAST_SHARE <= share <= MOST_SHARE and limit < self._refusals[0][1]:
            self.share = self._lately = share
            return True
        return False

    def forget(self) -> None:
        """Begin anew: refusals so far have another reason."""
        self._refusals.clear()
