"""How a server is reached: name, address, proxy, TLS."""

from __future__ import annotations

import asyncio
import socket
import ssl
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from ipaddress import ip_address
from itertools import chain, zip_longest
from typing import Any
from urllib.parse import unquote, urlsplit

from shoal.errors import RunRefused
from shoal.models.base import FailureKind, ModelFailed, ModelFailure
from shoal.models.http.connection import HttpConnection
from shoal.models.http.messages import Origin


@dataclass(frozen=True, slots=True)
class Proxy:
    origin: Origin
    #: What it is sent besides: whom it knows us as. Shows nowhere.
    headers: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, variable: str, url: str) -> Proxy:
        try:
            parts = urlsplit(url if "://" in url else f"http://{url}")
            host, port = parts.hostname, parts.port or 80
        except ValueError:
            host, port = None, 0
        if not host or parts.scheme != "http":
            raise RunRefused(f"{variable} is no address of a proxy that can be used; it looks like http://proxy:3128")
        headers = {}
        if parts.username is not None:
            known = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            headers["Proxy-Authorization"] = f"Basic {b64encode(known.encode()).decode()}"
        return cls(Origin("http", host, port), headers)


@dataclass(frozen=True, slots=True)
class Proxies:
    """By scheme, and the names that need none."""

    by_scheme: Mapping[str, Proxy] = field(default_factory=dict)
    without: tuple[str, ...] = ()

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Proxies:
        """From HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY; in small letters they count more, as everywhere."""
        found = {}
        for scheme in ("http", "https"):
            for variable in (f"{scheme}_proxy", f"{scheme.upper()}_PROXY", "all_proxy", "ALL_PROXY"):
                if environ.get(variable):
                    found[scheme] = Proxy.of(variable, environ[variable])
                    break
        names = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
        return cls(found, tuple(name.strip().lower() for name in names.split(",") if name.strip()))

    def between(self, origin: Origin) -> Proxy | None:
        """None: nobody. This machine itself is never reached through another."""
        if is_here(origin.host) or any(_covers(name, origin) for name in self.without):
            return None
        return self.by_scheme.get(origin.scheme)


def is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _covers(name: str, origin: Origin) -> bool:
    if name == "*":
        return True
    if name in (origin.host, origin.authority, f"{origin.host}:{origin.port}"):
        return True
    return origin.host.endswith("." + name.removeprefix("*").removeprefix("."))


#: An address that does not answer within this time gets company by the next one, as RFC 8305 has it.
STAGGER_SECONDS = 0.25
#: How long an address that worked is used without asking for the name again.
KNOWN_SECONDS = 60.0
_MAX_PROXY_HEAD_BYTES = 64 * 1024

#: Family and address, as sockets want them.
Address = tuple[int, Any]


class Routes:
    """What all routes share."""

    def __init__(self, loop: asyncio.AbstractEventLoop, proxies: Proxies) -> None:
        self._loop = loop
        self._proxies = proxies

    def to(self, origin: Origin) -> Route:
        return Route(self._loop, origin, self._proxies.between(origin), self._tls if origin.is_secure else None)

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """Trusts whom this machine trusts; SSL_CERT_FILE and SSL_CERT_DIR say otherwise."""
        context = ssl.create_default_context()
        context.set_alpn_protocols(["http/1.1"])
        return context


class Route:
    """The way to one origin. It is searched for once, by whoever comes first; the others wait and take the same."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, origin: Origin, proxy: Proxy | None, tls: ssl.SSLContext | None
    ) -> None:
        self._loop = loop
        self._origin = origin
        self._proxy = proxy
        self._tls = tls
        self._next = proxy.origin if proxy else origin
        self._known: Address | None = None
        self._known_until = 0.0
        self._searching = asyncio.Lock()

    @property
    def read_by(self) -> Mapping[str, str] | None:
        """What a proxy wants to see in each request, where it reads them; with TLS it passes on what it cannot read."""
        return self._proxy.headers if self._proxy is not None and self._tls is None else None

    async def open(self, make: Callable[[], HttpConnection]) -> HttpConnection:
        connected = await self._connect()
        try:
            if self._proxy is not None and self._tls is not None:
                await _tunnel(self._loop, connected, self._origin, self._proxy)
            name = self._origin.host if self._tls else None
            _, connection = await self._loop.create_connection(
                make, sock=connected, ssl=self._tls, server_hostname=name
            )
        except BaseException:
            connected.close()
            raise
        return connection

    async def _connect(self) -> socket.socket:
        if (address := self._usual()) is None:
            async with self._searching:
                if (address := self._usual()) is None:
                    return await self._search()
        try:
            return await _connected(self._loop, address)
        except BaseException as error:
            # Cut by the deadline, or told that nobody is there: the next one looks for another address.
            self._known = None
            if isinstance(error, OSError):
                raise self._named(error) from error
            raise

    def _usual(self) -> Address | None:
        return self._known if self._loop.time() < self._known_until else None

    async def _search(self) -> socket.socket:
        try:
            found = await self._loop.getaddrinfo(self._next.host, self._next.port, type=socket.SOCK_STREAM)
            addresses = [(int(family), address) for family, _, _, _, address in found]
            connected, self._known = await first_of(self._loop, _alternating(addresses))
        except (OSError, UnicodeError) as error:
            raise self._named(error) from error
        self._known_until = self._loop.time() + KNOWN_SECONDS
        return connected

    def _named(self, error: Exception) -> ConnectionError:
        what = "proxy " if self._proxy else ""
        said = getattr(error, "strerror", None) or str(error)
        return ConnectionError(f"{what}{self._next.authority}: {said}")


def _alternating(addresses: list[Address]) -> list[Address]:
    """The resolver's order, but the families by turns: what is broken is usually one of them."""
    first = [each for each in addresses if each[0] == addresses[0][0]]
    others = [each for each in addresses if each[0] != addresses[0][0]]
    return [each for each in chain.from_iterable(zip_longest(first, others)) if each is not None]


async def first_of(loop: asyncio.AbstractEventLoop, addresses: list[Address]) -> tuple[socket.socket, Address]:
    """The first address that lets us in, and the socket. Each next one is tried when one failed or takes long."""
    waiting, trying = deque(addresses), dict[asyncio.Task[socket.socket], Address]()
    failures: list[BaseException] = []
    try:
        while waiting or trying:
            if waiting:
                address = waiting.popleft()
                trying[loop.create_task(_connected(loop, address))] = address
            seconds = STAGGER_SECONDS if waiting else None
            done, _ = await asyncio.wait(trying, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                address = trying.pop(task)
                if (failure := task.exception()) is None:
                    return task.result(), address
                failures.append(failure)
    finally:
        await _dismiss(trying)
    raise failures[0] if failures else OSError("it has no address")


async def _dismiss(tasks: dict[asyncio.Task[socket.socket], Address]) -> None:
    for task in tasks:
        task.cancel()
    for late in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(late, socket.socket):
            late.close()


async def _connected(loop: asyncio.AbstractEventLoop, address: Address) -> socket.socket:
    family, where = address
    connecting = socket.socket(family, socket.SOCK_STREAM)
    try:
        connecting.setblocking(False)
        connecting.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await loop.sock_connect(connecting, where)
    except BaseException:
        connecting.close()
        raise
    return connecting


async def _tunnel(loop: asyncio.AbstractEventLoop, sock: socket.socket, origin: Origin, proxy: Proxy) -> None:
    """Ask the proxy to pass on everything. The server speaks second, so nothing of it can come with the answer."""
    headers = "".join(f"{name}: {value}\r\n" for name, value in proxy.headers.items())
    asked = f"CONNECT {origin.authority} HTTP/1.1\r\nHost: {origin.authority}\r\n{headers}\r\n"
    await loop.sock_sendall(sock, asked.encode("latin-1"))
    head = b""
    while b"\r\n\r\n" not in head:
        came = await loop.sock_recv(sock, 4096)
        if not came or len(head) > _MAX_PROXY_HEAD_BYTES:
            raise ConnectionError(f"proxy {proxy.origin.authority}: it closed the connection")
        head += came
    said = head.partition(b"\r\n")[0].decode("latin-1")
    status = said.partition(" ")[2]
    if status.startswith("407"):
        raise ModelFailed(
            ModelFailure(FailureKind.FATAL, f"proxy {proxy.origin.authority}: {status}; it wants a name and password")
        )
    if not status.startswith("2"):
        raise ConnectionError(f"proxy {proxy.origin.authority}: {said}")
