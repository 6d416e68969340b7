"""The head's end: the process that holds a run while a worker on another machine works on it.

On this machine it is the run's worker: it holds the lock, keeps what arrives, passes commands on, and its
end is the run's. It waits for a worker as long as its launcher lives; of two workers, the later one counts.
"""

from __future__ import annotations

import asyncio
import os
import platform
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack, ExitStack, suppress
from pathlib import Path
from typing import cast

import msgspec

import shoal
from shoal.errors import ShoalError, SlotsRefused, StorageFailed
from shoal.models import Cache, open_cache
from shoal.runs.commands.files import COMMANDS, RESPONSES, CommandFiles
from shoal.runs.config import INPUTS
from shoal.runs.directory import CONFIG, JOURNAL, LIMITS, LOG, METRICS, STATE, VECTORS, RunDirectory
from shoal.runs.files import storage_errors
from shoal.runs.mirofish import format_state
from shoal.runs.remote.copies import KeptRounds
from shoal.runs.remote.launching import LauncherLink, ReceiverTerms
from shoal.runs.remote.messages import (
    PART_BYTES,
    CacheEntry,
    CacheQuery,
    CacheReply,
    CommandFile,
    EndReceipt,
    FilePart,
    FrameStream,
    HeadAddress,
    HeadRefusal,
    InputPart,
    JournalPart,
    JournalReceipt,
    NodeEnd,
    NodeHello,
    NodeMessage,
    Purpose,
    ResponseFile,
    RunOrder,
    StateCopy,
    StopOrder,
    TraceRows,
    open_head_end,
    read_greeting,
    watch_silence,
)
from shoal.runs.resources import RunResources
from shoal.runs.state import RunState, Status, WaitState, format_moment
from shoal.runs.store import InterviewLog
from shoal.slots import BrokerLocation, open_broker
from shoal.unix import FolderWatch

#: While nothing else happens, the state is written this often, to show that the process is alive.
_HEARTBEAT_SECONDS = 2.0
#: Files of a run that a worker starts from, beside the copies of files that the scenario names.
_INPUT = (CONFIG, JOURNAL, LIMITS, VECTORS)
_BRIDGED_BYTES = 1 << 16


async def receive_run(run: RunDirectory, stop: asyncio.Event, environ: Mapping[str, str]) -> None:
    """Hold a run until the work of others on it has ended, and keep what they write."""
    with run.lock():
        async with await LauncherLink.open(run.path.absolute(), environ) as launcher, AsyncExitStack() as opened:
            receiver = RunReceiver(run, launcher.terms, RunResources.of_user(environ), opened)
            await receiver.work(launcher, stop)


class RunReceiver:
    """Holds one run."""

    def __init__(
        self, run: RunDirectory, terms: ReceiverTerms, resources: RunResources, opened: AsyncExitStack
    ) -> None:
        self._run = run
        self._terms = terms
        self._resources = resources
        self._opened = opened
        self._address = HeadAddress(terms.host, 0, terms.token)
        self._state = run.read_state()
        self._journal = -1
        self._cache: Cache | None = None
        self._interviews = InterviewLog(run.path)
        #: The worker that counts, and what must end with it.
        self._worker: FrameStream[NodeMessage] | None = None
        self._bridges: set[asyncio.StreamWriter] = set()
        #: Commands that the worker knows.
        self._passed: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._stop = asyncio.Event()
        #: Done when nothing more will come; an error says why the run failed.
        self._over: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

    async def work(self, launcher: LauncherLink, stop: asyncio.Event) -> None:
        """Hold the run until it is over, or the launcher gives it up, or this process is asked to stop."""
        CommandFiles(self._run.path).prepare()
        server = await asyncio.start_server(self._accept, self._terms.host, 0)
        self._wait_for_node("waiting for a free place on the Ray cluster")
        launcher.announce(server.sockets[0].getsockname()[1])
        tasks = [asyncio.create_task(each) for each in (self._heed(launcher), self._heed_stop(stop), self._show_life())]
        try:
            with FolderWatch() as watch, watch.watching(self._run.file(COMMANDS), self._pass_commands):
                error = await self._over
        finally:
            for task in (*tasks, *self._tasks):
                task.cancel()
            await asyncio.gather(*tasks, *self._tasks, return_exceptions=True)
            self._drop_worker()
            server.close()
            self._interviews.close()
        state, stopped = self._state, stop.is_set()
        state.process_pid = state.waiting = None
        if state.runner_status.is_working:
            if error is not None:
                with suppress(OSError), self._run.file(LOG).open("a") as log:
                    log.write(f"{error}\n")
            state.become(Status.STOPPED if stopped else Status.FAILED, None if stopped else error or "its worker ended")
        self._run.write_state(state)

    async def _heed(self, launcher: LauncherLink) -> None:
        """Give the run up when its launcher says so, or ends."""
        self._finish(await launcher.wait_for_end())

    async def _heed_stop(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._stop.set()
        if self._worker is None:
            self._finish(None)
        else:
            self._worker.send(StopOrder())

    def _finish(self, error: str | None) -> None:
        if not self._over.done():
            self._over.set_result(error)

    # What others see of the run

    def _wait_for_node(self, why: str) -> None:
        """Show that the run waits, for as long as it takes."""
        state = self._state
        if not state.runner_status.is_working:
            state.become(Status.RUNNING)
        if state.runner_status is not Status.PAUSED:
            state.become(Status.PAUSED)
        moment = format_moment(time.time())
        state.waiting = WaitState("a node of the Ray cluster", why, moment, "")
        self._write_state()

    def _write_state(self) -> None:
        self._state.process_pid = os.getpid()
        self._run.write_state(self._state)

    async def _show_life(self) -> None:
        """Show that the run is held while no worker writes its state."""
        while True:
            await asyncio.sleep(_HEARTBEAT_SECONDS)
            if self._worker is None:
                self._state.updated_at = format_moment(time.time())
                with suppress(StorageFailed):
                    self._write_state()

    # Connections

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        purpose = self._address.read_greeting(await read_greeting(reader))
        if purpose is None:
            writer.close()
            return
        serving = self._serve_worker(reader, writer) if purpose is Purpose.RUN else self._bridge_broker(reader, writer)
        task = asyncio.create_task(serving)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve_worker(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        stream = open_head_end(reader, writer)
        hello = await stream.read()
        if not isinstance(hello, NodeHello):
            stream.close()
            return
        if (why := _compare_versions(hello)) is not None:
            stream.send(HeadRefusal(why))
            stream.close()
            self._finish(why)
            return
        self._drop_worker()
        self._worker = stream
        try:
            with ExitStack() as held:
                await self._send_input(stream, held)
                rounds = held.enter_context(KeptRounds(self._run))
                self._pass_commands()
                if self._stop.is_set():
                    stream.send(StopOrder())
                # What a worker sent before a later one came must not be added to what that one began with.
                while (message := await stream.read()) is not None and self._worker is stream:
                    await self._keep(message, stream, rounds)
        except ShoalError as error:
            stream.send(HeadRefusal(str(error)))
            self._finish(str(error))
        if self._worker is stream:
            self._drop_worker()
            if self._stop.is_set() or not self._state.runner_status.is_working:
                self._finish(None)
            else:
                self._wait_for_node(f"the worker on {hello.node} was lost, and starts again elsewhere")

    def _drop_worker(self) -> None:
        """End the connections of a worker, so that its slots go to others at once."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None
        for bridge in self._bridges:
            bridge.transport.abort()
        self._bridges.clear()
        self._passed.clear()

    async def _send_input(self, stream: FrameStream[NodeMessage], held: ExitStack) -> None:
        """Send what the run starts from, and open its journal where that ends."""
        run = self._run
        # A torn last line was never acted upon, so it is cut off.
        with storage_errors(run.journal):
            self._journal = os.open(run.journal, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            os.ftruncate(self._journal, run.journal.read_bytes().rfind(b"\n") + 1)
        held.callback(os.close, self._journal)
        folder = run.file(INPUTS)
        waited = msgspec.structs.replace(self._state, waiting=None, process_pid=None)
        stream.send(InputPart(STATE, msgspec.json.encode(format_state(waited))))
        found = [run.file(name) for name in _INPUT]
        found += sorted(path for path in folder.rglob("*") if path.is_file()) if folder.exists() else []
        for path in found:
            if path.exists():
                with path.open("rb") as file:
                    while content := file.read(PART_BYTES):
                        stream.send(InputPart(str(path.relative_to(run.path)), content))
                        await stream.drain()
        sizes = {name: run.file(name).stat().st_size for name in (METRICS, LOG) if run.file(name).exists()}
        self._offsets = {METRICS: 0, LOG: 0, VECTORS: 0, **sizes}
        stream.send(RunOrder(run.path.name, dict(self._terms.environ), run.read_last_rounds()))

    # What a worker sends

    async def _keep(self, message: NodeMessage, stream: FrameStream[NodeMessage], rounds: KeptRounds) -> None:
        if isinstance(message, JournalPart):
            _append(self._run.journal, self._journal, message.text)
            stream.send(JournalReceipt(message.number))
        elif isinstance(message, StateCopy):
            self._state = msgspec.json.decode(message.text, type=RunState)
            if self._state.process_pid is not None:
                self._state.process_pid = os.getpid()
            if self._state.runner_status.is_working:
                self._run.write_state(self._state)
        elif isinstance(message, FilePart) and message.name in self._offsets:
            _write_at(self._run.file(message.name), self._offsets[message.name] + message.offset, message.content)
        elif isinstance(message, CacheQuery | CacheEntry):
            await self._use_cache(message, stream)
        elif isinstance(message, ResponseFile):
            self._respond(message)
        elif isinstance(message, TraceRows):
            self._interviews.add(message.world, message.rows)
        elif isinstance(message, NodeEnd):
            rounds.close()
            self._run.write_state(self._state)
            stream.send(EndReceipt())
            await stream.drain()
            self._finish(None)
        else:
            rounds.keep(message)

    async def _use_cache(self, message: CacheQuery | CacheEntry, stream: FrameStream[NodeMessage]) -> None:
        if self._cache is None:
            assert isinstance(self._resources.cache, Path)
            self._cache = await self._opened.enter_async_context(open_cache(self._resources.cache))
        if isinstance(message, CacheQuery):
            stream.send(CacheReply(message.number, await self._cache.get(message.key)))
        else:
            self._cache.put(message.key, message.model, message.text)

    # Commands

    def _pass_commands(self) -> None:
        """Pass on commands that appeared, and those whose sender no longer waits."""
        if self._worker is None:
            return
        files = {path.name: path for path in self._run.file(COMMANDS).glob("*.json")}
        for name in files.keys() - self._passed:
            with suppress(FileNotFoundError):
                self._worker.send(CommandFile(name, files[name].read_bytes()))
                self._passed.add(name)
        for name in self._passed - files.keys():
            self._worker.send(CommandFile(name, None))
            self._passed.discard(name)

    def _respond(self, message: ResponseFile) -> None:
        name = Path(message.name).name
        path, beside = self._run.file(RESPONSES) / name, self._run.file(RESPONSES) / f".{name}"
        with storage_errors(path):
            beside.write_bytes(message.content)
            beside.replace(path)
        if not (self._run.file(COMMANDS) / name).exists():
            path.unlink(missing_ok=True)

    # The broker

    async def _bridge_broker(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass bytes between the worker and the broker of this machine, which sees when either is gone."""
        watch_silence(writer)
        try:
            broker_reader, broker_writer = await open_broker(cast(BrokerLocation, self._resources.slots))
        except SlotsRefused as error:
            writer.close()
            self._finish(str(error))
            return
        ends = {writer, broker_writer}
        self._bridges |= ends
        try:
            passing = [
                asyncio.create_task(_pass_bytes(source, target))
                for source, target in ((reader, broker_writer), (broker_reader, writer))
            ]
            await asyncio.wait(passing, return_when=asyncio.FIRST_COMPLETED)
            for task in passing:
                task.cancel()
            await asyncio.gather(*passing, return_exceptions=True)
        finally:
            self._bridges -= ends
            for end in ends:
                end.close()


async def _pass_bytes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(_BRIDGED_BYTES):
            writer.write(data)
            await writer.drain()


def _compare_versions(hello: NodeHello) -> str | None:
    """Say what is wrong where a node runs with something else than this machine."""
    for name, there, here in (
        ("Shoal", hello.shoal_version, shoal.__version__),
        ("Python", _minor(hello.python_version), _minor(platform.python_version())),
    ):
        if there != here:
            return f"node {hello.node} has {name} {there}, and this machine {here}: install the same on all nodes"
    return None


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _append(path: Path, file: int, text: bytes) -> None:
    """Append and sync."""
    with storage_errors(path):
        view = memoryview(text)
        while view:
            view = view[os.write(file, view) :]
        os.fsync(file)


def _write_at(path: Path, offset: int, content: bytes) -> None:
    with storage_errors(path), path.open("r+b" if path.exists() else "w+b") as file:
        file.seek(offset)
        file.write(content)
        file.truncate()
