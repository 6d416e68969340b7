"""Reruns that pages ask for: a few at once, in threads, none for longer than a limit, and each answer kept."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import TypeVar

import msgspec

from shoal.runs import CONFIG, JOURNAL, RunDirectory
from shoal.server.api.remembering import RememberedAnswers

T = TypeVar("T")


class BoundedReruns:
    """Computes answers for which a run is run again. They are kept for as long as the run's files stay the same."""

    def __init__(self, seconds: float = 120.0, at_once: int = 2) -> None:
        self.seconds = seconds
        self._slots = asyncio.Semaphore(at_once)
        self._answers = RememberedAnswers()

    async def answer(self, run: RunDirectory, asked: Hashable, work: Callable[[], Awaitable[object]]) -> msgspec.Raw:
        """Return what the work returns, encoded; TimeoutError if it takes too long."""
        made_of = tuple(
            _stamp(run, name) for name in (CONFIG, JOURNAL, *(f"{world}_simulation.db" for world in run.worlds))
        )
        async with self._slots:
            return await asyncio.to_thread(self._answers.recall, asked, made_of, lambda: self._compute(work))

    def _compute(self, work: Callable[[], Awaitable[T]]) -> T:
        return asyncio.run(self._bound(work))

    async def _bound(self, work: Callable[[], Awaitable[T]]) -> T:
        try:
            async with asyncio.timeout(self.seconds):
                return await work()
        except TimeoutError:
            why = f"running the rounds again took longer than {self.seconds:g} s"
            raise TimeoutError(f"{why}; the command `shoal explain` has no limit") from None


def _stamp(run: RunDirectory, name: str) -> tuple[int, int]:
    try:
        found = run.file(name).stat()
    except FileNotFoundError:
        return 0, 0
    return found.st_mtime_ns, found.st_size
