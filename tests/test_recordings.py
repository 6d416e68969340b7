"""The recorded runs in examples/ were decided by a real language model, and replay in every later version.

Where prompts changed before a release, `scripts/record` records them anew.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from shoal.cli.main import cli
from shoal.runs.directory import RunDirectory
from shoal.runs.state import Status
from tests.runs.harness import repeat

RECORDED = sorted((Path(__file__).parent.parent / "examples" / "recorded").iterdir())
MAX_BYTES = 600_000


@pytest.fixture(params=RECORDED, ids=lambda path: path.name)
def run(request: pytest.FixtureRequest, tmp_path: Path) -> RunDirectory:
    return RunDirectory(shutil.copytree(request.param, tmp_path / request.param.name))


def test_a_recorded_run_replays_without_its_model(run: RunDirectory) -> None:
    outcome = repeat(run)

    assert outcome.status is Status.COMPLETED
    assert outcome.calls == 0


def test_a_recorded_run_is_shown_and_explained(run: RunDirectory) -> None:
    shown = CliRunner().invoke(cli, ["show", str(run.path)])
    explained = CliRunner().invoke(cli, ["explain", str(run.path), "0", "1"])

    assert shown.exit_code == explained.exit_code == 0
    assert "Ana Reyes" in explained.output


def test_there_is_a_recorded_run_of_each_kind_of_world_and_all_are_small() -> None:
    kinds = {world.kind for path in RECORDED for world in RunDirectory(path).scenario.worlds.values()}
    size = sum(file.stat().st_size for path in RECORDED for file in path.rglob("*") if file.is_file())

    assert kinds >= {"twitter", "reddit", "room", "dialogue"}
    assert size <= MAX_BYTES
