"""A limit that learns what a provider allows: calls in flight, requests per minute, tokens per minute.

What it does and why, with its constants and the runs that justify them: docs/design/adaptive-limits.md.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from typing import Any

import msgspec

from shoal.rate_limits import RateLimits
from shoal.slots.adaptive.evidence import Evidence, Mark, Sent
from shoal.slots.adaptive.noise import NoiseDetector
from shoal.slots.adaptive.outage import OutageDetector
from shoal.slots.adaptive.rate import LONGEST_WAIT_SECONDS, MARKS, Pace, Unit, rate_of
from shoal.slots.adaptive.window import ConcurrencyWindow
from shoal.slots.leases import CallEnd, CallOutcome

#: How much larger refused calls are than the mean if tokens are limited.
LARGER = 1.25
#: The same once tokens are known to be limited.
AS_LARGE = 1.1
#: After the first refusal the rate is guessed as this share of what got through so far.
GUESS = 0.5
#: How many times as many calls may be in flight as a rate needs.
ROOM = 2.0
#: Refusals in a row with the same number in flight that turn a rate back into a window.
SAME = 5
#: Up to this number in flight they say nothing.
FEW = 3
#: Refusals in a row after which nothing is tried for a while.
IN_A_ROW = 4
#: The length of that pause: it doubles from the first to the longest.
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.1, 10.0


class LearnedRate(msgspec.Struct, frozen=True):
    per_minute: float
    burst: float
    is_published: bool = False


class Learned(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a limit learned, as it is stored for the next run."""

    in_flight: int
    #: Whether more calls were refused or brought nothing. Otherwise more were never tried.
    is_wall: bool = False
    answer_seconds: float | None = None
    refusal_seconds: float | None = None
    requests: LearnedRate | None = None
    tokens: LearnedRate | None = None


class Adaptive:
    """The control of a pool that learns: a window, rates, and the detectors of outages and noise."""

    def __init__(self, learned: Learned | None = None) -> None:
        self._evidence = Evidence()
        self._window = ConcurrencyWindow(self._evidence)
        self._outage = OutageDetector()
        self._noise = NoiseDetector()
        self._paces: dict[Unit, Pace] = {}
        self._marks: deque[Mark] = deque(maxlen=MARKS)
        self._levels: deque[int] = deque(maxlen=SAME)
        self._refused_in_a_row = 0
        self._refused_at = -math.inf
        self._pause_until = -math.inf
        self._began = math.inf
        self._ends: Counter[CallEnd] = Counter()
        if learned is not None:
            self._evidence.answer_seconds = learned.answer_seconds
            self._evidence.refusal_seconds = learned.refusal_seconds
            self._window.start_at(learned.in_flight, is_wall=learned.is_wall)
            for unit, rate in ((Unit.REQUESTS, learned.requests), (Unit.TOKENS, learned.tokens)):
                if rate is not None:
                    self._paces[unit] = Pace(unit, rate.per_minute / 60, -math.inf, burst=rate.burst)

    # the interface of a control

    def wait(self, now: float, tokens: int, waiting: int) -> float:
        for sent in self._evidence.take_proven(now):
            self._on_accepted(sent, now)
        wait = max(self._outage.wait(now), self._pause_until - now, self._window.wait(now, waiting))
        if wait == 0.0 and self._paces:
            wait = max(pace.wait(now, tokens) for pace in self._paces.values())
        return wait

    def begin(self, now: float, tokens: int) -> Sent:
        if self._began == math.inf:
            self._start_clock(now)
        sent = self._evidence.begin(now, tokens)
        self._window.begin(sent)
        self._outage.begin(sent)
        for pace in self._paces.values():
            pace.take(now, tokens)
        return sent

    def _start_clock(self, now: float) -> None:
        """Begin at the first call; a control that was restored from disk does not know the time before."""
        self._began = now
        self._window.start(now)
        for pace in self._paces.values():
            pace.start(now)

    def resume(self, now: float, tokens: int) -> Sent:
        if self._began == math.inf:
            self._start_clock(now)
        sent = self._evidence.begin(now, tokens)
        sent.proven = True
        return sent

    def end(self, now: float, sent: Sent, outcome: CallOutcome) -> None:
        self._ends[outcome.end] += 1
        if outcome.end is CallEnd.OK or (outcome.end.is_refusal and not self._window.is_beyond(sent)):
            before = self._noise.count(now, self._window.limit, refused=outcome.end.is_refusal)
            if before is not None:
                self._drop_hidden_paces()
                self._marks.clear()
                self._pause_until = -math.inf
                self._window.reopen(before)
        if outcome.end is CallEnd.OK:
            self._on_answer(now, sent, outcome)
        elif outcome.end.is_refusal:
            self._on_refusal(now, sent, outcome)
        else:
            self._on_loss(now, sent, outcome)
        if outcome.allowance is not None:
            self._on_published(now, sent, outcome.allowance)

    # reacting to the ends of calls

    def _on_answer(self, now: float, sent: Sent, outcome: CallOutcome) -> None:
        if self._evidence.on_answer(sent, outcome.seconds):
            self._on_accepted(sent, now)
        self._on_reply(sent)
        self._window.on_answer(sent, now)
        for pace in self._paces.values():
            pace.creep(now)

    def _on_accepted(self, sent: Sent, now: float) -> None:
        if self._refused_in_a_row >= IN_A_ROW:
            for pace in self._paces.values():
                pace.reopen()
        self._refused_in_a_row = 0
        self._window.on_accepted(sent, now)

    def _on_reply(self, sent: Sent) -> None:
        if self._outage.on_reply(sent):
            self._window.restart()

    def _on_loss(self, now: float, sent: Sent, outcome: CallOutcome) -> None:
        self._evidence.on_loss(sent)
        self._window.on_end(sent)
        if outcome.end is CallEnd.CANCELLED:
            self._outage.on_end(sent)
            return
        self._outage.on_failure(sent, now, outcome.retry_after)
        if outcome.end is CallEnd.OVERLOAD and not self._outage.is_on:
            self._window.ease(sent, now)

    def _on_refusal(self, now: float, sent: Sent, outcome: CallOutcome) -> None:
        for earlier in self._evidence.on_refusal(sent, outcome.seconds):
            self._on_accepted(earlier, now)
        self._on_reply(sent)
        if not self._noise.is_surprising and not self._window.is_beyond(sent):
            self._window.on_end(sent)
            return
        self._marks.append(self._evidence.mark(sent))
        if sent.at >= self._refused_at:
            # Other calls that were in flight with a refused one repeat what it said.
            self._refused_in_a_row += 1
            self._refused_at = now
        unit = self._find_unit(outcome.end)
        if unit is not None and outcome.end is CallEnd.LIMITED and self._is_wall(sent):
            self._drop_hidden_paces()
            self._window.on_end(sent)
            self._window.be_the_limit(min(self._levels), now)
            self._levels.clear()
            self._marks.clear()
        elif unit is None:
            if self._window.on_refusal(sent, now) and outcome.end is not CallEnd.CONCURRENCY:
                self._pace_by(self._likely_unit(None), now)
        else:
            self._window.on_end(sent)
            pace = self._paces.get(unit)
            if pace is not None:
                pace.on_refusal(sent, self._marks, now, is_fall=self._refused_in_a_row > 1)
            if pace is None or (pace.is_contradicted and pace.is_published):
                self._pace_by(unit, now)
        extra = self._refused_in_a_row - IN_A_ROW
        if extra >= 0:
            # Nothing was accepted between several refusals: pause instead of hammering the server.
            seconds = min(FIRST_PAUSE_SECONDS * 2 ** min(extra, 10), LONGEST_PAUSE_SECONDS)
            self._pause_until = now + (seconds if outcome.retry_after is None else min(seconds, outcome.retry_after))

    def _find_unit(self, end: CallEnd) -> Unit | None:
        """Return what was limited per time; None if it is, or may be, calls in flight."""
        if end is CallEnd.REQUESTS:
            return Unit.REQUESTS
        if end is CallEnd.TOKENS:
            return Unit.TOKENS
        hidden = [unit for unit, pace in self._paces.items() if not pace.is_published]
        return self._likely_unit(hidden[0]) if hidden and end is CallEnd.LIMITED else None

    def _likely_unit(self, so_far: Unit | None) -> Unit:
        """Guess the unit from the size of refused calls: where tokens are limited, large calls are refused."""
        refused = sum(mark.size for mark in self._marks) / len(self._marks)
        larger = refused / self._evidence.mean_size
        if larger > LARGER or (so_far is Unit.TOKENS and larger > AS_LARGE):
            return Unit.TOKENS
        return Unit.REQUESTS

    def _is_wall(self, sent: Sent) -> bool:
        """Return whether calls are refused at one level again and again; at a rate they are refused at any level."""
        self._levels.append(sent.level)
        low, high = min(self._levels), max(self._levels)
        return len(self._levels) == SAME and high - low <= 1 and low > FEW

    def _drop_hidden_paces(self) -> None:
        self._paces = {unit: pace for unit, pace in self._paces.items() if pace.is_published}

    def _pace_by(self, unit: Unit, now: float) -> None:
        """Limit this unit per time from now on, instead of any other unpublished rate."""
        self._drop_hidden_paces()
        is_contradicted = unit in self._paces
        measured = rate_of(unit, self._marks)
        size = self._evidence.mean_size if unit is Unit.TOKENS else 1.0
        calls, tokens = self._evidence.accepted
        guess = GUESS * (calls if unit is Unit.REQUESTS else tokens) / max(now - self._began, 0.1)
        rate = max(measured or guess, size / LONGEST_WAIT_SECONDS)
        # The bucket was full at first: what got through before the first refusal and did not flow in meanwhile.
        first = self._marks[0]
        burst = max(min(unit.of(first) - rate * (first.at - self._began), rate * 60), size)
        pace = self._paces[unit] = Pace(unit, rate, now, burst=burst, is_measured=measured is not None)
        pace.is_contradicted = is_contradicted
        self._levels.clear()
        self._window.give_way(ROOM * rate / size * self._evidence.round_trip)

    def _on_published(self, now: float, sent: Sent, allowance: RateLimits) -> None:
        for unit in Unit:
            published = allowance.requests if unit is Unit.REQUESTS else allowance.tokens
            if published is None:
                continue
            pace = self._paces.get(unit)
            if pace is None:
                pace = self._paces[unit] = Pace(unit, published.limit / 60, now, burst=math.inf)
                level = math.inf
                if published.remaining is not None and published.reset_seconds is not None:
                    # The bucket was full at first. The server may not know of calls in flight yet.
                    full_for = published.reset_seconds + now - self._began
                    begun = unit.count_begun(self._evidence)
                    level = max(published.remaining + full_for * published.limit / 60 - begun, 0.0)
                pace.fill(level)
            pace.publish(published, sent, now, unit.since(self._evidence, sent))

    # storing and showing

    def get_learned(self) -> Learned | None:
        """Return what was learned; None before the first call has ended."""
        return self._to_learned() if self._ends else None

    def _to_learned(self) -> Learned:
        window, evidence = self._window, self._evidence
        return Learned(
            in_flight=int(window.limit),
            is_wall=window.highest > 0,
            answer_seconds=evidence.answer_seconds,
            refusal_seconds=evidence.refusal_seconds,
            requests=_to_learned_rate(self._paces.get(Unit.REQUESTS)),
            tokens=_to_learned_rate(self._paces.get(Unit.TOKENS)),
        )

    def describe(self, now: float) -> dict[str, Any]:
        learned = self._to_learned()
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


def _to_learned_rate(pace: Pace | None) -> LearnedRate | None:
    # JSON has no infinity, and no provider allows more than a minute's worth at once.
    return None if pace is None else LearnedRate(pace.rate * 60, min(pace.burst, pace.rate * 60), pace.is_published)
