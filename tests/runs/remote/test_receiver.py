"""The receiver of a run and its worker, with a launcher and nodes in this process instead of a cluster."""

from __future__ import annotations

import asyncio
import os
import struct
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest

from shoal.errors import HeadLost, RunRefused
from shoal.runs.commands import CommandType, call_worker
from shoal.runs.directory import RunDirectory, read_outcome
from shoal.runs.operations import create_run
from shoal.runs.remote.launching import (
    LAUNCHER_VARIABLE,
    ReceiverHello,
    ReceiverReady,
    ReceiverTerms,
    TaskEnd,
    read_line,
    write_line,
)
from shoal.runs.remote.messages import HeadAddress, NodeHello, Purpose
from shoal.runs.remote.node import work_on_run_at
from shoal.runs.remote.receiver import receive_run
from shoal.runs.state import Status
from shoal.scenario.loading import validate
from tests.runs.harness import check_consistency
from tests.runs.harness import start as run_here

LONG: dict[str, Any] = {
    "name": "long",
    "population": [{"count": 20}],
    "rounds": 100_000,
    "worlds": {"twitter": {}},
    "seed": 3,
}
SHORT = {**LONG, "name": "short", "rounds": 5}
TOKEN = "secret"


@dataclass
class Holding:
    """A run that is held, its receiver and the launcher of that."""

    run: RunDirectory
    receiving: asyncio.Task[None]
    address: HeadAddress
    writer: asyncio.StreamWriter
    stop: asyncio.Event
    working: list[asyncio.Task[None]] = field(default_factory=list)

    def work(self) -> asyncio.Task[None]:
        """Let a node work on it."""
        self.working.append(asyncio.create_task(work_on_run_at(self.address)))
        return self.working[-1]


@asynccontextmanager
async def hold(run: RunDirectory, environ: Mapping[str, str] | None = None) -> AsyncIterator[Holding]:
    ready: asyncio.Future[tuple[int, asyncio.StreamWriter]] = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await read_line(reader, ReceiverHello) is not None
        write_line(writer, ReceiverTerms("127.0.0.1", TOKEN, dict(environ or {})))
        said = await read_line(reader, ReceiverReady)
        assert said is not None
        ready.set_result((said.port, writer))

    with TemporaryDirectory(prefix="shoal-") as folder:
        socket, stop = f"{folder}/s", asyncio.Event()
        server = await asyncio.start_unix_server(serve, socket)
        receiving = asyncio.create_task(
            receive_run(run, stop, {**os.environ, **(environ or {}), LAUNCHER_VARIABLE: socket})
        )
        port, writer = await ready
        holding = Holding(run, receiving, HeadAddress("127.0.0.1", port, TOKEN), writer, stop)
        try:
            yield holding
        finally:
            writer.close()
            server.close()
            await asyncio.gather(receiving, *holding.working, return_exceptions=True)


async def wait_until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not is_so():  # noqa: ASYNC110  # tasks of this process do it
            await asyncio.sleep(0.005)


async def test_a_run_that_waits_for_a_node_says_so_and_can_be_stopped(tmp_path: Path) -> None:
    run = create_run(validate(SHORT), tmp_path / "run")
    async with hold(run) as holding:
        state = run.observe_state()
        assert state.runner_status is Status.PAUSED
        assert state.waiting is not None
        assert state.waiting.reason == "waiting for a free place on the Ray cluster"
        holding.stop.set()
        await holding.receiving
    assert run.read_status() is Status.STOPPED


NODE = """
import sys
from shoal.runs.remote.messages import HeadAddress
from shoal.runs.remote.node import work_on_node
work_on_node(HeadAddress("127.0.0.1", int(sys.argv[1]), sys.argv[2]))
"""


async def test_a_worker_that_is_lost_is_followed_by_one_that_goes_on(tmp_path: Path) -> None:
    scenario = {**LONG, "rounds": 100}
    here = await asyncio.to_thread(run_here, scenario, tmp_path / "here")
    run = create_run(validate(scenario), tmp_path / "run")
    async with hold(run) as holding:
        command = [sys.executable, "-c", NODE, str(holding.address.port), TOKEN]
        node = await asyncio.create_subprocess_exec(*command)
        await wait_until(lambda: run.read_last_rounds()["twitter"] > 2)
        node.kill()
        await node.wait()
        await wait_until(lambda: run.read_status() is Status.PAUSED)
        assert "was lost, and starts again elsewhere" in str(run.read_state().waiting)
        assert run.read_last_rounds()["twitter"] < 100
        await holding.work()
        await holding.receiving
    outcome = read_outcome(run)
    assert (outcome.status, outcome.digest) == (Status.COMPLETED, here.digest)
    check_consistency(run.path, finished=True)
    assert run.file("simulation.log").read_text().count("running with Shoal") == 2


async def test_of_two_workers_the_later_one_counts(tmp_path: Path) -> None:
    run = create_run(validate(LONG), tmp_path / "run")
    async with hold(run) as holding:
        first = holding.work()
        await wait_until(lambda: run.read_last_rounds()["twitter"] > 2)
        holding.work()
        with pytest.raises(HeadLost):
            await first
        before = run.read_last_rounds()["twitter"]
        await wait_until(lambda: run.read_last_rounds()["twitter"] > before)
        holding.stop.set()
        await holding.receiving
    assert run.read_status() is Status.STOPPED
    check_consistency(run.path, finished=False)


async def test_commands_reach_the_worker_and_their_answers_come_back(tmp_path: Path) -> None:
    run = create_run(validate(LONG), tmp_path / "run")
    async with hold(run) as holding:
        holding.work()
        await wait_until(lambda: run.read_last_rounds()["twitter"] > 0)
        event = {"post": "The bridge is open.", "by": 0}
        injected = await call_worker(run, None, CommandType.INJECT, {"event": event}, 30)
        assert injected["post"] == event["post"]
        assert [line.event for line in RunDirectory.open(run.path).events] == [injected]
        await wait_until(lambda: run.read_last_rounds()["twitter"] > injected["round"])
        holding.stop.set()
        await holding.receiving
    assert b"The bridge is open." in (run.path / "twitter/actions.jsonl").read_bytes()
    assert not list(run.path.glob("ipc_*/*"))


async def test_a_run_whose_launcher_gives_it_up_has_failed_with_its_reason(tmp_path: Path) -> None:
    run = create_run(validate(LONG), tmp_path / "run")
    async with hold(run) as holding:
        write_line(holding.writer, TaskEnd("Ray gave the run up: no node is left"))
        await holding.receiving
    state = run.observe_state()
    assert (state.runner_status, state.error) == (Status.FAILED, "Ray gave the run up: no node is left")


async def test_a_connection_without_the_token_is_closed(tmp_path: Path) -> None:
    run = create_run(validate(SHORT), tmp_path / "run")
    async with hold(run) as holding:
        for purpose in Purpose:
            wrong = HeadAddress("127.0.0.1", holding.address.port, "guessed")
            reader, writer = await asyncio.open_connection(wrong.host, wrong.port)
            writer.write(wrong.greet(purpose))
            assert await reader.read() == b""
            writer.close()
        assert run.read_status() is Status.PAUSED


async def test_a_node_with_another_version_is_refused_and_the_run_says_why(tmp_path: Path) -> None:
    run = create_run(validate(SHORT), tmp_path / "run")
    async with hold(run) as holding:
        reader, writer = await asyncio.open_connection(holding.address.host, holding.address.port)
        body = msgspec.msgpack.encode(NodeHello("old", "0.0.1", "3.11.0"))
        writer.write(holding.address.greet(Purpose.RUN) + struct.pack("!I", len(body)) + body)
        assert b"install the same on all nodes" in await reader.read()
        writer.close()
        await holding.receiving
    assert "node old has Shoal 0.0.1, and this machine" in str(run.observe_state().error)


async def test_a_run_whose_broker_cannot_be_used_fails_and_says_why(tmp_path: Path) -> None:
    (shared := tmp_path / "shared").mkdir(0o755)
    shared.chmod(0o755)
    mind = {"kind": "language", "model": "openai/rehearsal"}
    run = create_run(validate({**SHORT, "mind": mind}), tmp_path / "run")
    environ = {"SHOAL_SLOTS": str(shared / "slots.sock"), "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}
    async with hold(run, environ) as holding:
        holding.work()
        await holding.receiving
    assert "is open to others" in str(run.observe_state().error)


async def test_a_node_that_comes_too_late_hears_that_the_head_is_gone() -> None:
    with pytest.raises(HeadLost, match="cannot be reached at 127"):
        await work_on_run_at(HeadAddress("127.0.0.1", 1, TOKEN))


async def test_a_receiver_without_a_launcher_does_not_begin(tmp_path: Path) -> None:
    run = create_run(validate(SHORT), tmp_path / "run")
    with pytest.raises(RunRefused, match="has ended"):
        await receive_run(run, asyncio.Event(), {})
    assert run.read_status() is Status.IDLE
