"""Bundles: the pages of a run from a folder, opened from the disk, without any server."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Site, Visiting


@pytest.fixture(scope="module")
def bundle(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("bundle") / "bridge"
    shoal = Path(sys.executable).with_name("shoal")
    subprocess.run([shoal, "bundle", site.folder / "bridge", "--out", out], check=True, capture_output=True)
    return out


def test_a_bundle_opens_from_a_disk_and_follows_its_timeline(bundle: Path, visit: Visiting) -> None:
    page = visit(Site(f"{bundle.as_uri()}/index.html", bundle)).page
    page.wait_for_url(re.compile("#/run/bridge"))
    expect(page.get_by_text("Round 12").first).to_be_visible()
    page.goto(f"{bundle.as_uri()}/index.html#/run/bridge?round=0")
    expect(page.get_by_text("<img src=x onerror=").first).to_be_visible()
    expect(page.get_by_role("button", name="Fork here")).to_have_count(0)


def test_prompts_and_people_of_a_bundle_are_there(bundle: Path, visit: Visiting) -> None:
    page = visit(Site(f"{bundle.as_uri()}/index.html", bundle), "run/bridge?round=4").page
    page.get_by_role("button", name=re.compile("^why", re.IGNORECASE)).first.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    expect(page.get_by_text("not part of the bundle")).to_have_count(0)


def test_a_run_page_offers_the_bundle(visit: Visiting, site: Site) -> None:
    page = visit(site, "run/bridge").page
    page.get_by_role("button", name="More that can be done").click()
    link = page.get_by_role("menuitem", name=re.compile("Download"))
    assert (link.get_attribute("href") or "").endswith("simulation/bridge/bundle")
