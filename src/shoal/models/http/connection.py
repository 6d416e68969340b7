"""One connection that speaks HTTP/1.1, one request after the other.

Written on the bare protocol of asyncio, with the parser that Node.js uses: a general client takes three times the CPU,
and with thousands of calls in flight that is what a round waits for.
"""

from __future__ import annotations

import asyncio
import select
import zlib
from collections.abc import Callable, Mapping
from typing import cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from shoal.models.base import ModelFailed
from shoal.models.http.messages import HttpReply
from shoal.models.openai.errors import report_bad_http, report_oversize, report_timeout

#: A reply, with its head. Answers of models have a few kilobytes, batches of embeddings a few megabytes.
MAX_REPLY_BYTES = 64 * 1024 * 1024
MAX_HEAD_BYTES = 256 * 1024
#: A connection that idled longer may have been closed without us having noticed, as nobody looks during a long round.
TRUSTED_IDLE_SECONDS = 1.0
#: zlib tells gzip from deflate by itself.
_EITHER = 32 + zlib.MAX_WBITS


class HttpConnection(asyncio.Protocol):
    """Sends a request and waits for its reply. A connection that failed, or that nobody waits for, is closed."""

    def __init__(self, loop: asyncio.AbstractEventLoop, lost: Callable[[HttpConnection], object]) -> None:
        self._loop = loop
        self._lost = lost
        self._transport: asyncio.Transport | None = None
        self._parser: HttpResponseParser | None = HttpResponseParser(self)
        self._waiter: asyncio.Future[HttpReply] | None = None
        self._seconds = 0.0
        self._begin()
        #: Whether another request may be sent.
        self.is_open = False

    def _begin(self) -> None:
        self._headers: dict[str, str] = {}
        self._parts: list[bytes] = []
        self._received = 0
        self._in_body = False

    async def exchange(self, message: bytes, seconds: float, deadline: float) -> HttpReply:
        """The reply to this request; ModelFailed or OSError where there is none by then, in the loop's time."""
        assert self._transport is not None
        waiter: asyncio.Future[HttpReply] = self._loop.create_future()
        self._waiter = waiter
        self._seconds = seconds
        timer = self._loop.call_at(deadline, self._expire)
        # All of it at once: it is in memory anyway, and nothing else is sent before the reply is there.
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
        """Whether a request can be sent without fear that the server has closed the connection long ago."""
        return self.is_open and (idle_seconds < TRUSTED_IDLE_SECONDS or not self._is_readable())

    def _is_readable(self) -> bool:
        """Nothing is to be read while nobody has asked: what there is, is the end."""
        assert self._transport is not None
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket").fileno(), select.POLLIN)
        return bool(poll.poll(0))

    def close(self) -> None:
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    def _expire(self) -> None:
        self._fail(ModelFailed(report_timeout(self._seconds)))

    def _fail(self, error: Exception) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)
        self.close()

    # called by the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.is_open = True
        if self._transport.get_extra_info("sslcontext") is None:
            # uvloop otherwise writes when everything that can run has run: with thousands of requests at once, the
            # first would wait for the last.
            self._transport.set_write_buffer_limits(high=0)

    def data_received(self, data: bytes) -> None:
        if self._parser is None or self._waiter is None or self._waiter.done():
            # Nobody asked. The next reply could not be told from this.
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
        """The loop closes the connection then, and says that it is lost."""
        self.is_open = False

    def connection_lost(self, error: Exception | None) -> None:
        if self._waiter is not None and not self._waiter.done():
            if error is None and self._in_body and _ends_with_the_connection(self._headers):
                self._deliver()
            else:
                where = "in the middle of its reply" if self._received else "without a reply"
                self._fail(error or ConnectionResetError(f"it closed the connection {where}"))
        self.is_open = False
        self._transport = None
        # They hold one another, and while a run is worked on nobody looks for such circles.
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
            # A sign of life before the reply.
            self._begin()
        else:
            self._deliver()

    def _deliver(self) -> None:
        assert self._parser is not None
        assert self._transport is not None
        if self._waiter is None or self._waiter.done():
            return
        parts, headers = self._parts, self._headers
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        self._begin()
        try:
            body = _decoded(body, headers.get("content-encoding"))
        except (zlib.error, ValueError) as error:
            self._fail(ModelFailed(report_bad_http(f"{error}", body)))
            return
        self._waiter.set_result(HttpReply(self._parser.get_status_code(), headers, body))
        # A server that replies before it has heard everything will not listen to the next request either.
        if not self._parser.should_keep_alive() or self._transport.get_write_buffer_size():
            self.close()


def _ends_with_the_connection(headers: Mapping[str, str]) -> bool:
    return "content-length" not in headers and not headers.get("transfer-encoding", "").lower().endswith("chunked")


def _decoded(body: bytes, encoding: str | None) -> bytes:
    """We ask for no compression, but some servers compress all the same."""
    if encoding is None or encoding.lower() in ("", "identity") or not body:
        return body
    if encoding.lower() not in ("gzip", "x-gzip", "deflate"):
        raise ValueError(f"it is compressed as {encoding}, which nobody asked for")
    unpacking = zlib.decompressobj(_EITHER)
    unpacked = unpacking.decompress(body, MAX_REPLY_BYTES)
    if not unpacking.eof:
        raise ValueError("it is cut off or too large")
    return unpacked
