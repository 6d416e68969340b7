"""Times a scenario that asks no language model, by playing its first rounds in memory."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from pathlib import Path

from shoal.agents import HeuristicSettings
from shoal.engine import Decider, DecisionLimits, Engine, RoundRecord
from shoal.errors import Stopped
from shoal.journal import Journal
from shoal.scenario import OwnWorldSettings, Scenario, build
from shoal.types import Versioned

#: Rounds are played until so much time has gone by.
_TRIAL_SECONDS = 0.25
#: A round in memory takes less than one that is written to disk, by about this factor.
_DISK_FACTOR = 1.5


class _Stopwatch:
    """A ledger that counts rounds, and asks to stop when enough of them have been played."""

    def __init__(self, stop: asyncio.Event) -> None:
        self.rounds = 0
        self._stop = stop
        self._until = time.perf_counter() + _TRIAL_SECONDS

    def commit(self, record: RoundRecord) -> None:
        self.rounds += 1
        if time.perf_counter() > self._until:
            self._stop.set()


async def time_rounds(scenario: Scenario) -> float | None:
    """Return the seconds that all its rounds will probably take; None where its worlds or minds are the user's own."""
    own = any(isinstance(world, OwnWorldSettings) for world in scenario.worlds.values())
    if own or not isinstance(scenario.mind, HeuristicSettings) or scenario.mind.latency is not None:
        return None
    began = time.perf_counter()
    simulation = build(Versioned(scenario))
    seconds = time.perf_counter() - began
    for name, mind in simulation.minds.items():
        stop = asyncio.Event()
        watch = _Stopwatch(stop)
        decider = Decider(mind, Journal(Path(), [], None), DecisionLimits())
        schedule = simulation.schedules[name]
        engine = Engine(simulation.worlds[name], decider, watch, simulation.seed, schedule)
        began = time.perf_counter()
        with suppress(Stopped):
            await engine.run(simulation.rounds, stop)
        took = time.perf_counter() - began
        seconds += took / max(watch.rounds, 1) * (simulation.rounds + 1) * _DISK_FACTOR
    return seconds
