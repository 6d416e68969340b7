"""Where more calls in flight bring no more answers: for servers that queue what they cannot do, and refuse nothing.

Single latencies say little, as answers differ in length by orders of magnitude. So whole rounds are compared: as many
answers as there are calls in flight, and how long they took together. The clock on the wall would not do, as many runs
ask all at once and then nothing for a while.
"""

from __future__ import annotations

from typing import NamedTuple

#: Of a server that is not full, twice the calls give twice the answers; of a full one, no more. Below this, it is full.
FULL = 0.3
#: Rounds that must say so, one after the other, each with so many more in flight than the one before.
ROUNDS, GROWTH = 2, 1.25
#: What is given up of the answers per second for the sake of those that wait.
WORTH = 0.92


class Round(NamedTuple):
    in_flight: float
    per_second: float


class Plateau:
    def __init__(self) -> None:
        self._rounds: list[Round] = []
        self._answers = 0
        self._levels = 0.0
        self._seconds = 0.0

    def answered(self, limit: float, level: int, seconds: float) -> float | None:
        """Count an answer of a window that rises: how many were in flight with it, and how long it took.

        Returns how many in flight are enough, if that is found out.
        """
        self._answers += 1
        self._levels += level
        self._seconds += seconds
        if self._answers < limit / 2 or not self._seconds:
            return None
        # What is in flight is what comes in per second, times the seconds that it stays.
        done = Round(self._levels / self._answers, self._levels / self._seconds)
        self._begin()
        if self._rounds and done.in_flight < GROWTH * self._rounds[-1].in_flight:
            return None
        self._rounds.append(done)
        return self._enough()

    def _begin(self) -> None:
        self._answers, self._levels, self._seconds = 0, 0.0, 0.0

    def restart(self) -> None:
        self._rounds.clear()
        self._begin()

    def _enough(self) -> float | None:
        rounds = self._rounds
        if len(rounds) <= ROUNDS or any(map(_is_worth_it, rounds[-ROUNDS - 1 :], rounds[-ROUNDS:])):
            return None
        best = max(each.per_second for each in rounds)
        enough = next(each for each in rounds if each.per_second >= WORTH * best)
        # The next rise is compared with this.
        self._rounds = [enough]
        return enough.in_flight


def _is_worth_it(before: Round, after: Round) -> bool:
    gained = after.per_second / before.per_second - 1
    return gained >= FULL * (after.in_flight / before.in_flight - 1)
