"""How many calls in flight a server allows, learned from the calls it refuses.

It rises by one for each answer until a call is refused. That call says exactly where the wall is: it was one too many.
So the window is held just below, and now and then one call more is tried. When calls are refused although the window
holds, either the wall has come down, and then nothing is let in any more: the window is halved until something is; or
the wall is not one of calls in flight but of calls per time, and then some are let in and some are not.
"""

from __future__ import annotations

import math
from enum import Enum

from shoal.slots.adaptive.evidence import Evidence, Sent
from shoal.slots.adaptive.saturation import Plateau

#: Calls in flight before anything is known.
START = 32
#: By how much it rises for each answer while others wait; less once something was refused below the wall, as it may be
#: no wall.
RISE, SUSPECT_RISE = 1.0, 0.25
#: So many that wait, against those in flight, are few.
FEW_SHARE = 0.5
#: Calls beyond the wall that must be let in, one after the other, before the window rises again: an answer that is
#: under way makes room that we do not know of yet, so one call may be let in by chance.
PROBES = 3
#: Round trips until the first probe; how far this doubles at a wall that never moved; and at one that came down, and so
#: may well go up again.
FIRST_PROBE, LAST_PROBE, LAST_PROBE_FALLEN = 2.0, 16.0, 2.5
#: Round trips until a server that was full is tried again: at first, and at most.
FIRST_PLATEAU, LAST_PLATEAU = 32.0, 256.0
#: Below this share of the highest wall seen it counts as having come down.
FALLEN_SHARE = 0.7
#: With fewer waiting than this, one call more would not help, and its refusal would only delay the end.
PROBE_WAITING = 8
#: How often something may be refused below the wall, and then something let in again, until it is taken for a rate.
BREAKS = 2
#: What is left of the window when a server says that it has too much to do.
EASED = 0.8
#: How long to wait, at least, for the proof that a test was let in.
SHORTEST_SECONDS = 1e-3


class Mode(Enum):
    RISING = "rising"
    #: Just below the wall.
    HOLDING = "holding"
    #: Something was refused below the wall: one call at a time finds out.
    DOUBTING = "doubting"
    #: Everything was refused: the same, further down.
    FALLEN = "fallen"


_TESTING = (Mode.DOUBTING, Mode.FALLEN)


class ConcurrencyWindow:
    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._plateau = Plateau()
        self.limit = float(START)
        self.mode = Mode.RISING
        #: The highest wall that was seen; 0: none.
        self.highest = 0.0
        #: The call that would be one too many, as far as is known.
        self._wall = math.inf
        #: Calls that began before this say nothing new.
        self._reacted_at = -math.inf
        self._breaks = 0
        self._plateaus = 0
        #: How many wait because there is no room, when last looked at.
        self._waiting = 0.0
        #: When something was last tried beyond the wall, and how many round trips later it is tried again.
        self._probed_at = -math.inf
        self._trips = 0.0
        self._probe: Sent | None = None
        self._beyond = 0
        #: Calls in flight beyond the wall.
        self._extra: set[Sent] = set()
        self._test: Sent | None = None

    def start_at(self, limit: float, *, is_wall: bool) -> None:
        """Begin with what is remembered from an earlier time."""
        self.limit = max(limit, 1.0)
        if is_wall:
            self.highest = self.limit
            self._hold(self.limit + 1, -math.inf)

    def start(self, now: float) -> None:
        """What is remembered holds from now on."""
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
        """Whether it was sent to be refused, if nothing has changed."""
        return sent in self._extra

    # what calls say

    def let_in(self, sent: Sent, now: float) -> None:
        if sent is self._test:
            self._test = None
            # Meanwhile others have ended: not all at once again, one by one.
            self.limit = min(self.limit, self._evidence.held + 1)
            self.mode = Mode.RISING
        elif sent is self._probe:
            self._probe = None
            self._beyond += 1
            self._probed_at = -math.inf
            if self._beyond >= PROBES:
                self._rise(self.limit + self._beyond)

    def answered(self, sent: Sent, now: float) -> None:
        self.gone(sent)
        if self.mode is not Mode.RISING or not self._waiting:
            return
        rise = SUSPECT_RISE if self._breaks or self._plateaus else self._rise_for_all()
        self.limit += rise
        # There is room for these now, and for one in place of the one that was answered.
        self._waiting = max(self._waiting - 1 - rise, 0)
        if self.limit >= self._wall - 1:
            self._hold(self._wall, now)
            self._plateau.restart()
        elif (enough := self._plateau.answered(self.limit, sent.level, now - sent.at)) is not None:
            self.highest = max(self.highest, enough)
            self._hold(enough + 1, now)
            self._look_again_later()

    def _rise_for_all(self) -> float:
        """One more; or as many as wait, if these are few: those who take turns would wait for the last of them."""
        return max(self._waiting, RISE) if self._wall == math.inf and self._waiting <= FEW_SHARE * self.limit else RISE

    def _look_again_later(self) -> None:
        """A server that queues lets every probe in, so what comes after one is a whole new rise: seldom."""
        self._plateaus += 1
        self._trips = min(FIRST_PLATEAU * 2 ** (self._plateaus - 1), LAST_PLATEAU)

    def gone(self, sent: Sent) -> None:
        """Ended, whatever it said."""
        self._extra.discard(sent)
        if sent is self._test:
            self._test = None
        if sent is self._probe:
            self._probe = None

    def ease(self, sent: Sent, now: float) -> None:
        """The server has too much to do: do with less for now, and come back to what there was."""
        if sent.at > self._reacted_at and self.mode not in _TESTING:
            self._reacted_at = now
            if self._wall == math.inf:
                self._wall = self.limit + 1
            self.limit = max(1.0, self.limit * EASED)
            self.mode = Mode.RISING

    def restart(self) -> None:
        """After an outage: not all at once, but back to where it was."""
        if self._wall == math.inf:
            self._wall = max(self.limit, START) + 1
        self.limit = min(self.limit, START)
        self.mode = Mode.RISING
        self._test = self._probe = None
        self._beyond = 0

    def refused(self, sent: Sent, now: float) -> bool:
        """Whether this looks like a rate, and not like a window."""
        is_news = sent.at > self._reacted_at
        # Calls overtake one another: one that is refused may have lost its place to one beyond that began after it.
        is_beyond = self.mode is Mode.HOLDING and any(extra.at >= sent.at for extra in self._extra)
        self.gone(sent)
        if is_beyond:
            self._failed_probe(now)
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
            self._plateau.restart()
            self._plateaus = 0
        else:
            self._breaks += 1
            self._lower(sent.level)
            self.mode = Mode.DOUBTING

    def _lower(self, wall: int) -> None:
        """The wall is no higher than this."""
        self._wall = min(self._wall, max(wall, 2))
        self.limit = min(self.limit, self._wall - 1)

    def _failed_probe(self, now: float) -> None:
        has_fallen = self.limit < FALLEN_SHARE * self.highest
        self._trips = min(self._trips * 2, LAST_PROBE_FALLEN if has_fallen else LAST_PROBE)
        self._probed_at = now
        self._breaks = 0
        self._beyond = 0
        self._probe = None
        self._reacted_at = now

    def _hold(self, wall: float, now: float) -> None:
        self._wall = max(wall, 2)
        self.limit = self._wall - 1
        self.mode = Mode.HOLDING
        self._trips = FIRST_PROBE
        self._probed_at = now

    def _rise(self, limit: float) -> None:
        self.limit = limit
        self._beyond = 0
        self._wall = math.inf
        self.mode = Mode.RISING

    def reopen(self, limit: float) -> None:
        """What was refused had nothing to do with how many there were."""
        self.limit = max(limit, self.limit)
        self._wall = math.inf
        self._breaks = self._beyond = 0
        self._test = self._probe = None
        self.mode = Mode.RISING

    def be_the_limit(self, level: int, now: float) -> None:
        """It was no rate after all: calls are refused at this level, again and again."""
        self.highest = max(self.highest, level - 1)
        self._hold(level, now)

    def give_way(self, limit: float) -> None:
        """It was a rate: this window is not what limits."""
        self.limit = max(limit, self.highest, START)
        self._breaks = 0
        self._wall = self.limit + 1
        self.mode = Mode.HOLDING
        self._test = self._probe = None
        self._beyond = 0
