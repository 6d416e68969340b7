"""Where runs are started from: a paragraph, the form, the editor, and what MiroFish prepared."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import FilePayload, expect

from tests.browser.conftest import DESKTOP, PHONE, ROOT, Site, Visiting

PREPARED = ROOT / "examples" / "mirofish"
STORY = (
    "Lena Fischer, spokeswoman for Green Eastport, praised the closure of the old bridge. Ann Wood voted against it."
)


def test_a_paragraph_and_a_document_become_a_population_that_runs(own_site: Site, visit: Visiting) -> None:
    seen = visit(own_site, "new")
    page = seen.page
    begin = page.get_by_role("button", name="Find the people")
    expect(begin).to_be_disabled()
    page.get_by_role("button", name="Use the example").click()
    story: FilePayload = {"name": "story.md", "mimeType": "text/markdown", "buffer": STORY.encode()}
    picture: FilePayload = {"name": "picture.txt", "mimeType": "text/plain", "buffer": bytes([0xFF, 0xD8, 0xFF])}
    page.get_by_label("Add documents").set_input_files([story, picture])
    expect(page.get_by_role("alert")).to_have_text(
        "picture.txt is no text in UTF-8. Save it as plain text or Markdown."
    )
    expect(page.get_by_role("group", name="Documents")).to_contain_text("story.md")
    people = page.get_by_label(re.compile("^People"))
    people.fill("0")
    expect(begin).to_be_disabled()
    people.fill("30")
    page.get_by_label(re.compile("^Rounds")).fill("3")
    page.get_by_label("What do you want to know?").press("Control+Enter")
    # Whoever leaves comes back by New: the work has gone on, and is listed.
    page.wait_for_url(re.compile("id=sim_"))
    seen.open("")
    seen.open("new")
    page.get_by_role("link", name=re.compile("^How will the town react")).click()
    found = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="Lena Fischer"))
    expect(found.get_by_role("blockquote")).to_contain_text("praised the closure of the old bridge")
    expect(found).to_contain_text("story.md, paragraph 1")
    expect(page.get_by_role("heading", name="Tom Brennan")).to_be_visible()
    expect(page.get_by_text("topic: the closure of the old bridge")).to_be_visible()
    assert seen.find_barriers() == []
    page.get_by_role("button", name="Start the run").click()
    page.wait_for_url(re.compile("#/run/sim_"))
    expect(page.get_by_role("main")).to_contain_text("They are killing this street", timeout=60_000)


def test_what_a_paragraph_made_can_be_edited_first(own_site: Site, visit: Visiting) -> None:
    seen = visit(own_site, "new?way=paragraph", PHONE, "dark")
    page = seen.page
    page.get_by_role("button", name="Use the example").click()
    page.get_by_role("button", name="Find the people").click()
    expect(page.get_by_role("button", name="Start the run")).to_be_visible(timeout=60_000)
    assert seen.find_sideways() == []
    assert seen.find_barriers() == []
    page.get_by_role("link", name="Edit the scenario").click()
    expect(page.get_by_label("Scenario in YAML")).to_have_value(re.compile("name: Helen Marsh"))
    expect(page.get_by_text("Nothing is wrong with it.")).to_be_visible()
    page.get_by_role("button", name="Start the run").click()
    page.wait_for_url(re.compile("#/run/sim_"))


def test_a_preparation_that_stops_says_why_and_can_go_on(own_site: Site, visit: Visiting) -> None:
    page = visit(own_site, "new?way=paragraph", refusals=(409,)).page
    page.get_by_label("What do you want to know?").fill("A tax on sugar")
    # Nothing listens there.
    page.get_by_label("Language model").fill("nobody/knows-it")
    page.get_by_role("button", name="Find the people").click()
    expect(page.get_by_role("alert").filter(has_text="nobody")).to_be_visible(timeout=60_000)
    expect(page.get_by_role("button", name="Go on")).to_be_enabled()


def test_a_preparation_that_is_not_there_says_so(site: Site, visit: Visiting) -> None:
    page = visit(site, "new?way=paragraph&id=sim_nowhere", refusals=(404,)).page
    expect(page.get_by_text("There is no such preparation")).to_be_visible()


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
@pytest.mark.parametrize("way", ["paragraph", "examples", "form", "editor", "mirofish"])
def test_every_way_to_start_is_accessible_and_fits(site: Site, visit: Visiting, way: str, size: dict[str, int]) -> None:
    seen = visit(site, f"new?way={way}&example=misinformation", size)
    expect(seen.page.get_by_role("heading", level=1)).to_be_visible()
    assert seen.find_sideways() == []
    assert seen.find_barriers() == []
