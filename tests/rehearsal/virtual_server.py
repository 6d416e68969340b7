"""A rehearsal server in virtual time: the clock of its loop advances only when a test advances it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from typing import Any, cast

from shoal.rehearsal.http import ClientConnection
from shoal.rehearsal.server import Rehearsal
from shoal.rehearsal.settings import RehearsalSettings


class Timer:
    """A call that is to come."""

    def __init__(self, call: Callable[[], object]) -> None:
        self.call: Callable[[], object] | None = call

    def cancel(self) -> None:
        self.call = None


class Clock:
    """As much of a loop as the server uses."""

    def __init__(self) -> None:
        self._now = 1000.0
        self._timers: list[tuple[float, int, Timer]] = []
        self._count = 0

    def time(self) -> float:
        return self._now

    def call_at(self, when: float, callback: Callable[..., object], *args: Any) -> Timer:
        timer = Timer(partial(callback, *args))
        self._count += 1
        heappush(self._timers, (when, self._count, timer))
        return timer

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> Timer:
        return self.call_at(self._now + delay, callback, *args)

    def until(self, moment: float) -> None:
        """Goes on to this moment, and lets happen what is due until then."""
        while self._timers and self._timers[0][0] <= moment:
            when, _, timer = heappop(self._timers)
            self._now = max(self._now, when)
            if timer.call is not None:
                timer.call()
        self._now = max(self._now, moment)


@dataclass
class Reply:
    at_seconds: float
    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def type(self) -> str:
        found: str = json.loads(self.raw)["error"]["type"]
        return found


class Ear(asyncio.Transport):
    """Hears the reply to one request."""

    def __init__(self, hear: Callable[[bytes], None]) -> None:
        super().__init__()
        self._hear = hear

    def write(self, data: Any) -> None:
        self._hear(data)

    def close(self) -> None:
        """Nothing is open."""


class Stage:
    """Asks a server, at moments counted from when it was set up."""

    def __init__(self, **settings: Any) -> None:
        self._clock = Clock()
        self._began = self._clock.time()
        self.server = Rehearsal(RehearsalSettings(**settings), cast(asyncio.AbstractEventLoop, self._clock))

    @property
    def now(self) -> float:
        return self._clock.time() - self._began

    def until(self, moment: float) -> None:
        self._clock.until(self._began + moment)

    def ask(self, text: str, then: Callable[[Reply], None], tokens: int = 8, client: str = "") -> ClientConnection:
        """Send a request on a new connection, and call `then` with the reply at the moment it arrives."""
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": text}], "max_tokens": tokens})
        head = f"POST /v1/chat/completions HTTP/1.1\r\nX-Client: {client}\r\nContent-Length: {len(body)}\r\n\r\n"
        connection = self.server.connect()
        connection.connection_made(Ear(lambda raw: then(self._read(raw))))
        connection.data_received((head + body).encode())
        return connection

    def asks(self, count: int, **more: Any) -> list[Reply]:
        """Send this many requests at once. The list fills up as they are answered."""
        replies: list[Reply] = []
        for number in range(count):
            self.ask(f"{self.now} {number}", replies.append, **more)
        return replies

    def _read(self, raw: bytes) -> Reply:
        head, _, body = raw.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines)
        return Reply(round(self.now, 6), int(first.split()[1]), headers, body)
