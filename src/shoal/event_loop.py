"""The event loop that everything of Shoal runs on, uvloop where it is installed; and work for when it is idle."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")

#: Work that was added this long ago, with none after it, is done now; and work is never put off more often than this.
_QUIET_SECONDS = 0.02
_MOST_DELAYS = 25
#: How much of it is done before the loop looks at its sockets again.
_DONE_AT_ONCE = 32

_make_loop: Callable[[], asyncio.AbstractEventLoop]
try:
    from uvloop import new_event_loop as _make_loop
except ImportError:  # uvloop is not made for every system.
    from asyncio import new_event_loop as _make_loop


class UnboundExecutor(ThreadPoolExecutor):
    """Runs calls in threads that nothing waits for in the end: neither a loop that is closed nor the interpreter.

    A call that hangs keeps its thread, and others get one of their own. So what minds do with `asyncio.to_thread` can
    hold up neither the journal nor the end of a run.
    """

    def __init__(self) -> None:
        super().__init__(1)
        #: None ends a thread.
        self._calls: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        #: Counts the threads that wait for a call.
        self._idle = threading.Semaphore(0)

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()

        def call() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)

        self._calls.put(call)
        if not self._idle.acquire(blocking=False):
            threading.Thread(target=self._work, name="shoal", daemon=True).start()
        return future

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()
            self._idle.release()
        self._calls.put(None)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let idle threads end, and do not wait for the others."""
        self._calls.put(None)


def new_event_loop() -> asyncio.AbstractEventLoop:
    loop = _make_loop()
    loop.set_default_executor(UnboundExecutor())
    return loop


def run_async(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in a new event loop and return its result."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)


class IdleQueue:
    """Does work that can wait once no more of it is added.

    Of thousands of requests at once the last is sent when everything before it is done. What they do not need is done
    while all of them wait for their replies.
    """

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], object]] = deque()

    def add(self, work: Callable[[], object]) -> None:
        if not self._waiting:
            asyncio.get_running_loop().call_later(_QUIET_SECONDS, self._look, 0, _MOST_DELAYS)
        self._waiting.append(work)

    def finish(self) -> None:
        """Do everything that waits."""
        while self._waiting:
            self._waiting.popleft()()

    def _look(self, known: int, delays: int) -> None:
        """Do a part of the work, unless some was added since `known` pieces waited."""
        loop, count = asyncio.get_running_loop(), len(self._waiting)
        if count > known and delays:
            loop.call_later(_QUIET_SECONDS, self._look, count, delays - 1)
            return
        for _ in range(min(count, _DONE_AT_ONCE)):
            self._waiting.popleft()()
        if self._waiting:
            loop.call_soon(self._look, count, 0)
