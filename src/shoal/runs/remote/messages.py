"""What a worker on another machine and the receiver of its run say to each other: both ends of the wire.

A connection begins with a line that names its purpose and holds the token of the cluster job. After it come frames: the
length in four bytes, then one MessagePack message.
"""

from __future__ import annotations

import asyncio
import hmac
import socket
import struct
from enum import StrEnum
from typing import Any, Generic, TypeVar

import msgspec

from shoal.errors import StorageFailed

T = TypeVar("T")

#: Rows of a statement, or of several.
Rows = list[tuple[str, list[tuple[Any, ...]]]]

_LENGTH = struct.Struct("!I")
_MAX_FRAME_BYTES = (1 << 32) - 1
_MAX_GREETING_BYTES = 256
#: A file is sent in parts of this size.
PART_BYTES = 1 << 22
#: A machine that is switched off sends no end of its connections. The kernels on both sides find out, also while the
#: processes compute: after this long without a sign, and these many questions.
_SILENT_SECONDS, _ASKED_EVERY_SECONDS, _TIMES_ASKED = 4, 2, 3


class Purpose(StrEnum):
    """What a connection to the receiver is for."""

    RUN = "run"
    BROKER = "broker"


class HeadAddress(msgspec.Struct, frozen=True):
    """Where the receiver of a run listens, and the token that opens it."""

    host: str
    port: int
    token: str

    def greet(self, purpose: Purpose) -> bytes:
        """Return the line that begins a connection."""
        return f"shoal {purpose} {self.token}\n".encode()

    def read_greeting(self, line: bytes) -> Purpose | None:
        """Return what a connection is for; None where it does not know the token."""
        words = line.decode(errors="replace").split()
        if len(words) != 3 or not hmac.compare_digest(words[2].encode(), self.token.encode()):
            return None
        return Purpose(words[1]) if words[1] in tuple(Purpose) else None


# From the worker


class NodeHello(msgspec.Struct, frozen=True, array_like=True, tag=0):
    """Comes first, and says where the worker is and what it runs with."""

    node: str
    shoal_version: str
    python_version: str


class JournalPart(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Lines of the journal. They may be acted upon once the receipt is there."""

    number: int
    text: bytes


class WorldOpening(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Comes before the first round of a world."""

    name: str
    schema: str
    indexes: str
    agents: int


class RoundCopy(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """A committed round. One that was known before comes without rows."""

    world: str
    round: int
    digest: str
    hours: float
    hours_before: float
    timestamp: str
    actions: int
    lines: bytes
    writes: Rows
    state: Rows


class WorldEnd(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """The history of a world is complete."""

    world: str
    actions: int


class FilePart(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """What was appended to a file at an offset."""

    name: str
    offset: int
    content: bytes


class StateCopy(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """The state of the run, as the worker wrote it."""

    text: bytes


class ResponseFile(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """The response to a command."""

    name: str
    content: bytes


class TraceRows(msgspec.Struct, frozen=True, array_like=True, tag=8):
    """Interviews to be kept in the trace of a world."""

    world: str
    rows: list[tuple[int, str, str]]


class CacheQuery(msgspec.Struct, frozen=True, array_like=True, tag=9):
    """Asks whether a reply was paid for before."""

    number: int
    key: bytes


class CacheEntry(msgspec.Struct, frozen=True, array_like=True, tag=10):
    """A reply for later runs."""

    key: bytes
    model: str
    text: str


class NodeEnd(msgspec.Struct, frozen=True, array_like=True, tag=11):
    """Comes last: the worker is done, for whatever reason; the state says which."""


NodeMessage = (
    NodeHello
    | JournalPart
    | WorldOpening
    | RoundCopy
    | WorldEnd
    | FilePart
    | StateCopy
    | ResponseFile
    | TraceRows
    | CacheQuery
    | CacheEntry
    | NodeEnd
)


# From the receiver


class HeadRefusal(msgspec.Struct, frozen=True, array_like=True, tag=0):
    """The last message on a connection that cannot go on."""

    why: str


class InputPart(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """A part of a file of the run's input."""

    name: str
    content: bytes


class RunOrder(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Comes after the input: the worker may begin."""

    name: str
    #: Keys and addresses of models.
    environ: dict[str, str]
    #: World -> its last committed round.
    known: dict[str, int]


class JournalReceipt(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """The lines of the journal with this number and all before are on disk."""

    number: int


class CacheReply(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """The answer to a query."""

    number: int
    text: str | None


class CommandFile(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """A command to the worker; None: its sender no longer waits."""

    name: str
    content: bytes | None


class StopOrder(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """The worker is to stop."""


class EndReceipt(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """Everything up to the end is on disk."""


HeadMessage = HeadRefusal | InputPart | RunOrder | JournalReceipt | CacheReply | CommandFile | StopOrder | EndReceipt


# Both ends


def _encode_other(value: Any) -> Any:
    """Encode subclasses of text, and numbers of numpy, as SQLite does."""
    if isinstance(value, str):
        return str.__str__(value)
    return value.item()


_encoder = msgspec.msgpack.Encoder(enc_hook=_encode_other)
_node_decoder: msgspec.msgpack.Decoder[NodeMessage] = msgspec.msgpack.Decoder(NodeMessage)
_head_decoder: msgspec.msgpack.Decoder[HeadMessage] = msgspec.msgpack.Decoder(HeadMessage)


class FrameStream(Generic[T]):
    """One end of a connection after its greeting."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, decoder: msgspec.msgpack.Decoder[T]
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._decoder = decoder
        watch_silence(writer)

    @property
    def unsent_bytes(self) -> int:
        return self._writer.transport.get_write_buffer_size()

    def send(self, message: NodeMessage | HeadMessage) -> None:
        """Send a message, some time."""
        body = _encoder.encode(message)
        if len(body) > _MAX_FRAME_BYTES:
            raise StorageFailed(f"a round of {len(body):,} bytes is too large to be sent to another machine")
        self._writer.write(_LENGTH.pack(len(body)))
        self._writer.write(body)

    async def drain(self) -> None:
        """Wait until little is unsent."""
        await self._writer.drain()

    async def read(self) -> T | None:
        """Read the next message; None at the end of the connection, however it came."""
        try:
            (length,) = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
            return self._decoder.decode(await self._reader.readexactly(length))
        except (asyncio.IncompleteReadError, OSError):
            return None

    def close(self) -> None:
        self._writer.close()

    def abort(self) -> None:
        self._writer.transport.abort()


def open_node_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> FrameStream[HeadMessage]:
    """Return the end of a worker, which hears the receiver."""
    return FrameStream(reader, writer, _head_decoder)


def open_head_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> FrameStream[NodeMessage]:
    """Return the end of a receiver, which hears a worker."""
    return FrameStream(reader, writer, _node_decoder)


def watch_silence(writer: asyncio.StreamWriter) -> None:
    """Let the kernel end a connection whose other machine is gone."""
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for name, value in (
        ("TCP_KEEPIDLE", _SILENT_SECONDS),
        ("TCP_KEEPINTVL", _ASKED_EVERY_SECONDS),
        ("TCP_KEEPCNT", _TIMES_ASKED),
        ("TCP_USER_TIMEOUT", 1000 * (_SILENT_SECONDS + _ASKED_EVERY_SECONDS * _TIMES_ASKED)),
    ):
        # Not every system has all of them.
        if (option := getattr(socket, name, None)) is not None:
            connection.setsockopt(socket.IPPROTO_TCP, option, value)


async def read_greeting(reader: asyncio.StreamReader) -> bytes:
    """Read the first line of a connection; empty if it is too long, or the connection ends."""
    try:
        line = await reader.readuntil(b"\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
        return b""
    return line if len(line) <= _MAX_GREETING_BYTES else b""
