"""How many calls at once. The limit sees how each attempt ended, so that it can learn from it."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Protocol

from shoal.models.base import Answer, Model, ModelFailed, ModelFailure, Question


class Limit(Protocol):
    async def enter(self, question: Question) -> Any:
        """Wait for a slot. What is returned is given back with it."""
        ...

    def leave(self, slot: Any, question: Question, outcome: Answer | ModelFailure | None, seconds: float) -> None:
        """Give the slot back, after so long. None: the attempt was cancelled."""
        ...

    def back_off(self, question: Question, failure: ModelFailure, attempt: int, seconds: float) -> None:
        """Hear that the question is asked again in so many seconds, for people to see."""
        ...


class PlainLimit:
    """A fixed number."""

    def __init__(self, max_workers: int) -> None:
        self._slots = asyncio.Semaphore(max_workers)

    async def enter(self, question: Question) -> None:
        await self._slots.acquire()

    def leave(self, slot: None, question: Question, outcome: Answer | ModelFailure | None, seconds: float) -> None:
        self._slots.release()

    def back_off(self, question: Question, failure: ModelFailure, attempt: int, seconds: float) -> None:
        pass


class Limited:
    """Holds a slot for one attempt, and only while it lasts."""

    def __init__(self, inner: Model, limit: Limit) -> None:
        self._inner = inner
        self._limit = limit

    async def answer(self, question: Question) -> Answer:
        slot = await self._limit.enter(question)
        began = time.monotonic()
        outcome: Answer | ModelFailure | None = None
        try:
            outcome = answer = await self._inner.answer(question)
            return answer
        except ModelFailed as failed:
            outcome = failed.failure
            raise ModelFailed(failed.failure, time.monotonic() - began) from failed
        finally:
            self._limit.leave(slot, question, outcome, time.monotonic() - began)
