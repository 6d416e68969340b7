"""Reruns that pages ask for: a few at once, in threads, none for longer than a limit, and each answer kept."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from threading import Lock

import msgspec

from shoal.runs import CONFIG, JOURNAL, RunDirectory

#: Answers that are kept, at most.
_MAX_ANSWERS = 64


class RememberedAnswers:
    """Answers that take long to compute, encoded. They stay the same as long as what they are made of does."""

    def __init__(self) -> None:
        #: What is asked -> what it was made of, and the answer.
        self._known: OrderedDict[Hashable, tuple[Hashable, msgspec.Raw]] = OrderedDict()
        self._changing = Lock()

    def recall(self, asked: Hashable, made_of: Hashable, compute: Callable[[], object]) -> msgspec.Raw:
        """Return what was computed from the same before, or else compute it."""
        with self._changing:
            known = self._known.get(asked)
            if known is not None and known[0] == made_of:
                self._known.move_to_end(asked)
                return known[1]
        found = msgspec.Raw(msgspec.json.encode(compute(), enc_hook=str))
        with self._changing:
            self._known[asked] = made_of, found
            while len(self._known) > _MAX_ANSWERS:
                self._known.popitem(last=False)
        return found


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

        async def compute() -> object:
            try:
                async with asyncio.timeout(self.seconds):
                    return await work()
            except TimeoutError:
                why = f"running the rounds again took longer than {self.seconds:g} s"
                raise TimeoutError(f"{why}; the command `shoal explain` has no limit") from None

        async with self._slots:
            return await asyncio.to_thread(self._answers.recall, asked, made_of, lambda: asyncio.run(compute()))


def _stamp(run: RunDirectory, name: str) -> tuple[int, int]:
    """Return when a file was written and how long it is; zeros without a file."""
    try:
        found = run.file(name).stat()
    except FileNotFoundError:
        return 0, 0
    return found.st_mtime_ns, found.st_size
