"""Reports, comparisons and tables of experiments from the command line."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.terminal import call
from tests.experiments.report.harness import make_study


def test_the_report_of_an_experiment_is_written_into_its_folder(folder: Path) -> None:
    make_study(folder / "study")
    shown = call("report", "study")
    assert shown.exit_code == 0, shown.stderr
    assert shown.stdout.startswith("fact-check lowers mean(closing) against nothing")
    found = json.loads(call("report", "study", "--json").stdout)
    assert (folder / found["page"]).read_text().startswith("<!doctype html>")
    assert found["runs"] == 16
    assert call("report", "study", "--out", "elsewhere").exit_code == 2


def test_experiments_are_compared_with_one_another_and_with_people(folder: Path) -> None:
    make_study(folder / "study")
    make_study(folder / "other", seeds=5)
    found = json.loads(call("compare", "study", "other", "--json").stdout)["comparisons"]
    assert [each["runs"] for each in found] == [[8, 5], [8, 5]]
    assert "runs are paired by seed" in call("compare", "study", "other").stdout
    (folder / "people.csv").write_text("person,mean(closing)\nAda,0.2\nBen,0.5\n")
    shown = call("compare", "study", "--human", "people.csv")
    assert shown.exit_code == 0, shown.stderr
    assert "Nobody was asked twice" in shown.stdout
    assert json.loads(call("report", "study", "--human", "people.csv", "--json").stdout)["outcome"] == "mean(closing)"


def test_what_cannot_be_compared_is_an_error_that_says_what_to_do(folder: Path) -> None:
    make_study(folder / "study")
    for arguments in (["study"], ["study", "nowhere"], ["--answers", "x.csv", "study"], ["study", "--human", "no.csv"]):
        result = call("compare", *arguments)
        assert result.exit_code in (2, 3), arguments
        assert "Traceback" not in result.stderr
        assert result.stderr


def test_an_experiment_is_exported_as_one_table(folder: Path) -> None:
    make_study(folder / "study")
    assert "study/export/runs.csv: 16 runs" in call("export", "study").stdout
    assert call("export", "study").exit_code == 3
    assert json.loads(call("export", "study", "--force", "--json").stdout)["rows"] == 16
