"""A person takes a seat from the page of a run, sees what the agent sees, and decides."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.conftest import DESKTOP, PHONE, Site, Visiting
from tests.browser.test_run import ask
from tests.server.conftest import VILLAGE

TALK: dict[str, Any] = {**VILLAGE, "name": "talk", "events": [], "rounds": 6}
TALK["worlds"] = {"talk": {"kind": "dialogue", "pairs": [["Ada", "Bo"]]}}


def create(page: Page, site: Site, scenario: dict[str, Any]) -> str:
    identity: str = ask(page, site, "create", {"scenario": scenario})["simulation_id"]
    return identity


def test_a_person_sits_down_corrects_a_mistake_posts_and_gives_the_seat_back(own_site: Site, visit: Visiting) -> None:
    seen = visit(own_site, refusals=(409,))
    page = seen.page
    identity = create(page, own_site, VILLAGE)
    seen.open(f"run/{identity}")
    page.get_by_role("button", name="More that can be done").click()
    page.get_by_role("menuitem", name="Take a seat…").click()
    page.get_by_role("combobox", name="Search people").fill("Ada")
    page.get_by_role("option", name=re.compile("Ada")).click()
    page.get_by_role("radio", name="15 minutes").check()
    page.get_by_role("button", name="Sit down and start").click()

    # What Ada sees, and how long there is time for it.
    expect(page.get_by_role("region", name="What Ada sees").get_by_text("The bridge is closed.")).to_be_visible()
    expect(page.get_by_role("timer")).to_have_text(re.compile(r"1[45]:\d\d"))
    assert seen.find_barriers() == []
    assert seen.find_sideways() == []

    # A comment without words is refused beside its field, where it is then written.
    page.get_by_role("button", name="Comment what Bo wrote").click()
    content = page.get_by_role("textbox", name="Content")
    expect(content).to_be_focused()
    page.get_by_role("button", name="Do it").click()
    expect(page.get_by_text("Needs content (a text)")).to_be_visible()
    expect(content).to_be_focused()

    # Others are told for whom they wait, and that the seat is taken.
    other = visit(own_site, f"run/{identity}")
    expect(other.page.get_by_text(re.compile("Waiting for the person in Ada’s seat since .*, until"))).to_be_visible()
    other.page.get_by_role("link", name="Open the seat").click()
    expect(other.page.get_by_text("Ada’s seat is taken.")).to_be_visible()
    expect(other.page.get_by_role("button", name="Do nothing this turn")).to_be_disabled()

    content.fill("For how long?")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("round 2 of 3")).to_be_visible()
    expect(page.get_by_role("region", name="What came of it").get_by_text("For how long?")).to_be_visible()
    page.get_by_role("button", name="Give the seat back").click()
    expect(page.get_by_text("Ada decides again.")).to_be_visible()
    page.get_by_role("link", name="village").click()
    expect(page.get_by_text("completed")).to_be_visible()


def test_on_a_phone_a_person_speaks_in_a_conversation(own_site: Site, visit: Visiting) -> None:
    seen = visit(own_site, size=PHONE, scheme="dark")
    page = seen.page
    identity = create(page, own_site, TALK)
    seen.open(f"run/{identity}/seat/0")
    page.get_by_role("button", name="Take the seat…").click()
    page.get_by_role("button", name="Sit down and start").click()
    words = page.get_by_role("textbox", name="Content")
    words.fill("Good morning. Did you sleep well?")
    assert seen.find_sideways() == []
    assert seen.find_barriers() == []
    page.get_by_role("button", name="Do it").click()
    said = page.get_by_role("region", name="What Ada sees")
    expect(said.get_by_text("Good morning. Did you sleep well?")).to_be_visible()
    expect(words).to_have_value("")


def test_a_seat_is_empty_where_a_run_is_over(visit: Visiting, site: Site) -> None:
    seen = visit(site, "run/bridge/seat/3", DESKTOP)
    expect(seen.page.get_by_text("This run is over.")).to_be_visible()
    assert seen.find_barriers() == []
