"""Builds the engines of a run, and advances them side by side."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from shoal.engine import Decider, Engine, Gate, Ledger, RoundRecord, StateRecorder
from shoal.errors import Stopped
from shoal.journal import Journal
from shoal.models import Availability
from shoal.runs.directory import RunDirectory, parse_injected_events
from shoal.runs.progress import Watch
from shoal.scenario import (
    Simulation,
    Sources,
    build,
)


def build_from(run: RunDirectory, journal: Journal, sources: Sources | None = None) -> Simulation:
    """Build the whole simulation of a run, as its directory declares it."""
    return build(run.scenario_versions, parse_injected_events(journal.events), sources)


def build_engine(
    simulation: Simulation,
    world: str,
    decider: Decider,
    ledger: Ledger,
    recorder: StateRecorder | None = None,
) -> Engine:
    """Build the engine of one world."""
    return Engine(simulation.worlds[world], decider, ledger, simulation.seed, simulation.schedules[world], recorder)


async def advance_worlds(
    engines: Mapping[str, Engine], rounds: Mapping[str, int], stop: asyncio.Event, gate: Gate | None = None
) -> None:
    """Advance all worlds side by side. The first error ends them all."""
    try:
        async with asyncio.TaskGroup() as group:
            for name, engine in engines.items():
                group.create_task(engine.run(rounds[name], stop, gate))
    except BaseExceptionGroup as errors:
        # Of errors at once, raise one that is not merely another world being stopped.
        error: BaseException = errors
        while isinstance(error, BaseExceptionGroup):
            failures = [each for each in error.exceptions if not isinstance(each, Stopped)]
            error = (failures or error.exceptions)[0]
        raise error from None


async def work_while_available(
    work: Coroutine[Any, Any, None], availability: Availability | None, stop: asyncio.Event
) -> None:
    """Do the work until a model's server is given up, or until the run is asked to stop while it waits for one.

    Questions may be waiting for a slot then, or for their next attempt, and would hear of it late.
    """
    if availability is None:
        return await work
    working = asyncio.create_task(work)
    stopping, ending = asyncio.create_task(stop.wait()), asyncio.create_task(availability.wait_for_end())
    try:
        await asyncio.wait({working, stopping, ending}, return_when=asyncio.FIRST_COMPLETED)
        if stopping.done():
            availability.end_pauses()
            await asyncio.wait({working, ending}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            ending.result()
        return working.result()
    finally:
        for task in (working, stopping, ending):
            task.cancel()
        await asyncio.gather(working, stopping, ending, return_exceptions=True)


@dataclass(frozen=True, slots=True)
class ObservedLedger:
    """Commits rounds to a ledger and reports each of them."""

    ledger: Ledger
    watches: tuple[Watch, ...]

    def commit(self, record: RoundRecord) -> None:
        self.ledger.commit(record)
        for watch in self.watches:
            watch(record)


@contextmanager
def manual_gc() -> Iterator[Watch]:
    """Turn off automatic garbage collection; yields a collection of young objects, to be called once a round.

    A run makes millions of objects and hardly any cycles, and what survives a round lives long. Going through all of
    it again and again would be wasted.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield collect_young
    finally:
        if was_on:
            gc.enable()


def collect_young(record: RoundRecord) -> None:
    gc.collect(0)
