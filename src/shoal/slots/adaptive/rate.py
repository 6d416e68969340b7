"""How much per time a server allows, learned from the calls it refuses or from what it publishes.

Servers count with buckets that fill steadily: whenever a call is refused, the bucket is empty. So between two refusals
as much was accepted as flowed in, and that amount divided by the time is the rate, however unevenly calls came. A
longer time gives a more precise rate. The rate then creeps upwards until the next refusal, faster and faster, so that a
raised limit is found.
"""

from __future__ import annotations

import math
from collections import deque
from enum import StrEnum
from itertools import pairwise

from shoal.rate_limits import RateLimit
from shoal.slots.adaptive.attempts import Attempt, Attempts, Mark

#: The share of a measured rate that is used, so that the next refusal is far.
MARGIN = 0.97
#: Growth with each answer after a refusal; the number of answers after which the growth doubles, and how often it does.
CREEP, CREEP_DOUBLES, CREEP_DOUBLINGS = 0.00015, 120.0, 6.0
#: Growth with each answer until a rate was measured over enough calls.
CREEP_UNSURE = 0.005
#: Calls between two refusals from which a rate can be measured, and from which it is sure.
FEW, ENOUGH = 4, 40
SHORTEST_SECONDS = 0.1
#: What is left at least of a rate that was sure, after a measurement over few calls.
LEAST_LEFT = 0.9
#: What is left of the rate after two refusals with nothing accepted in between: it has fallen.
FALL = 0.7
#: A rate that was lowered at this many refusals to this share of what it was, and each time to this share of what it
#: was before, is not what they are about.
LOWERED, LOWERED_TO, FALLS_TO = 6, 0.88, 0.99
#: How many refusals are kept, and for how long.
MARKS, MARK_SECONDS = 64, 60.0
#: What is left of a burst that was too large, and its growth with each answer after the bucket was full.
BURST_FALL, BURST_CREEP = 0.85, 0.001
#: A published rate is dropped after this many refusals in a row with less than this share of it accepted.
CONTRADICTED, CONTRADICTIONS = 0.5, 3
#: One call is tried this often whatever was refused; otherwise a raised limit would go unnoticed.
LONGEST_WAIT_SECONDS = 10.0
#: A shorter wait would not move a floating-point clock.
SHORTEST_WAIT_SECONDS = 1e-6


class Unit(StrEnum):
    """What a server counts per time."""

    REQUESTS = "requests"
    TOKENS = "tokens"

    def of(self, mark: Mark) -> float:
        return mark.requests if self is Unit.REQUESTS else mark.tokens

    def cost(self, tokens: int) -> float:
        return 1.0 if self is Unit.REQUESTS else float(max(tokens, 1))

    def count_begun(self, attempts: Attempts) -> float:
        calls, tokens = attempts.begun
        return calls if self is Unit.REQUESTS else tokens

    def since(self, attempts: Attempts, attempt: Attempt) -> float:
        """Return how much has begun after this call."""
        return self.count_begun(attempts) - (attempt.calls if self is Unit.REQUESTS else attempt.total)


class Pace:
    """A token bucket that imitates the server's."""

    def __init__(self, unit: Unit, rate: float, now: float, *, burst: float) -> None:
        self.unit = unit
        self.rate = rate
        self.burst = max(burst, 1.0)
        self.is_published = False
        #: Whether the published rate has turned out to be another limit than the one that refuses calls.
        self.is_contradicted = False
        self._contradictions = 0
        self.is_sure = False
        self._level = 0.0
        self._then = now
        #: Whether the bucket was full since the last refusal, so that less was accepted than flowed in.
        self._overflowed = False
        #: Answers since the last refusal that came while calls waited for this rate.
        self._calm = 0
        self._is_binding = False
        self._reacted_at = now
        #: The rate before several refusals in a row.
        self._before_fall: float | None = None
        #: What an earlier run measured, until the first refusal.
        self._remembered = math.inf
        #: What the rate was at the last refusals.
        self._refused_at: deque[float] = deque(maxlen=LOWERED)

    @property
    def keeps_falling(self) -> bool:
        """Whether calls are refused again and again although the rate was lowered each time."""
        rates = self._refused_at
        return (
            len(rates) == LOWERED
            and rates[-1] < LOWERED_TO * rates[0]
            and all(b < FALLS_TO * a for a, b in pairwise(rates))
        )

    def start(self, now: float) -> None:
        """Begin the clock of a restored rate with a full bucket."""
        self.is_sure = True
        self._remembered = self.rate
        self._level, self._then = self.burst, now
        self._reacted_at = now

    def wait(self, now: float, tokens: int) -> float:
        need = min(self.unit.cost(tokens), self.burst)
        lacking = need - self.level(now)
        if lacking <= 1e-9:
            return 0.0
        self._is_binding = True
        return max(lacking / self.rate, SHORTEST_WAIT_SECONDS)

    def level(self, now: float) -> float:
        self._level += max(now - self._then, 0.0) * self.rate
        self._then = now
        if self._level > self.burst:
            self._level, self._overflowed = self.burst, True
        return self._level

    def take(self, now: float, tokens: int) -> None:
        # A call larger than the bucket passes when the bucket is full; the debt is bounded, so that no wait is endless.
        self._level = max(self.level(now) - self.unit.cost(tokens), -self.rate * LONGEST_WAIT_SECONDS)

    def creep(self) -> None:
        """Raise the rate a little with each answer if calls wait for it."""
        if self._is_binding and not self.is_published:
            self._calm += 1
            growth = CREEP * 2.0 ** min(self._calm / CREEP_DOUBLES, CREEP_DOUBLINGS)
            self.rate *= 1 + (growth if self.is_sure else CREEP_UNSURE)
        if self._overflowed and not self.is_published:
            self.burst *= 1 + BURST_CREEP
        self._is_binding = False

    def on_refusal(self, attempt: Attempt, marks: deque[Mark], now: float, *, is_fall: bool) -> None:
        if attempt.at <= self._reacted_at:
            return
        self._reacted_at, self._calm = now, 0
        if not self.is_published:
            # Before the first refusal, a full bucket gave more than flows in, which says nothing about the rate.
            self.rate, self._remembered = min(self.rate, self._remembered), math.inf
        if is_fall:
            self._refused_at.clear()
        self._refused_at.append(self.rate)
        if self.is_published:
            # It may be another limit than the one that refuses calls, such as one per day.
            measured = rate_of(self.unit, marks)
            is_wrong = is_fall or (measured is not None and measured < CONTRADICTED * self.rate)
            self._contradictions = self._contradictions + 1 if is_wrong else 0
            self.is_contradicted = self._contradictions >= CONTRADICTIONS
        else:
            if self._level > 2 * self.unit.cost(attempt.tokens):
                self.burst = max(1.0, self.burst * BURST_FALL)
            if self._overflowed and not is_fall:
                while len(marks) > 1:
                    marks.popleft()
                self.rate *= MARGIN
            else:
                self._measure(marks, is_fall=is_fall)
            self.rate = max(self.rate, self.unit.cost(attempt.tokens) / LONGEST_WAIT_SECONDS)
        self._level, self._then, self._overflowed = 0.0, now, False

    def reopen(self) -> None:
        """Restore the rate when calls are accepted again after a long time: a window was closed, no rate fell."""
        if self._before_fall is not None and not self.is_published:
            self.rate = self._before_fall

    def _measure(self, marks: deque[Mark], *, is_fall: bool) -> None:
        if is_fall and self._before_fall is None:
            self._before_fall = self.rate
        measured = None if is_fall else rate_of(self.unit, marks)
        if measured is None:
            self.rate *= FALL if is_fall or not self.is_sure else MARGIN
        else:
            is_enough = marks[-1].requests - oldest(marks).requests >= ENOUGH
            if self.is_sure and not is_enough:
                measured = max(measured, self.rate * LEAST_LEFT)
            self.rate = self._before_fall = min(self.rate, measured) * MARGIN
            self.is_sure |= is_enough

    def publish(self, published: RateLimit, attempt: Attempt, now: float, since: float) -> None:
        """Use the published limit; `since` is how much began after the call whose reply brought it."""
        if self.is_contradicted:
            return
        self.rate = published.limit / 60
        self.is_published = True
        if published.remaining is None:
            return
        if published.reset_seconds is not None:
            self.burst = max(published.remaining + published.reset_seconds * self.rate, 1.0)
        # The server may have counted when the call came in or when it was answered.
        as_it_came_in = published.remaining + (now - attempt.at) * self.rate - since
        self._level = min(self.level(now), max(published.remaining, as_it_came_in))

    def fill(self, level: float) -> None:
        self._level = level


def oldest(marks: deque[Mark]) -> Mark:
    """Return the first refusal that is recent enough to compare the last one with."""
    return next(mark for mark in marks if marks[-1].at - mark.at < MARK_SECONDS)


def rate_of(unit: Unit, marks: deque[Mark]) -> float | None:
    """Return what flowed in per second between refusals; None if it was too little to tell."""
    if not marks:
        return None
    first, last = oldest(marks), marks[-1]
    seconds = last.at - first.at
    if seconds < SHORTEST_SECONDS or last.requests - first.requests < FEW:
        return None
    return (unit.of(last) - unit.of(first)) / seconds
