"""Places for brokers of a test, and the end of those that were started there."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from shoal.slots.client import Slots
from shoal.slots.leases import PoolView
from shoal.slots.location import BrokerLocation


@contextmanager
def temporary_location(idle_seconds: float = 30.0) -> Iterator[BrokerLocation]:
    """Short, as paths of sockets must be."""
    folder = Path(tempfile.mkdtemp(prefix="shoal-"))
    place = BrokerLocation(folder / "s", folder / "limits.json", idle_seconds)
    try:
        yield place
    finally:
        stop_broker(place)
        shutil.rmtree(folder)


#: After this a test fails instead of waiting on; a busy machine takes long.
DEADLINE_SECONDS = 60.0


def broker_pid(place: BrokerLocation) -> int:
    """The process of the broker; one that was just started writes it down a moment after it listens."""
    end = time.monotonic() + DEADLINE_SECONDS
    while not (written := place.lock.read_text().strip()):
        assert time.monotonic() < end, "the broker never wrote down its process"
        time.sleep(0.005)
    return int(written)


def stop_broker(place: BrokerLocation, how: signal.Signals = signal.SIGKILL) -> None:
    """End the broker that is there, if one is, and wait until it is gone."""
    if not is_locked(place.lock):
        return
    os.kill(broker_pid(place), how)
    wait_for_end(place)


def wait_for_end(place: BrokerLocation) -> None:
    """Until the lock is free, which the kernel sees to."""
    with place.lock.open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)


def is_locked(path: Path) -> bool:
    if not path.exists():
        return False
    with path.open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


async def view_pool(slots: Slots, name: str) -> PoolView:
    """A look at one pool, which also makes sure that the broker has heard everything said before."""
    return next(pool for pool in (await slots.request_snapshot()).pools if pool.name == name)


async def wait_until(slots: Slots, name: str, condition: Callable[[PoolView], bool]) -> PoolView:
    """Look at a pool until it is as expected."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not condition(view := await view_pool(slots, name)):
            pass
        return view
