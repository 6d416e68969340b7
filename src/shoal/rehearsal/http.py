"""HTTP/1.1, as much of it as clients of models speak: requests in, responses out, one after another per connection.

Written on the bare protocol of asyncio so that the server costs little beside the client that is being measured.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import cast

MAX_HEAD_BYTES = 64 * 1024
MAX_BODY_BYTES = 32 * 1024 * 1024

_REASONS = {status.value: status.phrase for status in HTTPStatus}


@dataclass(frozen=True, slots=True)
class ServerRequest:
    method: str
    path: str
    #: Names in lower case.
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class ServerResponse:
    status: int
    body: bytes
    #: More lines of the head, each with its end.
    headers: str = ""
    content_type: str = "application/json"
    #: Break the connection in the middle of the body.
    broken: bool = False

    def encode(self) -> bytes:
        head = (
            f"HTTP/1.1 {self.status} {_REASONS.get(self.status, '')}\r\ncontent-type: {self.content_type}\r\n"
            f"content-length: {len(self.body)}\r\n{self.headers}\r\n"
        ).encode()
        return head + (self.body[: len(self.body) // 2] if self.broken else self.body)


class BadRequest(Exception):
    """What came is not HTTP as we speak it."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class RequestReader:
    """Cuts what comes in into requests."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._expected = False
        self._permitted = False

    def feed(self, chunk: bytes) -> None:
        self._buffer += chunk

    def next(self) -> ServerRequest | None:
        """The next request, if all of it is there."""
        if not self._buffer:
            return None
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > MAX_HEAD_BYTES:
                raise BadRequest(431)
            return None
        method, path, headers = _head(bytes(self._buffer[:end]))
        if headers.get("transfer-encoding", "").lower() == "chunked":
            found = _chunked(self._buffer, end + 4)
        else:
            found = _sized(self._buffer, end + 4, headers.get("content-length", "0"))
        if found is None:
            self._expected = "expect" in headers
            return None
        body, after = found
        self._expected = self._permitted = False
        del self._buffer[:after]
        return ServerRequest(method, path, headers, body)

    def permission(self) -> bool:
        """Whether the client waits for permission to send its body; said once."""
        wanted = self._expected and not self._permitted
        self._permitted |= wanted
        return wanted


def _head(head: bytes) -> tuple[str, str, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise BadRequest(400)
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return parts[0], parts[1].partition("?")[0], headers


def _sized(buffer: bytearray, start: int, length: str) -> tuple[bytes, int] | None:
    if not length.isdigit():
        raise BadRequest(400)
    end = start + int(length)
    if end - start > MAX_BODY_BYTES:
        raise BadRequest(413)
    return (bytes(buffer[start:end]), end) if len(buffer) >= end else None


def _chunked(buffer: bytearray, at: int) -> tuple[bytes, int] | None:
    body = bytearray()
    while (line := buffer.find(b"\r\n", at)) >= 0:
        try:
            size = int(bytes(buffer[at:line]).partition(b";")[0], 16)
        except ValueError:
            raise BadRequest(400) from None
        end = line + 2 + size + 2
        if len(buffer) < end:
            return None
        if size == 0:
            return bytes(body), end
        body += buffer[line + 2 : end - 2]
        if len(body) > MAX_BODY_BYTES:
            raise BadRequest(413)
        at = end
    return None


class ClientConnection(asyncio.Protocol):
    """One client. A request that comes before the last was answered waits in the buffer."""

    def __init__(
        self, serve: Callable[[ClientConnection, ServerRequest], None], lost: Callable[[ClientConnection], None]
    ) -> None:
        self._serve = serve
        self._lost = lost
        self._reader = RequestReader()
        self._transport: asyncio.Transport | None = None
        self._busy = False
        self._last = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        if not self._busy:
            self._next()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._lost(self)

    def answer(self, response: ServerResponse) -> bool:
        """Sends it; False if there is nobody any more."""
        if self._transport is None:
            return False
        self._transport.write(response.encode())
        self._busy = False
        if response.broken or self._last:
            self._transport.close()
        else:
            self._next()
        return True

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _next(self) -> None:
        try:
            request = self._reader.next()
        except BadRequest as error:
            self._refuse(error.status)
            return
        if request is not None:
            self._busy = True
            self._last = request.headers.get("connection", "").lower() == "close"
            self._serve(self, request)
        elif self._reader.permission() and self._transport is not None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _refuse(self, status: int) -> None:
        if self._transport is not None:
            self._transport.write(ServerResponse(status, b"", "connection: close\r\n").encode())
            self._transport.close()
