"""Asking a rehearsal server as clients do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from shoal.models.rehearsal.server import Rehearsal, start
from shoal.models.rehearsal.settings import RehearsalSettings

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


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


class Client:
    def __init__(self, server: Rehearsal, session: aiohttp.ClientSession) -> None:
        self.server = server
        self._session = session

    async def get(self, path: str) -> Reply:
        async with self._session.get(self.server.base_url.removesuffix("/v1") + path) as response:
            return Reply(response.status, _lower(response.headers), await response.json())

    async def post(self, path: str, body: Any, **headers: str) -> Reply:
        url = self.server.base_url.removesuffix("/v1") + path
        async with self._session.post(url, data=json.dumps(body), headers=headers) as response:
            kind = response.headers["content-type"]
            read = await response.json() if kind == "application/json" else await response.text()
            return Reply(response.status, _lower(response.headers), read)

    async def chat(self, text: str = "Hello", **more: Any) -> Reply:
        body = {"model": "rehearsal", "messages": [{"role": "user", "content": text}], **more}
        return await self.post("/v1/chat/completions", body)

    async def chats(self, count: int, **more: Any) -> list[Reply]:
        """So many different requests, all at once."""
        return list(await asyncio.gather(*(self.chat(f"Question {number}", **more) for number in range(count))))

    async def stats(self) -> Any:
        return (await self.get("/rehearsal/stats")).body


@asynccontextmanager
async def rehearsing(**settings: Any) -> AsyncIterator[Client]:
    connector = aiohttp.TCPConnector(limit=0)
    async with start(RehearsalSettings(**settings)) as server, aiohttp.ClientSession(connector=connector) as session:
        yield Client(server, session)
