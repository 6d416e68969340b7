"""Work that waits until the event loop is idle."""

from __future__ import annotations

import asyncio
from functools import partial

from shoal.event_loop import IdleQueue


async def test_work_that_can_wait_is_done_by_itself_and_in_order() -> None:
    queue, done, over = IdleQueue(), list[int](), asyncio.Event()
    for number in range(1000):
        queue.add(partial(done.append, number))
    queue.add(over.set)
    await asyncio.sleep(0)
    assert done == []
    await over.wait()
    assert done == list(range(1000))


async def test_whoever_needs_the_results_has_the_work_done_at_once() -> None:
    queue, done = IdleQueue(), list[int]()
    for number in range(100):
        queue.add(partial(done.append, number))
    queue.finish()
    assert done == list(range(100))
    again = asyncio.Event()
    queue.add(again.set)
    await again.wait()
    assert len(done) == 100


async def test_work_is_not_put_off_for_ever_by_more_of_it() -> None:
    queue, first = IdleQueue(), asyncio.Event()
    queue.add(first.set)
    while not first.is_set():
        queue.add(int)
        await asyncio.sleep(0.001)
