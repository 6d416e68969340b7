"""How many calls in flight are allowed: by a server that refuses more, or that gains nothing from more.

The window rises with each answer until a call is refused. Then as many are in flight as the server allows, and the
window stays there. While many calls wait, one more is tried now and then.
"""

from __future__ import annotations

import math
from collections import deque

from shoal.slots.adaptive.attempts import Attempt, Attempts
from shoal.slots.adaptive.saturation import Saturation

#: Calls in flight before anything is known.
START = 8
#: Answers for this many seconds are asked for at first, and the window rises no further when answers take half of it:
#: an attempt is given up after 90 seconds, and must not be because calls queue that were sent together.
PATIENT_SECONDS = 60.0
#: Growth of the window for each answer while claims wait; where it is larger than this divided by the least growth, the
#: least: the larger a window, the more calls are sent, and refused, while the first refusal is on its way.
RISE, RISING_CALLS, LEAST_RISE = 2.0, 200.0, 1.0
#: How many times as many calls as a server can be proven to work on may be in flight.
BEYOND_PROVEN = 2.3
#: How many more than its capacity are in flight at a full server, so that it never waits for a call on its way; but not
#: more than its capacity.
SPARE = 2
#: Calls beyond the limit that must be accepted one after another before the window rises again. A single one may be
#: accepted by chance: an answer in flight makes room that is not known here yet.
PROBES = 3
#: Round trips until the first probe.
FIRST_PROBE = 12.0
#: How far this doubles at a limit that never moved, but not beyond one call in this many; and at a limit that came down
#: and may go up again, or that random refusals may have lowered.
LAST_PROBE, CALLS_PER_PROBE, LAST_PROBE_DOUBTFUL = 24.0, 300.0, 2.5
#: A limit below this share of the highest one counts as having come down.
FALLEN_SHARE = 0.7
#: One more is tried only while at least this many wait: otherwise it would not help.
PROBE_WAITING = 8
#: A cap explains fewer refusals than this among this many calls while the window holds. Among fewer than these they are
#: too close to one another to be random.
SURPRISES, AMONG_CALLS, AMONG_FEW = 3, 200, 20
#: The share of the window that is left when a server reports overload.
EASED = 0.8


def capacity_within(in_flight: int) -> float:
    """Return the capacity of a server that is full with this many in flight."""
    return max(in_flight - SPARE, in_flight / 2)


class Window:
    """How many calls may be in flight."""

    def __init__(self, attempts: Attempts, saturation: Saturation) -> None:
        self._attempts = attempts
        self._saturation = saturation
        self.limit = float(START)
        #: Whether the limit is not known and the window rises with each answer.
        self.is_rising = True
        #: The highest limit that was found; 0: none.
        self.highest = 0.0
        #: Refusals in a row, each of a call that began after the one before was heard.
        self.in_a_row = 0
        #: Whether calls are refused at random.
        self.is_noisy = False
        self._reacted_at = -math.inf
        #: Where the window was before an overload or an outage.
        self._back_to = math.inf
        self._has_waiting = False
        self._probe: Attempt | None = None
        self._probed_at = -math.inf
        self._trips = FIRST_PROBE
        #: Probes in a row that were accepted.
        self._probes = 0
        #: The last calls that were refused although the window held, each begun after the one before was heard.
        self._surprises: deque[int] = deque(maxlen=SURPRISES)

    @property
    def full(self) -> float:
        """How many in flight fill a server that queues or slows down."""
        capacity = self._saturation.capacity
        return min(capacity + min(SPARE, capacity), 1e9)

    @property
    def mode(self) -> str:
        """What it does now, in a word for display."""
        if self.full < self.limit:
            return "full"
        return "rising" if self.is_rising else "holding"

    @property
    def is_probing(self) -> bool:
        """Whether a call beyond the limit is out, so that a refusal is no surprise."""
        return self._probe is not None

    @property
    def furthest(self) -> float:
        """How far the window may run ahead of what a server is proven to work on."""
        if not self.is_rising:
            return math.inf
        # Even a single worker gets through the first calls in time.
        first = max(min(START, PATIENT_SECONDS / max(self._attempts.round_trip, 1.0)), 2)
        return max(BEYOND_PROVEN * self._saturation.at_least, first)

    def was_surprised(self, calls: int) -> bool:
        """Return whether calls were refused again and again lately although no more than before were in flight."""
        return len(self._surprises) == SURPRISES and AMONG_FEW <= calls - self._surprises[0] < AMONG_CALLS

    def hold(self, limit: float, now: float) -> None:
        self.limit = max(limit, 1.0)
        self.is_rising = False
        self._probed_at = now

    def wait(self, now: float, waiting: int) -> float:
        held, limit, full = self._attempts.held, min(self.limit, self.furthest), self.full
        self._has_waiting = int(limit) <= held < int(full)
        if held < int(min(limit, full)):
            return 0.0
        is_at_limit = int(limit) <= held < int(full)
        if self.is_rising or self._probe is not None or not is_at_limit or waiting < PROBE_WAITING:
            return math.inf
        is_doubtful = self.is_noisy or self.limit < FALLEN_SHARE * self.highest
        trips = min(self._trips, LAST_PROBE_DOUBTFUL if is_doubtful else max(LAST_PROBE, CALLS_PER_PROBE / self.limit))
        return max(self._probed_at + trips * self._attempts.round_trip - now, 0.0)

    def begin(self, attempt: Attempt) -> None:
        if not self.is_rising and attempt.level > int(self.limit):
            self._probe = attempt

    # reacting to calls

    def on_accepted(self, attempt: Attempt, now: float) -> None:
        """React to the proof that a call was accepted."""
        if attempt.at >= self._reacted_at:
            self.in_a_row = 0
        self.highest = max(self.highest, self._attempts.at_least)
        if attempt is not self._probe:
            self.limit = max(self.limit, 0 if self.in_a_row else self._attempts.at_least)
            return
        self._probe = None
        self._probes += 1
        self.limit += 1
        self._probed_at = -math.inf
        if self._probes >= PROBES:
            self._probes = 0
            self.is_rising = True
            self._attempts.at_most = math.inf

    def on_answer(self, attempt: Attempt, now: float) -> None:
        self.on_end(attempt)
        is_patient = self._attempts.round_trip < PATIENT_SECONDS / 2
        if self.is_rising and self._has_waiting and is_patient and not self.in_a_row:
            # It rises from where it is used, so that no calls come in a bunch when more are proven to be worked on.
            limit = min(self.limit, self.furthest)
            self.limit = limit + max(min(RISE, RISING_CALLS / limit), LEAST_RISE)
            known = min(self._attempts.at_most, self._back_to)
            if self.limit >= known:
                self._back_to = math.inf
                self.hold(known, now)

    def on_end(self, attempt: Attempt) -> None:
        if attempt is self._probe:
            self._probe = None

    def on_refusal(self, attempt: Attempt, at_most: int, now: float) -> None:
        is_news = attempt.at >= self._reacted_at
        if is_news:
            self._reacted_at = now
        if self._probe is not None and not self.is_rising:
            # The refused call may have lost its place to the probe.
            self._probe = None
            self.limit = max(min(self.limit, at_most), 1.0)
            self._probes = 0
            self._trips *= 2
            self._probed_at = now
            return
        self.in_a_row += is_news
        if is_news and not self.is_rising:
            self._surprises.append(attempt.calls)
        # A second refusal in a row shows that the limit came down: look for it in larger and larger steps.
        if self.in_a_row < 2:
            self.hold(max(min(int(self.limit) - 1, at_most), self._attempts.at_least), now)
        else:
            self.hold(min(self.limit, self._attempts.held - 2.0 ** min(self.in_a_row - 2, 12)), now)
        self._probes = 0
        if self.in_a_row > 2:
            self._surprises.clear()
            self.is_rising = True
            self._trips = FIRST_PROBE

    def on_rate_refusal(self, attempt: Attempt, now: float) -> None:
        """Count a refusal that has nothing to do with the number in flight."""
        self.on_end(attempt)
        if attempt.at >= self._reacted_at:
            self.in_a_row += 1
            self._reacted_at = now

    def ease(self, attempt: Attempt, now: float) -> None:
        """Shrink for a while because the server is overloaded."""
        if attempt.at > self._reacted_at:
            self._reacted_at = now
            self.come_back_from(self.limit * EASED)

    def come_back_from(self, limit: float) -> None:
        """Rise again from here to where the window was, and no further if that was the limit."""
        back_to = self._back_to if self.is_rising else self.limit
        self.restart(limit)
        self._back_to = back_to

    def restart(self, limit: float) -> None:
        """Look for the limit again from here."""
        self.limit = max(limit, 1.0)
        self._back_to = math.inf
        self.is_rising = True
        self._probe = None
        self.in_a_row = 0
        self._surprises.clear()
