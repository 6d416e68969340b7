"""`--parallel N` holds for a whole experiment: over tiers that run side by side, in processes of their own."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from shoal.experiments import BatchSettings, ExperimentRun, load_experiment
from shoal.rehearsal.server import start
from shoal.rehearsal.settings import RehearsalSettings
from shoal.runs import LimitSettings
from shoal.runs.launchers import ForkLauncher
from tests.slots.brokers import temporary_location

N = 6
STUDY = """\
name: study
population: [{count: 10}]
rounds: 4
worlds: {hall: {kind: room, turns: parallel}}
mind: {kind: language, model: openai/rehearsal}
experiment:
  seeds: 1
  tiers: [%s]
"""


async def test_of_five_tiers_side_by_side_six_agents_act_and_not_thirty(tmp_path: Path) -> None:
    study = tmp_path / "study.yaml"
    # With one topic for all, most questions would be answered by the cache.
    study.write_text(
        STUDY % ", ".join(f"{{name: t{number}, arms: {{all: {{topic: the bridge {number}}}}}}}" for number in range(5))
    )
    settings = BatchSettings(max_simulations=5, limits=LimitSettings(parallel=N))
    work = ExperimentRun(load_experiment(study), tmp_path / "results", settings)
    with temporary_location() as place:
        async with start(RehearsalSettings(latency_seconds=0.1)) as server:
            own = {"SHOAL_SLOTS": str(place.socket), "XDG_STATE_HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
            environ = {**os.environ, **own, "OPENAI_BASE_URL": server.base_url}
            with ForkLauncher(environ, idle_seconds=0) as launcher:
                results = await work.run(launcher, asyncio.Event())
    assert [result.status for result in results] == ["completed"] * 5
    assert server.stats.in_flight_peak == N
    logs = [(tmp_path / "results" / result.id / "simulation.log").read_text().splitlines() for result in results]
    began, ended = [log[0] for log in logs], [log[-1] for log in logs]
    assert max(began) < min(ended), "the tiers did not run side by side"
