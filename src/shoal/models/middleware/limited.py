"""Limits how many calls are made at once. The limit sees how each attempt ended, so that it can learn from it."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Protocol

from shoal.models.base import Answer, Model, ModelFailed, ModelFailure, Question


class Limit(Protocol):
    """Hands out slots for attempts."""

    async def enter(self, question: Question) -> Any:
        """Wait for a slot, and return it for `leave`."""
        ...

    def leave(self, slot: Any, question: Question, outcome: Answer | ModelFailure | None, seconds: float) -> None:
        """Give the slot back, with how the attempt ended and how long it took. None: it was cancelled."""
        ...

    def back_off(self, question: Question, failure: ModelFailure, attempt: int, seconds: float) -> float:
        """Take note that the question is to be asked again after these seconds; return after how many it should enter.

        A limit that decides itself when a refused call is sent again returns 0.
        """
        ...


class PlainLimit:
    """Allows a fixed number of calls at once."""

    def __init__(self, max_workers: int) -> None:
        self._slots = asyncio.Semaphore(max_workers)

    async def enter(self, question: Question) -> None:
        await self._slots.acquire()

    def leave(self, slot: None, question: Question, outcome: Answer | ModelFailure | None, seconds: float) -> None:
        self._slots.release()

    def back_off(self, question: Question, failure: ModelFailure, attempt: int, seconds: float) -> float:
        return seconds


class Limited:
    """Holds a slot during each attempt."""

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
