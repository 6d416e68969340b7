"""What the page of a run asks for first, of a long run against a short one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.bars import Bar, everyone_active
from shoal.runs.directory import RunDirectory
from shoal.runs.network import PictureRequest, draw_network
from shoal.runs.operations import create_run
from shoal.runs.views import (
    CardReader,
    FeedFilter,
    PeopleFilter,
    PeopleReader,
    read_feed,
    read_header,
    read_run_figures,
)
from shoal.runs.worker import work_on_run
from shoal.scenario.loading import validate
from shoal.server.api.caches.networks import NetworkShelf

#: Both runs have as many people, who all have a turn in each round: 1,000 turns against 1,000,000.
_PEOPLE, _SHORT, _LONG, _TRIES = 500, 2, 2_000, 5
#: What a page of 1,280 pixels asks for.
_CHART_POINTS = 320


def web_open(folder: Path) -> list[Bar]:
    """The first answers about a run of 1,000,000 turns against one of 1,000, each as if asked first."""
    short, long = (make_run(folder / str(rounds), _PEOPLE, rounds) for rounds in (_SHORT, _LONG))
    told = f"{_PEOPLE * _LONG:,} turns against {_PEOPLE * _SHORT:,}, {_PEOPLE} people"
    bars = []
    for name, read in _READERS.items():
        before, now = _time(read, short), _time(read, long)
        bars.append(Bar(f"opening a long run: {name}", now / before, "x", 2.0, False, f"{told}: {1000 * now:.1f} ms"))
    return bars


def make_run(folder: Path, people: int, rounds: int) -> RunDirectory:
    """Make a run in which everybody has a turn in every round."""
    run = create_run(validate(everyone_active(people, rounds)), folder)
    asyncio.run(work_on_run(run, asyncio.Event()))
    return run


def _time(read: Callable[[RunDirectory], Any], run: RunDirectory) -> float:
    """CPU time, the best of some tries, each without anything that was kept of the run."""
    took = []
    for _ in range(_TRIES):
        since = time.process_time()
        read(RunDirectory(run.path))
        took.append(time.process_time() - since)
    return min(took)


_READERS: dict[str, Callable[[RunDirectory], Any]] = {
    "overview": lambda run: read_header(run, CardReader().read(run), []),
    "figures": lambda run: read_run_figures(run, points=_CHART_POINTS),
    "feed": lambda run: read_feed(run, "twitter", FeedFilter()),
    "people": lambda run: PeopleReader().read_page(run, PeopleFilter(), 0, 50),
    "people by what they did": lambda run: PeopleReader().read_page(run, PeopleFilter(order="actions"), 0, 50),
    "people by opinion": lambda run: PeopleReader().read_page(run, PeopleFilter(order="opinion"), 0, 50),
    "network": lambda run: draw_network(NetworkShelf().read(run, None, in_parts=True), PictureRequest()),
}
