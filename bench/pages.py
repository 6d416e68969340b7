"""The pages in a real browser: a long run against a short one, a thousand runs in the list, a run that is fast."""

from __future__ import annotations

import shutil
import sqlite3
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from bench.bars import Bar, everyone_active
from bench.web import make_run
from shoal.runs.operations import create_run
from shoal.runs.store import database_path
from shoal.scenario.loading import validate
from tests.browser.conftest import DESKTOP, FLAGS, Site, find_chromium, serve_folder

_PEOPLE, _SHORT, _LONG, _TRIES = 500, 2, 2_000, 5
_RUNS, _LISTED_PEOPLE = 1_000, 20
_WATCHED_SECONDS, _WARM_SECONDS = 60, 15
_OPENED = "() => document.querySelector('.figures canvas') && !document.querySelector('main .skeleton')"
_NOTE_LONG_TASKS = """window.longTasks = [];
new PerformanceObserver((list) => longTasks.push(...list.getEntries().map((entry) => entry.duration)))
  .observe({ entryTypes: ["longtask"] });"""


@contextmanager
def _open_browser(site: Site) -> Iterator[Page]:
    """Open a page of a browser that has loaded the pages of a site once."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        page = browser.new_page(viewport=DESKTOP)  # type: ignore[arg-type]
        page.add_init_script(_NOTE_LONG_TASKS)
        page.goto(f"{site.url}/#/experiments")
        yield page
        browser.close()


def pages_open(folder: Path) -> list[Bar]:
    """The page of a run of 1,000,000 turns against one of 1,000, until everything on it is there."""
    runs = folder / "runs"
    for rounds in (_SHORT, _LONG):
        make_run(runs / str(rounds), _PEOPLE, rounds)
    took: dict[int, list[float]] = {_SHORT: [], _LONG: []}
    with serve_folder(runs) as site, _open_browser(site) as page:
        # The first look at each is not counted: it loads the parts of the page, and draws the people.
        for number in range(_TRIES + 1):
            for rounds, times in took.items():
                page.goto(f"{site.url}/?{number}#/experiments")
                since = time.perf_counter()
                page.goto(f"{site.url}/?{number}#/run/{rounds}")
                page.wait_for_function(_OPENED, timeout=60_000)
                times.append(time.perf_counter() - since)
    short, long = (statistics.median(times[1:]) for times in took.values())
    told = f"{_PEOPLE * _LONG:,} turns against {_PEOPLE * _SHORT:,}: {long:.2f} s, {took[_LONG][0]:.2f} s at first"
    return [Bar("opening a long run in a browser", long / short, "x", 2.0, False, told)]


def pages_many(folder: Path) -> list[Bar]:
    """A list of a thousand runs, with a server that has not seen them."""
    runs = folder / "runs"
    first = make_run(runs / "run-0", _LISTED_PEOPLE, _SHORT)
    for number in range(1, _RUNS):
        shutil.copytree(first.path, runs / f"run-{number}")
    with serve_folder(runs) as site, _open_browser(site) as page:
        since = time.perf_counter()
        page.goto(f"{site.url}/?list#/")
        page.wait_for_selector("article.row")
        shown = time.perf_counter() - since
        page.wait_for_function(f"() => document.body.innerText.includes('{_RUNS:,}')", timeout=60_000)
        whole = time.perf_counter() - since
        rows = page.locator("article.row").count()
    told = f"{_RUNS:,} runs; all of them after {whole:.2f} s, {rows} rows in the page"
    return [Bar("the first of a thousand runs in a browser", shown, "s", 2.0, False, told)]


def pages_fast_run(folder: Path) -> list[Bar]:
    """The page of a run that goes on as fast as it can, for a minute."""
    run = create_run(validate(everyone_active(_PEOPLE, 100_000)), folder / "runs" / "fast")
    with serve_folder(folder / "runs") as site, _open_browser(site) as page:
        page.goto(f"{site.url}/?fast#/run/fast")
        page.get_by_role("button", name="Start", exact=True).click()
        page.wait_for_timeout(1_000 * _WARM_SECONDS)
        page.evaluate("() => longTasks.splice(0)")
        memory = [_read_memory(page)]
        before = _count_actions(run.path)
        page.wait_for_timeout(1_000 * _WATCHED_SECONDS)
        rate = (_count_actions(run.path) - before) / _WATCHED_SECONDS
        tasks = sorted(page.evaluate("() => longTasks"))
        memory.append(_read_memory(page))
    longest = tasks[int(0.95 * len(tasks))] if tasks else 0.0
    told = f"{len(tasks)} long tasks in {_WATCHED_SECONDS} s, the longest {tasks[-1] if tasks else 0:.0f} ms"
    grown = f"from {memory[0]:.1f} to {memory[1]:.1f} MB in {_WATCHED_SECONDS} s, after {_WARM_SECONDS} s"
    return [
        Bar("events a second of a run that a page follows", rate, "", 2_000, True, f"{_PEOPLE} people"),
        Bar("long tasks of a page that follows it, p95", longest, "ms", 100, False, told),
        Bar("memory of a page that follows it", memory[1] / memory[0], "x", 1.5, False, grown),
    ]


def _read_memory(page: Page) -> float:
    """Return what a page holds, in MB, after everything else was collected."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    return float(session.send("Runtime.getHeapUsage")["usedSize"]) / 1e6


def _count_actions(run: Path) -> int:
    with sqlite3.connect(database_path(run, "twitter")) as database:
        return int(database.execute("SELECT total(actions) FROM shoal_round").fetchone()[0])


ALL = (pages_open, pages_many, pages_fast_run)
