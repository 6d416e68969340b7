"""Drawing runs from the terminal."""

from __future__ import annotations

from pathlib import Path

from tests.cli.terminal import call, last_object


def test_plot_writes_a_page_and_pictures_into_the_run(folder: Path) -> None:
    call("run", "small.yaml", "--quiet", "--rounds", "6")
    result = call("plot", "runs/small-1", "--json")
    assert result.exit_code == 0, result.stderr
    answer = last_object(result.stdout)
    assert answer["page"] == "runs/small-1/plots/index.html"
    assert answer["pictures"]
    assert all((folder / path).is_file() for path in (answer["page"], *answer["pictures"]))


def test_plot_says_where_the_page_is(folder: Path) -> None:
    call("run", "small.yaml", "--quiet", "--rounds", "6")
    result = call("plot", "runs/small-1", "runs/small-1", "--out", "pictures")
    assert result.stdout.startswith("pictures/index.html: ")


def test_plot_of_what_is_no_run_is_refused(folder: Path) -> None:
    result = call("plot", "runs")
    assert result.exit_code == 3
    assert "runs" in result.stderr
