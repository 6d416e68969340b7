"""Other ways to decide how many calls at once, to compare ours with. Each is written anew, from a description."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from shoal.slots.leases import CallEnd, CallOutcome


class _Counting:
    """As many at once as `limit` says."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.held = 0

    def wait(self, now: float, tokens: int, waiting: int) -> float:
        return 0.0 if self.held < int(self.limit) else math.inf

    def begin(self, now: float, tokens: int) -> Any:
        self.held += 1
        return now

    def end(self, now: float, sent: Any, outcome: CallOutcome) -> None:
        self.held -= 1

    def resume(self, now: float, tokens: int) -> Any:
        return self.begin(now, tokens)

    def describe(self, now: float) -> dict[str, Any]:
        return {"size": int(self.limit), "held": self.held}


class Semaphore(_Counting):
    """A number that somebody has thought of."""

    def refused(self, now: float, sent: Any) -> None:
        """It does not learn."""


class Aimd(_Counting):
    """Up by one with each round trip, down by a fifth upon a refusal, at most once in a round trip; 8 at first, and
    twice as many with each round trip until something is refused."""

    def __init__(self) -> None:
        super().__init__(8)
        self._cut_at = -math.inf

    def end(self, now: float, sent: Any, outcome: CallOutcome) -> None:
        super().end(now, sent, outcome)
        if outcome.end is CallEnd.OK:
            self.limit += 1 if self._cut_at < 0 else 1 / self.limit
        elif sent > self._cut_at:
            self.limit = max(1.0, self.limit * 0.8)
            self._cut_at = now


class Batches:
    """The adaptive loop of a guide to concurrency: a batch, wait for all of it, then twice as many or half as many.

    4 at first; twice as many if more than 95 % went well, half if less than 80 %. What is refused did not go well, and
    is sent again in a later batch.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = self._left = BASE
        self._held = self._ended = self._good = 0

    def wait(self, now: float, tokens: int, waiting: int) -> float:
        if not self._left and not self._held:
            self._next_batch()
        return 0.0 if self._left else math.inf

    def _next_batch(self) -> None:
        good = self._good / self._ended
        if good > 0.95:
            self._size = min(self._size * 2, self._most)
        elif good < 0.8:
            self._size = max(self._size // 2, BASE)
        self._left = self._size
        self._ended = self._good = 0

    def begin(self, now: float, tokens: int) -> Any:
        self._left -= 1
        self._held += 1

    def end(self, now: float, sent: Any, outcome: CallOutcome) -> None:
        self._held -= 1
        self._ended += 1
        self._good += outcome.end is CallEnd.OK

    def resume(self, now: float, tokens: int) -> Any:
        return self.begin(now, tokens)

    def describe(self, now: float) -> dict[str, Any]:
        return {"size": self._size, "held": self._held}


#: With how many the loop begins.
BASE = 4


@dataclass(slots=True)
class _Asked:
    was_refused: bool = False


class Inspect(_Counting):
    """Inspect AI's adaptive connections, from a description of 0.3.285: from 20, between 10 and 100.

    A round is as many answers at the first try as the limit. Until the first refusal the limit doubles with each round
    that used it, then it grows by a twentieth, in steps of five. A refusal takes a fifth, at most once in 15 seconds,
    in which nothing is learned.
    """

    FEWEST, FIRST, MOST = 10, 20, 100
    COOLDOWN_SECONDS = 15.0

    def __init__(self) -> None:
        super().__init__(self.FIRST)
        self._cut_at = -math.inf
        self._good = 0
        self._peak = 0

    def begin(self, now: float, tokens: int) -> Any:
        super().begin(now, tokens)
        self._peak = max(self._peak, self.held)
        return _Asked()

    def refused(self, now: float, sent: Any) -> None:
        sent.was_refused = True
        self._good = 0
        if now - self._cut_at >= self.COOLDOWN_SECONDS:
            self._cut_at = now
            self.limit = max(self.FEWEST, int(self.limit * 0.8) // 5 * 5)

    def end(self, now: float, sent: Any, outcome: CallOutcome) -> None:
        super().end(now, sent, outcome)
        if sent.was_refused or now - self._cut_at < self.COOLDOWN_SECONDS:
            return
        self._good += 1
        if self._good >= max(self.limit, 4):
            self._end_round()

    def _end_round(self) -> None:
        if self._peak >= 0.8 * self.limit:
            more = self.limit if self._cut_at < 0 else max(1, round(0.05 * self.limit))
            self.limit = min(math.ceil((self.limit + more) / 5) * 5, self.MOST)
        self._good = 0
        self._peak = self.held
