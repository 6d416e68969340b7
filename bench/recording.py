"""What it costs to record the state of the population after every round."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from bench.bars import Bar, everyone_active
from shoal.engine import Decider, Engine, StateRecorder
from shoal.journal import Journal
from shoal.runs.directory import RunDirectory
from shoal.runs.operations import create_run
from shoal.runs.store import Store
from shoal.runs.worker import build_engine, build_from, manual_gc
from shoal.scenario.loading import validate

_PEOPLE, _ROUNDS, _TRIES = 10_000, 8, 3
_CLAIMS = [{"id": "closing", "text": "The old bridge will be closed for good", "truth": False}]
_RUMOUR = {"post": "They say the old bridge will be closed for good.", "by": "most_followed", "supports": "closing"}


def recording(folder: Path) -> list[Bar]:
    """Opinions, beliefs and figures of 10,000 agents in each round, against the same run without them."""
    seconds: dict[bool, list[float]] = {True: [], False: []}
    for number in range(_TRIES):
        for records in (True, False):
            seconds[records].append(asyncio.run(_run(folder / f"{records}-{number}", records)))
    with_state, without = min(seconds[True]), min(seconds[False])
    told = f"10,000 agents, one claim, all active: {without:.2f} s of CPU without"
    return [Bar("recording opinions in each round", 100 * (with_state / without - 1), "%", 10, False, told)]


async def _run(folder: Path, records: bool) -> float:
    scenario = everyone_active(_PEOPLE, _ROUNDS, claims=_CLAIMS, events=[_RUMOUR])
    run: RunDirectory = create_run(validate(scenario), folder)
    async with Journal.open(run.journal, run.config.shoal_version) as journal:
        simulation = build_from(run, journal)
        [(name, world)] = simulation.worlds.items()
        recorder = StateRecorder(_PEOPLE) if records else None
        with Store(run.path, world, run.round_plans, _PEOPLE, run.config.shoal_version) as store, manual_gc():
            decider = Decider(simulation.minds[name], journal, simulation.limits)
            engine: Engine = build_engine(simulation, name, decider, store, recorder)
            began = time.process_time()
            await engine.run(_ROUNDS, asyncio.Event())
            return time.process_time() - began
