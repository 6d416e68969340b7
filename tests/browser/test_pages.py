"""Every page, on a laptop and on a phone, in light and dark: complete, in its frame, for everybody, and by itself."""

from __future__ import annotations

import pytest
from playwright.sync_api import Response, expect

from tests.browser.conftest import DESKTOP, PHONE, Site, Visiting

ADDRESSES = [
    "",
    "?show=archived",
    "new",
    "run/bridge",
    "run/bridge?round=4",
    "run/focus-group",
    "run/negotiation",
    "run/waiting",
    "run/bridge/agent/41",
    "run/bridge/network",
    "run/bridge/graph",
    "run/bridge/survey",
    "run/waiting/network",
    "run/negotiation/agent/0",
    "compare/bridge/bridge-fork-1",
    "experiments",
]
#: Compressed, without the view of the graph.
MAX_FIRST_LOAD_BYTES = 300_000
SIZES = {"laptop": DESKTOP, "phone": PHONE}


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize(("size", "scheme"), [("laptop", "light"), ("phone", "dark")])
def test_a_page_is_in_its_frame_and_for_everybody(
    visit: Visiting, site: Site, address: str, size: str, scheme: str
) -> None:
    seen = visit(site, address, SIZES[size], scheme)
    assert seen.find_sideways() == []
    assert seen.find_barriers() == []


@pytest.mark.parametrize(("size", "scheme"), [("laptop", "dark"), ("phone", "light")])
def test_the_run_page_is_for_everybody_in_the_other_colours(
    visit: Visiting, site: Site, size: str, scheme: str
) -> None:
    assert visit(site, "run/bridge", SIZES[size], scheme).find_barriers() == []


def test_texts_of_agents_are_shown_and_never_run(visit: Visiting, site: Site) -> None:
    seen = visit(site, "run/bridge?round=0")
    assert seen.page.get_by_text("<img src=x onerror=").first.is_visible()
    assert seen.page.title() != "1"


def test_a_page_that_is_not_there_says_so(visit: Visiting, site: Site) -> None:
    seen = visit(site)
    seen.page.goto(f"{site.url}/#/nowhere/at/all")
    expect(seen.page.get_by_text("There is no such page")).to_be_visible()


def test_a_run_that_is_not_there_says_so(visit: Visiting, site: Site) -> None:
    seen = visit(site, "run/nothing", refusals=(404,))
    assert seen.page.get_by_role("alert").first.is_visible()


@pytest.mark.parametrize("address", ["", "run/focus-group"])
def test_the_first_load_is_small(visit: Visiting, site: Site, address: str) -> None:
    """All that a browser fetches before it can show a page, as it comes over the wire."""
    seen = visit(site)
    sizes: dict[str, int] = {}

    def note(response: Response) -> None:
        if "/api/" not in response.url:
            sizes[response.url] = int(response.headers["content-length"])

    seen.page.on("response", note)
    seen.page.goto("about:blank")
    seen.open(address)
    assert len(sizes) > 2
    assert sum(sizes.values()) < MAX_FIRST_LOAD_BYTES, sizes
