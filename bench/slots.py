"""The bars for slots: how fast they change hands, and what becomes of them when somebody is killed."""

from __future__ import annotations

import asyncio
import fcntl
import multiprocessing
import os
import signal
import statistics
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import uvloop

from bench.bars import Bar
from shoal.slots.client import Slots, open_slots
from shoal.slots.connection import fetch_snapshot
from shoal.slots.leases import CallEnd, CallOutcome
from shoal.slots.location import BrokerLocation
from shoal.slots.server import start_broker

_PROCESSES = 16
_SLOTS = 4
_SECONDS = 1.5
_ROUNDS = 3
_HOLD_SECONDS = 0.01
_POOL = ("bench",)
_OK = CallOutcome(CallEnd.OK)
_fork = multiprocessing.get_context("fork")


def _place(folder: Path) -> BrokerLocation:
    return BrokerLocation(folder / "slots" / "s", folder / "limits.json", idle_seconds=5.0)


def _stop(place: BrokerLocation) -> None:
    """End the broker of this bench, and wait until it is gone."""
    os.kill(int(place.lock.read_text()), signal.SIGTERM)
    with place.lock.open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)


# how fast


def slots_rate(folder: Path) -> list[Bar]:
    """Acquire and release in 16 processes that want 4 slots: with nothing to do, and holding each for 10 ms."""
    place = _place(folder)
    start_broker(place)
    with _fork.Manager() as manager:
        semaphore = manager.Semaphore(_SLOTS)
        theirs, ours, asked, shares = [], [], [], []
        for _ in range(_ROUNDS):
            theirs.append(sum(_race(_manager_loop, semaphore, 0.0)))
            counts = _race(_slots_loop, place, 0.0)
            ours.append(sum(counts))
            asked.append(sum(_race(_asking_loop, place, 0.0)))
            shares.append(_slowest(counts))
        their_turns = _race(_manager_loop, semaphore, _HOLD_SECONDS)
    turns = _race(_slots_loop, place, _HOLD_SECONDS)
    _stop(place)
    rate, each, base = (statistics.median(counts) / _SECONDS for counts in (ours, asked, theirs))
    told = f"{rate:,.0f}/s; {each:,.0f}/s if never handed on within a run; Manager: {base:,.0f}/s; load {_load()}"
    held = f"{sum(turns) / _SECONDS:.0f}/s; Manager: {sum(their_turns) / _SECONDS:.0f}/s, {_slowest(their_turns):.2f}"
    return [
        Bar("slots per second against Manager().Semaphore()", rate / base, "x", 4.0, True, told),
        Bar("slots: slowest process of 16, of a fair share", statistics.median(shares), "x", 0.9, True, told),
        Bar("slots held 10 ms: slowest process, of a fair share", _slowest(turns), "x", 0.9, True, held),
    ]


def _race(loop: Callable[..., int], over: Any, hold: float) -> list[int]:
    """How often each process had a slot."""
    barrier = _fork.Barrier(_PROCESSES)
    pipes = [_fork.Pipe(duplex=False) for _ in range(_PROCESSES)]
    racers = [_fork.Process(target=_racer, args=(loop, over, hold, barrier, pipe)) for _, pipe in pipes]
    for racer in racers:
        racer.start()
    counts: list[int] = [pipe.recv() for pipe, _ in pipes]
    for racer in racers:
        racer.join()
    return counts


def _racer(loop: Callable[..., int], over: Any, hold: float, barrier: Any, pipe: Connection) -> None:
    pipe.send(loop(over, hold, barrier))


def _manager_loop(semaphore: Any, hold: float, barrier: Any) -> int:
    semaphore.acquire()
    semaphore.release()
    barrier.wait()
    count, end = 0, time.monotonic() + _SECONDS
    while time.monotonic() < end:
        semaphore.acquire()
        if hold:
            time.sleep(hold)
        semaphore.release()
        count += 1
    return count


def _slots_loop(place: BrokerLocation, hold: float, barrier: Any) -> int:
    return uvloop.run(_loop(place, [_POOL], hold, barrier))


def _asking_loop(place: BrokerLocation, hold: float, barrier: Any) -> int:
    """Takes turns in two pools, so that the broker is asked each time."""
    return uvloop.run(_loop(place, [("one half",), ("other half",)], hold, barrier))


async def _loop(place: BrokerLocation, pools: Sequence[tuple[str, ...]], hold: float, barrier: Any) -> int:
    sizes = {name: _SLOTS // len(pools) for (name,) in pools}
    async with open_slots(f"racer {os.getpid()}", place, sizes=sizes) as slots:
        slots.release(await slots.acquire(pools[0]), _OK)
        await slots.request_snapshot()  # it is back: what is released in a turn of the loop is said at its end
        barrier.wait()
        count, end = 0, time.monotonic() + _SECONDS
        while time.monotonic() < end:
            lease = await slots.acquire(pools[count % len(pools)])
            if hold:
                await asyncio.sleep(hold)
            slots.release(lease, _OK)
            count += 1
        return count


def _slowest(counts: Sequence[int]) -> float:
    return min(counts) / statistics.mean(counts)


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f}"


# a process that holds slots is killed

_KILLS = 200
_HOLDERS = 3
_EACH = 2


def slots_kills(folder: Path) -> list[Bar]:
    """Three processes hold all slots, and somebody waits; one is killed, 200 times."""
    place, everything = _place(folder), _HOLDERS * _EACH
    holders = [_holder(place) for _ in range(_HOLDERS)]
    seconds = []
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        opened = open_slots("waits", place)
        slots = runner.run(opened.__aenter__())
        for _ in range(_KILLS):
            seconds.append(runner.run(_killed(slots, holders.pop(0))))
            holders.append(_holder(place))
        for holder in holders:
            holder.kill()
            holder.join()
        runner.run(_take_and_release(slots, everything))
        found = runner.run(slots.request_snapshot()).pools[0]
        runner.run(opened.__aexit__(None, None, None))
    _stop(place)
    told = f"median {statistics.median(seconds) * 1e3:.1f} ms, until the one who waits has both slots; load {_load()}"
    lost = found.held + found.waiting
    return [
        Bar("slots of a killed process: back after, slowest of 200", max(seconds) * 1e3, "ms", 100, False, told),
        Bar("slots lost in 200 kills", lost, "", 0, False, f"{everything} slots, all taken again at the end"),
    ]


def _holder(place: BrokerLocation) -> Any:
    """A process that holds its slots until it is killed."""
    here, there = _fork.Pipe(duplex=False)
    holder = _fork.Process(target=_hold, args=(place, there), daemon=True)
    holder.start()
    here.recv()
    return holder


def _hold(place: BrokerLocation, pipe: Connection) -> None:
    async def hold() -> None:
        async with open_slots(f"holder {os.getpid()}", place, sizes={_POOL[0]: _HOLDERS * _EACH}) as slots:
            await asyncio.gather(*(slots.acquire(_POOL) for _ in range(_EACH)))
            pipe.send("held")
            await asyncio.Event().wait()

    uvloop.run(hold())


async def _killed(slots: Slots, holder: Any) -> float:
    waiting = asyncio.gather(*(slots.acquire(_POOL) for _ in range(_EACH)))
    while (await slots.request_snapshot()).pools[0].waiting < _EACH:
        pass
    began = time.monotonic()
    holder.kill()
    leases = await waiting
    seconds = time.monotonic() - began
    holder.join()
    for lease in leases:
        slots.release(lease, _OK)
    await slots.request_snapshot()
    return seconds


async def _take_and_release(slots: Slots, count: int) -> None:
    """Only works if none is lost."""
    async with asyncio.timeout(10):
        leases = await asyncio.gather(*(slots.acquire(_POOL) for _ in range(count)))
    for lease in leases:
        slots.release(lease, _OK)
    while (await slots.request_snapshot()).pools[0].held:
        pass


# the broker is killed

_RUNS = 8
_AGENTS = 4
_BROKER_KILLS = 10
_ACT_SECONDS = 0.005


class Witness:
    """Counts in shared memory how many agents act at the same moment; the broker has no part in it."""

    def __init__(self) -> None:
        self._acting = _fork.Value("i", 0)
        self._most = _fork.Value("i", 0)
        self.turns = _fork.Value("i", 0)
        self.over = _fork.Value("b", 0)

    def enter(self) -> None:
        with self._acting.get_lock():
            self._acting.value += 1
            self._most.value = max(self._most.value, self._acting.value)
            self.turns.value += 1

    def leave(self) -> None:
        with self._acting.get_lock():
            self._acting.value -= 1

    def look(self) -> tuple[int, int]:
        """How many act now, and the most since the last look."""
        with self._acting.get_lock():
            most, self._most.value = self._most.value, self._acting.value
            return self._acting.value, most


def slots_broker(folder: Path) -> list[Bar]:
    """The broker is killed ten times while eight runs with four agents each want four slots."""
    place, witness = _place(folder), Witness()
    start_broker(place)
    runs = [_fork.Process(target=_run, args=(place, witness)) for _ in range(_RUNS)]
    for run in runs:
        run.start()
    _wait_for_turns(witness, 200)
    most, beyond, pauses = [witness.look()[1]], [0], []
    for _ in range(_BROKER_KILLS):
        in_flight, _ = witness.look()
        began = time.monotonic()
        os.kill(int(place.lock.read_text()), signal.SIGKILL)
        _wait_for_another(place)
        pauses.append(time.monotonic() - began)
        _wait_for_turns(witness, 200)
        most.append(witness.look()[1])
        beyond.append(most[-1] - _SLOTS - in_flight)
    witness.over.value = 1
    for run in runs:
        run.join(30)
    failed = sum(run.exitcode != 0 for run in runs)
    seen = fetch_snapshot(place)
    assert seen is not None
    left = seen.pools[0].held
    _stop(place)
    told = f"at most {max(most)} of 32 acted; {statistics.median(pauses):.2f} s until all have another; load {_load()}"
    return [
        Bar("broker killed: agents beyond 4 and those in flight", max(beyond), "", 0, False, told),
        Bar("broker killed 10 times: runs that failed", failed, "", 0, False, f"{witness.turns.value:,} turns"),
        Bar("broker killed 10 times: slots lost", left, "", 0, False, "held when all runs are over"),
    ]


def _run(place: BrokerLocation, witness: Witness) -> None:
    async def agent(slots: Slots) -> None:
        while not witness.over.value:
            lease = await slots.acquire(_POOL)
            witness.enter()
            await asyncio.sleep(_ACT_SECONDS)
            witness.leave()
            slots.release(lease, _OK)

    async def run() -> None:
        async with open_slots(f"run {os.getpid()}", place, sizes={_POOL[0]: _SLOTS}) as slots:
            await asyncio.gather(*(agent(slots) for _ in range(_AGENTS)))
            if not slots.is_shared:
                raise AssertionError("a run went on by itself")

    uvloop.run(run())


def _wait_for_another(place: BrokerLocation) -> None:
    """Until a broker is there that all runs have found."""
    while (seen := fetch_snapshot(place)) is None or not seen.pools or len(seen.pools[0].holders) < _RUNS:
        time.sleep(0.005)


def _wait_for_turns(witness: Witness, count: int) -> None:
    end = witness.turns.value + count
    while witness.turns.value < end:
        time.sleep(0.005)


ALL: Sequence[Callable[[Path], list[Bar]]] = (slots_rate, slots_kills, slots_broker)
