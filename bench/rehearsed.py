"""A rehearsal server in a process of its own, for what is measured against one; and a stub that costs less than it.

python -m bench.rehearsed SETTINGS_AS_JSON    serves until its input ends, and says its address first
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast
from urllib import request

import uvloop

from shoal.rehearsal.http import ServerResponse
from shoal.rehearsal.server import BACKLOG, start
from shoal.rehearsal.settings import PlannedOutage, RehearsalSettings, SettingChange

MODEL = "openai/rehearsal"
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Server:
    """A server that is up."""

    base_url: str

    @property
    def environ(self) -> dict[str, str]:
        """What a run needs to find it."""
        return {"OPENAI_BASE_URL": self.base_url}

    def stats(self) -> dict[str, Any]:
        with request.urlopen(f"{self.base_url}/rehearsal/stats") as reply:
            found: dict[str, Any] = json.load(reply)
        return found

    def reset(self) -> None:
        request.urlopen(request.Request(f"{self.base_url}/rehearsal/reset", method="POST")).close()


@contextmanager
def rehearsing(**settings: Any) -> Iterator[Server]:
    """A server with these settings; it goes when the block ends, or the process that started it."""
    command = [sys.executable, "-m", "bench.rehearsed", json.dumps(settings)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield Server(process.stdout.readline().strip())
        finally:
            process.stdin.close()


class Stub:
    """Says the same to everybody after the same time, so that hardly anything but the client is measured."""

    def __init__(self, says: dict[str, Any], latency_seconds: float) -> None:
        self._latency_seconds = latency_seconds
        message = {"role": "assistant", "content": json.dumps(says)}
        body = {
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1500, "completion_tokens": 60},
        }
        self._response = ServerResponse(200, json.dumps(body).encode()).encode()
        self._stats = {"requests": 0, "received_bytes": 0, "in_flight": 0, "in_flight_peak": 0}

    def connect(self) -> StubConnection:
        return StubConnection(self)

    def serve(self, connection: StubConnection, head: bytes, length: int) -> None:
        if b"/rehearsal/stats " in head:
            connection.write(ServerResponse(200, json.dumps(self._stats).encode()).encode())
            return
        stats = self._stats
        stats["requests"] += 1
        stats["received_bytes"] += length
        stats["in_flight"] += 1
        stats["in_flight_peak"] = max(stats["in_flight_peak"], stats["in_flight"])
        asyncio.get_running_loop().call_later(self._latency_seconds, self._answer, connection)

    def _answer(self, connection: StubConnection) -> None:
        self._stats["in_flight"] -= 1
        connection.write(self._response)


class StubConnection(asyncio.Protocol):
    """As little HTTP as will do: of the head the length counts, and of the body only that it has come."""

    def __init__(self, stub: Stub) -> None:
        self._stub = stub
        self._came = b""
        self._length = self._missing = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        # Each answer goes out when it is due, and not with those that are due next.
        self._transport.set_write_buffer_limits(high=0)

    def data_received(self, data: bytes) -> None:
        if self._missing:
            self._missing -= len(data)
        else:
            self._came += data
            end = self._came.find(b"\r\n\r\n") + 4
            if end < 4:
                return
            found = _LENGTH.search(self._came, 0, end)
            self._length = int(found[1]) if found else 0
            self._missing = end + self._length - len(self._came)
        if not self._missing:
            head, self._came = self._came[:100], b""
            self._stub.serve(self, head, self._length)

    def write(self, response: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(response)


async def _serve(settings: RehearsalSettings) -> None:
    async with start(settings) as server:
        await _until_input_ends(server.base_url)


async def _serve_stub(stub: Stub) -> None:
    loop = asyncio.get_running_loop()
    async with await loop.create_server(stub.connect, "127.0.0.1", backlog=BACKLOG) as listening:
        await _until_input_ends(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1")


async def _until_input_ends(address: str) -> None:
    print(address, flush=True)
    await asyncio.to_thread(sys.stdin.read)


def main(settings: dict[str, Any]) -> None:
    if "says" in settings:
        uvloop.run(_serve_stub(Stub(**settings)))
        return
    outages = tuple(PlannedOutage(*each) for each in settings.pop("outages", ()))
    changes = tuple(SettingChange(**each) for each in settings.pop("changes", ()))
    uvloop.run(_serve(RehearsalSettings(**settings, outages=outages, changes=changes)))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
