"""Whole simulations side by side."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.errors import RunRefused
from shoal.runs.tuning import simulations
from shoal.runs.tuning.levels import TIME_USED, Gauge
from shoal.scenario.loading import validate

SMALL = {"name": "small", "rounds": 3, "population": {"count": 10}, "worlds": ["twitter"], "play": [3]}


async def test_simulations_are_run_at_once_and_leave_nothing_behind(tmp_path: Path) -> None:
    gauge = Gauge()
    ended = await simulations.measure_simulations(validate(SMALL), tmp_path, gauge, up_to=2, window_seconds=0.3)
    assert ended in ("", "--up-to is 2")
    level = gauge.levels[-1]
    assert (level.at_once, level.tried >= 2) == (2, True)
    assert level.per_second > 0
    assert level.failed == 0
    assert level.p50 > 0
    assert level.cpu is not None
    assert 0 < level.cpu < 2
    assert level.memory_mb is not None
    assert level.memory_mb > 20
    assert list(tmp_path.iterdir()) == []


async def test_a_scenario_that_cannot_be_run_is_refused_with_the_reason(tmp_path: Path) -> None:
    broken = validate(SMALL).model_copy(update={"worlds": {}})
    with pytest.raises(RunRefused, match="small cannot be run"):
        await simulations.measure_simulations(broken, tmp_path, Gauge(), up_to=1, window_seconds=0.1)


async def test_without_time_nothing_is_begun(tmp_path: Path) -> None:
    gauge = Gauge()
    assert await simulations.measure_simulations(validate(SMALL), tmp_path, gauge, seconds=0.0) == TIME_USED
    assert gauge.levels == []


def test_there_is_at_least_part_of_a_core() -> None:
    assert simulations.count_cores() > 0
