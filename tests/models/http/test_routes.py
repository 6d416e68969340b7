"""Ways to a server: several addresses, TLS, proxies."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from shoal.models.base import FailureKind, ModelFailed
from shoal.models.http.messages import HttpReply, HttpRequest, HttpTarget, Origin
from shoal.models.http.pool import ConnectionPool, open_transport
from shoal.models.http.routes import Proxies, Proxy, Route, connect_first
from tests.models.servers import Talk, listen, make_certificate, read_request, send_replies

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


async def post(url: str, seconds: float = 10.0, proxies: Proxies | None = None) -> HttpReply:
    async with open_transport(proxies) as transport:
        return await transport.post(HttpRequest(HttpTarget(url, {"Authorization": "Bearer key"}), b"{}", seconds))


# addresses


async def test_a_name_with_several_addresses_is_reached_at_the_one_that_works() -> None:
    async with listen(send_replies(OK), "127.0.0.1") as port:
        assert (await post(f"http://localhost:{port}/")).body == b"hi"


async def test_ipv6_is_spoken() -> None:
    try:
        async with listen(send_replies(OK), "::1") as port:
            assert (await post(f"http://[::1]:{port}/")).body == b"hi"
    except OSError as error:
        pytest.skip(f"this machine has no IPv6: {error}")


@asynccontextmanager
async def full() -> AsyncIterator[tuple[int, tuple[str, int]]]:
    """An address that never lets anybody in, and never says so."""
    with socket.socket() as listener, socket.socket() as one, socket.socket() as two:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for waiting in (one, two):
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield socket.AF_INET, listener.getsockname()


async def test_an_address_that_hangs_does_not_keep_the_next_one_from_being_tried() -> None:
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(60), full() as hanging, listen(send_replies(OK)) as port:
        works = (int(socket.AF_INET), ("127.0.0.1", port))
        connected, found = await connect_first(loop, [hanging, works])
        connected.close()
    assert found == works


async def test_where_no_address_works_the_first_says_why() -> None:
    # A port that is taken and not listened at cannot be given to another process.
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        gone = (int(socket.AF_INET), held.getsockname())
        with pytest.raises(ConnectionRefusedError):
            await connect_first(asyncio.get_running_loop(), [gone, gone])


async def test_a_server_that_moves_is_found_again() -> None:
    """After its address failed once."""
    async with open_transport() as transport:
        with socket.socket() as reserved:
            # Keeps the port from others while no server listens at it.
            reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            reserved.bind(("127.0.0.1", 0))
            port = reserved.getsockname()[1]
            target = HttpTarget(f"http://localhost:{port}/", {})
            async with listen(send_replies(OK), port=port):
                await transport.post(HttpRequest(target, b"", 60))
            with pytest.raises(ModelFailed, match="cannot be reached"):
                await transport.post(HttpRequest(target, b"", 60))
            async with listen(send_replies(OK), port=port):
                assert (await transport.post(HttpRequest(target, b"", 60))).body == b"hi"


# TLS


@pytest.fixture
def trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """For a server that this process trusts, because the environment says so."""
    context, certificate = make_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    return context


async def test_a_trusted_server_is_spoken_to_in_secret(trusted: ssl.SSLContext) -> None:
    async with listen(send_replies(OK, OK), "127.0.0.1", trusted) as port, open_transport() as transport:
        for _ in range(2):
            target = HttpTarget(f"https://localhost:{port}/", {})
            assert (await transport.post(HttpRequest(target, b"x" * 1_000_000, 10))).body == b"hi"


async def test_a_self_signed_certificate_is_to_be_mended(tmp_path: Path) -> None:
    context, _ = make_certificate(tmp_path)
    async with listen(send_replies(OK), "127.0.0.1", context) as port:
        with pytest.raises(ModelFailed, match=r"the server's certificate cannot be trusted.*self-signed") as caught:
            await post(f"https://localhost:{port}/")
    assert caught.value.failure.kind is FailureKind.ADDRESS


async def test_a_certificate_of_another_host_is_to_be_mended(trusted: ssl.SSLContext) -> None:
    async with listen(send_replies(OK), "127.0.0.1", trusted) as port:
        with pytest.raises(ModelFailed, match="the server's certificate cannot be trusted") as caught:
            await post(f"https://127.0.0.1:{port}/")
    assert caught.value.failure.kind is FailureKind.ADDRESS


async def test_a_server_without_tls_is_said_to_be_unreachable() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with listen(talk) as port:
        with pytest.raises(ModelFailed, match="the server cannot be reached") as caught:
            await post(f"https://localhost:{port}/")
    assert caught.value.failure.kind is FailureKind.UNREACHABLE


async def test_a_handshake_that_hangs_is_cut() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with asyncio.timeout(60), listen(talk) as port:
        with pytest.raises(ModelFailed, match=r"no answer within 0\.1 s"):
            await post(f"https://localhost:{port}/", 0.1)


# proxies


def passing_on(seen: list[bytes], port: int, says: bytes = b"HTTP/1.1 200 Connected\r\n\r\n") -> Talk:
    """A proxy that passes everything on to this port; the heads of what it was asked."""

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while came := await reader.read(65536):
            writer.write(came)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(says)
        there, back = await asyncio.open_connection("127.0.0.1", port)
        try:
            await asyncio.gather(pump(reader, back), pump(there, writer))
        finally:
            back.transport.abort()

    return talk


@asynccontextmanager
async def through(origin: Origin, proxy_port: int, tls: ssl.SSLContext | None) -> AsyncIterator[ConnectionPool]:
    """Connections to an origin through a proxy on this machine, which is otherwise never used for this machine."""
    loop = asyncio.get_running_loop()
    proxy = Proxy(Origin("http", "127.0.0.1", proxy_port), {"Proxy-Authorization": "Basic x"})
    pool = ConnectionPool(loop, Route(loop, origin, proxy, tls), 60)
    try:
        yield pool
    finally:
        await pool.close()


async def test_with_tls_a_proxy_passes_on_what_it_cannot_read(trusted: ssl.SSLContext) -> None:
    seen: list[bytes] = []
    loop = asyncio.get_running_loop()
    async with (
        listen(send_replies(OK), "127.0.0.1", trusted) as port,
        listen(passing_on(seen, port)) as proxy,
        through(Origin("https", "localhost", 443), proxy, ssl.create_default_context()) as pool,
    ):
        connection = await pool.open()
        head = HttpTarget("https://localhost/v1", {}).head(pool.route.proxy_headers)
        reply = await connection.exchange(head + b"0\r\n\r\n", 5, loop.time() + 5)
    assert reply.body == b"hi"
    assert head.startswith(b"POST /v1 ")
    assert b"Proxy-Authorization" not in head
    assert seen[0].startswith(b"CONNECT localhost:443 HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic x\r\n" in seen[0]


async def test_without_tls_a_proxy_reads_the_request() -> None:
    seen = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await read_request(reader))
        writer.write(OK)
        await reader.read()

    async with listen(talk) as port:
        proxies = Proxies.of({"HTTP_PROXY": f"http://me:pw@127.0.0.1:{port}"})
        assert (await post("http://models.example/v1", proxies=proxies)).body == b"hi"
    [request] = seen
    assert request.path == "http://models.example/v1"
    assert request.headers["host"] == "models.example"
    assert request.headers["proxy-authorization"] == "Basic bWU6cHc="


@pytest.mark.parametrize(
    ("says", "kind", "words"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", FailureKind.ADDRESS, "407.*wants a name and password"),
        (b"HTTP/1.1 502 Bad Gateway\r\n\r\n", FailureKind.TRANSIENT, "cannot be reached: proxy .*502"),
        (b"", FailureKind.TRANSIENT, "proxy .*closed the connection"),
    ],
)
async def test_a_proxy_that_refuses_is_named(says: bytes, kind: FailureKind, words: str) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(says)
        writer.close()

    async with listen(talk) as port:
        with pytest.raises(ModelFailed, match=words) as caught:
            await post("https://models.example/v1", proxies=Proxies.of({"HTTPS_PROXY": f"127.0.0.1:{port}"}))
    assert caught.value.failure.kind is kind
