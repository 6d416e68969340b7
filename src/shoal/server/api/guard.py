"""What every request passes before anything is done for it: rate, host, origin, token, size.

It works on the plain ASGI messages, so that a request that is refused is not parsed at all.
"""

from __future__ import annotations

import asyncio
import hmac
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from http.cookies import CookieError, SimpleCookie

import msgspec
from fastapi import FastAPI
from starlette.types import Message, Receive, Scope, Send

from shoal.server.api.settings import ServerSettings

COOKIE = "shoal_token"
#: Paths that need no token: one says that the server is there, the other takes the token.
HEALTH, SESSION = "/health", "/api/session"
#: The pages need none either: they hold nothing secret, and ask for the token.
INDEX, ASSETS = "/", "/assets/"
_MAX_ADDRESSES = 10_000
#: Answers are not to be kept, guessed at, or shown inside other pages.
_ALWAYS = (
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)


class RequestRefused(Exception):
    """A request that is not answered, and why."""

    def __init__(self, status: int, why: str, retry_after: int | None = None) -> None:
        super().__init__(why)
        self.status = status
        self.retry_after = retry_after


class RateLimiter:
    """Limits the requests of each address: in a second, and at once."""

    def __init__(self, per_second: float, at_once: int, now: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._at_once = at_once
        self._now = now
        #: Address -> what it has left, and when that was counted. The one that was quiet longest is forgotten first.
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allows(self, address: str, cost: float = 1.0) -> bool:
        """Count a request; False where it is one too many. A cost of 0 only looks."""
        now = self._now()
        left, since = self._left.get(address, (float(self._at_once), now))
        left = min(left + (now - since) * self._per_second, float(self._at_once))
        is_allowed = left >= max(cost, 1.0)
        self._left[address] = (left - cost if is_allowed else left), now
        self._left.move_to_end(address)
        if len(self._left) > _MAX_ADDRESSES:
            self._left.popitem(last=False)
        return is_allowed


class Guard:
    """Refuses requests that may not be made, and passes on the others."""

    def __init__(self, app: FastAPI, settings: ServerSettings) -> None:
        self.app = app
        self._settings = settings
        self._rates = RateLimiter(settings.requests_per_second, settings.requests_at_once)
        self._wrong_tokens = RateLimiter(settings.wrong_tokens_per_second, settings.wrong_tokens_at_once)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            # There are no web sockets.
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        extra = self._share_with(headers.get("origin", ""))
        try:
            self._check(scope, headers)
            body = await self._read_body(receive)
        except RequestRefused as refused:
            await _refuse(send, refused, extra)
            return
        if scope["method"] == "OPTIONS" and "origin" in headers:
            await send({"type": "http.response.start", "status": 204, "headers": [*_ALWAYS, *extra]})
            await send({"type": "http.response.body", "body": b""})
            return

        has_begun = False

        async def send_with_headers(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            if message["type"] == "http.response.start":
                own = {name.lower() for name, _ in message["headers"]}
                always = [header for header in _ALWAYS if header[0] not in own]
                message["headers"] = [*message["headers"], *always, *extra]
            await send(message)

        try:
            await self.app(scope, _replay(body, receive), send_with_headers)
        except asyncio.CancelledError:
            # The server leaves, and this took longer than its grace. Without an answer it would be an internal error.
            if has_begun:
                raise
            await _refuse(send, RequestRefused(503, "the server is leaving; ask it again", retry_after=1), extra)

    def _check(self, scope: Scope, headers: Mapping[str, str]) -> None:
        settings, address = self._settings, scope["client"][0] if scope.get("client") else ""
        if not self._rates.allows(address):
            raise RequestRefused(429, "too many requests; slow down", retry_after=1)
        host, origin = headers.get("host", ""), headers.get("origin")
        if not settings.allows_host(host):
            raise RequestRefused(403, "this server does not go by that name; start it with --allow-host to add one")
        is_foreign = origin is not None and not settings.allows_origin(origin, host)
        if is_foreign or (origin is None and headers.get("sec-fetch-site") == "cross-site"):
            raise RequestRefused(403, "pages of other origins may not call this server; --allow-origin allows one")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > settings.max_body_bytes:
            raise RequestRefused(413, f"a body may have {settings.max_body_bytes:,} bytes")
        is_preflight = scope["method"] == "OPTIONS" and origin is not None
        is_open = scope["path"] in (HEALTH, SESSION) or is_page(scope["path"])
        if settings.token is not None and not is_open and not is_preflight:
            self.check_token(address, _find_token(headers))

    async def _read_body(self, receive: Receive) -> bytes:
        """Read the whole body, within a limit of length and one of time."""
        parts, size = [], 0
        try:
            async with asyncio.timeout(self._settings.body_seconds):
                while (message := await receive())["type"] == "http.request":
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > self._settings.max_body_bytes:
                        raise RequestRefused(413, f"a body may have {self._settings.max_body_bytes:,} bytes")
                    if not message.get("more_body", False):
                        break
        except TimeoutError:
            raise RequestRefused(408, "the body of the request took too long") from None
        return b"".join(parts)

    def check_token(self, address: str, given: str | None) -> None:
        """Raise RequestRefused unless this is the server's token. It takes as long for every wrong one."""
        assert self._settings.token is not None
        if not self._wrong_tokens.allows(address, 0):
            raise RequestRefused(429, "too many wrong tokens; wait a while", retry_after=5)
        if given is None or not hmac.compare_digest(given.encode(), self._settings.token.encode()):
            self._wrong_tokens.allows(address)
            raise RequestRefused(401, "a token is needed: send the header Authorization: Bearer TOKEN")

    def _share_with(self, origin: str) -> list[tuple[bytes, bytes]]:
        """Return the headers by which a browser lets a page of another origin read the answer."""
        if origin not in self._settings.origins:
            return []
        return [
            (b"access-control-allow-origin", origin.encode("latin-1")),
            (b"access-control-allow-credentials", b"true"),
            (b"access-control-allow-methods", b"GET, POST, OPTIONS"),
            (b"access-control-allow-headers", b"authorization, content-type, last-event-id"),
            (b"vary", b"Origin"),
        ]


def is_page(path: str) -> bool:
    """Return whether a path is the page or one of its files."""
    return path == INDEX or path.startswith(ASSETS)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return what gives a body that was read already, and then whatever comes after it."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return waiting.pop() if waiting else await receive()

    return receive_again


def _find_token(headers: Mapping[str, str]) -> str | None:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return token.strip()
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None
    return None if cookie is None else cookie.value


async def _refuse(send: Send, refused: RequestRefused, extra: list[tuple[bytes, bytes]]) -> None:
    body = msgspec.json.encode({"success": False, "error": str(refused)})
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *_ALWAYS, *extra]
    if refused.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if refused.retry_after is not None:
        headers.append((b"retry-after", b"%d" % refused.retry_after))
    if refused.status in (408, 413):
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
