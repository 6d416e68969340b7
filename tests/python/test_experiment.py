"""`shoal.run_experiment` in a script."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import shoal

STUDY: dict[str, Any] = {
    "name": "town",
    "population": [{"count": 8}],
    "rounds": 2,
    "worlds": ["twitter"],
    "experiment": {"seeds": 2, "tiers": [{"name": "size", "control": "base", "sweep": {"population.count": [12]}}]},
}


async def test_an_experiment_gives_results_and_frames(tmp_path: Path) -> None:
    results = await shoal.run_experiment(STUDY, tmp_path / "town", max_simulations=2, limits={"parallel": 4})
    assert (results.status, len(results)) == ("completed", 4)
    assert [(arm.arm, arm.ended, arm.runs) for arm in results.arms] == [("base", 2, 2), ("count-12", 2, 2)]
    assert [result.id for result in results] == [
        f"size/{arm}/{seed}" for arm in ("base", "count-12") for seed in (1, 2)
    ]
    frame = results.to_pandas()
    assert list(frame["activity"]) == [result.metrics["activity"] for result in results]
    assert frame["command"][0] == f"shoal replay {tmp_path}/town/size/base/1"
    assert results.to_polars().shape == frame.shape
    assert "count-12" in results._repr_html_()
    again = await shoal.run_experiment(STUDY, tmp_path / "town")
    assert again.results == shoal.open_experiment(tmp_path / "town").results == results.results


async def test_what_is_wrong_is_said_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(shoal.ShoalError, match="unknown field 'seed'; did you mean 'seeds'"):
        await shoal.run_experiment({**STUDY, "experiment": {**STUDY["experiment"], "seed": 3}}, tmp_path / "town")
    with pytest.raises(shoal.ShoalError, match="expected a number above 0, found -1"):
        await shoal.run_experiment(STUDY, tmp_path / "town", limits={"max_cost": -1})
    with pytest.raises(shoal.ShoalError, match="there is no limit 'maxcost'"):
        await shoal.run_experiment(STUDY, tmp_path / "town", limits={"maxcost": 1})
    assert not (tmp_path / "town").exists()
    with pytest.raises(shoal.ShoalError, match="there is no experiment in"):
        shoal.open_experiment(tmp_path)
