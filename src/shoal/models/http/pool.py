"""The HTTP transport with its connection pools, the only code that talks to models over the network; and a fake."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Protocol

from shoal.models.base import ModelFailed
from shoal.models.http.connection import HttpConnection
from shoal.models.http.errors import report_timeout, report_unreachable
from shoal.models.http.messages import HttpReply, HttpRequest, HttpTarget, Origin
from shoal.models.http.routes import Proxies, Route, Routes

#: How long an idle connection is kept; opening one with TLS costs as much CPU as ten calls.
KEEPALIVE_SECONDS = 60.0


class Transport(Protocol):
    """Sends a request and returns its reply."""

    async def post(self, request: HttpRequest) -> HttpReply:
        """Return whatever the server replied; raise ModelFailed if it did not."""
        ...


class ConnectionPool:
    """The connections to one origin: one for each concurrent request, kept open for a while afterwards."""

    def __init__(self, loop: asyncio.AbstractEventLoop, route: Route, keepalive_seconds: float) -> None:
        self._loop = loop
        self.route = route
        self._keepalive_seconds = keepalive_seconds
        self._all: set[HttpConnection] = set()
        #: Idle connections and since when they are idle, longest first.
        self._idle: dict[HttpConnection, float] = {}
        self._sweeper: asyncio.TimerHandle | None = None
        self._emptied = asyncio.Event()

    def take(self) -> HttpConnection | None:
        """Return the most recently used connection, so that surplus ones reach the keep-alive timeout.

        A server may close idle connections at any time. One that is known to be closed is skipped here, before
        anything is sent. If it turns out to be closed later, that is a failure as any other: the server may have read
        the request, so sending it again might pay twice. `Retrying` decides that, and counts it.
        """
        now = self._loop.time()
        while self._idle:
            connection, since = self._idle.popitem()
            if connection.is_usable(now - since):
                return connection
            connection.close()
        return None

    async def open(self) -> HttpConnection:
        connection = await self.route.open(lambda: HttpConnection(self._loop, self._forget))
        if not connection.is_open:
            raise ConnectionResetError("it closed the connection at once")
        self._all.add(connection)
        self._emptied.clear()
        return connection

    def give_back(self, connection: HttpConnection) -> None:
        if connection.is_open:
            self._idle[connection] = self._loop.time()
            if self._sweeper is None:
                self._sweeper = self._loop.call_later(self._keepalive_seconds, self._sweep)

    def _sweep(self) -> None:
        self._sweeper = None
        oldest = self._loop.time() - self._keepalive_seconds
        for connection in [each for each, since in self._idle.items() if since <= oldest]:
            connection.close()
            del self._idle[connection]
        if self._idle:
            since = next(iter(self._idle.values()))
            self._sweeper = self._loop.call_at(since + self._keepalive_seconds, self._sweep)

    def _forget(self, connection: HttpConnection) -> None:
        self._idle.pop(connection, None)
        self._all.discard(connection)
        if not self._all:
            self._emptied.set()

    async def close(self) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
        for connection in self._all:
            connection.close()
        if self._all:
            await self._emptied.wait()


class HttpTransport:
    """Sends requests over pooled connections, one pool for each origin."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, proxies: Proxies, keepalive_seconds: float = KEEPALIVE_SECONDS
    ) -> None:
        self._loop = loop
        self._keepalive_seconds = keepalive_seconds
        self._routes = Routes(loop, proxies)
        self._pools: dict[Origin, ConnectionPool] = {}
        #: The pool and the request head for each target.
        self._prepared: dict[HttpTarget, tuple[ConnectionPool, bytes]] = {}

    async def post(self, request: HttpRequest) -> HttpReply:
        target = request.target
        if target not in self._prepared:
            pool = self._pools.get(target.origin)
            if pool is None:
                route = self._routes.make_route(target.origin)
                pool = self._pools[target.origin] = ConnectionPool(self._loop, route, self._keepalive_seconds)
            self._prepared[target] = pool, target.head(pool.route.proxy_headers)
        pool, head = self._prepared[target]
        deadline = self._loop.time() + request.seconds
        try:
            connection = pool.take()
            if connection is None:
                try:
                    async with asyncio.timeout_at(deadline):
                        connection = await pool.open()
                except TimeoutError as error:
                    raise ModelFailed(report_timeout(request.seconds)) from error
            message = b"%b%d\r\n\r\n%b" % (head, len(request.body), request.body)
            reply = await connection.exchange(message, request.seconds, deadline)
        except OSError as error:
            raise ModelFailed(report_unreachable(error)) from error
        pool.give_back(connection)
        return reply

    async def close(self) -> None:
        for pool in self._pools.values():
            await pool.close()


@asynccontextmanager
async def open_transport(
    proxies: Proxies | None = None, keepalive_seconds: float = KEEPALIVE_SECONDS
) -> AsyncIterator[HttpTransport]:
    raise_file_limit()
    transport = HttpTransport(asyncio.get_running_loop(), proxies or Proxies(), keepalive_seconds)
    try:
        yield transport
    finally:
        await transport.close()


def raise_file_limit() -> int:
    """Raise the limit of open files to the most that this process may have, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


class FakeTransport:
    """Replies with a function, without a network, and keeps the requests."""

    def __init__(self, reply: Callable[[HttpRequest], HttpReply]) -> None:
        self._reply = reply
        self.requests: list[HttpRequest] = []

    async def post(self, request: HttpRequest) -> HttpReply:
        self.requests.append(request)
        return self._reply(request)
