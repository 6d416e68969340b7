"""Notices code that keeps the event loop busy, during which all other work waits."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")

#: A mind that keeps the loop busy for longer than this at a stretch blocks the others.
BLOCKING_SECONDS = 0.2


class BusyTime:
    """How long the loop was kept busy: by one decision, or by all of them, which is its `total`."""

    def __init__(self, total: BusyTime | None = None) -> None:
        self._total = total
        self.seconds: float = 0.0
        self.longest_seconds = 0.0
        self._total_before: float = 0.0 if total is None else total.seconds

    def add(self, seconds: float) -> None:
        """Add a stretch in which the loop was busy."""
        self.seconds += seconds
        self.longest_seconds = max(self.longest_seconds, seconds)
        if self._total is not None:
            self._total.add(seconds)

    @property
    def of_others(self) -> float:
        """The seconds in which others kept the loop busy since this was made."""
        return 0.0 if self._total is None else self._total.seconds - self._total_before - self.seconds


class MeasuredAwaitable(Generic[T]):
    """Awaits something, and measures for how long it keeps the loop busy."""

    def __init__(self, work: Awaitable[T], busy: BusyTime) -> None:
        self._work = work
        self._busy = busy

    def __await__(self) -> Generator[Any, Any, T]:
        steps = self._await_work().__await__()
        resume, value = steps.send, None
        while True:
            began = time.perf_counter()
            try:
                waited_for = resume(value)
            except StopIteration as done:
                result: T = done.value
                return result
            finally:
                self._busy.add(time.perf_counter() - began)
            try:
                value, resume = (yield waited_for), steps.send
            except BaseException as error:  # such as a cancellation, which is the work's to handle
                value, resume = error, steps.throw

    async def _await_work(self) -> T:
        return await self._work
