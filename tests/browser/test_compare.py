"""Two runs beside one another, and the tree of forks."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import DESKTOP, PHONE, Site, Visiting

PAIR = "compare/bridge/bridge-fork-1"


def test_a_fork_and_its_parent_part_where_the_fork_was_made(site: Site, visit: Visiting) -> None:
    page = visit(site, PAIR).page
    expect(page.get_by_text("The two are the same up to round 5.")).to_be_visible(timeout=60_000)
    expect(page.get_by_role("cell", name=re.compile("It is closed after all"))).to_be_visible()
    page.get_by_role("button", name="Go to where they part").click()
    expect(page).to_have_url(re.compile("round=6"))
    page.get_by_label("Round of both runs").press("ArrowRight")
    expect(page).to_have_url(re.compile("round=7"))
    expect(page.get_by_text("Round 7", exact=True)).to_be_visible()


def test_a_run_is_the_same_as_itself(site: Site, visit: Visiting) -> None:
    page = visit(site, "compare/bridge/bridge").page
    expect(page.get_by_text("Nothing differs")).to_be_visible(timeout=60_000)


def test_a_run_that_is_missing_is_said(site: Site, visit: Visiting) -> None:
    page = visit(site, "compare/bridge/nobody", refusals=(404,)).page
    expect(page.get_by_role("alert")).to_contain_text("there is no simulation nobody")


def test_forks_are_a_tree_that_opens_runs_and_forks_them(site: Site, visit: Visiting) -> None:
    page = visit(site).page
    page.get_by_role("button", name="What can be done with bridge", exact=True).click()
    page.get_by_role("menuitem", name="Forks as a tree").click()
    tree = page.get_by_role("dialog", name="Forks")
    expect(tree.get_by_text("after round 6")).to_be_visible()
    expect(tree.get_by_role("link", name="Compare")).to_have_attribute("href", re.compile(PAIR))
    tree.get_by_role("button", name="Fork bridge", exact=True).click()
    expect(page.get_by_role("dialog", name="What if?").get_by_label("After round")).to_have_value("12")


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_comparison_is_accessible_and_fits(site: Site, visit: Visiting, size: dict[str, int]) -> None:
    seen = visit(site, PAIR, size)
    expect(seen.page.get_by_text("The two are the same up to round 5.")).to_be_visible(timeout=60_000)
    seen.page.wait_for_load_state("networkidle")
    assert seen.find_sideways() == []
    assert seen.find_barriers() == []
