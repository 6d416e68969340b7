"""A limit that learns what a provider allows: calls in flight, requests per minute, tokens per minute.

What it does and why, with its constants and the runs that justify them: docs/design/adaptive-limits.md.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from typing import Any

import msgspec

from shoal.rate_limits import RateLimit, RateLimits
from shoal.slots.adaptive.evidence import Evidence, Mark, Sent
from shoal.slots.adaptive.noise import Noise
from shoal.slots.adaptive.outage import OutageDetector
from shoal.slots.adaptive.rate import LONGEST_WAIT_SECONDS, MARKS, Pace, Unit, rate_of
from shoal.slots.adaptive.window import ConcurrencyWindow
from shoal.slots.leases import CallEnd, CallOutcome

#: Refused calls that were this much larger than others were refused for their tokens; this little, for their number.
LARGER, AS_LARGE = 1.25, 1.1
#: With no refusal to compare the first with, half of what got through so far is a guess at the rate.
GUESS = 0.5
#: Room above what a rate needs in flight.
ROOM = 2.0
#: Refusals in a row, all with the same number in flight, that make a rate a window after all; of few that says nothing.
SAME, FEW = 5, 3
#: Refusals in a row after which nothing is tried for a while; how long at first, doubling, and at most.
IN_A_ROW, FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 4, 0.1, 10.0


class LearnedRate(msgspec.Struct, frozen=True):
    per_minute: float
    burst: float
    is_published: bool = False


class Learned(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is worth remembering."""

    in_flight: int
    #: Whether more was refused, or brought nothing; else it was never tried.
    is_wall: bool = False
    answer_seconds: float | None = None
    refusal_seconds: float | None = None
    requests: LearnedRate | None = None
    tokens: LearnedRate | None = None


class Adaptive:
    def __init__(self, learned: Learned | None = None) -> None:
        self._evidence = Evidence()
        self._window = ConcurrencyWindow(self._evidence)
        self._outage = OutageDetector()
        self._noise = Noise()
        self._paces: dict[Unit, Pace] = {}
        self._marks: deque[Mark] = deque(maxlen=MARKS)
        self._levels: deque[int] = deque(maxlen=SAME)
        self._refused_in_a_row = 0
        self._refused_at = -math.inf
        self._pause_until = -math.inf
        self._began = math.inf
        self._ends: Counter[CallEnd] = Counter()
        if learned is not None:
            self._recall(learned)

    # what the pool asks

    def wait(self, now: float, tokens: int, waiting: int) -> float:
        for sent in self._evidence.proven(now):
            self._let_in(sent, now)
        wait = max(self._outage.wait(now), self._pause_until - now, self._window.wait(now, waiting))
        if wait == 0.0 and self._paces:
            wait = max(pace.wait(now, tokens) for pace in self._paces.values())
        return wait

    def begin(self, now: float, tokens: int) -> Sent:
        if self._began == math.inf:
            self._start(now)
        sent = self._evidence.begin(now, tokens)
        self._window.begin(sent)
        self._outage.begin(sent)
        for pace in self._paces.values():
            pace.take(now, tokens)
        return sent

    def _start(self, now: float) -> None:
        """The first call: before, it was not known what time it is."""
        self._began = now
        self._window.start(now)
        for pace in self._paces.values():
            pace.start(now)

    def resume(self, now: float, tokens: int) -> Sent:
        if self._began == math.inf:
            self._start(now)
        sent = self._evidence.begin(now, tokens)
        sent.proven = True
        return sent

    def end(self, now: float, sent: Sent, outcome: CallOutcome) -> None:
        self._ends[outcome.end] += 1
        if outcome.end is CallEnd.OK or (outcome.end.is_refusal and not self._window.is_beyond(sent)):
            self._count(now, refused=outcome.end.is_refusal)
        if outcome.end is CallEnd.OK:
            self._answered(now, sent, outcome)
        elif outcome.end.is_refusal:
            self._refused(now, sent, outcome)
        else:
            self._lost(now, sent, outcome)
        if outcome.allowance is not None:
            self._published(now, sent, outcome.allowance)

    # what calls say

    def _count(self, now: float, *, refused: bool) -> None:
        before = self._noise.count(now, self._window.limit, refused=refused)
        if before is not None:
            self._paces = {unit: pace for unit, pace in self._paces.items() if pace.is_published}
            self._marks.clear()
            self._pause_until = -math.inf
            self._window.reopen(before)

    def _answered(self, now: float, sent: Sent, outcome: CallOutcome) -> None:
        if self._evidence.answered(sent, outcome.seconds):
            self._let_in(sent, now)
        self._hear(sent)
        self._window.answered(sent, now)
        for pace in self._paces.values():
            pace.creep(now)

    def _let_in(self, sent: Sent, now: float) -> None:
        if self._refused_in_a_row >= IN_A_ROW:
            for pace in self._paces.values():
                pace.reopen()
        self._refused_in_a_row = 0
        self._window.let_in(sent, now)

    def _hear(self, sent: Sent) -> None:
        if self._outage.heard(sent):
            self._window.restart()

    def _lost(self, now: float, sent: Sent, outcome: CallOutcome) -> None:
        self._evidence.lost(sent)
        self._window.gone(sent)
        if outcome.end is CallEnd.CANCELLED:
            self._outage.gone(sent)
            return
        self._outage.failed(sent, now, outcome.retry_after)
        if outcome.end is CallEnd.OVERLOAD and not self._outage.is_on:
            self._window.ease(sent, now)

    def _refused(self, now: float, sent: Sent, outcome: CallOutcome) -> None:
        for earlier in self._evidence.refused(sent, outcome.seconds):
            self._let_in(earlier, now)
        self._hear(sent)
        if not self._noise.is_surprising and not self._window.is_beyond(sent):
            self._window.gone(sent)
            return
        self._marks.append(self._evidence.mark(sent))
        if sent.at >= self._refused_at:
            # The others that were under way say the same once more.
            self._refused_in_a_row += 1
            self._refused_at = now
        unit = self._unit(outcome.end)
        if unit is not None and outcome.end is CallEnd.LIMITED and self._is_wall(sent):
            self._stop_pacing(sent, now)
        elif unit is None:
            if self._window.refused(sent, now) and outcome.end is not CallEnd.CONCURRENCY:
                self._pace_by(self._likely_unit(None), now)
        else:
            self._slow_down(unit, sent, now)
        self._pause(now, outcome.retry_after)

    def _unit(self, end: CallEnd) -> Unit | None:
        """Of what there was too much per time; None: it is, or may be, calls in flight."""
        if end is CallEnd.REQUESTS:
            return Unit.REQUESTS
        if end is CallEnd.TOKENS:
            return Unit.TOKENS
        hidden = [unit for unit, pace in self._paces.items() if not pace.is_published]
        return self._likely_unit(hidden[0]) if hidden and end is CallEnd.LIMITED else None

    def _likely_unit(self, so_far: Unit | None) -> Unit:
        """Where tokens are limited, it is the large calls that are refused."""
        refused = sum(mark.size for mark in self._marks) / len(self._marks)
        larger = refused / self._evidence.mean_size
        if larger > LARGER or (so_far is Unit.TOKENS and larger > AS_LARGE):
            return Unit.TOKENS
        return Unit.REQUESTS

    def _slow_down(self, unit: Unit, sent: Sent, now: float) -> None:
        self._window.gone(sent)
        pace = self._paces.get(unit)
        if pace is not None:
            pace.refused(sent, self._marks, now, is_fall=self._refused_in_a_row > 1)
        if pace is None or (pace.is_contradicted and pace.is_published):
            self._pace_by(unit, now)

    def _is_wall(self, sent: Sent) -> bool:
        """Whether calls are refused at one level again and again; at a rate, they are refused at any."""
        self._levels.append(sent.level)
        low, high = min(self._levels), max(self._levels)
        return len(self._levels) == SAME and high - low <= 1 and low > FEW

    def _stop_pacing(self, sent: Sent, now: float) -> None:
        self._paces = {unit: pace for unit, pace in self._paces.items() if pace.is_published}
        self._window.gone(sent)
        self._window.be_the_limit(min(self._levels), now)
        self._levels.clear()
        self._marks.clear()

    def _pace_by(self, unit: Unit, now: float) -> None:
        """From now on, so much per time; what was hidden was this and nothing else."""
        published = self._paces = {unit: pace for unit, pace in self._paces.items() if pace.is_published}
        is_contradicted = unit in published
        measured = rate_of(unit, self._marks)
        size = self._evidence.mean_size if unit is Unit.TOKENS else 1.0
        rate = max(measured or self._guess(unit, now), size / LONGEST_WAIT_SECONDS)
        burst = max(self._burst(unit, rate), size)
        pace = self._paces[unit] = Pace(unit, rate, now, burst=burst, is_measured=measured is not None)
        pace.is_contradicted = is_contradicted
        self._levels.clear()
        self._window.give_way(ROOM * rate / size * self._evidence.round_trip)

    def _guess(self, unit: Unit, now: float) -> float:
        calls, tokens = self._evidence.accepted
        return GUESS * (calls if unit is Unit.REQUESTS else tokens) / max(now - self._began, 0.1)

    def _burst(self, unit: Unit, rate: float) -> float:
        """What got through before the first refusal and did not flow in meanwhile: the bucket was full at first."""
        first = self._marks[0]
        return min(unit.of(first) - rate * (first.at - self._began), rate * 60)

    def _pause(self, now: float, retry_after: float | None) -> None:
        """With nothing let in between refusals, more would only be hammering."""
        extra = self._refused_in_a_row - IN_A_ROW
        if extra >= 0:
            seconds = min(FIRST_PAUSE_SECONDS * 2 ** min(extra, 10), LONGEST_PAUSE_SECONDS)
            self._pause_until = now + (seconds if retry_after is None else min(seconds, retry_after))

    def _published(self, now: float, sent: Sent, allowance: RateLimits) -> None:
        for unit in Unit:
            told = allowance.requests if unit is Unit.REQUESTS else allowance.tokens
            if told is None:
                continue
            pace = self._paces.get(unit)
            if pace is None:
                pace = self._paces[unit] = Pace(unit, told.limit / 60, now, burst=math.inf)
                pace.fill(self._level_at_first(unit, told, now))
            pace.publish(told, sent, now, unit.since(self._evidence, sent))

    def _level_at_first(self, unit: Unit, told: RateLimit, now: float) -> float:
        """What is left at most of a bucket that was full at first: of what is under way the server may not know yet."""
        if told.remaining is None or told.reset_seconds is None:
            return math.inf
        full_for = told.reset_seconds + now - self._began
        return max(told.remaining + full_for * told.limit / 60 - unit.begun(self._evidence), 0.0)

    # what is kept, and shown

    def learned(self) -> Learned | None:
        """None: nothing yet."""
        if not self._ends:
            return None
        return self._state()

    def _state(self) -> Learned:
        window, evidence = self._window, self._evidence
        return Learned(
            in_flight=int(window.limit),
            is_wall=window.highest > 0,
            answer_seconds=evidence.answer_seconds,
            refusal_seconds=evidence.refusal_seconds,
            requests=_learned_rate(self._paces.get(Unit.REQUESTS)),
            tokens=_learned_rate(self._paces.get(Unit.TOKENS)),
        )

    def _recall(self, learned: Learned) -> None:
        self._evidence.answer_seconds = learned.answer_seconds
        self._evidence.refusal_seconds = learned.refusal_seconds
        self._window.start_at(learned.in_flight, is_wall=learned.is_wall)
        for unit, rate in ((Unit.REQUESTS, learned.requests), (Unit.TOKENS, learned.tokens)):
            if rate is not None:
                self._paces[unit] = Pace(unit, rate.per_minute / 60, -math.inf, burst=rate.burst)

    def describe(self, now: float) -> dict[str, Any]:
        learned = self._state()
        return {
            "kind": "adaptive",
            "mode": "outage" if self._outage.is_on else self._window.mode.value,
            "size": learned.in_flight,
            "held": self._evidence.held,
            "answer_seconds": learned.answer_seconds,
            "requests_per_minute": learned.requests and learned.requests.per_minute,
            "tokens_per_minute": learned.tokens and learned.tokens.per_minute,
            "is_published": any(pace.is_published for pace in self._paces.values()),
            "noise_share": self._noise.share,
            "paused_seconds": max(self._pause_until - now, 0.0),
            "ends": {str(end): count for end, count in sorted(self._ends.items())},
        }


def _learned_rate(pace: Pace | None) -> LearnedRate | None:
    # JSON has no infinity, and nobody allows more than a minute's worth at once.
    return None if pace is None else LearnedRate(pace.rate * 60, min(pace.burst, pace.rate * 60), pace.is_published)
