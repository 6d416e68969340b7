"""`--parallel N`: as many agents act at once as it says, over all runs that were given it."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from shoal.rehearsal.server import Rehearsal, start
from shoal.rehearsal.settings import RehearsalSettings
from shoal.slots.connection import fetch_snapshot
from shoal.slots.leases import AGENTS
from shoal.slots.location import BrokerLocation
from tests.cli.terminal import call, last_object, shoal, start_command, wait_until
from tests.slots.brokers import temporary_location

STUDY = """\
name: study
rounds: 6
population: {count: 30}
worlds: {hall: {kind: room, turns: parallel}}
mind: {kind: language, model: openai/gpt-4.1-mini}
"""
N = 5
#: Enough rounds that a run is still at work when the test ends it.
ENDLESS = ("--rounds", "1000")
LONG = ("--parallel", str(N), *ENDLESS)


@pytest.fixture
def place(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BrokerLocation]:
    (folder / "study.yaml").write_text(STUDY)
    with temporary_location() as found:
        monkeypatch.setenv("SHOAL_SLOTS", str(found.socket))
        monkeypatch.setenv("XDG_STATE_HOME", str(found.socket.parent))
        yield BrokerLocation.of_user(os.environ)


@asynccontextmanager
async def provider(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rehearsal]:
    async with start(RehearsalSettings(latency_seconds=0.03)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        yield server


@asynccontextmanager
async def runs(*options: tuple[str, ...]) -> AsyncIterator[list[subprocess.Popen[str]]]:
    """The study, run as often as there are options, at the same time."""
    always = ("--no-cache", "--yes", "--json")
    made = [
        start_command("run", "study.yaml", "--seed", str(seed), *always, *more, cwd=Path.cwd())
        for seed, more in enumerate(options)
    ]
    try:
        yield made
    finally:
        for process in made:
            process.kill()
            await asyncio.to_thread(process.communicate)


async def wait_for_status(process: subprocess.Popen[str]) -> str:
    """The status with which a run ends."""
    shown, complaints = await asyncio.to_thread(process.communicate)
    assert process.returncode == 0, complaints
    return str(last_object(shown)["status"])


async def wait_async(happened: Callable[[], bool]) -> None:
    await asyncio.to_thread(wait_until, happened)


def count_held(place: BrokerLocation) -> dict[int, int]:
    """How many agents act, by the process of their run."""
    seen = fetch_snapshot(place)
    pools = () if seen is None else [pool for pool in seen.pools if pool.name == AGENTS]
    return {holder.pid: holder.held for pool in pools for holder in pool.holders}


async def more_answers(server: Rehearsal, count: int) -> None:
    """Wait until the server has answered this many more."""
    before = server.stats.answers
    await wait_async(lambda: server.stats.answers >= before + count)


async def test_two_runs_together_never_have_more_agents_act_than_they_may(
    place: BrokerLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with provider(monkeypatch) as server, runs(LONG, LONG):
        await wait_async(lambda: len(count_held(place)) == 2)
        await more_answers(server, 200)
        # Before they are killed: the server hears of that later than the broker, which gives the slots to the other.
        peak = server.stats.in_flight_peak
    assert peak == N


async def test_what_a_killed_run_held_goes_to_the_other(place: BrokerLocation, monkeypatch: pytest.MonkeyPatch) -> None:
    async with provider(monkeypatch) as server, runs(LONG, LONG) as (killed, other):
        await wait_async(lambda: len(count_held(place)) == 2)
        killed.kill()
        await wait_async(lambda: count_held(place) == {other.pid: N})
        await more_answers(server, 3 * N)  # what was in flight of the killed one is over
        server.stats.in_flight_peak = 0
        await more_answers(server, 10 * N)
        assert server.stats.in_flight_peak == N


async def test_a_run_that_was_not_given_it_is_not_bound_by_it(
    place: BrokerLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with provider(monkeypatch) as server, runs(("--parallel", "1", *ENDLESS), ENDLESS):
        await wait_async(lambda: server.stats.in_flight_peak > 10)


async def test_the_number_is_changed_while_runs_go_on(place: BrokerLocation, monkeypatch: pytest.MonkeyPatch) -> None:
    async with provider(monkeypatch) as server, runs(("--parallel", "1", "--rounds", "12")) as (run,):
        await wait_async(lambda: server.stats.answers > 10)
        before = server.stats.in_flight_peak
        result = await asyncio.to_thread(call, "limits", "--parallel", str(N))
        assert result.exit_code == 0, result.output
        assert await wait_for_status(run) == "completed"
    assert (before, server.stats.in_flight_peak) == (1, N)


async def test_the_history_is_the_same_however_many_act_at_once(
    place: BrokerLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    few, many = ("--rounds", "2", "--parallel", "1"), ("--rounds", "2", "--seed", "0")
    async with provider(monkeypatch), runs(few, many) as both:
        digests = [last_object((await asyncio.to_thread(run.communicate))[0])["digest"] for run in both]
    assert digests[0] == digests[1]


async def test_a_run_that_goes_on_and_a_fork_heed_it_too(
    place: BrokerLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    always = ("--no-cache", "--yes", "--quiet", "--parallel", "2")
    async with provider(monkeypatch) as server:
        for command in (
            ("run", "study.yaml", "--rounds", "1", "--out", "a"),
            ("resume", "a", "--rounds", "2"),
            ("fork", "a", "--at", "0", "--set", "seed=9"),
        ):
            server.stats.in_flight_peak = 0
            result = await asyncio.to_thread(shoal, *command, *always, cwd=Path.cwd())
            assert result.returncode == 0, result.stderr
            assert server.stats.in_flight_peak == 2


@pytest.mark.parametrize("command", [("run", "study.yaml"), ("resume", "runs/a"), ("fork", "runs/a", "--at", "1")])
def test_none_at_all_make_no_sense(place: BrokerLocation, command: tuple[str, ...]) -> None:
    result = call(*command, "--parallel", "0")
    assert result.exit_code == 2
    assert "--parallel" in result.stderr
