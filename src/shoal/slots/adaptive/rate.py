"""How much per time a server allows, learned from the calls it refuses or from what it publishes.

Servers count with buckets that fill steadily: whenever a call is refused, the bucket is empty. So between two refusals
just as much was let in as flowed in, and one divided by the other is the rate, however unevenly it was asked for; the
longer the time between the two, the more precisely. The rate is then crept upwards until the next refusal, faster and
faster, so that a limit that was raised is found.
"""

from __future__ import annotations

from collections import deque
from enum import StrEnum

from shoal.rate_limits import RateLimit
from shoal.slots.adaptive.evidence import Evidence, Mark, Sent

#: What is left out of a measured rate, so that the next refusal is far.
MARGIN = 0.97
#: Growth per second after a refusal, and the seconds after which it has doubled, at most so often.
CREEP, CREEP_DOUBLES_SECONDS, CREEP_DOUBLINGS = 0.003, 7.0, 6
#: The same until a rate was measured over enough calls.
CREEP_UNSURE = 0.15
#: Calls between two refusals that make a rate, and that make it a sure one.
FEW, ENOUGH = 4, 40
SHORTEST_SECONDS = 0.1
#: A refusal right after a refusal, with nothing let in between: the rate has fallen.
FALL = 0.7
#: Refusals that are remembered, and for how long.
MARKS, MARK_SECONDS = 64, 60.0
#: A rate that has crept up by this much since the last refusal has found a higher limit: what flowed in before, while
#: the bucket was full, says nothing about it.
OUTGROWN, OUTGROWN_MARGIN = 1.25, 0.9
#: What is left of a burst that was too large.
BURST_FALL = 0.7
#: Refusals in a row with less let in than this share of a published rate, until it is no longer believed.
CONTRADICTED, CONTRADICTIONS = 0.5, 3
#: A call in so many seconds is tried whatever was refused, or nobody would notice that more is allowed again.
LONGEST_WAIT_SECONDS = 10.0
#: Less would not move a clock of floating point.
SHORTEST_WAIT_SECONDS = 1e-6


class Unit(StrEnum):
    REQUESTS = "requests"
    TOKENS = "tokens"

    def of(self, mark: Mark) -> float:
        return mark.requests if self is Unit.REQUESTS else mark.tokens

    def cost(self, tokens: int) -> float:
        return 1.0 if self is Unit.REQUESTS else float(max(tokens, 1))

    def begun(self, evidence: Evidence) -> float:
        calls, tokens = evidence.begun
        return calls if self is Unit.REQUESTS else tokens

    def since(self, evidence: Evidence, sent: Sent) -> float:
        """How much has begun after this call."""
        return self.begun(evidence) - (sent.calls if self is Unit.REQUESTS else sent.total)


class Pace:
    """A bucket like the one the server must have."""

    def __init__(self, unit: Unit, rate: float, now: float, *, burst: float, is_measured: bool = False) -> None:
        self.unit = unit
        self.rate = rate
        self.burst = max(burst, 1.0)
        self.is_published = False
        #: Whether what is published has turned out to be something else.
        self.is_contradicted = False
        self._contradictions = 0
        self.is_sure = False
        self._level = 0.0
        self._then = now
        self._calm_since = self._grown_at = now
        self._is_binding = False
        self._reacted_at = now
        self._after_refusal = rate
        #: What was measured before calls were refused one after another.
        self._before_fall = rate if is_measured else None

    def start(self, now: float) -> None:
        """What is remembered is used from now on; nobody has used anything for a while."""
        self.is_sure = True
        self._level, self._then = self.burst, now
        self._calm_since = self._grown_at = self._reacted_at = now

    def wait(self, now: float, tokens: int) -> float:
        need = min(self.unit.cost(tokens), self.burst)
        lacking = need - self.level(now)
        if lacking <= 1e-9:
            return 0.0
        self._is_binding = True
        return max(lacking / self.rate, SHORTEST_WAIT_SECONDS)

    def level(self, now: float) -> float:
        self._level = min(self.burst, self._level + max(now - self._then, 0.0) * self.rate)
        self._then = now
        return self._level

    def take(self, now: float, tokens: int) -> None:
        # More than the bucket holds is let through when it is full, and nobody waits for ever afterwards.
        self._level = max(self.level(now) - self.unit.cost(tokens), -self.rate * LONGEST_WAIT_SECONDS)

    def creep(self, now: float) -> None:
        """Grow a little, if it is this rate that calls wait for."""
        seconds, self._grown_at = now - self._grown_at, now
        if self._is_binding and not self.is_published:
            doublings = min((now - self._calm_since) / CREEP_DOUBLES_SECONDS, CREEP_DOUBLINGS)
            per_second = CREEP * 2**doublings if self.is_sure else CREEP_UNSURE
            self.rate *= 1 + per_second * seconds
        self._is_binding = False

    def refused(self, sent: Sent, marks: deque[Mark], now: float, *, is_fall: bool) -> None:
        if sent.at <= self._reacted_at:
            return
        self._reacted_at = self._calm_since = self._grown_at = now
        if self.is_published:
            self._doubt(marks, is_fall=is_fall)
        else:
            if self._level > 2 * self.unit.cost(sent.tokens):
                self.burst = max(1.0, self.burst * BURST_FALL)
            self._measure(marks, is_fall=is_fall)
            self.rate = max(self.rate, self.unit.cost(sent.tokens) / LONGEST_WAIT_SECONDS)
            self._after_refusal = self.rate
        self._level, self._then = 0.0, now

    def _doubt(self, marks: deque[Mark], *, is_fall: bool) -> None:
        """What is published may be another limit than the one that calls run into, for example one per day."""
        measured = rate_of(self.unit, marks)
        is_wrong = is_fall or (measured is not None and measured < CONTRADICTED * self.rate)
        self._contradictions = self._contradictions + 1 if is_wrong else 0
        self.is_contradicted = self._contradictions >= CONTRADICTIONS

    def reopen(self) -> None:
        """For a long time nothing was let in, and now something is: it was no rate that fell, but a closed window."""
        if self._before_fall is not None and not self.is_published:
            self.rate = self._before_fall

    def _measure(self, marks: deque[Mark], *, is_fall: bool) -> None:
        measured = None if is_fall else rate_of(self.unit, marks)
        if measured is not None and self.is_sure and self.rate > OUTGROWN * self._after_refusal:
            self.rate *= OUTGROWN_MARGIN
            while len(marks) > 1:
                marks.popleft()
        elif measured is None:
            self.rate *= FALL
        else:
            self.rate = self._before_fall = min(self.rate, measured) * MARGIN
            self.is_sure = marks[-1].requests - oldest(marks).requests >= ENOUGH

    def publish(self, told: RateLimit, sent: Sent, now: float, since: float) -> None:
        """Take over what the server says; `since`: how much began after the call that this came with."""
        if self.is_contradicted:
            return
        self.rate = told.limit / 60
        self.is_published = True
        if told.remaining is None:
            return
        if told.reset_seconds is not None:
            self.burst = max(told.remaining + told.reset_seconds * self.rate, 1.0)
        # It may have been written down when the call came in or when it was answered.
        as_it_came_in = told.remaining + (now - sent.at) * self.rate - since
        self._level = min(self.level(now), max(told.remaining, as_it_came_in))

    def fill(self, level: float) -> None:
        self._level = level


def oldest(marks: deque[Mark]) -> Mark:
    """The first refusal that is not too long ago to compare the last one with."""
    return next(mark for mark in marks if marks[-1].at - mark.at < MARK_SECONDS)


def rate_of(unit: Unit, marks: deque[Mark]) -> float | None:
    """What flowed in between refusals; None if that was too little to tell."""
    if not marks:
        return None
    first, last = oldest(marks), marks[-1]
    seconds = last.at - first.at
    if seconds < SHORTEST_SECONDS or last.requests - first.requests < FEW:
        return None
    return (unit.of(last) - unit.of(first)) / seconds
