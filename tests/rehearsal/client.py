"""Asking a rehearsal server as clients do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from shoal.rehearsal.server import Rehearsal, start
from shoal.rehearsal.settings import RehearsalSettings

SCHEMA = {
    "type": "object",
    "properties": {"thought": {"type": "string"}, "score": {"type": "integer", "minimum": 0, "maximum": 9}},
    "required": ["thought", "score"],
    "additionalProperties": False,
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "turn", "schema": SCHEMA, "strict": True}}


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: Any

    @property
    def choice(self) -> Any:
        return self.body["choices"][0]

    @property
    def text(self) -> str:
        found: str = self.choice["message"]["content"]
        return found

    @property
    def error(self) -> Any:
        return self.body["error"]


class Client:
    def __init__(self, server: Rehearsal) -> None:
        self.server = server

    async def get(self, path: str) -> Reply:
        return await self._exchange("GET", path, b"")

    async def post(self, path: str, body: Any, **headers: str) -> Reply:
        return await self._exchange("POST", path, json.dumps(body).encode(), **headers)

    async def _exchange(self, method: str, path: str, body: bytes, **headers: str) -> Reply:
        """Send a request on a new connection; raise asyncio.IncompleteReadError if it breaks."""
        at = urlsplit(self.server.base_url)
        reader, writer = await asyncio.open_connection(at.hostname, at.port)
        lines = {"Host": "rehearsal", "Connection": "close", "Content-Length": str(len(body)), **headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        try:
            writer.write(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body)
            return await _reply(reader)
        finally:
            writer.close()

    async def chat(self, text: str = "Hello", **more: Any) -> Reply:
        body = {"model": "rehearsal", "messages": [{"role": "user", "content": text}], **more}
        return await self.post("/v1/chat/completions", body)

    async def chats(self, count: int, **more: Any) -> list[Reply]:
        """Send this many different requests, all at once."""
        return list(await asyncio.gather(*(self.chat(f"Question {number}", **more) for number in range(count))))

    async def stats(self) -> Any:
        return (await self.get("/rehearsal/stats")).body


@asynccontextmanager
async def start_rehearsal(**settings: Any) -> AsyncIterator[Client]:
    async with start(RehearsalSettings(**settings)) as server:
        yield Client(server)


async def _reply(reader: asyncio.StreamReader) -> Reply:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers["content-length"]))
    read = json.loads(body) if headers["content-type"] == "application/json" else body.decode()
    return Reply(int(first.split()[1]), headers, read)
