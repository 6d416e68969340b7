"""Comparisons of experiments, arms and runs, and results as one table."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import polars
import pytest

from shoal.errors import RunMissing, RunRefused
from shoal.experiments import BatchSettings
from shoal.experiments.batch import Batch
from shoal.experiments.batch_rows import read_rows
from shoal.experiments.comparison import compare_sides, export_results
from shoal.scenario import validate
from tests.experiments.harness import InlineLauncher
from tests.experiments.report.harness import make_study
from tests.runs.harness import start

SCENARIO = {"name": "town", "population": [{"count": 6}], "rounds": 2, "worlds": ["twitter"], "topic": "the pool"}


def test_arms_of_one_experiment_are_compared_seed_by_seed(tmp_path: Path) -> None:
    folder = make_study(tmp_path) / "answer"
    (folder / "nothing").mkdir(parents=True)
    (folder / "fact-check").mkdir()
    (found,) = compare_sides([folder / "nothing", folder / "fact-check"])
    assert found.runs == (8, 8)
    belief = next(row for row in found.metrics if row.metric == "mean(closing)")
    assert belief.is_paired
    assert belief.effect.difference.high < 0
    assert belief.corrected_p is not None
    assert belief.effect.p is not None
    assert belief.corrected_p >= belief.effect.p


def test_experiments_are_compared_arm_by_arm_without_common_seeds_too(tmp_path: Path) -> None:
    first = make_study(tmp_path / "first")
    later = make_study(tmp_path / "later", lambda result: msgspec.structs.replace(result, seed=result.seed + 100))
    found = compare_sides([first, later])
    assert [each.before.rpartition("/")[2] for each in found] == ["nothing", "fact-check"]
    assert not any(row.is_paired for row in found[0].metrics if row.metric != "pass_rate")


def test_runs_show_what_differs_in_their_scenarios(tmp_path: Path) -> None:
    start({**SCENARIO, "seed": 1}, tmp_path / "a")
    start({**SCENARIO, "seed": 1, "rounds": 3}, tmp_path / "b")
    (found,) = compare_sides([tmp_path / "a", tmp_path / "b"])
    assert [(each.path, each.before, each.after) for each in found.scenario] == [("rounds", 2, 3)]
    assert all(row.effect.p is None for row in found.metrics)


async def test_runs_of_a_batch_are_compared_and_a_batch_itself_has_no_arms(tmp_path: Path) -> None:
    scenario = validate(SCENARIO)
    rows = read_rows(scenario, [{"id": "a", "seed": 1}, {"id": "b", "seed": 1, "rounds": 3}])
    batch = Batch(scenario, rows, tmp_path / "batch", BatchSettings(max_simulations=1))
    await batch.run(InlineLauncher(), asyncio.Event())
    (found,) = compare_sides([batch.runs_folder / "a", batch.runs_folder / "b"])
    assert [each.path for each in found.scenario] == ["rounds"]
    with pytest.raises(RunRefused, match=r"is a batch, which has no arms.*\n.*results\.csv"):
        compare_sides([batch.folder, batch.runs_folder / "a"])


def test_what_is_nothing_of_these_is_refused(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study")
    with pytest.raises(RunMissing, match="no experiment, no arm and no run"):
        compare_sides([study, tmp_path])
    with pytest.raises(RunRefused, match="nothing to compare"):
        compare_sides([study])


def test_results_become_one_table(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study")
    assert export_results(study, tmp_path / "runs.parquet", "parquet") == 16
    frame = polars.read_parquet(tmp_path / "runs.parquet")
    assert {"tier", "arm", "seed", "passed", "is_control", "mean(closing)", "believed.passed", "believed.score"} <= set(
        frame.columns
    )
    assert frame.schema["mean(closing)"] == polars.Float64
    assert frame.filter(polars.col("is_control"))["arm"].unique().to_list() == ["nothing"]
    assert frame["set.interventions"].drop_nulls().unique().to_list() == ["[]"]
    assert export_results(study, tmp_path / "runs.csv", "csv") == 16
    assert (tmp_path / "runs.csv").read_text().splitlines()[0].startswith("tier,arm,seed,status,passed,cost,")
