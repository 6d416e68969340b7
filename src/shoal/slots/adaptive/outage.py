"""Detects that a server answers no calls at all. During an outage, one call at a time tests whether it is over."""

from __future__ import annotations

import math

from shoal.slots.adaptive.attempts import Attempt

#: Failures in a row, of any kind but a refusal, that make an outage: at one failure in twenty, one in three million.
FAILURES = 5
#: The pause between two tests: it doubles from the first to the longest.
FIRST_SECONDS, LONGEST_SECONDS = 0.25, 3.0


class OutageDetector:
    """Counts failures in a row, and paces the tests during an outage."""

    def __init__(self) -> None:
        self.since = math.inf
        self._in_a_row = 0
        self._pause_seconds = FIRST_SECONDS
        self._next_at = 0.0
        self._try: Attempt | None = None

    @property
    def is_on(self) -> bool:
        return self.since < math.inf

    def wait(self, now: float) -> float:
        if not self.is_on:
            return 0.0
        return math.inf if self._try is not None else max(self._next_at - now, 0.0)

    def begin(self, attempt: Attempt) -> None:
        if self.is_on:
            self._try = attempt

    def on_failure(self, attempt: Attempt, now: float, retry_after: float | None) -> None:
        self._in_a_row += 1
        if self.is_on and attempt is self._try:
            self._try = None
            self._pause_seconds = min(self._pause_seconds * 2, LONGEST_SECONDS)
            self._next_at = now + max(self._pause_seconds, min(retry_after or 0.0, LONGEST_SECONDS))
        elif not self.is_on and self._in_a_row >= FAILURES:
            self.since = now
            self._try = None
            self._pause_seconds = FIRST_SECONDS
            self._next_at = now + FIRST_SECONDS

    def on_end(self, attempt: Attempt) -> None:
        """Forget a test that ended without showing whether the server answers."""
        if attempt is self._try:
            self._try = None

    def on_reply(self, attempt: Attempt) -> bool:
        """Count a reply of the server; return whether it ends an outage, and is not an old one from before it."""
        self._in_a_row = 0
        is_over = self.is_on and attempt.at >= self.since
        if is_over:
            self.since = math.inf
            self._try = None
        self.on_end(attempt)
        return is_over
