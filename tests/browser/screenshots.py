"""Makes the pictures of the pages in the README and the documentation: python -m tests.browser.screenshots."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, sync_playwright

from shoal.runs.operations import create_run, work_on_run
from shoal.scenario.loading import load
from tests.browser.conftest import FLAGS, ROOT, SETTLED, Site, find_chromium, serve_folder
from tests.browser.runs import EXAMPLES

#: Name of the picture -> address of the page, and the size of the window.
PICTURES = {
    "page-run": ("run/misinformation?round=24", (1280, 800)),
    "page-phone": ("run/misinformation?round=24", (390, 780)),
}
#: Drawings that move come to rest in this time.
_REST_MS = 2_500


def make_runs(folder: Path) -> None:
    """Make the run that the pictures show."""
    run = create_run(load(EXAMPLES / "misinformation.yaml"), folder / "misinformation")
    asyncio.run(work_on_run(run, asyncio.Event()))


def take_pictures(browser: Browser, site: Site) -> None:
    for name, (address, (width, height)) in PICTURES.items():
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
        page.goto(f"{site.url}/#/{address}")
        page.wait_for_function(SETTLED)
        page.wait_for_timeout(_REST_MS)
        page.screenshot(path=ROOT / "docs" / f"{name}.png")
        page.close()
        print(f"docs/{name}.png")


def main() -> None:
    """Make all pictures anew."""
    with TemporaryDirectory() as folder:
        make_runs(Path(folder) / "runs")
        with serve_folder(Path(folder) / "runs") as site, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
            take_pictures(browser, site)
            browser.close()


if __name__ == "__main__":
    main()
