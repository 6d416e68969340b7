"""Where runs are started from: the form, the editor with mistakes at their lines, and what MiroFish prepared."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import DESKTOP, PHONE, ROOT, Site, Visiting

PREPARED = ROOT / "examples" / "mirofish"


def test_a_form_says_what_a_run_takes_and_starts_it(own_site: Site, visit: Visiting) -> None:
    page = visit(own_site, "new?way=form").page
    page.get_by_label("What is it about?").fill("the old bridge: 老桥")
    page.get_by_label("People", exact=True).fill("12")
    page.get_by_label("Rounds", exact=True).fill("3")
    page.get_by_role("button", name="Add a claim").click()
    page.get_by_label("Claim 1", exact=True).fill("The bridge will be closed")
    page.get_by_role("button", name="Add an event").click()
    page.get_by_label("Words of event 1").fill("They say it's closed!")
    expect(page.get_by_text("free", exact=True)).to_be_visible()
    page.get_by_role("button", name="Show as YAML").click()
    expect(page.get_by_label("Scenario in YAML")).to_have_value(re.compile(r'topic: "the old bridge: 老桥"'))
    page.get_by_role("button", name="Start the run").click()
    page.wait_for_url(re.compile("#/run/"))
    expect(page.get_by_role("main")).to_contain_text("They say it's closed!", timeout=60_000)


def test_the_editor_shows_a_mistake_at_its_line(site: Site, visit: Visiting) -> None:
    page = visit(site, "new?way=editor").page
    start = page.get_by_role("button", name="Start the run")
    page.get_by_label("Scenario in YAML").fill("topic: the old bridge\npopulation: {cont: 3}\nrounds: 4\n")
    expect(page.get_by_role("button", name=re.compile("line 2.*did you mean 'count'"))).to_be_visible()
    expect(start).to_be_disabled()
    page.get_by_label("Scenario in YAML").fill("topic: the old bridge\npopulation: {count: 3}\nrounds: 4\n")
    expect(page.get_by_text("Nothing is wrong with it.")).to_be_visible()
    expect(start).to_be_enabled()


def test_what_mirofish_prepared_becomes_a_run(own_site: Site, visit: Visiting) -> None:
    page = visit(own_site, "new?way=mirofish").page
    page.get_by_label("Choose files").set_input_files(sorted(PREPARED.iterdir()))
    page.get_by_role("button", name="Make the run and start it").click()
    page.wait_for_url(re.compile("#/run/"))


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("way", ["examples", "form", "editor", "mirofish"])
def test_every_way_to_start_is_accessible_and_fits(site: Site, visit: Visiting, way: str, size: dict[str, int]) -> None:
    seen = visit(site, f"new?way={way}&example=misinformation", size)
    expect(seen.page.get_by_role("heading", level=1)).to_be_visible()
    assert seen.find_sideways() == []
    assert seen.find_barriers() == []
