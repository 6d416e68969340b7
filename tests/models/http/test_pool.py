"""The transport against servers that keep to HTTP, and against some that do not."""

from __future__ import annotations

import asyncio
import gzip
import socket
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from shoal.models.base import FailureKind, ModelFailed
from shoal.models.http.messages import HttpReply, HttpRequest, HttpTarget
from shoal.models.http.pool import FakeTransport, HttpTransport, Transport, open_transport
from shoal.rehearsal.http import RequestReader
from tests.models.servers import Talk, listen, read_request, send_replies

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
HEAD = b"HTTP/1.1 200 OK\r\n"
LARGE = b"x" * 20_000_000


def request(port: int, body: bytes = b"{}", seconds: float = 30.0, host: str = "127.0.0.1") -> HttpRequest:
    return HttpRequest(HttpTarget(f"http://{host}:{port}/v1", {"Authorization": "Bearer secret"}), body, seconds)


@asynccontextmanager
async def connected(talk: Talk, **how: Any) -> AsyncIterator[tuple[HttpTransport, int]]:
    async with listen(talk) as port, open_transport(**how) as transport:
        yield transport, port


async def reply_to(*replies: bytes) -> HttpReply:
    async with connected(send_replies(*replies)) as (transport, port):
        return await transport.post(request(port))


async def failure_of(talk: Talk, body: bytes = b"{}", seconds: float = 30.0) -> Any:
    async with asyncio.timeout(60), connected(talk) as (transport, port):
        with pytest.raises(ModelFailed) as caught:
            await transport.post(request(port, body, seconds))
    return caught.value.failure


def ending(reply: bytes) -> Talk:
    """Says this and closes."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(reply)
        writer.close()

    return talk


# replies


@pytest.mark.parametrize(
    ("raw", "body"),
    [
        pytest.param(OK, b"hi", id="length"),
        pytest.param(HEAD + b"content-length:0\r\n\r\n", b"", id="empty"),
        pytest.param(b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nhi", b"hi", id="no reason"),
        pytest.param(
            HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;ext=1\r\nh\r\n1\r\ni\r\n0\r\nTrailer: x\r\n\r\n",
            b"hi",
            id="chunks, an extension and a trailer",
        ),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n" + OK, b"hi", id="100"),
        pytest.param(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + OK, b"hi", id="103"),
        pytest.param(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", b"hi", id="HTTP/1.0"),
        pytest.param(HEAD + b"Content-Encoding: identity\r\nContent-Length: 2\r\n\r\nhi", b"hi", id="identity"),
    ],
)
async def test_a_reply_is_read_however_it_is_framed_and_cut(raw: bytes, body: bytes) -> None:
    whole = await reply_to(raw)
    assert (whole.status, whole.body) == (200, body)

    async def in_pieces(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        for at in range(len(raw)):
            writer.write(raw[at : at + 1])
            await asyncio.sleep(0)
        await reader.read()

    async with connected(in_pieces) as (transport, port):
        assert (await transport.post(request(port))).body == body


@pytest.mark.parametrize("version", ["1.0", "1.1"])
async def test_a_reply_without_a_length_ends_with_the_connection(version: str) -> None:
    async with connected(ending(f"HTTP/{version} 200 OK\r\n\r\nall of it".encode())) as (transport, port):
        assert (await transport.post(request(port))).body == b"all of it"


@pytest.mark.parametrize(
    ("name", "pack"), [("gzip", gzip.compress), ("GZIP", gzip.compress), ("deflate", zlib.compress)]
)
async def test_what_was_compressed_unasked_is_unpacked(name: str, pack: Any) -> None:
    packed = pack(b"hello" * 100)
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {name}\r\nContent-Length: {len(packed)}\r\n\r\n"
    assert (await reply_to(head.encode() + packed)).body == b"hello" * 100


async def test_a_status_without_a_body_is_a_reply() -> None:
    assert (await reply_to(b"HTTP/1.1 204 No Content\r\n\r\n")).status == 204


async def test_headers_may_be_many_and_long() -> None:
    headers = b"".join(b"X-%d: %s\r\n" % (number, b"y" * 1000) for number in range(150))
    reply = await reply_to(HEAD + headers + b"Content-Length: 2\r\n\r\nhi")
    assert reply.headers["x-149"] == "y" * 1000


async def test_of_a_header_that_comes_twice_the_first_counts() -> None:
    reply = await reply_to(HEAD + b"Retry-After: 3\r\nRETRY-AFTER: 9\r\nContent-Length: 2\r\n\r\nhi")
    assert reply.headers.get("retry-after") == "3"


@pytest.mark.parametrize("kind", ["real", "fake"])
async def test_status_headers_in_small_letters_and_body_come_back(kind: str) -> None:
    """What every transport promises."""
    raw = b"HTTP/1.1 429 Slow\r\nRetry-After: 3\r\nContent-Length: 4\r\n\r\nlate"
    fake = FakeTransport(lambda _: HttpReply(429, {"retry-after": "3", "content-length": "4"}, b"late"))
    async with connected(send_replies(raw)) as (real, port):
        transport: Transport = real if kind == "real" else fake
        reply = await transport.post(request(port))
    assert (reply.status, dict(reply.headers), reply.body) == (
        429,
        {"retry-after": "3", "content-length": "4"},
        b"late",
    )


# what is no reply


@pytest.mark.parametrize(
    ("talk", "words"),
    [
        pytest.param(ending(b""), "closed the connection without a reply", id="nothing"),
        pytest.param(ending(HEAD), "in the middle of its reply", id="half a head"),
        pytest.param(ending(HEAD + b"Content-Length: 9\r\n\r\nhalf"), "in the middle of its reply", id="half a body"),
        pytest.param(
            ending(HEAD + b"Transfer-Encoding: chunked\r\n\r\n9\r\nhalf"),
            "in the middle of its reply",
            id="half a chunk",
        ),
        pytest.param(ending(b"SSH-2.0-OpenSSH_9.2\r\n"), "cannot be read.*SSH", id="another protocol"),
        pytest.param(
            ending(HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi"), "cannot be read", id="two lengths"
        ),
        pytest.param(
            ending(b"HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n"), "cannot be read", id="101"
        ),
        pytest.param(
            ending(HEAD + b"Content-Encoding: br\r\nContent-Length: 2\r\n\r\nhi"),
            "compressed as br",
            id="unknown packing",
        ),
        pytest.param(
            ending(HEAD + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\nhi"), "cannot be read", id="false gzip"
        ),
        pytest.param(
            ending(HEAD + b"Content-Encoding: gzip\r\nContent-Length: 15\r\n\r\n" + gzip.compress(b"hello")[:15]),
            "cut off",
            id="half a gzip",
        ),
    ],
)
async def test_what_cannot_be_read_may_be_better_the_next_time(talk: Talk, words: str) -> None:
    failure = await failure_of(talk)
    assert failure.kind is FailureKind.TRANSIENT
    with pytest.raises(ModelFailed, match=words):
        raise ModelFailed(failure)


async def test_a_head_without_end_is_cut() -> None:
    failure = await failure_of(ending(HEAD + b"X: " + b"y" * 1_000_000))
    assert (failure.kind, failure.text.startswith("the reply was cut at")) == (FailureKind.FATAL, True)


async def test_a_body_without_end_is_cut() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(HEAD + b"\r\n")
        while True:
            writer.write(LARGE)
            await writer.drain()

    assert (await failure_of(talk)).kind is FailureKind.FATAL


async def test_a_small_reply_that_would_unpack_to_a_huge_one_is_not_read() -> None:
    packed = gzip.compress(bytes(80_000_000), 1)
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n"
    assert "too large" in (await failure_of(ending(head.encode() + packed))).text


async def test_a_closed_port_is_reported_with_its_address() -> None:
    # A port that is taken and not listened at cannot be given to another process.
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        async with open_transport() as transport:
            with pytest.raises(ModelFailed, match=f"cannot be reached: 127.0.0.1:{port}: .*(refused|failed)") as caught:
                await transport.post(request(port))
    assert caught.value.failure.kind is FailureKind.UNREACHABLE


# connections that are kept


class Counted:
    """Gives these replies to each connection in turn, and counts connections and requests."""

    def __init__(self, *replies: bytes) -> None:
        self._replies = list(replies)
        self.connections = 0
        self.requests = 0
        self.gone = asyncio.Event()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        reading = RequestReader()
        try:
            while True:
                await read_request(reader, reading)
                self.requests += 1
                writer.write(self._replies.pop(0) if len(self._replies) > 1 else self._replies[0])
        finally:
            self.gone.set()


@pytest.mark.parametrize(
    ("reply", "connections"),
    [
        pytest.param(OK, 1, id="kept"),
        pytest.param(HEAD + b"Connection: close\r\nContent-Length: 2\r\n\r\nhi", 3, id="told to close"),
        pytest.param(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", 3, id="HTTP/1.0"),
        pytest.param(b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi", 1, id="1.0, kept"),
        pytest.param(OK + OK, 3, id="more than was asked for"),
    ],
)
async def test_a_connection_is_used_again_only_where_that_is_safe(reply: bytes, connections: int) -> None:
    server = Counted(reply)
    async with connected(server) as (transport, port):
        for _ in range(3):
            assert (await transport.post(request(port))).body == b"hi"
    assert (server.connections, server.requests) == (connections, 3)


async def test_two_addresses_of_one_server_share_its_connections() -> None:
    server = Counted(OK)
    async with connected(server) as (transport, port):
        for path in ("chat", "embeddings"):
            target = HttpTarget(f"http://127.0.0.1:{port}/{path}", {})
            await transport.post(HttpRequest(target, b"", 60))
    assert (server.connections, server.requests) == (1, 2)


async def test_a_connection_that_the_server_closed_meanwhile_is_not_used() -> None:
    server = Counted(OK)

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        await read_request(reader)
        writer.write(OK)
        writer.close()

    async with connected(once) as (transport, port):
        for _ in range(3):
            assert (await transport.post(request(port))).body == b"hi"
            # One turn of the loop is enough to hear of it.
            await asyncio.sleep(0.01)
    assert server.connections == 3


async def test_a_request_that_was_sent_is_never_sent_again_by_itself() -> None:
    """It may have been read, and would be paid for twice."""
    requests = []

    async def reads_and_goes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await read_request(reader))
        writer.write(OK)
        requests.append(await read_request(reader))
        writer.close()

    async with connected(reads_and_goes) as (transport, port):
        await transport.post(request(port))
        with pytest.raises(ModelFailed, match="without a reply"):
            await transport.post(request(port))
    assert len(requests) == 2


async def test_idle_connections_are_closed_after_a_while() -> None:
    server = Counted(OK)
    async with connected(server, keepalive_seconds=0.05) as (transport, port):
        await transport.post(request(port))
        async with asyncio.timeout(60):
            await server.gone.wait()
        assert (await transport.post(request(port))).body == b"hi"
    assert server.connections == 2


async def test_all_connections_go_with_the_transport() -> None:
    server = Counted(OK)
    async with listen(server) as port:
        async with open_transport() as transport:
            await asyncio.gather(*(transport.post(request(port)) for _ in range(20)))
        async with asyncio.timeout(60):
            await server.gone.wait()
    assert server.connections == server.requests == 20


async def test_a_server_that_replies_before_it_has_heard_all_is_not_asked_again_on_the_same_connection() -> None:
    connections = []

    async def impatient(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        await reader.read(100)
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        await asyncio.Event().wait()

    async with connected(impatient) as (transport, port):
        for _ in range(2):
            assert (await transport.post(request(port, LARGE))).status == 413
    assert len(connections) == 2


# time


def silent(said: bytes = b"") -> Talk:
    """Listens, says this, and nothing more."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(said)
        await asyncio.Event().wait()

    return talk


async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("talk", "body"),
    [
        pytest.param(silent(), b"{}", id="no reply"),
        pytest.param(silent(HEAD), b"{}", id="half a head"),
        pytest.param(silent(HEAD + b"Content-Length: 9\r\n\r\nhalf"), b"{}", id="half a body"),
        pytest.param(silent(b"HTTP/1.1 100 Continue\r\n\r\n"), b"{}", id="only signs of life"),
        pytest.param(deaf, LARGE, id="does not listen"),
    ],
)
async def test_whatever_hangs_is_cut(talk: Talk, body: bytes) -> None:
    failure = await failure_of(talk, body, seconds=0.1)
    assert (failure.kind, failure.text) == (FailureKind.TRANSIENT, "no answer within 0.1 s")


async def test_a_server_that_never_accepts_is_cut_too() -> None:
    with socket.socket() as full, socket.socket() as one, socket.socket() as two:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for waiting in (one, two):
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        async with asyncio.timeout(60), open_transport() as transport:
            with pytest.raises(ModelFailed, match=r"no answer within 0\.1 s"):
                await transport.post(request(full.getsockname()[1], seconds=0.1))


async def test_who_stops_waiting_closes_the_connection() -> None:
    arrived, gone = asyncio.Event(), asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        arrived.set()
        try:
            await reader.read()
        finally:
            gone.set()

    async with asyncio.timeout(60), connected(talk) as (transport, port):
        waiting = asyncio.create_task(transport.post(request(port)))
        await arrived.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await gone.wait()


async def test_hundreds_are_in_flight_at_once() -> None:
    arrived: list[object] = []
    all_here = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived.append(await read_request(reader))
        if len(arrived) == 400:
            all_here.set()
        await all_here.wait()
        writer.write(OK)
        await reader.read()

    async with connected(talk) as (transport, port):
        replies = await asyncio.gather(*(transport.post(request(port)) for _ in range(400)))
    assert [reply.body for reply in replies] == [b"hi"] * 400


async def test_a_large_request_arrives_whole() -> None:
    sizes = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sizes.append(len((await read_request(reader)).body))
        writer.write(OK)
        await reader.read()

    async with connected(talk) as (transport, port):
        await transport.post(request(port, b"x" * 5_000_000))
    assert sizes == [5_000_000]
