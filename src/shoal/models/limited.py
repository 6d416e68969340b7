"""How many calls at once. The limit sees how each attempt ended, so that it can learn from it."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

from shoal.models.question import Answer, Failure, Model, ModelFailed, Question


class AttemptFailed(ModelFailed):
    """One attempt that failed, and how long it took once it had its slot: waiting for one is nobody's failure."""

    def __init__(self, failure: Failure, seconds: float) -> None:
        super().__init__(failure)
        self.seconds = seconds


class Limit(Protocol):
    async def enter(self, question: Question) -> None:
        """Wait for a slot."""
        ...

    def leave(self, question: Question, outcome: Answer | Failure | None) -> None:
        """Give the slot back. None: the attempt was cancelled."""
        ...


class PlainLimit:
    """A fixed number."""

    def __init__(self, max_workers: int) -> None:
        self._slots = asyncio.Semaphore(max_workers)

    async def enter(self, question: Question) -> None:
        await self._slots.acquire()

    def leave(self, question: Question, outcome: Answer | Failure | None) -> None:
        self._slots.release()


class Limited:
    """Holds a slot for one attempt, and only while it lasts."""

    def __init__(self, inner: Model, limit: Limit) -> None:
        self._inner = inner
        self._limit = limit

    async def answer(self, question: Question) -> Answer:
        await self._limit.enter(question)
        began = time.monotonic()
        outcome: Answer | Failure | None = None
        try:
            outcome = answer = await self._inner.answer(question)
            return answer
        except ModelFailed as failed:
            outcome = failed.failure
            raise AttemptFailed(failed.failure, time.monotonic() - began) from failed
        finally:
            self._limit.leave(question, outcome)
