"""The page of a run: one timeline governs it, worlds are feeds and conversations, and it is alive while the run is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import DESKTOP, PHONE, Site, Visiting, serve_folder

POSTS = "article[aria-label^='Post by']"
#: Long enough to be watched: offline people act thousands of times a second.
LONG_RUN = {
    "name": "long",
    "topic": "the old bridge",
    "population": [{"count": 300}],
    "rounds": 2_000,
    "time": {"daily_rhythm": False},
    "claims": [{"id": "closing", "text": "The old bridge is closed for good."}],
    "worlds": ["twitter", "reddit"],
    "events": [{"post": "They close it for good!", "by": "most_followed", "supports": "closing"}],
    "seed": 3,
}


def find_slider(page: Page) -> Locator:
    return page.get_by_role("slider", name="Round")


def read_round(page: Page) -> int:
    return int(find_slider(page).get_attribute("aria-valuenow") or "")


def ask(page: Page, site: Site, route: str, body: dict[str, Any]) -> Any:
    answer = page.request.post(f"{site.url}/api/simulation/{route}", data=body)
    assert answer.ok, answer.text()
    return answer.json()["data"]


def start_long_run(page: Page, site: Site) -> str:
    identity: str = ask(page, site, "create", {"scenario": LONG_RUN})["simulation_id"]
    ask(page, site, "start", {"simulation_id": identity})
    return identity


# the timeline


def test_feed_people_and_figures_follow_the_timeline(visit: Visiting, site: Site) -> None:
    page = visit(site, "run/bridge").page
    assert read_round(page) == 12
    find_slider(page).focus()
    page.keyboard.press("Home")
    assert read_round(page) == 0
    expect(page.get_by_role("region", name="Figures").get_by_text("round 0", exact=True)).to_be_visible()
    expect(page.locator(POSTS)).to_have_count(2)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert read_round(page) == 2
    expect(page.get_by_text("incomprehensibilities").locator("visible=true").first).to_be_visible()
    page.wait_for_url(re.compile("round=2"))
    page.get_by_role("button", name="Newest").click()
    assert read_round(page) == 12


def test_the_timeline_is_dragged_and_its_marks_are_clicked(visit: Visiting, site: Site) -> None:
    page = visit(site, "run/bridge").page
    box = page.locator(".strip").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 30)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 30, steps=5)
    page.mouse.up()
    assert read_round(page) == 6
    page.get_by_role("list", name="What happened").get_by_role("button", name=re.compile("stays open")).click()
    assert read_round(page) == 5
    assert "stays open" in (find_slider(page).get_attribute("aria-valuetext") or "")


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["laptop", "phone"])
def test_labels_on_the_timeline_never_touch(visit: Visiting, site: Site, size: dict[str, int]) -> None:
    page = visit(site, "run/bridge", size).page
    boxes = [label.bounding_box() for label in page.locator(".timeline .label").all()]
    assert boxes
    for at, one in enumerate(boxes):
        for other in boxes[at + 1 :]:
            assert one is not None
            assert other is not None
            apart = one["x"] + one["width"] <= other["x"] or other["x"] + other["width"] <= one["x"]
            assert apart or abs(one["y"] - other["y"]) >= min(one["height"], other["height"])


def test_a_run_is_played_from_its_beginning(visit: Visiting, site: Site) -> None:
    page = visit(site, "run/bridge").page
    page.get_by_role("button", name="Play from the start").click()
    page.wait_for_function("() => Number(document.querySelector('[role=slider]').ariaValueNow) === 3")
    page.get_by_role("button", name="Stop playing").click()
    assert read_round(page) < 12


def test_an_address_opens_the_page_at_a_round_and_a_person(visit: Visiting, site: Site) -> None:
    page = visit(site, "run/bridge?round=4&agent=40&world=reddit").page
    assert read_round(page) == 4
    expect(page.get_by_role("region", name="About 李小龙")).to_be_visible()
    expect(page.get_by_role("tab", name="reddit")).to_have_attribute("aria-selected", "true")


# worlds


def test_a_feed_is_sorted_and_filtered_by_claim_and_person(visit: Visiting, site: Site) -> None:
    page = visit(site, "run/bridge").page
    page.get_by_label("About which claim").select_option("closing")
    expect(page.locator(POSTS).first).to_be_visible()
    page.wait_for_function(
        "() => [...document.querySelectorAll(\"article[aria-label^='Post by']\")]"
        ".every((post) => /(supports|denies|questions) the claim/.test(post.innerText))"
    )
    expect(page.get_by_text(re.compile("(supports|denies) the claim")).first).to_be_visible()
    page.get_by_label("About which claim").select_option("")
    page.get_by_role("tab", name="Most liked").click()
    page.wait_for_function(
        """() => {
          const likes = [...document.querySelectorAll("footer [title=Likes]")].map((one) => parseInt(one.innerText));
          return likes.length > 3 && likes[0] > 0 && likes.every((count, at) => at === 0 || count <= likes[at - 1]);
        }"""
    )


def test_comments_are_read_below_their_post(visit: Visiting, site: Site) -> None:
    page = visit(site, "run/bridge").page
    page.get_by_role("tab", name="Most liked").click()
    opener = page.locator("article footer button[aria-expanded=false]:not([disabled])").first
    opener.click()
    expect(page.locator(".thread li").first).to_be_visible()


def test_what_is_behind_a_post_is_one_click_away(visit: Visiting, site: Site) -> None:
    page = visit(site, "run/bridge").page
    page.get_by_role("button", name=re.compile("^why")).first.click()
    dialog = page.get_by_role("dialog", name=re.compile("^Why did"))
    expect(dialog.get_by_text("What the offline mind weighed")).to_be_visible(timeout=60_000)
    dialog.get_by_role("tab", name="Result").click()
    expect(dialog.get_by_role("listitem").first).to_be_visible()
    dialog.get_by_role("button", name="Close").last.click()
    expect(dialog).to_have_count(0)


def test_a_room_shows_thoughts_apart_and_what_came_from_outside(visit: Visiting, site: Site) -> None:
    page = visit(site, "run/focus-group?round=1").page
    talk = page.get_by_role("log")
    talk.evaluate("(box) => box.scrollTo(0, 0)")
    expect(talk.get_by_text("Welcome. We would like to know")).to_be_visible()
    expect(talk.get_by_role("article", name=re.compile("thinks$")).first).to_be_visible()


def test_a_dialogue_says_who_speaks_to_whom_in_which_scene(visit: Visiting, site: Site) -> None:
    page = visit(site, "run/negotiation?round=3").page
    expect(page.get_by_text("On the jetty, early in the morning.", exact=True)).to_be_visible()
    expect(page.get_by_role("article", name="Ada to Ben").first).to_be_visible()
    expect(page.get_by_role("article", name="Ben to Ada").first).to_be_visible()


# people


def test_a_person_is_found_and_selected_everywhere(visit: Visiting, site: Site) -> None:
    page = visit(site, "run/bridge").page
    author = page.locator(f"{POSTS} header .name").first
    name = author.inner_text()
    author.click()
    panel = page.get_by_role("region", name=f"About {name}")
    expect(panel.get_by_text(re.compile("Acted"))).to_be_visible()
    expect(page.locator("article.selected").first).to_be_visible()
    page.get_by_role("button", name=f"only {name}").click()
    page.wait_for_function(
        "() => [...document.querySelectorAll(\"article[aria-label^='Post by']\")]"
        ".every((post) => post.classList.contains('selected'))"
    )
    panel.get_by_role("button", name="Close").click()
    expect(panel).to_have_count(0)


def test_a_question_that_cannot_be_answered_says_why(visit: Visiting, site: Site) -> None:
    seen = visit(site, "run/bridge?agent=3")
    seen.refusals.add(400)
    seen.page.get_by_label(re.compile("^A question to")).fill("Why did you say so?")
    seen.page.get_by_role("button", name="Ask").click()
    # People of an offline run speak through a model, and none was named.
    expect(seen.page.get_by_role("alert").get_by_text("model")).to_be_visible(timeout=60_000)


# a phone


def test_on_a_phone_figures_come_first_and_a_touch_moves_time(visit: Visiting, site: Site) -> None:
    page = visit(site, "run/bridge", PHONE).page
    figures, feed = (page.get_by_role("region", name=name).bounding_box() for name in ("Figures", "twitter"))
    assert figures is not None
    assert feed is not None
    assert figures["y"] < feed["y"]
    box = page.locator(".strip").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 20)
    assert read_round(page) == 6
    page.get_by_role("tab", name="People").click()
    page.get_by_label("Search people").fill("李小龙")
    page.get_by_role("button", name=re.compile("李小龙")).click()
    expect(page.get_by_role("dialog", name="李小龙")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


# while it goes on


def test_new_posts_are_announced_and_do_not_move_what_is_read(own_site: Site, visit: Visiting) -> None:
    page = visit(own_site).page
    identity = start_long_run(page, own_site)
    page.goto(f"{own_site.url}/#/run/{identity}")
    expect(page.locator(POSTS).nth(2)).to_be_visible(timeout=60_000)
    first = page.locator(POSTS).first.inner_text()
    announcement = page.get_by_role("button", name=re.compile("new posts?$"))
    expect(announcement).to_be_visible(timeout=60_000)
    before = read_round(page)
    page.wait_for_function(f"() => Number(document.querySelector('[role=slider]').ariaValueNow) > {before}")
    assert page.locator(POSTS).first.locator(".text").inner_text() in first
    announcement.click()
    page.wait_for_function(
        "(text) => document.querySelector(\"article[aria-label^='Post by']\").innerText !== text", arg=first
    )


def test_a_run_is_paused_continued_and_stopped(own_site: Site, visit: Visiting) -> None:
    page = visit(own_site).page
    identity = start_long_run(page, own_site)
    page.goto(f"{own_site.url}/#/run/{identity}")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("The run is paused")).to_be_visible(timeout=60_000)
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible(timeout=60_000)
    page.get_by_role("button", name="More that can be done").click()
    page.get_by_role("menuitem", name="Stop").click()
    expect(page.get_by_role("button", name="Resume")).to_be_visible(timeout=60_000)


def test_a_page_lives_through_a_restart_of_the_server(tmp_path: Path, visit: Visiting) -> None:
    folder = tmp_path / "runs"
    with serve_folder(folder) as first:
        port = first.url.rpartition(":")[2]
        # A server that leaves breaks off what takes longer than its grace, as happens on a busy machine.
        page = visit(first, refusals=(503,)).page
        identity = start_long_run(page, first)
        page.goto(f"{first.url}/#/run/{identity}")
        page.wait_for_function("() => Number(document.querySelector('[role=slider]')?.ariaValueNow) > 2")
        # The run goes on without its server, and so it does for the next one.
        ask(page, first, "pause", {"simulation_id": identity})
        before = read_round(page)
    expect(page.get_by_text("connecting…")).to_be_visible()
    with serve_folder(folder, "--port", port) as second:
        expect(page.get_by_text("connecting…")).to_have_count(0, timeout=60_000)
        ask(page, second, "start", {"simulation_id": identity})
        page.wait_for_function(
            f"() => Number(document.querySelector('[role=slider]').ariaValueNow) > {before}", timeout=60_000
        )
        ask(page, second, "stop", {"simulation_id": identity})


def test_a_failed_run_says_why_and_with_which_command_it_goes_on(own_site: Site, visit: Visiting) -> None:
    page = visit(own_site).page
    identity = start_long_run(page, own_site)
    ask(page, own_site, "stop", {"simulation_id": identity})
    state = own_site.folder / identity / "run_state.json"
    content = {
        **json.loads(state.read_text()),
        "runner_status": "failed",
        "error": "The key is wrong.",
        "resumable": True,
    }
    state.write_text(json.dumps(content))
    page.goto(f"{own_site.url}/#/run/{identity}")
    expect(page.get_by_role("alert").get_by_text("The key is wrong.")).to_be_visible()
    expect(page.get_by_text(f"shoal resume {identity}")).to_be_visible()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
