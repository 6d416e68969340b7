"""Servers on this machine that say exactly what a test wants them to, byte by byte."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import orjson

from shoal.rehearsal.http import RequestReader, ServerRequest

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listen(
    talk: Talk, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None, port: int = 0
) -> AsyncIterator[int]:
    """Start a server that runs `talk` on every connection, and yield its port. It ends with the block.

    A given port may be held by a socket with SO_REUSEPORT that does not listen.
    """
    talks: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def handle_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        talks[task] = writer
        try:
            await talk(reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()

    server = await asyncio.start_server(handle_connection, host, port, ssl=tls, backlog=1000, reuse_port=port != 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in talks:
            task.cancel()
        await asyncio.gather(*talks, return_exceptions=True)


async def read_request(reader: asyncio.StreamReader, reading: RequestReader | None = None) -> ServerRequest:
    """Read the next request, or raise ConnectionError at the end of the connection."""
    reading = reading or RequestReader()
    while (request := reading.next()) is None:
        if not (data := await reader.read(65536)):
            raise ConnectionResetError
        reading.feed(data)
    return request


def send_replies(*replies: bytes) -> Talk:
    """Make a talk that sends one reply to each request, in order, on any connection, and then nothing more."""
    left = list(replies)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while left:
            await read_request(reader)
            writer.write(left.pop(0))
        await reader.read()

    return talk


@dataclass(frozen=True)
class ChatReply:
    """A reply of a server of language models."""

    body: Any
    status: int = 200
    headers: str = ""

    def encode(self) -> bytes:
        body = self.body if isinstance(self.body, bytes) else orjson.dumps(self.body)
        first = f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}\r\n"
        return f"{first}Content-Length: {len(body)}\r\n{self.headers}\r\n".encode() + body


#: Takes the body and the connection; returns None if it has written its reply itself.
Handler = Callable[[dict[str, Any], asyncio.StreamWriter], Awaitable[ChatReply | None]]


@asynccontextmanager
async def serve_chat(handler: Handler, seen: list[ServerRequest] | None = None) -> AsyncIterator[str]:
    """Start a server of chat completions, and yield its base URL."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            request = await read_request(reader)
            if seen is not None:
                seen.append(request)
            reply = await handler(orjson.loads(request.body), writer)
            if reply is None:
                return
            writer.write(reply.encode())

    async with listen(talk) as port:
        yield f"http://127.0.0.1:{port}/v1"


def make_certificate(folder: Path, name: str = "localhost") -> tuple[ssl.SSLContext, Path]:
    """Make a self-signed certificate: the context for a server, and the file that makes clients trust it."""
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    subject = ["-days", "2", "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command, *subject, *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context, certificate
