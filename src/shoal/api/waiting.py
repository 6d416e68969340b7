"""Waiting for a run from code that is not a coroutine: in a script, and in a notebook whose event loop is running."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")

#: Gets the event that asks it to stop; it raises `Stopped` when it has.
Work = Callable[[asyncio.Event], Coroutine[Any, Any, T]]


def wait_for(work: Work[T]) -> T:
    """Carry out the work to its end. An interrupt (Ctrl-C) asks it to stop, and is waited for."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_here(work))
    return _beside(work)


async def _here(work: Work[T]) -> T:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    with _interrupts_to(lambda: loop.call_soon_threadsafe(stop.set)):
        return await work(stop)


def _beside(work: Work[T]) -> T:
    """In a thread with a loop of its own: the loop of this thread is busy with whoever called us."""
    started: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def main() -> T:
        stop = asyncio.Event()
        started.append((asyncio.get_running_loop(), stop))
        return await work(stop)

    def ask_to_stop() -> None:
        for loop, stop in started:
            loop.call_soon_threadsafe(stop.set)

    with ThreadPoolExecutor(1, "shoal") as pool, _interrupts_to(ask_to_stop):
        return pool.submit(lambda: asyncio.run(main())).result()


@contextmanager
def _interrupts_to(ask_to_stop: Callable[[], object]) -> Iterator[None]:
    """The first interrupt asks to stop, a second one has its usual effect. Only the main thread gets any."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is None:
        yield
        return

    def interrupt(number: int, _: FrameType | None) -> None:
        signal.signal(number, before)
        ask_to_stop()

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
