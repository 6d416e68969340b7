"""One HTTP/1.1 connection, which sends one request after the other.

It is written on the bare protocol of asyncio, with the parser that Node.js uses. A general client takes three times
the CPU, and with thousands of calls in flight a round waits for the CPU.
"""

from __future__ import annotations

import asyncio
import select
import zlib
from collections.abc import Callable
from typing import cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from shoal.models.base import ModelFailed
from shoal.models.http.errors import report_bad_http, report_oversize, report_timeout
from shoal.models.http.messages import HttpReply

#: The largest reply, with its head. Answers of models have a few kilobytes, batches of embeddings a few megabytes.
MAX_REPLY_BYTES = 64 * 1024 * 1024
MAX_HEAD_BYTES = 256 * 1024
#: After idling longer, a connection may have been closed unnoticed, as the event loop may be busy in a long round.
TRUSTED_IDLE_SECONDS = 1.0
#: With this value zlib detects gzip or deflate by itself.
_GZIP_OR_DEFLATE = 32 + zlib.MAX_WBITS


class HttpConnection(asyncio.Protocol):
    """Sends a request and waits for its reply. It closes when it fails, and when its caller stops waiting."""

    def __init__(self, loop: asyncio.AbstractEventLoop, lost: Callable[[HttpConnection], object]) -> None:
        self._loop = loop
        self._lost = lost
        self._transport: asyncio.Transport | None = None
        self._parser: HttpResponseParser | None = HttpResponseParser(self)
        self._waiter: asyncio.Future[HttpReply] | None = None
        self._reset()
        #: Whether another request may be sent.
        self.is_open = False

    def _reset(self) -> None:
        self._headers: dict[str, str] = {}
        self._parts: list[bytes] = []
        self._received = 0
        self._in_body = False

    async def exchange(self, message: bytes, seconds: float, deadline: float) -> HttpReply:
        """Return the reply to this request; raise ModelFailed or OSError if there is none by then, in loop time."""
        assert self._transport is not None
        waiter: asyncio.Future[HttpReply] = self._loop.create_future()
        self._waiter = waiter
        timer = self._loop.call_at(deadline, lambda: self._fail(ModelFailed(report_timeout(seconds))))
        # The whole message at once: it is in memory anyway, and nothing else is sent before the reply is there.
        self._transport.write(message)
        try:
            return await waiter
        except BaseException:
            self.close()
            raise
        finally:
            timer.cancel()
            self._waiter = None

    def is_usable(self, idle_seconds: float) -> bool:
        """Return whether a request can be sent, as the server has probably not closed the connection yet."""
        if not self.is_open or idle_seconds < TRUSTED_IDLE_SECONDS:
            return self.is_open
        assert self._transport is not None
        # There is nothing to read before a request, so a readable socket has reached its end.
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket").fileno(), select.POLLIN)
        return not poll.poll(0)

    def close(self) -> None:
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    def _fail(self, error: Exception) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)
        self.close()

    # called by the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.is_open = True
        if self._transport.get_extra_info("sslcontext") is None:
            # Otherwise uvloop writes only after all ready callbacks have run: of thousands of requests at once, the
            # first would wait for the last.
            self._transport.set_write_buffer_limits(high=0)

    def data_received(self, data: bytes) -> None:
        if self._parser is None or self._waiter is None or self._waiter.done():
            # Unrequested data: the next reply could not be told apart from it.
            self.close()
            return
        self._received += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self._fail(ModelFailed(report_bad_http(f"{error}", data)))
        if self._received > (MAX_REPLY_BYTES if self._in_body else MAX_HEAD_BYTES):
            self._fail(ModelFailed(report_oversize(self._received)))

    def eof_received(self) -> None:
        """Let the loop close the connection, which then calls `connection_lost`."""
        self.is_open = False

    def connection_lost(self, error: Exception | None) -> None:
        if self._waiter is not None and not self._waiter.done():
            is_chunked = self._headers.get("transfer-encoding", "").lower().endswith("chunked")
            if error is None and self._in_body and not is_chunked and "content-length" not in self._headers:
                # The end of the connection is the end of such a body.
                self._deliver()
            else:
                where = "in the middle of its reply" if self._received else "without a reply"
                self._fail(error or ConnectionResetError(f"it closed the connection {where}"))
        self.is_open = False
        self._transport = None
        # Break the reference cycle by hand: the worker disables cyclic garbage collection.
        self._parser = None
        self._lost(self)

    # called by the parser

    def on_message_begin(self) -> None:
        if self._waiter is None or self._waiter.done():
            self.close()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.setdefault(name.lower().decode("latin-1"), value.decode("latin-1"))

    def on_headers_complete(self) -> None:
        self._in_body = True

    def on_body(self, part: bytes) -> None:
        self._parts.append(part)

    def on_message_complete(self) -> None:
        assert self._parser is not None
        if self._parser.get_status_code() < 200:
            # An interim response before the reply.
            self._reset()
        else:
            self._deliver()

    def _deliver(self) -> None:
        assert self._parser is not None
        assert self._transport is not None
        if self._waiter is None or self._waiter.done():
            return
        parts, headers = self._parts, self._headers
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        self._reset()
        try:
            body = _decompress(body, headers.get("content-encoding"))
        except (zlib.error, ValueError) as error:
            self._fail(ModelFailed(report_bad_http(f"{error}", body)))
            return
        self._waiter.set_result(HttpReply(self._parser.get_status_code(), headers, body))
        # A server that replies before it has read the whole request will not read the next one either.
        if not self._parser.should_keep_alive() or self._transport.get_write_buffer_size():
            self.close()


def _decompress(body: bytes, encoding: str | None) -> bytes:
    """Unpack a body. We ask for no compression, but some servers compress nevertheless."""
    if encoding is None or encoding.lower() in ("", "identity") or not body:
        return body
    if encoding.lower() not in ("gzip", "x-gzip", "deflate"):
        raise ValueError(f"it is compressed as {encoding}, which nobody asked for")
    unpacking = zlib.decompressobj(_GZIP_OR_DEFLATE)
    unpacked = unpacking.decompress(body, MAX_REPLY_BYTES)
    if not unpacking.eof:
        raise ValueError("it is cut off or too large")
    return unpacked
