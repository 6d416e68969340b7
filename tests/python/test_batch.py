"""`shoal.run_many` in a script."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import shoal

SCENARIO = {"name": "talk", "population": [{"name": "Ada"}, {"name": "Ben"}], "rounds": 4, "worlds": {"dialogue": {}}}
ROWS: list[dict[str, Any]] = [{"population.0.name": "Romeo"}, {"population.0.name": "Holmes", "seed": 3}]


async def test_rows_are_run_and_each_has_a_result(tmp_path: Path) -> None:
    results = await shoal.run_many(SCENARIO, ROWS, tmp_path / "talks", max_simulations=2)
    assert [(result.id, result.status, result.error) for result in results] == [
        ("0001", "completed", None),
        ("0002", "completed", None),
    ]
    assert "Holmes" in str(shoal.open(results[1].run).transcript())
    assert await shoal.run_many(SCENARIO, ROWS, tmp_path / "talks") == results


async def test_a_wrong_row_is_reported_with_its_column() -> None:
    with pytest.raises(shoal.ShoalError, match=r"rows: record 2: column population.0.stance: must be at most 1"):
        await shoal.run_many(SCENARIO, [{}, {"population.0.stance": 3}])
