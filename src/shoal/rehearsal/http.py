"""HTTP/1.1 for the rehearsal server: the part of it that clients of models use, one request at a time per connection.

It is written on asyncio's protocols, so that the server costs little beside the client that is being measured.
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
    #: Further lines of the head, each with its line break.
    headers: str = ""
    content_type: str = "application/json"
    #: Whether the connection breaks in the middle of the body.
    broken: bool = False

    def encode(self) -> bytes:
        """Return the bytes of the reply. A broken one ends in the middle of its body."""
        head = (
            f"HTTP/1.1 {self.status} {_REASONS.get(self.status, '')}\r\ncontent-type: {self.content_type}\r\n"
            f"content-length: {len(self.body)}\r\n{self.headers}\r\n"
        ).encode()
        return head + (self.body[: len(self.body) // 2] if self.broken else self.body)


class BadRequest(Exception):
    """A request that is not HTTP, or too large."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class RequestReader:
    """Splits incoming bytes into requests."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._waits_for_permission = False
        self._permitted = False

    def feed(self, chunk: bytes) -> None:
        self._buffer += chunk

    def next(self) -> ServerRequest | None:
        """Return the next request if all of it has arrived."""
        if not self._buffer:
            return None
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > MAX_HEAD_BYTES:
                raise BadRequest(431)
            return None
        first, *lines = self._buffer[:end].decode("latin-1").split("\r\n")
        parts = first.split(" ")
        if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
            raise BadRequest(400)
        headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        if headers.get("transfer-encoding", "").lower() == "chunked":
            found = _read_chunked_body(self._buffer, end + 4)
        else:
            length = headers.get("content-length", "0")
            if not length.isdigit():
                raise BadRequest(400)
            if int(length) > MAX_BODY_BYTES:
                raise BadRequest(413)
            after = end + 4 + int(length)
            found = (bytes(self._buffer[end + 4 : after]), after) if len(self._buffer) >= after else None
        if found is None:
            self._waits_for_permission = "expect" in headers
            return None
        body, after = found
        self._waits_for_permission = self._permitted = False
        del self._buffer[:after]
        return ServerRequest(parts[0], parts[1].partition("?")[0], headers, body)

    def take_permission(self) -> bool:
        """Return whether the client waits for permission to send its body; True only once for each request."""
        wanted = self._waits_for_permission and not self._permitted
        self._permitted |= wanted
        return wanted


def _read_chunked_body(buffer: bytearray, at: int) -> tuple[bytes, int] | None:
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
    """The connection of one client. A request that comes before the last was answered waits in the buffer."""

    def __init__(
        self, serve: Callable[[ClientConnection, ServerRequest], None], lost: Callable[[ClientConnection], None]
    ) -> None:
        self._serve = serve
        self._lost = lost
        self._reader = RequestReader()
        self._transport: asyncio.Transport | None = None
        self._busy = False
        self._close_after = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        if not self._busy:
            self._serve_next()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._lost(self)

    def answer(self, response: ServerResponse) -> None:
        """Send a response, unless the client is gone."""
        if self._transport is None:
            return
        self._transport.write(response.encode())
        self._busy = False
        if response.broken or self._close_after:
            self._transport.close()
        else:
            self._serve_next()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _serve_next(self) -> None:
        try:
            request = self._reader.next()
        except BadRequest as error:
            if self._transport is not None:
                self._transport.write(ServerResponse(error.status, b"", "connection: close\r\n").encode())
                self._transport.close()
            return
        if request is not None:
            self._busy = True
            self._close_after = request.headers.get("connection", "").lower() == "close"
            self._serve(self, request)
        elif self._reader.take_permission() and self._transport is not None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
