"""The attempts of one pool, and what they prove about the server whatever the order in which they reached it.

A refusal comes back much sooner than an answer, so a call that is out for a few times as long was accepted. A server
never has more in work than its clients have in flight. Therefore:

- a refused call proves that a cap is at most the number of calls that were in flight with it and were not refused;
- an accepted call proves that a cap is at least the number of accepted calls that stay in flight beside it.

A cap that stays never contradicts itself. A rate does so all the time, because it refuses by time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

#: A call counts as accepted when it is out longer than a refusal takes, by this many mean deviations and these seconds.
PROOF_DEVIATIONS, PROOF_SECONDS = 4.0, 0.02
#: A longer time in which nothing happened counts as this long: a busy machine hears everything late.
STALL_SECONDS = 0.01
#: How fast means follow: answers vary much, refusals little.
_ANSWER_GAIN, _REFUSAL_GAIN = 0.05, 0.2
#: How much refusals differ, as a share of their time, as long as only one was heard.
FIRST_DEVIATION = 0.5
#: Sizes of refused calls that are compared with the mean, and fewer of them than this say little.
SIZES, FEW_SIZES = 16, 4
#: This many contradictions within this many calls are too many for a cap that changes now and then.
CONTRADICTIONS, AMONG_CALLS = 2, 100


@dataclass(slots=True, eq=False)
class Attempt:
    """One call that has begun."""

    at: float
    tokens: int
    #: How many calls were in flight, itself included.
    level: int
    #: How many calls and tokens had begun so far, itself included.
    calls: int
    total: int
    #: When it began, on a clock that stands still while this machine does.
    steady_at: float
    #: How many had ended before it began: of all, and of those that were not refused.
    ends_before: int
    accepted_before: int
    #: How many calls were in flight when the next one was answered: those that were sent together with it, and not
    #: refused, count as well.
    crowd: int
    is_proven: bool = False
    has_ended: bool = False


class Mark(NamedTuple):
    """A refusal: when that call began, and how much had been accepted before it."""

    at: float
    requests: float
    tokens: float


class Attempts:
    """Counts the calls of one pool and decides which are known to be accepted."""

    def __init__(self) -> None:
        self.held = 0
        self.answer_seconds: float | None = None
        self.refusal_seconds: float | None = None
        self._refusal_deviation = 0.0
        self._now = self._steady_now = 0.0
        #: The bounds of a cap, if there is one, since the last contradiction.
        self.at_least = 0
        self.at_most: float = float("inf")
        #: Calls in flight, in the order in which they began.
        self.open: dict[Attempt, None] = {}
        #: Those of them that began after the last answer.
        self._fresh: list[Attempt] = []
        self._unproven: deque[Attempt] = deque()
        self._proven = 0
        self._calls = self._total = 0
        self._ends = self._accepted_ends = 0
        self._refused_calls = self._refused_total = 0
        #: Of calls that began after the refusal before was heard: calls of all sizes are refused in one burst.
        self._refused_sizes: deque[int] = deque(maxlen=SIZES)
        #: Refusals since the last contradiction, each of a call that began after the one before was heard.
        self.refusals_that_fit = 0
        self._heard_at = float("-inf")
        #: Accepted calls that began before this time say nothing about the cap of now.
        self._since = float("-inf")
        self._contradictions: deque[int] = deque(maxlen=CONTRADICTIONS)

    @property
    def round_trip(self) -> float:
        return self.answer_seconds if self.answer_seconds is not None else 0.5

    @property
    def mean_size(self) -> float:
        return self._total / self._calls if self._calls else 1.0

    @property
    def mean_refused_size(self) -> float:
        return sum(self._refused_sizes) / len(self._refused_sizes)

    @property
    def are_few_refused(self) -> bool:
        """Whether too few were refused to compare their sizes."""
        return len(self._refused_sizes) < FEW_SIZES

    @property
    def begun(self) -> tuple[int, int]:
        """Calls and tokens, so far."""
        return self._calls, self._total

    @property
    def accepted(self) -> tuple[int, int]:
        """Calls and tokens that were not refused, so far."""
        return self._calls - self._refused_calls, self._total - self._refused_total

    @property
    def contradict_a_cap(self) -> bool:
        """Whether no cap explains what was refused and accepted lately."""
        found = self._contradictions
        return len(found) == CONTRADICTIONS and found[0] > self._calls - AMONG_CALLS

    def begin(self, now: float, tokens: int) -> Attempt:
        self.held += 1
        self._calls += 1
        self._total += tokens
        self._tick(now)
        ends, level = (self._ends, self._accepted_ends), self.held
        attempt = Attempt(now, tokens, level, self._calls, self._total, self._steady_now, *ends, level)
        self._fresh.append(attempt)
        self._unproven.append(attempt)
        self.open[attempt] = None
        return attempt

    def take_proven(self, now: float) -> Iterator[Attempt]:
        """Yield calls that now count as accepted because they are in flight longer than a refusal takes."""
        self._tick(now)
        if self.refusal_seconds is None:
            return
        takes = self.refusal_seconds + PROOF_DEVIATIONS * self._refusal_deviation + PROOF_SECONDS
        before = self._steady_now - takes
        while self._unproven and (self._unproven[0].has_ended or self._unproven[0].steady_at < before):
            attempt = self._unproven.popleft()
            if attempt.has_ended:
                continue
            attempt.is_proven = True
            self._proven += 1
            if attempt.at > self._since:
                # All of these began before it and have stayed since, so they were in work together.
                self.at_least = max(self.at_least, self._proven)
                if self.at_least > self.at_most:
                    self._contradict(now)
            yield attempt

    def end(self, attempt: Attempt) -> None:
        """Count an end that is no refusal."""
        for each in self._fresh:
            each.crowd = self.held
        self._fresh.clear()
        self._end(attempt)
        self._accepted_ends += 1

    def answer(self, attempt: Attempt, seconds: float) -> None:
        self.end(attempt)
        self.answer_seconds = _follow(self.answer_seconds, seconds, _ANSWER_GAIN)

    def refuse(self, attempt: Attempt, now: float, seconds: float) -> int:
        """Count a refusal; return how many calls at least had to be in work if a cap was the reason."""
        self._end(attempt)
        if self.refusal_seconds is None:
            self._refusal_deviation = seconds * FIRST_DEVIATION
        usual = seconds if self.refusal_seconds is None else self.refusal_seconds
        self._refusal_deviation += _REFUSAL_GAIN * (abs(seconds - usual) - self._refusal_deviation)
        self.refusal_seconds = _follow(usual, seconds, _REFUSAL_GAIN)
        self._refused_calls += 1
        self._refused_total += attempt.tokens
        if attempt.at >= self._heard_at:
            self.refusals_that_fit += 1
            self._refused_sizes.append(attempt.tokens)
            self._heard_at = now
        at_most = self.held + self._accepted_ends - attempt.accepted_before
        self.at_most = min(self.at_most, at_most)
        if at_most < self.at_least:
            self._contradict(now)
            self.at_most = at_most
        return at_most

    def _contradict(self, now: float) -> None:
        """Count that what was seen so far fits no cap, or one that has changed."""
        self._contradictions.append(self._calls)
        self.forget_bounds(now)

    def forget_bounds(self, now: float) -> None:
        """Begin anew with what a cap may be."""
        self._since = now
        self.refusals_that_fit = 0
        self.at_least = 0
        self.at_most = float("inf")

    def _tick(self, now: float) -> None:
        self._steady_now += min(now - self._now, STALL_SECONDS)
        self._now = now

    def mark(self, attempt: Attempt) -> Mark:
        """Return how much had been accepted before a refused call."""
        requests = attempt.calls - self._refused_calls
        return Mark(attempt.at, requests, attempt.total - self._refused_total)

    def _end(self, attempt: Attempt) -> None:
        self.held -= 1
        self._ends += 1
        attempt.has_ended = True
        del self.open[attempt]
        self._proven -= attempt.is_proven
        while self._unproven and self._unproven[0].has_ended:
            self._unproven.popleft()

    def count_before(self, attempt: Attempt, *, exactly: bool) -> int:
        """Return how many calls in flight began before this one; at least so many if not exactly."""
        if exactly:
            return next(place for place, each in enumerate(self.open) if each is attempt)
        return attempt.level - 1 - (self._ends - attempt.ends_before)


def _follow(mean: float | None, value: float, gain: float) -> float:
    return value if mean is None else mean + gain * (value - mean)
