"""Preparing from a script."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import shoal
from shoal.errors import RunRefused
from tests.preparation.texts import ASKED_TOWN, TOWN


def test_a_script_prepares_a_scenario_and_runs_it(tmp_path: Path) -> None:
    (tmp_path / "town.md").write_text(TOWN)

    async def main() -> Path:
        asked = {"out": tmp_path / "bridge", "people": 40, "rounds": 2, "seed": 3}
        prepared = await shoal.prepare(ASKED_TOWN, [tmp_path / "town.md"], **asked)  # type: ignore[arg-type]
        assert (prepared.people, prepared.profiles) == (40, 14)
        assert (await shoal.prepare(ASKED_TOWN, [tmp_path / "town.md"], **asked)) == prepared  # type: ignore[arg-type]
        with pytest.raises(RunRefused, match="something else"):
            await shoal.prepare("Other", out=tmp_path / "bridge")
        return prepared.scenario

    scenario = asyncio.run(main())
    run = shoal.run(scenario, out=tmp_path / "run", quiet=True)
    assert run.status == "completed"
