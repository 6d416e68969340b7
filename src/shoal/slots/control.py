"""What decides how many at once: a fixed number, or whatever a provider turns out to allow.

Time is a parameter everywhere, in seconds on a clock that does not go back, so that hours can be tried in milliseconds.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

from shoal.slots.lease import Outcome


class Control(Protocol):
    """The limit of one pool."""

    def wait(self, now: float, tokens: int, waiting: int) -> float:
        """Seconds until one more may begin, with so many waiting: 0 is now, infinity is not before one ends."""
        ...

    def begin(self, now: float, tokens: int) -> Any:
        """One more begins. What is returned is handed back at its end."""
        ...

    def end(self, now: float, sent: Any, outcome: Outcome) -> None: ...

    def resume(self, now: float, tokens: int) -> Any:
        """One that began before this control was there: it counts, but nothing is learned from it."""
        ...

    def look(self, now: float) -> dict[str, Any]:
        """For people: how many may be in flight, how many are, and what was learned."""
        ...


class Fixed:
    """So many at once. Fewer, if the number is lowered, as soon as enough have ended."""

    def __init__(self, size: int, held: int = 0) -> None:
        self.size = size
        self.held = held

    def wait(self, now: float, tokens: int, waiting: int) -> float:
        return 0.0 if self.held < self.size else math.inf

    def begin(self, now: float, tokens: int) -> Any:
        self.held += 1
        return True

    def end(self, now: float, sent: Any, outcome: Outcome) -> None:
        self.held -= 1

    def resume(self, now: float, tokens: int) -> Any:
        return self.begin(now, tokens)

    def look(self, now: float) -> dict[str, Any]:
        return {"kind": "fixed", "size": self.size, "held": self.held}
