"""The broker as a process: how it comes, how it goes, and what happens when somebody is killed."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from shoal.errors import SlotsRefused
from shoal.slots.client import Slots, open_slots
from shoal.slots.connection import fetch_snapshot, resize_pool
from shoal.slots.leases import CallEnd, CallOutcome, Lease
from shoal.slots.location import BrokerLocation
from shoal.slots.protocol import GREETING, BrokerMessage, FrameDecoder, ProtocolRefusal, Resume, encode_frame
from shoal.slots.server import NoBroker, start_broker
from tests.slots.brokers import (
    broker_pid,
    is_locked,
    stop_broker,
    temporary_location,
    view_pool,
    wait_for_end,
    wait_until,
)

OK = CallOutcome(CallEnd.OK)
ONE = ("one",)


@pytest.fixture
def place() -> Iterator[BrokerLocation]:
    with temporary_location() as place:
        yield place


async def take(slots: Slots, count: int) -> list[Lease]:
    return await asyncio.gather(*(slots.acquire(ONE) for _ in range(count)))


def start_serving(place: BrokerLocation) -> None:
    """Start a broker and wait until it answers: only then has it written its log and its process."""
    start_broker(place)
    assert fetch_snapshot(place) is not None


# who is killed


async def test_a_process_that_is_killed_gives_its_slots_back_at_once(place: BrokerLocation) -> None:
    async with open_slots("waits", place, sizes={"one": 3}) as slots:
        for _ in range(3):
            holder = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tests.slots.hold_slots", place.socket, "3", stdout=subprocess.PIPE
            )
            assert holder.stdout is not None
            assert await holder.stdout.readline() == b"held\n"
            waiting = asyncio.create_task(take(slots, 3))
            await wait_until(slots, "one", lambda pool: pool.waiting == 3)
            holder.kill()
            leases = await asyncio.wait_for(waiting, 60)
            await holder.wait()
            assert (await view_pool(slots, "one")).held == slots.held == 3
            for lease in leases:
                slots.release(lease, OK)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_runs_go_on_with_another_broker_when_theirs_ends(place: BrokerLocation, how: signal.Signals) -> None:
    async with open_slots("a", place, sizes={"one": 3}) as a, open_slots("b", place) as b:
        await take(a, 2)
        (held,) = await asyncio.gather(b.acquire(ONE))
        waiting = asyncio.create_task(b.acquire(ONE))
        await wait_until(a, "one", lambda pool: pool.waiting == 1)
        first = (await a.request_snapshot()).pid
        stop_broker(place, how)
        pool = await wait_until(a, "one", lambda pool: pool.held == 3 and pool.waiting == 1)
        assert pool.control["size"] == 3
        assert (await a.request_snapshot()).pid != first
        b.release(held, OK)
        await waiting
        assert (await view_pool(a, "one")).held == 3


async def test_what_happens_while_there_is_no_broker_is_told_the_next_one(place: BrokerLocation) -> None:
    async with open_slots("a", place, sizes={"one": 2}) as slots:
        held = await slots.acquire(ONE)
        stop_broker(place)
        slots.release(held, OK)
        slots.resize("one", 1)
        claim = asyncio.create_task(slots.acquire(ONE))
        given_up = asyncio.create_task(slots.acquire(ONE))
        await asyncio.sleep(0)
        given_up.cancel()
        await claim
        pool = await wait_until(slots, "one", lambda pool: not pool.waiting)
        assert (pool.held, pool.control["size"]) == (1, 1)


async def test_a_broker_that_cannot_be_replaced_leaves_the_run_to_itself(
    place: BrokerLocation, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_slots("a", place, sizes={"one": 2}) as slots:
        await slots.acquire(ONE)
        place.socket.parent.chmod(0o755)
        stop_broker(place)
        await take(slots, 1)
        assert (slots.is_shared, (await view_pool(slots, "one")).held) == (False, 2)
        place.socket.parent.chmod(0o700)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "limits hold only within this run" in caplog.text


async def test_where_no_broker_can_be_started_a_run_keeps_to_itself(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    nowhere = BrokerLocation(tmp_path / "file" / "s", tmp_path / "limits.json")
    async with open_slots("a", nowhere, sizes={"one": 2}) as slots:
        await take(slots, 2)
        assert not slots.is_shared
    assert caplog.text.count("limits hold only within this run") == 1


# who is stopped


async def test_a_broker_that_is_stopped_is_replaced_by_one_that_knows_what_its_runs_hold(
    place: BrokerLocation, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_slots("a", place, sizes={"one": 3}) as a, open_slots("b", place) as b:
        await take(a, 2)
        (held,) = await take(b, 1)
        first = (await a.request_snapshot()).pid
        os.kill(first, signal.SIGSTOP)
        waiting = asyncio.create_task(b.acquire(ONE))
        pool = await wait_until(a, "one", lambda pool: pool.held == 3 and pool.waiting == 1)
        assert pool.control["size"] == 3
        assert (await a.request_snapshot()).pid != first
        assert not is_alive(first)
        b.release(held, OK)
        await waiting
        assert (await view_pool(a, "one")).held == 3
    assert f"the process at {place.socket} ({first}) is silent" in caplog.text


async def test_a_new_run_does_not_wait_for_a_broker_that_is_stopped(place: BrokerLocation) -> None:
    start_serving(place)
    first = broker_pid(place)
    os.kill(first, signal.SIGSTOP)
    async with open_slots("a", place, sizes={"one": 1}) as slots:
        await take(slots, 1)
        assert slots.is_shared
        assert (await slots.request_snapshot()).pid != first
    assert not is_alive(first)


async def test_a_run_that_is_stopped_gives_its_slots_back_and_asks_again_when_it_goes_on(place: BrokerLocation) -> None:
    async with open_slots("waits", place, sizes={"one": 3}) as slots:
        holder = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.slots.hold_slots", place.socket, "3", stdout=subprocess.PIPE
        )
        assert holder.stdout is not None
        assert await holder.stdout.readline() == b"held\n"
        first = (await slots.request_snapshot()).pid
        waiting = asyncio.create_task(take(slots, 3))
        await wait_until(slots, "one", lambda pool: pool.waiting == 3)
        holder.send_signal(signal.SIGSTOP)
        leases = await asyncio.wait_for(waiting, 60)
        assert (await view_pool(slots, "one")).held == slots.held == 3
        # Its calls are still under way, so they count again, even though that is too many for a moment.
        holder.send_signal(signal.SIGCONT)
        await wait_until(slots, "one", lambda pool: pool.held == 6)
        more = asyncio.create_task(slots.acquire(ONE))
        for lease in leases:
            slots.release(lease, OK)
        await wait_until(slots, "one", lambda pool: (pool.held, pool.waiting) == (3, 1))
        holder.kill()
        await asyncio.wait_for(more, 60)
        await holder.wait()
        assert (await slots.request_snapshot()).pid == first, "nothing was wrong with the broker"


async def test_a_silent_process_that_is_no_broker_is_left_alone(
    place: BrokerLocation, caplog: pytest.LogCaptureFixture
) -> None:
    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    place.lock.write_text(f"{os.getpid()}\n")
    server = await asyncio.start_unix_server(say_nothing, place.socket)
    async with server, open_slots("a", place, sizes={"one": 1}) as slots:
        await take(slots, 1)
        assert not slots.is_shared
    assert "is silent, and no process that may be ended from here): limits hold only within this run" in caplog.text


async def test_a_broker_that_was_stopped_for_a_moment_stays(place: BrokerLocation) -> None:
    async with open_slots("a", place, sizes={"one": 1}) as slots:
        lease = await slots.acquire(ONE)
        first = (await slots.request_snapshot()).pid
        os.kill(first, signal.SIGSTOP)
        os.kill(first, signal.SIGCONT)
        slots.release(lease, OK)
        await slots.acquire(ONE)
        assert (await slots.request_snapshot()).pid == first


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "XZ"
    except FileNotFoundError:
        return False


# how it comes and goes


def test_of_many_starters_one_starts_a_broker_and_all_find_it(place: BrokerLocation) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(start_broker, [place] * 8))
    assert fetch_snapshot(place) is not None
    assert place.log.read_text().count("listens at") == 1


def test_a_second_broker_at_the_same_place_leaves_the_first_alone(place: BrokerLocation) -> None:
    start_serving(place)
    command = [sys.executable, "-m", "shoal.slots", str(place.socket), str(place.memory), "30"]
    done = subprocess.run(command, capture_output=True, check=True)
    assert done.stderr == b""
    assert place.log.read_text().count("listens at") == 1
    assert place.is_served()


def test_a_broker_that_nobody_needs_leaves_and_takes_its_socket_along() -> None:
    with temporary_location(idle_seconds=0.1) as place:
        start_broker(place)
        wait_for_end(place)
        assert not place.socket.exists()
        assert "leaves" in place.log.read_text()


async def test_a_broker_stays_while_somebody_is_connected() -> None:
    with temporary_location(idle_seconds=0.05) as place:
        async with open_slots("a", place, sizes={"one": 1}) as slots:
            first = (await slots.request_snapshot()).pid
            lease = await slots.acquire(ONE)
            await asyncio.sleep(0.2)  # four times as long as it would stay by itself
            slots.release(lease, OK)
            assert (await slots.request_snapshot()).pid == first
        await asyncio.to_thread(wait_for_end, place)


def test_a_socket_that_a_dead_broker_left_is_replaced(place: BrokerLocation) -> None:
    start_serving(place)
    first = broker_pid(place)
    stop_broker(place)
    assert place.socket.exists()
    assert not place.is_served()
    start_serving(place)
    assert broker_pid(place) != first
    assert place.is_served()


def list_open_files(pid: int) -> set[Path]:
    """What a process has open; a connection that it closes meanwhile is left out."""
    found = set()
    for handle in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found.add(handle.readlink())
    return found


def test_a_broker_belongs_to_nobody_else(place: BrokerLocation) -> None:
    start_serving(place)
    pid = broker_pid(place)
    assert os.getsid(pid) == pid
    assert Path(f"/proc/{pid}/cwd").readlink() == Path("/")
    assert {path for path in list_open_files(pid) if path.is_absolute()} == {Path(os.devnull), place.log, place.lock}
    assert stat.S_IMODE(place.log.stat().st_mode) == 0o600


def test_a_broker_whose_socket_was_removed_makes_way(place: BrokerLocation) -> None:
    start_serving(place)
    place.socket.unlink()
    wait_for_end(place)
    assert "was removed" in place.log.read_text()


def test_a_broker_imports_nothing_heavy() -> None:
    code = "import sys, shoal.slots.server; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "pydantic", "aiohttp", "click", "rich", "yaml", "orjson"} & set(loaded)


# where it may be


def test_a_directory_that_is_open_to_others_is_refused(place: BrokerLocation) -> None:
    place.socket.parent.chmod(0o750)
    with pytest.raises(SlotsRefused, match=r"chmod 700 .*SHOAL_SLOTS"):
        start_broker(place)
    place.socket.parent.chmod(0o700)


def test_a_link_to_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(SlotsRefused, match="somebody else"):
        BrokerLocation(tmp_path / "link" / "s", tmp_path / "limits.json").prepare()


def test_a_path_that_is_too_long_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(SlotsRefused, match="too long"):
        BrokerLocation(tmp_path / ("x" * 100) / "s", tmp_path / "limits.json").prepare()


def test_the_place_of_a_user_is_the_same_for_all_processes(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": "/run/user/7"}
    place = BrokerLocation.of_user(environ)
    assert place.socket == Path("/run/user/7/shoal/slots.sock")
    assert place.memory == tmp_path / ".local" / "state" / "shoal" / "limits.json"
    assert BrokerLocation.of_user({**environ, "SHOAL_SLOTS": "/somewhere/s"}).socket == Path("/somewhere/s")
    assert BrokerLocation.of_user({**environ, "XDG_STATE_HOME": "/state"}).memory == Path("/state/shoal/limits.json")
    assert f"shoal-{os.getuid()}" in str(BrokerLocation.of_user({"HOME": "/h"}).socket)
    assert len(str(BrokerLocation.of_user({"XDG_RUNTIME_DIR": "/" + "x" * 100}).socket)) < 100


def test_starting_fails_in_words_where_it_cannot_work(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NoBroker, match="file"):
        start_broker(BrokerLocation(tmp_path / "file" / "s", tmp_path / "limits.json"))


# who speaks something else


async def test_a_broker_of_another_version_is_an_error_in_words(place: BrokerLocation) -> None:
    async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"shoal slots 999\n")
        await reader.read()
        writer.close()

    async with await asyncio.start_unix_server(other, place.socket):
        with pytest.raises(SlotsRefused, match=r"speaks version 999.*\n.*SHOAL_SLOTS"):
            async with open_slots("a", place):
                pass
        with pytest.raises(SlotsRefused, match="version 999"):
            await asyncio.to_thread(fetch_snapshot, place)


def exchange(place: BrokerLocation, said: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect(str(place.socket))
        caller.sendall(said)
        received = b""
        while data := caller.recv(1 << 16):
            received += data
        return received


def test_a_run_of_another_version_is_told_which_one_this_is(place: BrokerLocation) -> None:
    start_serving(place)
    assert exchange(place, b"shoal slots 999\n") == GREETING
    assert "a run that speaks version 999 was turned away" in place.log.read_text()


@pytest.mark.parametrize("said", [b"\x00\x00\x00\x02??", encode_frame([Resume(1, ONE, 0)])], ids=["noise", "no hello"])
def test_what_makes_no_sense_ends_the_connection_and_nothing_else(place: BrokerLocation, said: bytes) -> None:
    start_serving(place)
    decoder: FrameDecoder[BrokerMessage] = FrameDecoder.of_run()
    (reply,) = decoder.feed(exchange(place, GREETING + said))
    assert isinstance(reply, ProtocolRefusal)
    assert place.is_served()


# a look from outside


async def test_a_look_from_outside_starts_nothing_and_takes_no_part(place: BrokerLocation) -> None:
    assert fetch_snapshot(place) is None
    assert resize_pool(place, "one", 3) is None
    assert not is_locked(place.lock)
    async with open_slots("a", place, sizes={"one": 1}) as slots:
        await take(slots, 1)
        seen = await asyncio.to_thread(resize_pool, place, "one", 4)
        assert seen is not None
        assert (seen.pools[0].control["size"], [view.name for view in seen.pools[0].holders]) == (4, ["a"])
        await take(slots, 3)
