"""The worker's end: sends all that is written about a run to the machine that keeps it, and carries out its orders."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import shoal
from shoal.engine import Gate, RoundRecord
from shoal.errors import HeadLost, RunRefused
from shoal.runs.commands.files import COMMANDS, RESPONSES, CommandFiles
from shoal.runs.directory import LOG, METRICS, STATE, VECTORS, RunDirectory
from shoal.runs.remote.messages import (
    CacheEntry,
    CacheQuery,
    CacheReply,
    CommandFile,
    EndReceipt,
    FilePart,
    FrameStream,
    HeadAddress,
    HeadMessage,
    HeadRefusal,
    InputPart,
    JournalPart,
    JournalReceipt,
    NodeEnd,
    NodeHello,
    Purpose,
    ResponseFile,
    RoundCopy,
    Rows,
    RunOrder,
    StateCopy,
    StopOrder,
    TraceRows,
    WorldEnd,
    WorldOpening,
    open_node_end,
)
from shoal.runs.store import InterviewLog, RoundPlans, Store
from shoal.types import WorldProtocol, Writes
from shoal.unix import FolderWatch

#: With more than this unsent, no further round begins.
_MOST_UNSENT_BYTES = 1 << 24
_LOOK_SECONDS = 0.1
_GROWING = (METRICS, LOG, VECTORS)


class RunSender:
    """The connection of a worker to the receiver of its run. A `RunCopy`, and a `ReplyCache`."""

    def __init__(self, stream: FrameStream[HeadMessage], address: HeadAddress) -> None:
        self._stream = stream
        self._address = address
        #: Number of what was sent -> done when it is answered.
        self._receipts: dict[int, asyncio.Future[None]] = {}
        self._replies: dict[int, asyncio.Future[str | None]] = {}
        self._numbers = count(1)
        #: World -> the last round that the receiver has.
        self._known: Mapping[str, int] = {}
        #: File -> how much of it the receiver has.
        self._sent: dict[Path, int] = {}
        self._state = b""
        self._responses: set[str] = set()
        self._slowing: set[asyncio.Task[None]] = set()
        #: Set when the worker is to stop; set also when the head is lost.
        self.stop = asyncio.Event()
        #: Done when the other end is gone, or has everything.
        self.ended: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    # The beginning

    async def fetch_input(self, folder: Path) -> tuple[RunDirectory, RunOrder]:
        """Write the input of the run into a folder of its name, and return it with what to do."""
        self._stream.send(NodeHello(platform.node(), shoal.__version__, platform.python_version()))
        parts: dict[str, list[bytes]] = {}
        while not isinstance(message := await self._stream.read(), RunOrder):
            if isinstance(message, HeadRefusal):
                raise RunRefused(message.why)
            if message is None:
                raise HeadLost(f"the run at {self._address.host} was given up before it began")
            if isinstance(message, InputPart):
                parts.setdefault(message.name, []).append(message.content)
        run = RunDirectory(folder / message.name)
        for name, contents in parts.items():
            path = run.file(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"".join(contents))
        if run.file(VECTORS).exists():
            self._sent[run.file(VECTORS)] = run.file(VECTORS).stat().st_size
        self._known = message.known
        return run, message

    @asynccontextmanager
    async def following(self, run: RunDirectory) -> AsyncIterator[None]:
        """Hear the receiver, and send what changes in the directory, as long as this lasts."""
        CommandFiles(run.path).prepare()
        listening = asyncio.create_task(self._listen(run))
        with (
            FolderWatch() as watch,
            watch.watching(run.path, lambda: self._look(run), appends=True),
            watch.watching(run.file(RESPONSES), lambda: self._send_responses(run)),
        ):
            try:
                yield
            finally:
                self._look(run)
                self._send_responses(run)
        if not self.ended.done():
            self._stream.send(NodeEnd())
        try:
            if not await self.ended:
                raise HeadLost(f"the machine {self._address.host}, which keeps the run, cannot be reached any more")
        finally:
            listening.cancel()
            for task in self._slowing:
                task.cancel()

    async def _listen(self, run: RunDirectory) -> None:
        while (message := await self._stream.read()) is not None:
            if isinstance(message, JournalReceipt):
                self._receipts.pop(message.number).set_result(None)
            elif isinstance(message, CacheReply):
                if not (reply := self._replies.pop(message.number)).done():
                    reply.set_result(message.text)
            elif isinstance(message, CommandFile):
                _place_command(run.file(COMMANDS) / Path(message.name).name, message.content)
            elif isinstance(message, StopOrder):
                self.stop.set()
            elif isinstance(message, EndReceipt):
                self.ended.set_result(True)
                return
        # End everything that waits for the head: nothing that it does not have may be acted upon.
        lost = HeadLost(f"the connection to {self._address.host} was lost")
        waiting: list[asyncio.Future[Any]] = [*self._receipts.values(), *self._replies.values()]
        for answer in waiting:
            if not answer.done():
                answer.set_exception(lost)
        self.stop.set()
        if not self.ended.done():
            self.ended.set_result(False)

    def close(self) -> None:
        self._stream.close()

    # What a session writes

    async def keep_lines(self, text: bytes) -> None:
        """Make lines of the journal durable at the head; HeadLost where it cannot be reached."""
        if self.ended.done():
            raise HeadLost(f"the connection to {self._address.host} was lost")
        number = next(self._numbers)
        receipt = self._receipts[number] = asyncio.get_running_loop().create_future()
        self._stream.send(JournalPart(number, text))
        await receipt

    def open_store(self, directory: Path, world: WorldProtocol, plans: RoundPlans, agents: int, by: str) -> Store:
        """Open a store whose rounds are committed at the head as well."""
        self._stream.send(WorldOpening(world.name, world.schema, world.indexes, agents))
        known = self._known.get(world.name, -1)
        return CopiedStore(directory, world, plans, agents, by, stream=self._stream, known=known)

    def open_interviews(self, directory: Path) -> InterviewLog:
        return CopiedInterviewLog(directory, self._stream)

    def slow_down(self, gate: Gate) -> None:
        """Hold the gate while more was written than could be sent."""
        self._slowing.add(asyncio.create_task(self._regulate(gate)))

    async def _regulate(self, gate: Gate) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            if self._stream.unsent_bytes > _MOST_UNSENT_BYTES:
                gate.hold()
                try:
                    await self._stream.drain()
                except OSError:
                    return
                finally:
                    gate.release()

    # The replies that runs share

    async def get(self, key: bytes) -> str | None:
        """Ask the head whether a reply was paid for before."""
        number = next(self._numbers)
        reply: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._replies[number] = reply
        self._stream.send(CacheQuery(number, key))
        return await reply

    def put(self, key: bytes, model: str, text: str) -> None:
        self._stream.send(CacheEntry(key, model, text))

    # Files that change

    def _look(self, run: RunDirectory) -> None:
        """Send what was appended to files, and the state where it is another one."""
        for name in _GROWING:
            path = run.file(name)
            with suppress(FileNotFoundError):
                if path.stat().st_size > (sent := self._sent.get(path, 0)):
                    with path.open("rb") as file:
                        file.seek(sent)
                        content = file.read()
                    self._stream.send(FilePart(name, sent, content))
                    self._sent[path] = sent + len(content)
        with suppress(FileNotFoundError):
            state = run.file(STATE).read_bytes()
            if state != self._state:
                self._state = state
                self._stream.send(StateCopy(state))

    def _send_responses(self, run: RunDirectory) -> None:
        """Send the answers to commands that were not sent yet. They are written whole."""
        for path in run.file(RESPONSES).glob("*.json"):
            if path.name not in self._responses:
                with suppress(FileNotFoundError):
                    self._stream.send(ResponseFile(path.name, path.read_bytes()))
                    self._responses.add(path.name)


class CopiedStore(Store):
    """A store that also sends what is committed."""

    def __init__(self, *args: Any, stream: FrameStream[HeadMessage], known: int) -> None:
        super().__init__(*args)
        self._copies = stream
        self._known = known

    def commit(self, record: RoundRecord) -> None:
        """Make the round durable here, and send it."""
        record = replace(record, writes=dict(_list_rows(record.writes)), state=dict(_list_rows(record.state)))
        super().commit(record)
        world, is_known = self._world, record.round <= self._known
        self._copies.send(
            RoundCopy(
                record.world,
                record.round,
                record.digest,
                record.hours,
                world.hours(max(record.round - 1, 0)),
                world.timestamp(record.round),
                record.tally.actions,
                record.lines,
                [] if is_known else list(record.writes.items()),  # type: ignore[arg-type]
                [] if is_known else list(record.state.items()),  # type: ignore[arg-type]
            )
        )

    def finish(self, total_actions: int) -> None:
        super().finish(total_actions)
        self._copies.send(WorldEnd(self._world.name, total_actions))


class CopiedInterviewLog(InterviewLog):
    """A log of interviews that also sends them."""

    def __init__(self, directory: Path, stream: FrameStream[HeadMessage]) -> None:
        super().__init__(directory)
        self._copies = stream

    def add(self, world: str, traced: Any) -> None:
        super().add(world, traced)
        self._copies.send(TraceRows(world, list(traced)))


def _list_rows(writes: Writes) -> Rows:
    return [(statement, list(rows)) for statement, rows in writes.items()]


def _place_command(path: Path, content: bytes | None) -> None:
    """Make a command appear or disappear. The worker watches for files that are whole."""
    if content is None:
        path.unlink(missing_ok=True)
        return
    beside = path.with_name(f".{path.name}")
    beside.write_bytes(content)
    beside.replace(path)


async def connect_to_head(address: HeadAddress) -> RunSender:
    """Connect to the receiver of a run; HeadLost where it cannot be reached."""
    try:
        reader, writer = await asyncio.open_connection(address.host, address.port)
    except OSError as error:
        raise HeadLost(
            f"the machine that keeps the run cannot be reached at {address.host}:{address.port}: {error.strerror}"
        ) from error
    writer.write(address.greet(Purpose.RUN))
    return RunSender(open_node_end(reader, writer), address)
