"""The attempts to ask one model that are under way: how long they may take, and which of them are aborted."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shoal.journal import JournalKey
from shoal.models.middleware.retrying import RetryClock

#: A server is silent if it answers nothing for this multiple of the longest of the latest answers.
SILENCE_FACTOR = 4.0
SHORTEST_SILENCE_SECONDS = 5.0
#: Before the first answer: when silence is reported.
FIRST_SILENCE_SECONDS = 10.0
#: A model on this machine may be as slow as this: its server is known to be there.
LOCAL_SILENCE_SECONDS = 180.0
#: One attempt may take this long, or the same multiple of the longest of the latest answers if that is more.
ATTEMPT_SECONDS = 90.0
LATEST_ANSWERS = 64


@dataclass(slots=True, eq=False)
class SentAttempt:
    """A question that was sent and is not answered yet. Attempts are numbered as they are sent."""

    number: int
    began: float
    task: asyncio.Task[Any] | None
    #: When the attempt is aborted, and whether it was.
    abort_at: float = math.inf
    is_aborted: bool = False

    def abort(self) -> None:
        if not self.is_aborted:
            self.is_aborted = True
            if self.task is not None:
                self.task.cancel()

    def take_abort(self) -> bool:
        """Return whether the attempt's task was cancelled only to abort the attempt."""
        return self.is_aborted and (self.task is None or self.task.uncancel() == 0)


class AttemptsUnderWay:
    """All attempts that are not answered yet, in the order in which they were sent."""

    def __init__(
        self, attempt_seconds: float, clock: RetryClock, on_quiet: Callable[[], object], *, is_local: bool = False
    ) -> None:
        #: How many attempts were sent, how many were answered, and the number of the latest of these.
        self.sent = 0
        self.answers = 0
        self.last_answered = 0
        #: When the server was last heard of.
        self.heard_at = 0.0
        self._attempt_seconds = attempt_seconds
        self._clock = clock
        self._is_local = is_local
        self._on_quiet = on_quiet
        self._by_key: dict[JournalKey, SentAttempt] = {}
        #: Whether any attempt is to be aborted.
        self._has_aborts = False
        self._answer_seconds: deque[float] = deque(maxlen=LATEST_ANSWERS)
        #: Attempts since the last answer that took too long. Each doubles what the others may take.
        self._overdue = 0

    def __len__(self) -> int:
        return len(self._by_key)

    def begin(self, key: JournalKey, limit_seconds: float | None = None) -> SentAttempt:
        """Note that the running task sends a question, and abort it after this time."""
        self.sent += 1
        attempt = self._by_key[key] = SentAttempt(self.sent, self._clock.now(), asyncio.current_task())
        if limit_seconds is not None:
            self._has_aborts = True
            attempt.abort_at = attempt.began + limit_seconds
        return attempt

    def end(self, key: JournalKey) -> SentAttempt | None:
        """Return the attempt that ended, which is forgotten."""
        attempt = self._by_key.pop(key, None)
        if not self._by_key:
            self._on_quiet()
        return attempt

    def end_answered(self, key: JournalKey) -> SentAttempt:
        """Return the attempt that was answered, and learn from it how long answers take."""
        attempt = self.end(key)
        assert attempt is not None
        self.answers += 1
        self.last_answered = max(self.last_answered, attempt.number)
        self._answer_seconds.append(self._clock.now() - attempt.began)
        self._overdue = 0
        return attempt

    def measure_age(self, key: JournalKey) -> float:
        return self._clock.now() - self._by_key[key].began

    @property
    def longest_answer_seconds(self) -> float | None:
        """The longest of the latest answers, None before the first."""
        return max(self._answer_seconds, default=None)

    @property
    def longest_silence_seconds(self) -> float:
        """How long a server that works may answer nothing."""
        longest = self.longest_answer_seconds
        if self._is_local:
            return max(LOCAL_SILENCE_SECONDS, SILENCE_FACTOR * (longest or 0.0))
        if longest is None:
            return FIRST_SILENCE_SECONDS
        return max(SHORTEST_SILENCE_SECONDS, SILENCE_FACTOR * longest)

    def measure_silence(self) -> float:
        """Return for how many seconds the server has answered none of the attempts under way."""
        oldest = self._find_oldest()
        return 0.0 if oldest is None else self._clock.now() - max(oldest.began, self.heard_at)

    def abort_all_after(self, seconds: float) -> None:
        """Abort every attempt that is under way now after this time."""
        self._has_aborts = True
        for attempt in self._by_key.values():
            attempt.abort_at = self._clock.now() + seconds

    def abort_due(self) -> None:
        """Abort what is due, and the oldest attempt if it takes too long even for a queue that we filled ourselves."""
        now = self._clock.now()
        if self._has_aborts:
            for attempt in self._by_key.values():
                if attempt.abort_at <= now:
                    attempt.abort()
            self._has_aborts = any(attempt.abort_at < math.inf for attempt in self._by_key.values())
        usual_seconds = SILENCE_FACTOR * (self.longest_answer_seconds or 0.0)
        if self.abort_oldest_after(max(self._attempt_seconds * 2**self._overdue, usual_seconds)):
            self._overdue += 1

    def abort_oldest_after(self, seconds: float) -> bool:
        """Abort the oldest attempt if it has been under way this long, and return whether that aborted it."""
        oldest = self._find_oldest()
        if oldest is None or oldest.is_aborted or self._clock.now() - oldest.began < seconds:
            return False
        oldest.abort()
        return True

    def abort_all(self) -> None:
        for attempt in self._by_key.values():
            attempt.abort()

    def _find_oldest(self) -> SentAttempt | None:
        return next(iter(self._by_key.values()), None)
