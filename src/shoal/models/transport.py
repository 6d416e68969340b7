"""One HTTP request, one reply: the only place that touches the network, and a fake of it."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

import aiohttp
from yarl import URL

from shoal.models.failures import no_answer, unreachable
from shoal.models.question import ModelFailed

#: How long an idle connection is kept; opening one with TLS costs as much CPU as ten calls.
KEEPALIVE_SECONDS = 60.0
#: What aiohttp would add to each request by itself.
_OWN_HEADERS = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request whose reply is JSON. The headers hold the key, so they show nowhere."""

    url: URL
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    #: After which a connection counts as hung and is cut.
    seconds: float


@dataclass(frozen=True, slots=True)
class HttpReply:
    status: int
    headers: Mapping[str, str]
    body: bytes


class Transport(Protocol):
    async def post(self, request: HttpRequest) -> HttpReply:
        """Whatever the server replied; ModelFailed where it did not."""
        ...


class AiohttpTransport:
    """Keeps connections open between calls, as many as there are calls at once."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def post(self, request: HttpRequest) -> HttpReply:
        try:
            async with (
                asyncio.timeout(request.seconds),
                self._session.post(
                    request.url, data=request.body, headers=request.headers, allow_redirects=False
                ) as response,
            ):
                return HttpReply(response.status, response.headers, await response.read())
        except TimeoutError as error:
            raise ModelFailed(no_answer(request.seconds)) from error
        except (aiohttp.ClientError, OSError) as error:
            raise ModelFailed(unreachable(error)) from error


@asynccontextmanager
async def open_transport() -> AsyncIterator[AiohttpTransport]:
    raise_file_limit()
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
        skip_auto_headers=_OWN_HEADERS,
        # Each request has its own timeout, which also covers waiting for a connection.
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
    ) as session:
        yield AiohttpTransport(session)


def raise_file_limit() -> int:
    """Allow as many open connections as this process may have at most; how many files may then be open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


class FakeTransport:
    """Replies as it is told to, without a network; remembers what it was asked."""

    def __init__(self, reply: Callable[[HttpRequest], HttpReply]) -> None:
        self._reply = reply
        self.requests: list[HttpRequest] = []

    async def post(self, request: HttpRequest) -> HttpReply:
        self.requests.append(request)
        return self._reply(request)
