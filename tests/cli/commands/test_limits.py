"""Watching how many at once, and changing it."""

from __future__ import annotations

import asyncio
import codecs
import json
import os
import pty
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from shoal.cli.commands.limits import BACKOFFS_SHOWN
from shoal.slots.adaptive.limiter import Learned, LearnedRate
from shoal.slots.adaptive.store import LimitStore
from shoal.slots.client import Slots, open_slots
from shoal.slots.leases import AGENTS, Backoff
from shoal.slots.location import BrokerLocation
from tests.cli.terminal import COMMAND, DEADLINE_SECONDS, call, environment, shoal
from tests.slots.brokers import temporary_location, wait_until

POOL = "gpt-4.1-mini at api.openai.com #1f3a9c"
OTHER = "llama at localhost:8000"


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[BrokerLocation]:
    """Where the command looks, with a broker of its own if one is started."""
    with temporary_location() as found:
        monkeypatch.setenv("SHOAL_SLOTS", str(found.socket))
        monkeypatch.setenv("XDG_STATE_HOME", str(found.socket.parent))
        yield BrokerLocation.of_user(os.environ)


def remember(place: BrokerLocation, days_ago: float = 0.0, **learned: Any) -> None:
    at = time.time() - days_ago * 86400
    LimitStore(place.memory, at).put(POOL, Learned(**learned), at)


async def limits(*args: str) -> Result:
    return await asyncio.to_thread(call, "limits", *args)


async def hold(slots: Slots, count: int, pool: str = "one") -> None:
    await asyncio.gather(*(slots.acquire((pool,)) for _ in range(count)))


def fail(slots: Slots, count: int, kind: str = "request_rate") -> None:
    """So many questions wait to be asked again, the first of them first."""
    for number in range(count):
        slots.back_off(f"hall/3/{number}/decide/0", Backoff("one", kind, 2, time.monotonic() + 40.5 + number))


# Nobody there


def test_where_nobody_asks_and_nothing_is_known_it_says_so(place: BrokerLocation) -> None:
    result = call("limits")
    assert (result.exit_code, result.output) == (0, "No run is asking models now.\n")
    assert not place.is_served()


def test_what_was_learned_is_shown_when_nobody_asks(place: BrokerLocation) -> None:
    rate = LearnedRate(per_minute=6000.4, burst=10)
    remember(place, days_ago=2.5, in_flight=1234, is_wall=True, requests=rate)
    lines = call("limits").stdout.splitlines()
    assert lines[2:] == [
        "Remembered from earlier runs",
        f"  {POOL}",
        "    at most 1,234 in flight, 6,000 requests a minute  2 days ago",
    ]


def test_a_limit_that_was_never_reached_is_called_at_least(place: BrokerLocation) -> None:
    remember(place, in_flight=8)
    assert "at least 8 in flight  just now" in call("limits").stdout


def test_what_cannot_be_read_of_a_memory_is_called_so(place: BrokerLocation) -> None:
    place.memory.parent.mkdir()
    entry = {"at": time.time(), "learned": {"in_flight": "many"}}
    place.memory.write_text(json.dumps({"format": 1, "pools": {POOL: entry}}))
    result = call("limits")
    assert result.exit_code == 0
    assert "cannot be read" in result.stdout


# Runs that share slots


async def test_runs_are_shown_with_what_they_hold_and_wait_for(place: BrokerLocation) -> None:
    async with (
        open_slots("council-1", place, sizes={"one": 3}) as council,
        open_slots("market-1", place, weight=2.5) as market,
    ):
        await hold(council, 3)
        waiting = [asyncio.create_task(market.acquire(("one",))) for _ in range(4)]
        await wait_until(market, "one", lambda pool: pool.waiting == 4)
        lines = (await limits()).stdout.splitlines()
        for task in waiting:
            task.cancel()
    assert lines[:2] == ["one  a fixed number", "  3 of 3 in flight · 4 waiting"]
    first, second = (" ".join(line.split()) for line in lines[2:])
    assert first == f"council-1 3 in flight pid {os.getpid()}"
    assert second.startswith("market-1 0 in flight 4 waiting, up to ")
    assert second.endswith(f"pid {os.getpid()} weight 2.5")


async def test_a_limit_that_learns_shows_what_it_knows_and_how_calls_ended(place: BrokerLocation) -> None:
    remember(place, in_flight=20, is_wall=True, answer_seconds=0.5, requests=LearnedRate(600, 10))
    async with open_slots("council-1", place) as slots:
        await hold(slots, 1, POOL)
        shown = " ".join((await limits("--once")).stdout.split())
    assert f"{POOL} " in shown
    assert "1 of 20 in flight · 0 waiting · 600 requests a minute · answers take 0.5 s" in shown
    assert "Remembered" not in shown


async def test_names_are_shown_as_they_are(place: BrokerLocation) -> None:
    async with open_slots("odd[red]", place, sizes={"one": 1}) as slots:
        await hold(slots, 1)
        assert "odd[red]" in (await limits()).stdout


async def test_json_holds_what_is_now_and_what_is_remembered(place: BrokerLocation) -> None:
    assert json.loads((await limits("--json")).stdout) == {"now": None, "remembered": {}}
    remember(place, in_flight=7)
    async with open_slots("council-1", place, sizes={"one": 3}) as slots:
        await hold(slots, 2)
        fail(slots, 1)
        await slots.request_snapshot()
        found = json.loads((await limits("--json")).stdout)
    (pool,) = found["now"]["pools"]
    assert (pool["name"], pool["held"], pool["holders"][0]["name"]) == ("one", 2, "council-1")
    assert found["now"]["backoffs"][0]["label"] == "hall/3/0/decide/0"
    assert found["remembered"][POOL]["learned"] == {"in_flight": 7}


# Retries


async def test_who_waits_to_ask_what_again_is_shown(place: BrokerLocation) -> None:
    async with open_slots("council-1", place, sizes={"one": 3}) as slots:
        await hold(slots, 1)
        fail(slots, 1)
        await slots.request_snapshot()
        lines = (await limits()).stdout.splitlines()
    assert lines[-2] == "1 call failed and waits to be asked again"
    told = r"council-1 hall/3/0/decide/0 attempt 2: request rate again in (\d+\.\d) s"
    left = re.fullmatch(told, " ".join(lines[-1].split()))
    assert left is not None, lines[-1]
    assert 0 < float(left[1]) <= 40.5


async def test_a_retry_storm_is_called_one_and_shown_in_red(place: BrokerLocation) -> None:
    async with open_slots("council-1", place, sizes={"one": 3}) as slots:
        await hold(slots, 3)
        fail(slots, 30, "overload")
        await slots.request_snapshot()
        process = await asyncio.to_thread(shoal, "limits", cwd=place.socket.parent, FORCE_COLOR="1")
    lines = process.stdout.splitlines()
    (head,) = [number for number, line in enumerate(lines) if "a retry storm" in line]
    assert lines[head].startswith("\x1b[1;31m30 calls failed and wait to be asked again")
    assert [line.split()[1] for line in lines[head + 1 : -1]] == [f"hall/3/{n}/decide/0" for n in range(BACKOFFS_SHOWN)]
    assert lines[-1] == "     and 22 more"


async def test_a_few_retries_are_no_storm(place: BrokerLocation) -> None:
    async with open_slots("council-1", place, sizes={"one": 3}) as slots:
        await hold(slots, 3)
        fail(slots, 9)
        await slots.request_snapshot()
        shown = (await limits()).stdout
    assert "9 calls failed and wait" in shown
    assert "storm" not in shown


# Changing it


async def test_how_many_agents_act_is_changed_while_they_do(place: BrokerLocation) -> None:
    async with open_slots("council-1", place, sizes={AGENTS: 1}) as slots:
        await hold(slots, 1, AGENTS)
        waiting = asyncio.create_task(hold(slots, 2, AGENTS))
        await wait_until(slots, AGENTS, lambda pool: pool.waiting == 2)
        result = await limits("--parallel", "3")
        await waiting
        assert result.stdout == "from now on at most 3 agents act at once\n"
        shown = (await limits()).stdout
    assert shown.startswith("agents  of runs with --parallel\n  3 of 3 in flight")


async def test_no_number_is_set_where_no_run_would_heed_it(place: BrokerLocation) -> None:
    nobody = await limits("--parallel", "3")
    async with open_slots("council-1", place, sizes={"one": 1}) as slots:
        await hold(slots, 1)
        without = await limits("--parallel", "3")
        assert AGENTS not in [pool.name for pool in (await slots.request_snapshot()).pools]
    for result in (nobody, without):
        assert result.exit_code == 2
        assert "no run that was started with --parallel is going on" in result.stderr


def test_what_was_learned_about_a_model_is_forgotten(place: BrokerLocation) -> None:
    remember(place, in_flight=7)
    LimitStore(place.memory, time.time()).put(OTHER, Learned(in_flight=3), time.time())
    assert call("limits", "--forget", POOL).stdout == f"forgot {POOL}\n"
    assert list(LimitStore(place.memory, time.time()).entries) == [OTHER]


def test_everything_is_forgotten_even_where_there_is_nothing(place: BrokerLocation) -> None:
    remember(place, in_flight=7)
    assert call("limits", "--forget", "all").stdout == f"forgot {POOL}\n"
    again = call("limits", "--forget", "all")
    assert (again.exit_code, again.stdout) == (0, "nothing was learned yet\n")


def test_a_name_that_is_not_known_is_answered_with_those_that_are(place: BrokerLocation) -> None:
    remember(place, in_flight=7)
    near, far = call("limits", "--forget", "gpt-4.1-mini"), call("limits", "--forget", "x")
    assert near.exit_code == far.exit_code == 2
    assert f"Did you mean '{POOL}'?" in near.stderr
    assert f"known: '{POOL}'" in far.stderr
    assert list(LimitStore(place.memory, time.time()).entries) == [POOL]


async def test_nothing_is_forgotten_while_runs_use_it(place: BrokerLocation) -> None:
    remember(place, in_flight=7)
    async with open_slots("council-1", place):
        result = await limits("--forget", "all")
    assert result.exit_code == 2
    assert "try again 10 seconds after the last one has ended" in result.stderr
    assert list(LimitStore(place.memory, time.time()).entries) == [POOL]


def test_two_things_at_once_are_refused(place: BrokerLocation) -> None:
    result = call("limits", "--forget", "all", "--parallel", "2")
    assert result.exit_code == 2
    assert "give one of them" in result.stderr


# On a terminal, and without one


class Screen:
    """The command on a pseudo-terminal."""

    def __init__(self, *args: str, cwd: Path, **env: str) -> None:
        self._ours, theirs = pty.openpty()
        shown = environment(TERM="xterm", COLUMNS="100", LINES="30", **env)
        self.process = subprocess.Popen(
            [COMMAND, *args], cwd=cwd, env=shown, stdin=theirs, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        self.shown = ""
        # A read may end in the middle of a character.
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def read_until(self, text: str) -> None:
        while text not in self.shown:
            self.shown += self._decoder.decode(os.read(self._ours, 4096))

    def rest(self) -> str:
        """What is shown from now to the end."""
        before = len(self.shown)
        try:
            while part := os.read(self._ours, 4096):
                self.shown += self._decoder.decode(part)
        except OSError:
            # How the end of a terminal shows on Linux.
            pass
        finally:
            os.close(self._ours)
        self.process.wait(timeout=DEADLINE_SECONDS)
        return self.shown[before:]


async def test_on_a_terminal_it_is_live_until_ctrl_c(place: BrokerLocation) -> None:
    async with open_slots("council-1", place, sizes={"one": 5}) as slots:
        await hold(slots, 1)
        screen = Screen("limits", cwd=place.socket.parent)
        await asyncio.to_thread(screen.read_until, "1 of 5 in flight")
        await hold(slots, 2)
        await asyncio.to_thread(screen.read_until, "3 of 5 in flight")
        screen.process.send_signal(signal.SIGINT)
        rest = await asyncio.to_thread(screen.rest)
    assert screen.process.returncode == 0
    assert "3 of 5 in flight" in rest
    assert "\x1b[?25h" in rest  # the cursor is back
    assert "Traceback" not in screen.shown
    assert "Aborted" not in screen.shown


async def test_a_termination_signal_leaves_the_terminal_as_it_was(place: BrokerLocation) -> None:
    screen = Screen("limits", cwd=place.socket.parent)
    await asyncio.to_thread(screen.read_until, "No run is asking")
    screen.process.terminate()
    assert "\x1b[?25h" in await asyncio.to_thread(screen.rest)
    assert screen.process.returncode == 143


async def test_once_prints_once_on_a_terminal_and_in_no_colour_if_none_is_wanted(place: BrokerLocation) -> None:
    async with open_slots("council-1", place, sizes={"one": 1}) as slots:
        await hold(slots, 1)
        fail(slots, 30)
        await slots.request_snapshot()
        screen = Screen("limits", "--once", cwd=place.socket.parent, NO_COLOR="1")
        shown = await asyncio.to_thread(screen.rest)
    assert screen.process.returncode == 0
    assert shown.count("in flight") == 2
    assert "a retry storm" in shown
    assert "31m" not in shown


@pytest.mark.parametrize("columns", [40, 60, 72, 100])
async def test_lines_fit_the_terminal_and_break_nowhere_within_a_figure(place: BrokerLocation, columns: int) -> None:
    remember(place, in_flight=1000, is_wall=True, answer_seconds=0.5, requests=LearnedRate(60_000, 10))
    async with open_slots("a-run-with-quite-a-long-name-1", place) as slots:
        await hold(slots, 2, POOL)
        fail(slots, 1)
        await slots.request_snapshot()
        process = await asyncio.to_thread(shoal, "limits", cwd=place.socket.parent, COLUMNS=str(columns))
    assert max(map(len, process.stdout.splitlines())) <= columns
    assert "\x1b" not in process.stdout
    assert "2 of 1,000 in flight" in process.stdout
    assert "60,000 requests a minute" in process.stdout
    assert "again in" in process.stdout


async def test_a_reader_that_has_enough_is_no_error(place: BrokerLocation) -> None:
    remember(place, in_flight=7)
    for line in ("limits | head -n 1", "limits --json | head -c 5"):
        process = await asyncio.create_subprocess_shell(
            f"{COMMAND} {line}", stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
        )
        shown, complaints = await process.communicate()
        assert (bool(shown), complaints) == (True, b"")
