"""A server that speaks Bolt 5 as its specification says, over a property graph in memory."""

from __future__ import annotations

import socket
import socketserver
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from tests.sinks.cypher import CypherError, PropertyGraph

_MAGIC = b"\x60\x60\xb0\x17"
_VERSION = (5, 3)
HELLO, GOODBYE, RESET, RUN, BEGIN, COMMIT, ROLLBACK, DISCARD, PULL, LOGON = (
    0x01, 0x02, 0x0F, 0x10, 0x11, 0x12, 0x13, 0x2F, 0x3F, 0x6A,
)  # fmt: skip
SUCCESS, RECORD, IGNORED, FAILURE = 0x70, 0x71, 0x7E, 0x7F


def pack(value: Any) -> bytes:
    """Encode a value as PackStream."""
    match value:
        case None:
            return b"\xc0"
        case bool():
            return b"\xc3" if value else b"\xc2"
        case int() if -16 <= value < 128:
            return struct.pack(">b", value)
        case int():
            return b"\xcb" + struct.pack(">q", value)
        case float():
            return b"\xc1" + struct.pack(">d", value)
        case str():
            content = value.encode()
            return _pack_size(len(content), 0x80, b"\xd0\xd1\xd2") + content
        case list() | tuple():
            return _pack_size(len(value), 0x90, b"\xd4\xd5\xd6") + b"".join(map(pack, value))
        case dict():
            content = b"".join(pack(part) for pair in value.items() for part in pair)
            return _pack_size(len(value), 0xA0, b"\xd8\xd9\xda") + content
    raise TypeError(type(value))


def _pack_size(size: int, tiny: int, markers: bytes) -> bytes:
    if size < 16:
        return bytes([tiny + size])
    for marker, form, most in zip(markers, (">B", ">H", ">I"), (1 << 8, 1 << 16, 1 << 32), strict=True):
        if size < most:
            return bytes([marker]) + struct.pack(form, size)
    raise ValueError(size)


class Unpacker:
    """Decodes PackStream."""

    _SIZED: ClassVar[dict[int, tuple[str, str]]] = {
        0xD0: ("text", ">B"), 0xD1: ("text", ">H"), 0xD2: ("text", ">I"),
        0xD4: ("list", ">B"), 0xD5: ("list", ">H"), 0xD6: ("list", ">I"),
        0xD8: ("map", ">B"), 0xD9: ("map", ">H"), 0xDA: ("map", ">I"),
    }  # fmt: skip
    _INTEGERS: ClassVar[dict[int, str]] = {0xC8: ">b", 0xC9: ">h", 0xCA: ">i", 0xCB: ">q"}
    _TINY: ClassVar[dict[int, str]] = {0x80: "text", 0x90: "list", 0xA0: "map"}

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def read(self, form: str) -> Any:
        (value,) = struct.unpack_from(form, self.content, self.at)
        self.at += struct.calcsize(form)
        return value

    def unpack(self) -> Any:
        marker = self.read(">B")
        if marker < 0x80 or marker >= 0xF0:
            return marker - 256 if marker >= 0xF0 else marker
        if marker in (0xC0, 0xC2, 0xC3):
            return {0xC0: None, 0xC2: False, 0xC3: True}[marker]
        if marker == 0xC1:
            return self.read(">d")
        if marker in self._INTEGERS:
            return self.read(self._INTEGERS[marker])
        if marker in self._SIZED:
            kind, form = self._SIZED[marker]
            return self.unpack_many(kind, self.read(form))
        return self.unpack_many(self._TINY[marker & 0xF0], marker & 0x0F)

    def unpack_many(self, kind: str, size: int) -> Any:
        if kind == "text":
            self.at += size
            return self.content[self.at - size : self.at].decode()
        if kind == "list":
            return [self.unpack() for _ in range(size)]
        return {self.unpack(): self.unpack() for _ in range(size)}


class _Connection(socketserver.BaseRequestHandler):
    """One connection: its state is that of the specification, and a message out of turn is a failure."""

    server: BoltServerPeer

    def handle(self) -> None:
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self.talk()
        except (ConnectionError, TimeoutError):
            self.end_transaction()

    def talk(self) -> None:
        assert self.take(4) == _MAGIC
        proposals = [self.take(4) for _ in range(4)]
        offered = any(each[3] == _VERSION[0] and each[2] - each[1] <= _VERSION[1] <= each[2] for each in proposals)
        self.request.sendall(bytes([0, 0, _VERSION[1], _VERSION[0]]) if offered else bytes(4))
        self.is_known = self.has_failed = self.has_transaction = False
        self.result: tuple[list[str], list[list[Any]]] | None = None
        while offered:
            kind, fields = self.read_message()
            if kind == GOODBYE:
                break
            if self.server.hangs.is_set():
                # Whoever waits has a deadline of its own.
                self.server.released.wait(60)
                break
            if self.has_failed and kind != RESET:
                self.send(IGNORED)
                continue
            try:
                self.answer(kind, fields)
            except CypherError as error:
                self.has_failed = True
                self.end_transaction()
                self.send(FAILURE, {"code": error.code, "message": str(error)})
        self.end_transaction()

    def answer(self, kind: int, fields: list[Any]) -> None:
        if kind in (RUN, BEGIN) and not self.is_known:
            raise CypherError("Neo.ClientError.Security.Unauthorized", "log on first")
        match kind:
            case 0x01:
                assert fields[0]["user_agent"]
                self.send(SUCCESS, {"server": "Neo4j/5.0.0", "connection_id": "bolt-1"})
            case 0x6A:
                if self.server.password not in (None, fields[0].get("credentials")):
                    raise CypherError("Neo.ClientError.Security.Unauthorized", "the client is unauthorized")
                self.is_known = True
                self.send(SUCCESS, {})
            case 0x0F:
                self.end_transaction()
                self.has_failed, self.result = False, None
                self.send(SUCCESS, {})
            case 0x11:
                self.begin()
                self.send(SUCCESS, {})
            case 0x10:
                self.run(*fields[:2])
            case 0x3F | 0x2F:
                self.pull(is_wanted=kind == PULL, count=fields[0]["n"])
            case 0x12:
                self.commit()
                self.send(SUCCESS, {"bookmark": "b1"})
            case 0x13:
                self.end_transaction()
                self.send(SUCCESS, {})
            case _:
                raise CypherError("Neo.ClientError.Request.Invalid", f"no message {kind:#x} in this state")

    def begin(self) -> None:
        assert not self.has_transaction
        if not self.server.writing.acquire(timeout=30):
            raise CypherError("Neo.TransientError.Transaction.LockClientStopped", "no lock")
        self.has_transaction, self.graph = True, self.server.graph.copy()

    def commit(self) -> None:
        assert self.has_transaction
        self.server.graph = self.graph
        self.server.commits += 1
        is_lost = self.server.commits in self.server.loses_commits
        self.end_transaction()
        if is_lost:
            # What was committed stays; the client does not hear of it.
            self.request.shutdown(socket.SHUT_RDWR)

    def end_transaction(self) -> None:
        if getattr(self, "has_transaction", False):
            self.has_transaction = False
            self.server.writing.release()

    def run(self, statement: str, parameters: dict[str, Any]) -> None:
        self.server.statements.append(statement)
        if self.server.fails_in:
            self.server.fails_in -= 1
            if not self.server.fails_in:
                raise CypherError("Neo.TransientError.General.OutOfMemoryError", "not enough memory")
        alone = not self.has_transaction
        if alone:
            self.begin()
        self.result = self.graph.run(statement, parameters)
        if alone:
            self.commit()
        self.send(SUCCESS, {"fields": self.result[0], "t_first": 0})

    def pull(self, *, is_wanted: bool, count: int) -> None:
        if self.result is None:
            raise CypherError("Neo.ClientError.Request.Invalid", "nothing was run")
        rows = self.result[1] if count < 0 else self.result[1][:count]
        for row in rows if is_wanted else ():
            self.send(RECORD, row)
        self.result = self.result[0], self.result[1][len(rows) :]
        self.send(SUCCESS, {"has_more": bool(self.result[1])} if self.result[1] else {"type": "rw", "bookmark": "b1"})

    # Messages

    def take(self, size: int) -> bytes:
        content = b""
        while len(content) < size:
            part = self.request.recv(size - len(content))
            if not part:
                raise ConnectionResetError
            content += part
        return content

    def read_message(self) -> tuple[int, list[Any]]:
        content = b""
        while True:
            (size,) = struct.unpack(">H", self.take(2))
            if size:
                content += self.take(size)
            elif content:
                break
        unpacker = Unpacker(content[2:])
        assert content[0] & 0xF0 == 0xB0
        return content[1], [unpacker.unpack() for _ in range(content[0] & 0x0F)]

    def send(self, kind: int, *fields: Any) -> None:
        content = bytes([0xB0 + len(fields), kind]) + b"".join(map(pack, fields))
        chunks = [content[first : first + 0xFFFF] for first in range(0, len(content), 0xFFFF)]
        self.request.sendall(b"".join(struct.pack(">H", len(part)) + part for part in chunks) + b"\0\0")


class BoltServerPeer(socketserver.ThreadingTCPServer):
    """Holds one graph, for any number of connections, and fails where a test wants it to."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, password: str | None = None, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Connection)
        self.password = password
        self.graph = PropertyGraph()
        self.writing = threading.Lock()
        self.statements: list[str] = []
        self.commits = 0
        #: Commits, counted from 1, after which the connection is lost.
        self.loses_commits: set[int] = set()
        #: After so many statements one fails; 0: none does.
        self.fails_in = 0
        self.hangs, self.released = threading.Event(), threading.Event()

    @property
    def address(self) -> str:
        return f"bolt://127.0.0.1:{self.server_address[1]}"


@contextmanager
def serve_bolt(password: str | None = None) -> Iterator[BoltServerPeer]:
    with BoltServerPeer(password) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.released.set()
            server.shutdown()
            thread.join()
