"""Curves of a report: means over rounds with intervals, from real databases of runs."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from shoal.experiments.report import read_record, report_experiment, write_report
from shoal.experiments.report.page.charts import find_scale
from shoal.experiments.report.series import Band, read_curves
from tests.experiments.report.harness import make_result, write_results
from tests.runs.harness import start

SCENARIO = {"name": "town", "population": [{"count": 6}], "rounds": 3, "worlds": ["twitter"], "topic": "the pool"}


@pytest.fixture
def study(tmp_path: Path) -> Path:
    arms = {"control": {}, "calm": {"mind": {"kind": "heuristic", "persuasion": 0.1}}}
    for arm, changes in arms.items():
        for seed in (1, 2):
            start({**SCENARIO, **changes, "seed": seed}, tmp_path / "main" / arm / str(seed))
    results = [make_result("main", arm, seed, metrics={"mean(topic)": 0.1}) for arm in arms for seed in (1, 2)]
    return write_results(tmp_path, results)


def test_curves_are_the_means_of_what_runs_recorded(study: Path) -> None:
    (curves,) = read_curves(report_experiment(read_record(study)))
    control = curves.bands["mean(topic)"][0]
    ends = []
    for seed in (1, 2):
        with sqlite3.connect(study / "main" / "control" / str(seed) / "twitter_simulation.db") as database:
            query = "SELECT value FROM figure WHERE name = 'mean' AND about = 'topic' ORDER BY round DESC LIMIT 1"
            ends.append(database.execute(query).fetchone()[0])
        database.close()
    assert control.mean[-1] == pytest.approx(np.mean(ends))
    assert control.low[-1] <= control.mean[-1] <= control.high[-1]
    assert [band.arm for band in curves.bands["mean(topic)"]] == ["control", "calm"]


def test_runs_that_were_moved_leave_out_curves_and_nothing_else(study: Path) -> None:
    assert "mean(topic) over rounds" in write_report(study).page.read_text()
    (study / "main").rename(study / "elsewhere")
    page = write_report(study).page.read_text()
    assert "mean(topic) over rounds" not in page
    assert "<bdi>calm</bdi>" in page


def test_a_figure_that_never_changes_has_an_axis_of_one_unit() -> None:
    zero = np.zeros(3)
    assert find_scale([Band("control", range(3), zero, zero, zero, 2)]) == (0.0, 1.0)
