"""A limit that learns what a provider allows: calls in flight, requests per minute, tokens per minute.

What it does and why, with its constants and the runs that justify them: docs/design/adaptive-limits.md.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from typing import Any

import msgspec

from shoal.rate_limits import RateLimits
from shoal.slots.adaptive.attempts import Attempt, Attempts, Mark
from shoal.slots.adaptive.noise import NoiseDetector
from shoal.slots.adaptive.outage import OutageDetector
from shoal.slots.adaptive.rate import LONGEST_WAIT_SECONDS, MARKS, Pace, Unit, rate_of
from shoal.slots.adaptive.saturation import Saturation
from shoal.slots.adaptive.window import BEYOND_PROVEN, START, Window, capacity_within
from shoal.slots.leases import CallEnd, CallOutcome

#: How much larger refused calls are than the mean if tokens are limited. If they are no larger, requests are.
LARGER = 1.25
#: After the first refusal the rate is guessed as this share of what got through so far.
GUESS = 0.5
#: How many times as many calls may be in flight as a rate needs.
ROOM = 2.0
#: Refusals in a row that turn a rate into a cap if a cap explains all of them and what was accepted in between; and the
#: number in flight up to which they say nothing.
FIT, FEW = 4, 1
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
    #: How long an answer takes with this many in flight or fewer, if more are not refused and only take longer.
    service_seconds: float | None = None
    answer_seconds: float | None = None
    refusal_seconds: float | None = None
    requests: LearnedRate | None = None
    tokens: LearnedRate | None = None
    #: The share of calls that is refused at random.
    noise_share: float = 0.0


class Adaptive:
    """The control of a pool that learns: a window, rates, and the detectors of outages and noise."""

    def __init__(self, learned: Learned | None = None) -> None:
        self._attempts = Attempts()
        self._saturation = Saturation()
        self._window = Window(self._attempts, self._saturation)
        self._outage = OutageDetector()
        self._noise = NoiseDetector()
        self._paces: dict[Unit, Pace] = {}
        self._marks: deque[Mark] = deque(maxlen=MARKS)
        self._pause_until = -math.inf
        self._began = math.inf
        self._ends: Counter[CallEnd] = Counter()
        if learned is not None:
            self._attempts.answer_seconds = learned.answer_seconds
            self._attempts.refusal_seconds = learned.refusal_seconds
            self._noise = NoiseDetector(learned.noise_share)
            self._window.limit = learned.in_flight
            if not (learned.requests or learned.tokens):
                # At a rate not everything is sent at once, as the bucket may not be full.
                self._saturation.at_least = learned.in_flight / BEYOND_PROVEN
            if learned.service_seconds is not None:
                self._saturation.remember(capacity_within(learned.in_flight), learned.service_seconds)
            elif learned.is_wall:
                self._window.hold(learned.in_flight, -math.inf)
            for unit, rate in ((Unit.REQUESTS, learned.requests), (Unit.TOKENS, learned.tokens)):
                if rate is not None:
                    self._paces[unit] = Pace(unit, rate.per_minute / 60, -math.inf, burst=rate.burst)

    # the interface of a control

    def wait(self, now: float, tokens: int, waiting: int) -> float:
        for attempt in self._attempts.take_proven(now):
            self._on_accepted(attempt, now)
        if self._pause_until > -math.inf and self._attempts.held:
            # One call at a time tests whether anything is accepted again.
            return math.inf
        wait = max(self._outage.wait(now), self._pause_until - now, self._window.wait(now, waiting))
        if wait == 0.0 and self._paces:
            wait = max(pace.wait(now, tokens) for pace in self._paces.values())
        return wait

    def begin(self, now: float, tokens: int) -> Attempt:
        self._start_clock(now)
        attempt = self._attempts.begin(now, tokens)
        self._window.begin(attempt)
        self._outage.begin(attempt)
        for pace in self._paces.values():
            pace.take(now, tokens)
        return attempt

    def _start_clock(self, now: float) -> None:
        """Begin at the first call; a control that was restored from disk does not know the time before."""
        if self._began == math.inf:
            self._began = now
            for pace in self._paces.values():
                pace.start(now)

    def resume(self, now: float, tokens: int) -> Attempt:
        self._start_clock(now)
        return self._attempts.begin(now, tokens)

    def end(self, now: float, attempt: Attempt, outcome: CallOutcome) -> None:
        self._ends[outcome.end] += 1
        if outcome.end is CallEnd.OK:
            self._on_answer(now, attempt, outcome)
        elif outcome.end.is_refusal:
            self._on_refusal(now, attempt, outcome)
        else:
            self._on_loss(now, attempt, outcome)
        if outcome.allowance is not None:
            self._on_published(now, attempt, outcome.allowance)

    # reacting to the ends of calls

    def _on_answer(self, now: float, attempt: Attempt, outcome: CallOutcome) -> None:
        self._noise.count(refused=False)
        is_needed = self._window.is_rising and attempt.level > self._saturation.at_least
        beside = self._attempts.count_before(attempt, exactly=is_needed) + 1
        self._attempts.answer(attempt, outcome.seconds)
        self._saturation.add_answer(attempt.level, attempt.crowd, beside, outcome.seconds)
        if self._saturation.is_due:
            # At a cap as many are in flight as before, so there is no crowd whose fast answers come first.
            self._saturation.fit(self._attempts.open if self._window.is_rising else (), now)
        if not attempt.is_proven:
            self._on_accepted(attempt, now)
        self._on_reply(attempt)
        self._window.on_answer(attempt, now)
        for pace in self._paces.values():
            pace.creep()

    def _on_accepted(self, attempt: Attempt, now: float) -> None:
        self._pause_until = -math.inf
        if self._window.in_a_row >= IN_A_ROW:
            for pace in self._paces.values():
                pace.reopen()
        self._window.on_accepted(attempt, now)

    def _on_reply(self, attempt: Attempt) -> None:
        if self._outage.on_reply(attempt):
            self._window.come_back_from(min(self._window.limit, START))

    def _on_loss(self, now: float, attempt: Attempt, outcome: CallOutcome) -> None:
        self._attempts.end(attempt)
        self._window.on_end(attempt)
        if outcome.end is CallEnd.CANCELLED:
            self._outage.on_end(attempt)
            return
        self._outage.on_failure(attempt, now, outcome.retry_after)
        if outcome.end is CallEnd.OVERLOAD and not self._outage.is_on:
            self._window.ease(attempt, now)

    def _on_refusal(self, now: float, attempt: Attempt, outcome: CallOutcome) -> None:
        self._noise.count(refused=True)
        self._on_reply(attempt)
        self._window.is_noisy = self._noise.share > 0
        if not self._window.is_probing and self._noise.explains_refusal:
            self._attempts.end(attempt)
            self._window.on_end(attempt)
            return
        at_most = self._attempts.refuse(attempt, now, outcome.seconds)
        hidden = [pace for pace in self._paces.values() if not pace.is_published]
        if hidden:
            is_odd = any(pace.keeps_falling for pace in hidden)
        else:
            fits_no_cap = self._attempts.contradict_a_cap or self._window.was_surprised(attempt.calls)
            is_odd = fits_no_cap and not self._window.in_a_row
        if is_odd and self._noise.suspect(self._window.in_a_row):
            self._begin_anew(now)
            return
        if at_most == 0 and not hidden and self._noise.may_be(self._window.in_a_row):
            # Refused alone, among many that were not: a rate refuses the next one too.
            self._window.on_rate_refusal(attempt, now)
            return
        self._marks.append(self._attempts.mark(attempt))
        # A first call that is refused alone shows that a bucket is empty or that others have it all, and not how much.
        is_first = at_most == 0 and not self._attempts.accepted[0] and not self._paces
        unit = None if is_first else self._find_unit(outcome.end, at_most)
        if is_first:
            self._window.on_rate_refusal(attempt, now)
        elif unit is None:
            self._window.on_refusal(attempt, at_most, now)
        else:
            self._on_rate(unit, attempt, now)
        if is_first or (at_most == 0 and self._window.in_a_row >= IN_A_ROW):
            # Nothing is in flight and nothing is accepted: pause instead of hammering the server.
            doubled = FIRST_PAUSE_SECONDS * 2 ** min(self._window.in_a_row - IN_A_ROW, 10)
            seconds = doubled if outcome.retry_after is None else outcome.retry_after
            self._pause_until = now + min(seconds, LONGEST_PAUSE_SECONDS)

    def _begin_anew(self, now: float) -> None:
        """Forget the limits that random refusals seemed to show."""
        self._drop_hidden_paces()
        self._marks.clear()
        self._pause_until = -math.inf
        self._attempts.forget_bounds(now)
        # There may be a cap beside them: what was accepted once is held, and more is tried one by one.
        limit = max(self._window.limit, self._window.highest, START)
        self._window.restart(limit)
        self._window.hold(limit, -math.inf)

    def _find_unit(self, end: CallEnd, at_most: int) -> Unit | None:
        """Return what was limited per time; None if it is, or may be, calls in flight."""
        if end in (CallEnd.REQUESTS, CallEnd.TOKENS, CallEnd.CONCURRENCY):
            return {CallEnd.REQUESTS: Unit.REQUESTS, CallEnd.TOKENS: Unit.TOKENS}.get(end)
        if all(pace.is_published for pace in self._paces.values()):
            is_rate = at_most == 0 or self._attempts.contradict_a_cap
            return self._guess_unit() if is_rate else None
        if self._attempts.refusals_that_fit >= FIT and self._attempts.at_least > FEW:
            self._drop_hidden_paces()
            return None
        return self._guess_unit()

    def _guess_unit(self) -> Unit:
        """Guess the unit from the size of refused calls: where tokens are limited, large calls are refused.

        What was guessed before is right until their size speaks against it.
        """
        larger = self._attempts.mean_refused_size / self._attempts.mean_size
        for unit, pace in self._paces.items():
            if not pace.is_published and (1.0 < larger < LARGER or self._attempts.are_few_refused):
                return unit
        return Unit.TOKENS if larger > LARGER else Unit.REQUESTS

    def _on_rate(self, unit: Unit, attempt: Attempt, now: float) -> None:
        self._window.on_rate_refusal(attempt, now)
        pace = self._paces.get(unit)
        if pace is not None and self._pause_until == -math.inf:
            pace.on_refusal(attempt, self._marks, now, is_fall=self._window.in_a_row > 1)
        if pace is None or (pace.is_contradicted and pace.is_published):
            self._pace_by(unit, now)

    def _drop_hidden_paces(self) -> None:
        self._paces = {unit: pace for unit, pace in self._paces.items() if pace.is_published}

    def _pace_by(self, unit: Unit, now: float) -> None:
        """Limit this unit per time from now on, instead of any other unpublished rate."""
        self._drop_hidden_paces()
        is_contradicted = unit in self._paces
        measured = rate_of(unit, self._marks)
        size = self._attempts.mean_size if unit is Unit.TOKENS else 1.0
        calls, tokens = self._attempts.accepted
        guess = GUESS * (calls if unit is Unit.REQUESTS else tokens) / max(now - self._began, 0.1)
        rate = max(measured or guess, size / LONGEST_WAIT_SECONDS)
        # The bucket was full at first: what got through before the first refusal and did not flow in meanwhile.
        first = self._marks[0]
        burst = max(min(unit.of(first) - rate * (first.at - self._began), rate * 60), size)
        pace = self._paces[unit] = Pace(unit, rate, now, burst=burst)
        pace.is_contradicted = is_contradicted
        self._window.hold(max(ROOM * rate / size * self._attempts.round_trip, self._window.highest, START), now)

    def _on_published(self, now: float, attempt: Attempt, allowance: RateLimits) -> None:
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
                    begun = unit.count_begun(self._attempts)
                    level = max(published.remaining + full_for * published.limit / 60 - begun, 0.0)
                pace.fill(level)
            pace.publish(published, attempt, now, unit.since(self._attempts, attempt))

    # storing and showing

    def get_learned(self) -> Learned | None:
        """Return what was learned; None before the first call has ended."""
        return self._to_learned() if self._ends else None

    def _to_learned(self) -> Learned:
        window, attempts = self._window, self._attempts
        return Learned(
            in_flight=int(min(window.limit, window.furthest, window.full)),
            is_wall=window.mode == "full" or (window.mode == "holding" and not self._paces),
            service_seconds=self._saturation.service_seconds if window.mode == "full" else None,
            answer_seconds=attempts.answer_seconds,
            refusal_seconds=attempts.refusal_seconds,
            requests=_to_learned_rate(self._paces.get(Unit.REQUESTS)),
            tokens=_to_learned_rate(self._paces.get(Unit.TOKENS)),
            noise_share=self._noise.share,
        )

    def describe(self, now: float) -> dict[str, Any]:
        learned = self._to_learned()
        return {
            "kind": "adaptive",
            "mode": "outage" if self._outage.is_on else self._window.mode,
            "size": learned.in_flight,
            "held": self._attempts.held,
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
