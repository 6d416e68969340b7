"""The report of a run from the command line."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.terminal import call


def test_the_report_is_written_beside_the_run_or_where_the_user_wants_it(folder: Path) -> None:
    call("run", "small.yaml", "--quiet", "--rounds", "6")
    shown = call("report", "runs/small-1")
    assert shown.exit_code == 0, shown.stderr
    assert "people took" in shown.stdout
    found = json.loads(call("report", "runs/small-1", "--out", "study", "--json").stdout)
    assert (folder / found["page"]).read_text().startswith("<!doctype html>")
    assert (folder / "study" / "report.md").read_text() == (folder / "runs/small-1/report.md").read_text()
    assert found["sections"][0]["heading"] == "In short"


def test_a_folder_that_cannot_be_written_is_an_error_of_one_sentence(folder: Path) -> None:
    call("run", "small.yaml", "--quiet", "--rounds", "2")
    (folder / "taken").write_text("")
    result = call("report", "runs/small-1", "--out", "taken")
    assert result.exit_code == 1
    assert "Traceback" not in result.stderr
    assert "taken" in result.stderr
