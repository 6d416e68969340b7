"""The first page: from nothing to a run with one click, and what can be done with runs in their list."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.conftest import PHONE, Site, Visiting, serve_folder

TOKEN = "a-token-that-is-long-enough"


def test_one_click_starts_the_demo_and_it_comes_alive(own_site: Site, visit: Visiting) -> None:
    page = visit(own_site).page
    page.get_by_role("button", name=re.compile("demo", re.IGNORECASE)).first.click()
    page.wait_for_url(re.compile("#/run/"))
    expect(page.get_by_text("Round", exact=False).first).to_be_visible()
    # Posts come in by themselves.
    expect(page.get_by_text("I hear the old bridge will be torn down").first).to_be_visible(timeout=60_000)


def test_one_click_starts_the_demo_on_a_phone(own_site: Site, visit: Visiting) -> None:
    page = visit(own_site, size=PHONE).page
    page.get_by_role("button", name=re.compile("demo", re.IGNORECASE)).first.click()
    page.wait_for_url(re.compile("#/run/"))
    expect(page.get_by_role("main")).to_be_visible()


def test_runs_are_searched_by_what_stands_in_their_row(visit: Visiting, site: Site) -> None:
    page = visit(site).page
    expect(page.get_by_role("link", name="bridge", exact=True)).to_be_visible()
    page.get_by_label("Search runs").fill("kettle")
    expect(page.get_by_role("link", name="focus-group")).to_be_visible()
    expect(page.get_by_role("link", name="bridge", exact=True)).to_have_count(0)


def test_a_run_is_opened_by_keyboard_alone(visit: Visiting, site: Site) -> None:
    page = visit(site).page
    page.get_by_role("link", name="focus-group").focus()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("#/run/focus-group"))


def test_a_run_is_archived_from_its_row(own_site: Site, visit: Visiting) -> None:
    page = visit(own_site).page
    page.get_by_role("button", name=re.compile("demo", re.IGNORECASE)).first.click()
    page.wait_for_url(re.compile("#/run/"))
    identity = page.url.rpartition("/")[2].partition("?")[0]
    page.request.post(f"{own_site.url}/api/simulation/stop", data={"simulation_id": identity})
    page.goto(f"{own_site.url}/#/")
    page.get_by_role("button", name=re.compile("What can be done")).click()
    page.get_by_role("menuitem", name="Archive").click()
    expect(page.get_by_text("is archived")).to_be_visible()
    page.goto(f"{own_site.url}/#/?show=archived")
    expect(page.get_by_role("link", name="rumour").first).to_be_visible()


def test_a_server_with_a_token_asks_for_it_once(visit: Visiting, site: Site) -> None:
    with serve_folder(site.folder, SHOAL_TOKEN=TOKEN) as guarded:
        seen = visit(guarded, refusals=(401,))
        seen.page.get_by_label("Token").fill("not-this-one-surely")
        seen.page.get_by_role("button", name="Sign in").click()
        expect(seen.page.get_by_text("not the token")).to_be_visible()
        seen.page.get_by_label("Token").fill(TOKEN)
        seen.page.get_by_role("button", name="Sign in").click()
        expect(seen.page.get_by_role("link", name="bridge", exact=True)).to_be_visible()
        seen.page.close()
