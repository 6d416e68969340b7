"""An experiment in the browser: started, followed to its end, and read."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import DESKTOP, PHONE, Site, Visiting, serve_folder

EXPERIMENT = """
name: bridge
topic: the old bridge
population: {count: 20}
rounds: 6
time: {daily_rhythm: false}
worlds: [twitter]
seed: 4
claims: [{id: closing, text: The old bridge will be closed}]
events: [{post: "It will be closed!", by: most_followed, supports: closing}]
experiment:
  seeds: 3
  judges: {heard: reach(closing) > 0.5}
  tiers:
    - name: size
      control: few
      arms:
        few: {}
        many: {population.0.count: 40}
        a-name-that-is-as-long-as-names-of-arms-may-be-in-a-study: {rounds: 5}
"""


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server with an experiment that has ended, `pier`."""
    folder = tmp_path_factory.mktemp("studies")
    scenario = folder / "pier.yaml"
    scenario.write_text(EXPERIMENT.replace("name: bridge", "name: pier"))
    shoal = Path(sys.executable).with_name("shoal")
    subprocess.run([shoal, "experiment", scenario, "--out", folder / "results" / "pier", "--quiet"], check=True)
    with serve_folder(folder / "runs") as found:
        yield found


def test_an_experiment_is_started_followed_read_and_shared(studies: Site, visit: Visiting, tmp_path: Path) -> None:
    page = visit(studies, "new?what=experiment").page
    page.get_by_label("Scenario in YAML").fill(EXPERIMENT)
    expect(page.get_by_text("side by side", exact=False).first).to_be_visible()
    page.get_by_role("button", name="Start the experiment").click()
    page.wait_for_url(re.compile("#/experiment/bridge"))
    expect(page.get_by_text("completed", exact=True)).to_be_visible(timeout=120_000)
    expect(page.get_by_role("main")).to_contain_text("95 % interval")
    squares = page.get_by_role("link", name=re.compile("seed 4:"))
    expect(squares).to_have_count(3)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
        page.get_by_role("menuitem", name="Results as CSV").click()
    assert Path(download.value.path()).read_text().count("\n") == 10
    # The click would wait for an answer, which a busy machine takes long to make.
    with page.expect_download(timeout=120_000) as download:
        page.get_by_role("button", name="Download").click()
        page.get_by_role("menuitem", name="Everything, to open without Shoal").click(no_wait_after=True)
    folder = tmp_path / "bundle"
    shutil.unpack_archive(download.value.path(), folder, "zip")
    index = next(folder.glob("*/index.html"))
    shared = visit(Site(index.as_uri(), folder), "experiment/bridge").page
    expect(shared.get_by_role("link", name=re.compile("seed 4:"))).to_have_count(3)
    squares.first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("#/run/bridge~size~few~5"))


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("address", ["experiments", "experiment/pier", "experiment/pier?metric=reach(closing)"])
def test_pages_of_experiments_are_accessible_and_fit(
    studies: Site, visit: Visiting, address: str, size: dict[str, int]
) -> None:
    seen = visit(studies, address, size)
    expect(seen.page.get_by_text("pier").first).to_be_visible()
    seen.page.wait_for_load_state("networkidle")
    assert seen.find_sideways() == []
    assert seen.find_barriers() == []


def test_an_experiment_that_is_missing_is_said(studies: Site, visit: Visiting) -> None:
    page = visit(studies, "experiment/nope", refusals=(404,)).page
    expect(page.get_by_role("alert")).to_contain_text("there is no experiment 'nope'")
