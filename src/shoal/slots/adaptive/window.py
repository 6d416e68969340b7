"""How many calls in flight a server allows, learned from the calls it refuses.

The window rises by one for each answer until a call is refused. That call shows where the wall is: it was one too many.
The window is then held just below it, and now and then one call more is tried. When calls are refused although the
window holds, there are two cases. Either the wall has come down and nothing is accepted any more: the window is halved
until something is. Or the limit is one of calls per time: then some calls are accepted and some are not.
"""

from __future__ import annotations

import math
from enum import Enum

from shoal.slots.adaptive.evidence import Evidence, Sent
from shoal.slots.adaptive.saturation import SaturationDetector

#: Calls in flight before anything is known.
START = 32
#: Growth of the window for each answer while claims wait.
RISE = 1.0
#: The same after a refusal below the wall, which may then be no wall.
SUSPECT_RISE = 0.25
#: Up to this share of the calls in flight, waiting calls are few.
FEW_SHARE = 0.5
#: Calls beyond the wall that must be accepted one after another before the window rises again. A single one may be
#: accepted by chance: an answer in flight makes room that is not known here yet.
PROBES = 3
#: Round trips until the first probe.
FIRST_PROBE = 2.0
#: How far this doubles at a wall that never moved, and at one that came down and may go up again.
LAST_PROBE, LAST_PROBE_FALLEN = 16.0, 2.5
#: Round trips until a saturated server is tried again: at first, and at most.
FIRST_PLATEAU, LAST_PLATEAU = 32.0, 256.0
#: A wall below this share of the highest one counts as having come down.
FALLEN_SHARE = 0.7
#: With fewer waiting than this, one call more would not help, and its refusal would only delay the end.
PROBE_WAITING = 8
#: How often calls may be refused below the wall and then accepted again until the limit is taken for a rate.
BREAKS = 2
#: The share of the window that is left when a server reports overload.
EASED = 0.8
#: The shortest wait for the proof that a test was accepted.
SHORTEST_SECONDS = 1e-3


class Mode(Enum):
    """What the window does now."""

    RISING = "rising"
    #: Just below the wall.
    HOLDING = "holding"
    #: A call was refused below the wall: one call at a time tests it.
    DOUBTING = "doubting"
    #: All calls were refused: the same with a smaller window.
    FALLEN = "fallen"


_TESTING = (Mode.DOUBTING, Mode.FALLEN)


class ConcurrencyWindow:
    """How many calls may be in flight."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._saturation = SaturationDetector()
        self.limit = float(START)
        self.mode = Mode.RISING
        #: The highest wall so far; 0: none.
        self.highest = 0.0
        #: The number in flight that is one too many, as far as is known.
        self._wall = math.inf
        #: Calls that began before this time say nothing new.
        self._reacted_at = -math.inf
        self._breaks = 0
        self._plateaus = 0
        #: How many claims waited for room when `wait` was last called.
        self._waiting = 0.0
        #: When a call beyond the wall was last tried, and after how many round trips it is tried again.
        self._probed_at = -math.inf
        self._trips = 0.0
        self._probe: Sent | None = None
        self._beyond = 0
        #: Calls in flight beyond the wall.
        self._extra: set[Sent] = set()
        self._test: Sent | None = None

    def start_at(self, limit: float, *, is_wall: bool) -> None:
        """Restore a window that was learned earlier."""
        self.limit = max(limit, 1.0)
        if is_wall:
            self.highest = self.limit
            self._hold(self.limit + 1, -math.inf)

    def start(self, now: float) -> None:
        """Begin the clock of a restored window."""
        self._probed_at = now

    def wait(self, now: float, waiting: int) -> float:
        if self.mode in _TESTING and self._test is not None:
            return max(self._evidence.proof_in(self._test, now), SHORTEST_SECONDS)
        held, limit = self._evidence.held, int(self.limit) + self._beyond
        self._waiting = waiting if held >= limit else 0
        if held < limit:
            return 0.0
        if self.mode is not Mode.HOLDING or self._probe is not None or waiting < PROBE_WAITING or held > limit:
            return math.inf
        return max(self._probed_at + self._trips * self._evidence.round_trip - now, 0.0)

    def begin(self, sent: Sent) -> None:
        if self.mode in _TESTING:
            self._test = sent
            return
        if sent.level > int(self.limit):
            self._extra.add(sent)
        if sent.level > int(self.limit) + self._beyond:
            self._probe = sent

    def is_beyond(self, sent: Sent) -> bool:
        """Return whether the call was sent beyond the wall, to be refused if nothing has changed."""
        return sent in self._extra

    # reacting to calls

    def on_accepted(self, sent: Sent, now: float) -> None:
        if sent is self._test:
            self._test = None
            # Other calls have ended meanwhile: rise one by one instead of filling the window at once.
            self.limit = min(self.limit, self._evidence.held + 1)
            self.mode = Mode.RISING
        elif sent is self._probe:
            self._probe = None
            self._beyond += 1
            self._probed_at = -math.inf
            if self._beyond >= PROBES:
                self.limit += self._beyond
                self._beyond = 0
                self._wall = math.inf
                self.mode = Mode.RISING

    def on_answer(self, sent: Sent, now: float) -> None:
        self.on_end(sent)
        if self.mode is not Mode.RISING or not self._waiting:
            return
        if self._breaks or self._plateaus:
            rise = SUSPECT_RISE
        elif self._wall == math.inf and self._waiting <= FEW_SHARE * self.limit:
            # A few waiting calls all go at once, so that a round does not wait for its last call.
            rise = max(self._waiting, RISE)
        else:
            rise = RISE
        self.limit += rise
        # There is room for these now, and for one in place of the one that was answered.
        self._waiting = max(self._waiting - 1 - rise, 0)
        if self.limit >= self._wall - 1:
            self._hold(self._wall, now)
            self._saturation.restart()
        elif (enough := self._saturation.add_answer(self.limit, sent.level, now - sent.at)) is not None:
            self.highest = max(self.highest, enough)
            self._hold(enough + 1, now)
            # Probe seldom: a server that queues accepts every probe, so each is followed by a whole new rise.
            self._plateaus += 1
            self._trips = min(FIRST_PLATEAU * 2 ** (self._plateaus - 1), LAST_PLATEAU)

    def on_end(self, sent: Sent) -> None:
        """Forget a call that has ended, whatever its outcome."""
        self._extra.discard(sent)
        if sent is self._test:
            self._test = None
        if sent is self._probe:
            self._probe = None

    def ease(self, sent: Sent, now: float) -> None:
        """Shrink for a while because the server is overloaded; the window rises back to where it was."""
        if sent.at > self._reacted_at and self.mode not in _TESTING:
            self._reacted_at = now
            if self._wall == math.inf:
                self._wall = self.limit + 1
            self.limit = max(1.0, self.limit * EASED)
            self.mode = Mode.RISING

    def restart(self) -> None:
        """Rise again after an outage, from the start to where the window was."""
        if self._wall == math.inf:
            self._wall = max(self.limit, START) + 1
        self.limit = min(self.limit, START)
        self.mode = Mode.RISING
        self._test = self._probe = None
        self._beyond = 0

    def on_refusal(self, sent: Sent, now: float) -> bool:
        """Lower the window as a refusal demands; return whether the limit looks like a rate instead."""
        is_news = sent.at > self._reacted_at
        # Calls overtake one another: the refused one may have lost its place to a later one beyond the wall.
        is_beyond = self.mode is Mode.HOLDING and any(extra.at >= sent.at for extra in self._extra)
        self.on_end(sent)
        if is_beyond:
            has_fallen = self.limit < FALLEN_SHARE * self.highest
            self._trips = min(self._trips * 2, LAST_PROBE_FALLEN if has_fallen else LAST_PROBE)
            self._breaks = self._beyond = 0
            self._probe = None
            self._probed_at = self._reacted_at = now
        elif is_news:
            self._find_wall(sent, now)
        elif self.mode is not Mode.FALLEN:
            self._lower(sent.level)
        return self._breaks >= BREAKS

    def _find_wall(self, sent: Sent, now: float) -> None:
        self._reacted_at = now
        if self.mode in _TESTING:
            self.limit = max(1, sent.level // 2)
            self.mode = Mode.FALLEN
            self._wall = math.inf
        elif self.mode is Mode.RISING and self._wall == math.inf:
            self.highest = max(self.highest, sent.level - 1)
            self._hold(sent.level, now)
            self._saturation.restart()
            self._plateaus = 0
        else:
            self._breaks += 1
            self._lower(sent.level)
            self.mode = Mode.DOUBTING

    def _lower(self, wall: int) -> None:
        """Note that the wall is no higher than this."""
        self._wall = min(self._wall, max(wall, 2))
        self.limit = min(self.limit, self._wall - 1)

    def _hold(self, wall: float, now: float) -> None:
        self._wall = max(wall, 2)
        self.limit = self._wall - 1
        self.mode = Mode.HOLDING
        self._trips = FIRST_PROBE
        self._probed_at = now

    def reopen(self, limit: float) -> None:
        """Undo what was learned from refusals that had nothing to do with the number in flight."""
        self.limit = max(limit, self.limit)
        self._wall = math.inf
        self._breaks = self._beyond = 0
        self._test = self._probe = None
        self.mode = Mode.RISING

    def be_the_limit(self, level: int, now: float) -> None:
        """Hold below this level: the limit is no rate after all, as calls are refused at this level every time."""
        self.highest = max(self.highest, level - 1)
        self._hold(level, now)

    def give_way(self, limit: float) -> None:
        """Open wide, because the limit is a rate."""
        self.limit = max(limit, self.highest, START)
        self._breaks = 0
        self._wall = self.limit + 1
        self.mode = Mode.HOLDING
        self._test = self._probe = None
        self._beyond = 0
