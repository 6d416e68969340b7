"""Where more calls in flight bring no more answers: for servers that queue what they cannot do, and refuse nothing.

Single latencies say little, as answers differ in length by orders of magnitude. So whole rounds are compared: as many
answers as there are calls in flight, and how long they took together.
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
        self._began_at = 0.0
        self._in_flight = 0.0

    def answered(self, in_flight: float, now: float) -> float | None:
        """Count an answer of a window that rises; how many in flight are enough, if that is found out."""
        if not self._in_flight:
            self._begin(in_flight, now)
        self._answers += 1
        if self._answers < self._in_flight or now <= self._began_at:
            return None
        done = Round(self._in_flight, self._answers / (now - self._began_at))
        self._begin(in_flight, now)
        if self._rounds and done.in_flight < GROWTH * self._rounds[-1].in_flight:
            return None
        self._rounds.append(done)
        return self._enough()

    def _begin(self, in_flight: float, now: float) -> None:
        self._answers, self._began_at, self._in_flight = 0, now, in_flight

    def restart(self) -> None:
        self._rounds.clear()
        self._in_flight = 0.0
        self._answers = 0

    def _enough(self) -> float | None:
        rounds = self._rounds
        if len(rounds) <= ROUNDS or any(map(_is_worth_it, rounds[-ROUNDS - 1 :], rounds[-ROUNDS:])):
            return None
        best = max(each.per_second for each in rounds)
        enough = next(each for each in rounds if each.per_second >= WORTH * best)
        # The next rise is compared with this.
        self._rounds, self._in_flight = [enough], 0.0
        return enough.in_flight


def _is_worth_it(before: Round, after: Round) -> bool:
    gained = after.per_second / before.per_second - 1
    return gained >= FULL * (after.in_flight / before.in_flight - 1)
