"""A real browser on a real server: Chromium from the system's packages, and `shoal serve` on a folder of runs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, Response, sync_playwright

from shoal.experiments.live.process import find_process
from shoal.runs.directory import RunDirectory
from shoal.runs.launchers import find_worker
from shoal.server.api.settings import PAGES

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
ROOT = Path(__file__).parent.parent.parent
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
#: A laptop's window and a phone.
DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
_TIMEOUT_MS = 20_000


def find_chromium() -> str:
    """Find the browser, and install it from the system's packages where it is missing and that is allowed."""
    for _ in range(2):
        for name in NAMES:
            if (path := shutil.which(name)) is not None:
                return path
        if os.geteuid() != 0 or shutil.which("apt-get") is None:
            break
        for verb in (["update"], ["install", "chromium"]):
            subprocess.run(["apt-get", "-o", "DPkg::Lock::Timeout=300", "-qq", "-y", *verb], check=False)
    pytest.fail("these tests need the browser Chromium: install it from your system's packages (apt install chromium)")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for a module. Each page gets a context, as if nobody had ever been there.

    While it is open, Playwright runs an event loop in this thread, and tests of other modules could start none.
    """
    if not (PAGES / "index.html").is_file():
        pytest.fail("the pages are not built: run scripts/pages, or scripts/install without SKIP_FRONTEND")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        yield browser
        browser.close()


@dataclass
class Site:
    """The address of the pages, and the folder with their runs."""

    url: str
    folder: Path


@contextmanager
def serve_folder(folder: Path, *options: str, **environ: str) -> Iterator[Site]:
    """Serve a folder for as long as it is needed. No worker of its runs outlives that."""
    shoal = Path(sys.executable).with_name("shoal")
    results = folder.parent / "results"
    command: list[str | Path] = [shoal, "serve", "--runs", folder, "--results", results, "--port", "0", *options]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, **environ})
    assert server.stdout is not None
    try:
        yield Site(server.stdout.readline().decode().split()[-1], folder)
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(30)
        server.stdout.close()
        for experiment in results.glob("*"):
            if (pid := find_process(experiment)) is not None:
                os.killpg(pid, signal.SIGKILL)
        for lock in folder.glob("*/worker.lock"):
            if (worker := find_worker(RunDirectory(lock.parent))) is not None:
                os.killpg(worker.pid, signal.SIGKILL)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, _slots_folder: Path) -> Iterator[Site]:
    """A server with finished runs of every kind, which tests only look at."""
    folder = tmp_path_factory.mktemp("site") / "runs"
    # In a process of its own: Playwright's event loop is the one of this thread.
    subprocess.run([sys.executable, "-m", "tests.browser.runs", folder], cwd=ROOT, check=True)
    with serve_folder(folder, SHOAL_SLOTS=str(_slots_folder / "slots.sock")) as found:
        yield found


@pytest.fixture
def own_site(tmp_path: Path) -> Iterator[Site]:
    """A server with an empty folder, in which a test may do what it likes.

    A test names it before `visit`, so that its pages are closed before the server leaves.
    """
    with serve_folder(tmp_path / "runs") as found:
        yield found


@dataclass
class Visit:
    """A page that a test looks at, and what went wrong on it."""

    page: Page
    url: str
    errors: list[str] = field(default_factory=list)
    #: Answers that are part of what a test does, such as 404.
    refusals: set[int] = field(default_factory=set)

    def open(self, address: str) -> None:
        """Open a page of the site by what stands behind the # of its address."""
        page = self.url if self.url.endswith(".html") else f"{self.url}/"
        self.page.goto(f"{page}#/{address}")
        self.page.wait_for_function(SETTLED)

    def note_console(self, message: ConsoleMessage) -> None:
        # What could not be loaded is noted with its address, by `note_response`.
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            self.errors.append(f"console: {message.text}")

    def note_request(self, request: Request) -> None:
        if not request.url.startswith((self.url.removesuffix("index.html"), "data:", "blob:")):
            self.errors.append(f"asks elsewhere: {request.url}")

    def note_response(self, response: Response) -> None:
        if response.status >= HTTPStatus.BAD_REQUEST and response.status not in self.refusals:
            self.errors.append(f"{response.status}: {response.url}")

    def find_sideways(self) -> list[str]:
        """Return what sticks out at the side of the page, or makes the page scroll there."""
        found: list[str] = self.page.evaluate(_SIDEWAYS)
        return found

    def find_barriers(self) -> list[str]:
        """Return the serious violations of accessibility that axe finds."""
        self.page.evaluate(AXE.read_text())
        found: list[dict[str, Any]] = self.page.evaluate(_BARRIERS)
        return [f"{one['id']}: {one['help']}: {one['where']}" for one in found]


#: A page is there, and nothing of it is still on its way.
SETTLED = (
    "() => document.querySelector('main') && !document.querySelector('.skeleton') && document.fonts.status === 'loaded'"
)
_SIDEWAYS = """() => {
  const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  return wide > 0 ? [`the page is ${wide} pixels too wide`] : [];
}"""
_BARRIERS = """async () => {
  const rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"];
  // Initials in pictures of people are hidden from screen readers, and are no part of a button's name.
  const without = { "label-content-name-mismatch": { enabled: false } };
  const found = await axe.run(document, { resultTypes: ["violations"], runOnly: rules, rules: without });
  return found.violations
    .filter((one) => ["serious", "critical"].includes(one.impact))
    .map((one) => ({
      id: one.id,
      help: one.help,
      where: one.nodes.slice(0, 5).map((node) => node.html.slice(0, 160)).join(" | "),
    }));
}"""

Visiting = Callable[..., Visit]


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visiting]:
    """Opens pages in contexts of their own. A test fails where one complained, or asked for anything elsewhere."""
    contexts: list[BrowserContext] = []
    visits: list[Visit] = []

    def open_visit(
        site: Site,
        address: str = "",
        size: dict[str, int] = DESKTOP,
        scheme: str = "light",
        *,
        refusals: tuple[int, ...] = (),
    ) -> Visit:
        context = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
        context.set_default_timeout(_TIMEOUT_MS)
        contexts.append(context)
        page = context.new_page()
        found = Visit(page, site.url, refusals={*refusals})
        page.on("console", found.note_console)
        page.on("pageerror", lambda error: found.errors.append(f"error: {error}"))
        page.on("request", found.note_request)
        page.on("response", found.note_response)
        visits.append(found)
        found.open(address)
        return found

    yield open_visit
    for context in contexts:
        context.close()
    assert [error for one in visits for error in one.errors] == []
