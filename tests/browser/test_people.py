"""What a person does on the pages about people: the network, one of them, surveys, and what the graph remembers."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from shoal.python.rehearsal import rehearse
from tests.browser.conftest import PHONE, Site, Visiting, serve_folder
from tests.browser.runs import HOSTILE, LONG, SOCIAL


def choose_by_keyboard(page: Page) -> str:
    """Go to the most important person of a drawing, and return the name that is then explained."""
    drawing = page.get_by_role("application")
    drawing.focus()
    page.keyboard.press("ArrowRight")
    name = page.locator(".person .name a")
    expect(name).to_be_visible()
    return name.inner_text()


def test_the_network_is_walked_through_by_keyboard_and_explains_everybody(visit: Visiting, site: Site) -> None:
    page = visit(site, "run/bridge/network").page
    first = choose_by_keyboard(page)
    assert re.search(r"\d+ followers?; follows \d+\.", page.locator(".person .words").inner_text())
    assert re.search(r"agent=\d+", page.url)
    for key in ("ArrowLeft", "ArrowDown", "ArrowUp", "ArrowRight"):
        page.keyboard.press(key)
    page.keyboard.press("+")
    expect(page.get_by_label("Show all")).to_be_visible()
    page.keyboard.press("0")
    expect(page.get_by_label("Show all")).to_be_hidden()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/agent/\d+"))
    assert first


def test_the_path_of_a_claim_is_shown_with_its_author(visit: Visiting, site: Site) -> None:
    page = visit(site, "run/bridge/network").page
    page.get_by_label("Path of").select_option("closing")
    expect(page.get_by_text("line: it passed here")).to_be_visible()
    expect(page.get_by_text("do not believe it")).to_be_visible()
    page.get_by_role("button", name="List").click()
    page.locator(".stage .rows").get_by_role("button").first.click()
    expect(page.locator(".person")).to_contain_text(re.compile(r"Started it|Passed it on|Wrote of it|Reacted|nothing"))
    assert "claim=closing" in page.url


def test_the_network_follows_the_round(visit: Visiting, site: Site) -> None:
    page = visit(site, "run/bridge/network").page
    choose_by_keyboard(page)
    late = page.locator(".person").inner_text()
    page.get_by_role("slider", name="Round").fill("1")
    expect(page.get_by_text("after round 1 of 12")).to_be_visible()
    expect(page.locator(".person")).not_to_have_text(late)


def test_a_finger_chooses_a_person_on_a_phone(visit: Visiting, site: Site) -> None:
    page = visit(site, "run/negotiation/network", PHONE).page
    choose_by_keyboard(page)
    page.keyboard.press("Escape")
    expect(page.locator(".person .name")).to_have_count(0)
    box = page.get_by_role("application").bounding_box()
    assert box is not None
    # Two people: each is at one side of the picture.
    for x in range(20, int(box["width"]) - 10, 12):
        page.mouse.click(box["x"] + x, box["y"] + box["height"] / 2)
        if "agent=" in page.evaluate("location.hash"):
            break
    expect(page.locator(".person .name")).to_contain_text(re.compile("Ada|Ben"))


@pytest.mark.parametrize("world", ["twitter", "reddit"])
def test_a_turn_opens_what_was_seen_and_why(visit: Visiting, site: Site, world: str) -> None:
    page = visit(site, f"run/bridge/agent/3?world={world}").page
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.locator("ol button[aria-expanded]").first.click()
    expect(page.get_by_role("tab", name="Saw")).to_be_visible()
    page.get_by_role("tab", name="Why").click()
    expect(page.get_by_text("It is no language model.")).to_be_visible()
    page.get_by_role("tab", name="Result").click()
    assert "turn=" in page.url


def test_texts_of_other_scripts_and_hostile_ones_are_shown_as_they_are(visit: Visiting, site: Site) -> None:
    page = visit(site, "run/bridge/agent/3").page
    expect(page.get_by_text(HOSTILE).first).to_be_visible()
    assert page.title() != "1"
    for agent, name, words in (
        (40, "李小龙", "这座老桥真的要拆了吗"),
        (41, "عائشة", "الجسر القديم"),
        (42, "Hohenfels", LONG),
    ):
        seen = visit(site, f"run/bridge/agent/{agent}")
        expect(seen.page.get_by_role("heading", level=1)).to_contain_text(name)
        expect(seen.page.get_by_text(words).first).to_be_visible()
        assert seen.find_sideways() == []


def test_memory_follows_the_round(visit: Visiting, site: Site) -> None:
    page = visit(site, "run/bridge/agent/5?side=memory&round=2").page
    expect(page.get_by_text("After round 2.")).to_be_visible()
    page.get_by_role("slider", name="Round").fill("9")
    expect(page.get_by_text("After round 9.")).to_be_visible()


def test_a_person_or_run_that_is_not_there_says_so(visit: Visiting, site: Site) -> None:
    for address in ("run/bridge/agent/999", "run/nothing/network", "run/nothing/graph"):
        seen = visit(site, address, refusals=(404,))
        expect(seen.page.get_by_role("alert").first).to_be_visible()


def test_the_graph_memory_answers_down_to_the_episode(visit: Visiting, site: Site) -> None:
    page = visit(site, "run/bridge/graph").page
    page.get_by_label("Ask a question").fill("who supports the old bridge")
    page.get_by_role("button", name="Ask", exact=True).click()
    page.locator(".answer details summary").first.click()
    page.locator(".answer details[open] a").first.click()
    page.wait_for_url(re.compile(r"/agent/\d+\?.*turn="))
    expect(page.get_by_role("tab", name="Saw")).to_be_visible()


@pytest.fixture
def answering_site(tmp_path: Path) -> Iterator[Site]:
    """A server whose language model is a rehearsal."""
    scenario, shoal = tmp_path / "bridge.json", Path(sys.executable).with_name("shoal")
    scenario.write_text(json.dumps({"name": "bridge", **SOCIAL, "rounds": 3, "events": []}))
    subprocess.run([shoal, "run", scenario, "--out", tmp_path / "runs" / "bridge", "--quiet"], check=True)
    with (
        rehearse(seed=3) as model,
        serve_folder(tmp_path / "runs", OPENAI_BASE_URL=model.base_url, OPENAI_API_KEY="rehearsal") as found,
    ):
        yield found


def test_a_survey_is_asked_charted_and_downloaded(answering_site: Site, visit: Visiting) -> None:
    seen = visit(answering_site, "run/bridge/survey")
    page = seen.page
    page.get_by_label("How many").fill("5")
    page.get_by_label("Question 1", exact=True).fill("Will you go?")
    page.get_by_label("How question 1 is answered").select_option("yes/no")
    page.get_by_role("button", name="One more question").click()
    page.get_by_label("Language model").fill("openai/gpt-4.1-mini")
    page.get_by_role("button", name="Ask 5 people").click()
    expect(page.get_by_text("There is no question yet.")).to_be_visible()
    page.get_by_label("Question 2", exact=True).fill("Why?")
    page.get_by_role("button", name="Ask 5 people").click()
    expect(page.get_by_text("5 answers as of round 3")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    assert download.value.path().read_text().startswith("agent,name,iteration,model,q1,q2,error\n")
    assert seen.find_barriers() == []


def test_a_person_answers_as_of_now_and_of_then(answering_site: Site, visit: Visiting) -> None:
    page = visit(answering_site, "run/bridge/agent/4").page
    expect(page.get_by_text("has an offline mind without words")).to_be_visible()
    page.get_by_label("Language model").fill("openai/gpt-4.1-mini")
    for round in ("3", "1"):
        page.get_by_role("slider", name="Round").fill(round)
        page.get_by_role("textbox", name=re.compile("^Ask ")).fill(f"What do you think in round {round}?")
        page.keyboard.press("Enter")
        answers = page.locator(".answer:not(.waiting)")
        expect(answers).to_have_count(1 if round == "3" else 2, timeout=60_000)
        assert answers.last.inner_text()
