"""Finds where more calls in flight bring no more answers, for servers that queue calls and refuse none.

Single latencies say little, as answers differ in length by orders of magnitude. So whole rounds are compared: as many
answers as there are calls in flight, and how long they took together. Wall-clock throughput would not do, as many runs
ask in bursts.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

#: With free capacity, twice the calls give twice the answers; without, no more. A gain below this share means full.
FULL = 0.3
#: How many rounds in a row must show it.
ROUNDS = 2
#: How many times as many calls must be in flight in each of them as in the one before.
GROWTH = 1.25
#: The share of the best throughput that is enough, for the sake of shorter waits.
WORTH = 0.92


class Round(NamedTuple):
    """As many answers as there were calls in flight."""

    in_flight: float
    per_second: float


class SaturationDetector:
    """Compares the throughput of a window while it rises."""

    def __init__(self) -> None:
        self._rounds: list[Round] = []
        self._answers = 0
        self._levels = 0.0
        self._seconds = 0.0

    def add_answer(self, limit: float, level: int, seconds: float) -> float | None:
        """Count an answer while the window rises: how many calls were in flight, and how long it took.

        Return how many in flight are enough, once that is known.
        """
        self._answers += 1
        self._levels += level
        self._seconds += seconds
        if self._answers < limit / 2 or not self._seconds:
            return None
        # Little's law: what is in flight is what comes in per second, times the seconds that it stays.
        done = Round(self._levels / self._answers, self._levels / self._seconds)
        self._begin()
        if self._rounds and done.in_flight < GROWTH * self._rounds[-1].in_flight:
            return None
        rounds = self._rounds
        rounds.append(done)
        if len(rounds) <= ROUNDS:
            return None
        for before, after in pairwise(rounds[-ROUNDS - 1 :]):
            if after.per_second / before.per_second - 1 >= FULL * (after.in_flight / before.in_flight - 1):
                return None
        best = max(each.per_second for each in rounds)
        enough = next(each for each in rounds if each.per_second >= WORTH * best)
        # The next rise is compared with this round.
        self._rounds = [enough]
        return enough.in_flight

    def _begin(self) -> None:
        self._answers, self._levels, self._seconds = 0, 0.0, 0.0

    def restart(self) -> None:
        self._rounds.clear()
        self._begin()
