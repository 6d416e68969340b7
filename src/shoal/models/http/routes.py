"""Routes to servers: name resolution, addresses, proxies, TLS."""

from __future__ import annotations

import asyncio
import os
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
from shoal.models.http.errors import NotConnected
from shoal.models.http.messages import Origin


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy, and the headers that authenticate us to it. Its representation hides them."""

    origin: Origin
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
    """The proxy of each scheme, and the hosts that are reached without one."""

    by_scheme: Mapping[str, Proxy] = field(default_factory=dict)
    without: tuple[str, ...] = ()

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Proxies:
        """Read HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY. As usual, lower-case names take precedence."""
        found = {}
        for scheme in ("http", "https"):
            for variable in (f"{scheme}_proxy", f"{scheme.upper()}_PROXY", "all_proxy", "ALL_PROXY"):
                if environ.get(variable):
                    found[scheme] = Proxy.of(variable, environ[variable])
                    break
        names = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
        return cls(found, tuple(name.strip().lower() for name in names.split(",") if name.strip()))

    def find(self, origin: Origin) -> Proxy | None:
        """Return the proxy for an origin; None means a direct connection, as always to this machine."""
        if is_loopback(origin.host):
            return None
        names = ("*", origin.host, origin.authority, f"{origin.host}:{origin.port}")
        for name in self.without:
            if name in names or origin.host.endswith("." + name.removeprefix("*").removeprefix(".")):
                return None
        return self.by_scheme.get(origin.scheme)


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


#: After this time without an answer the next address is tried as well, as RFC 8305 says.
STAGGER_SECONDS = 0.25
#: How long an address that worked is used before the name is resolved again.
KNOWN_SECONDS = 60.0
_MAX_PROXY_HEAD_BYTES = 64 * 1024

#: Family and address, as sockets take them.
Address = tuple[int, Any]


class Routes:
    """Makes routes, which share the proxies and the TLS context."""

    def __init__(self, loop: asyncio.AbstractEventLoop, proxies: Proxies) -> None:
        self._loop = loop
        self._proxies = proxies

    def make_route(self, origin: Origin) -> Route:
        return Route(self._loop, origin, self._proxies.find(origin), self._tls if origin.is_secure else None)

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """The context with this machine's trusted certificates, or those of SSL_CERT_FILE and SSL_CERT_DIR."""
        context = ssl.create_default_context()
        context.set_alpn_protocols(["http/1.1"])
        return context


class Route:
    """The way to one origin. The first connection searches for an address; the others wait for it and use the same."""

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
    def proxy_headers(self) -> Mapping[str, str] | None:
        """Headers for a proxy that reads each request; None without a proxy, and with TLS, which it cannot read."""
        return self._proxy.headers if self._proxy is not None and self._tls is None else None

    async def open(self, make: Callable[[], HttpConnection]) -> HttpConnection:
        """Open a connection."""
        connected = await self._connect()
        try:
            if self._proxy is not None and self._tls is not None:
                await _open_tunnel(self._loop, connected, self._origin, self._proxy)
            name = self._origin.host if self._tls else None
            _, connection = await self._loop.create_connection(
                make, sock=connected, ssl=self._tls, server_hostname=name
            )
        except BaseException:
            connected.close()
            raise
        return connection

    async def _connect(self) -> socket.socket:
        if (address := self._usual_address) is None:
            async with self._searching:
                if (address := self._usual_address) is None:
                    return await self._search()
        try:
            return await _connect_socket(self._loop, address)
        except BaseException as error:
            # Cut by the deadline, or refused: the next connection looks for another address.
            self._known = None
            if isinstance(error, OSError):
                raise self._name_peer(error) from error
            raise

    @property
    def _usual_address(self) -> Address | None:
        return self._known if self._loop.time() < self._known_until else None

    async def _search(self) -> socket.socket:
        try:
            found = await self._loop.getaddrinfo(self._next.host, self._next.port, type=socket.SOCK_STREAM)
            addresses = [(int(family), address) for family, _, _, _, address in found]
            # The resolver's order, but the families in turn: usually one of them is broken.
            first = [each for each in addresses if each[0] == addresses[0][0]]
            others = [each for each in addresses if each[0] != addresses[0][0]]
            alternating = [each for each in chain.from_iterable(zip_longest(first, others)) if each is not None]
            connected, self._known = await connect_first(self._loop, alternating)
        except (OSError, UnicodeError) as error:
            raise self._name_peer(error) from error
        self._known_until = self._loop.time() + KNOWN_SECONDS
        return connected

    def _name_peer(self, error: Exception) -> NotConnected:
        """Add the address of the server or the proxy to an error."""
        what = "proxy " if self._proxy else ""
        # The loops put other words around the system's own; names that are not found have negative numbers.
        number = getattr(error, "errno", None) or 0
        said = os.strerror(number) if number > 0 else getattr(error, "strerror", None) or str(error)
        return NotConnected(f"{what}{self._next.authority}: {said}")


async def connect_first(loop: asyncio.AbstractEventLoop, addresses: list[Address]) -> tuple[socket.socket, Address]:
    """Connect to the first address that accepts. The next one is tried when one failed or takes long."""
    waiting, trying = deque(addresses), dict[asyncio.Task[socket.socket], Address]()
    failures: list[BaseException] = []
    try:
        while waiting or trying:
            if waiting:
                address = waiting.popleft()
                trying[loop.create_task(_connect_socket(loop, address))] = address
            seconds = STAGGER_SECONDS if waiting else None
            done, _ = await asyncio.wait(trying, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                address = trying.pop(task)
                if (failure := task.exception()) is None:
                    return task.result(), address
                failures.append(failure)
    finally:
        for task in trying:
            task.cancel()
        for late in await asyncio.gather(*trying, return_exceptions=True):
            if isinstance(late, socket.socket):
                late.close()
    raise failures[0] if failures else OSError("it has no address")


async def _connect_socket(loop: asyncio.AbstractEventLoop, address: Address) -> socket.socket:
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


async def _open_tunnel(loop: asyncio.AbstractEventLoop, sock: socket.socket, origin: Origin, proxy: Proxy) -> None:
    """Ask the proxy for a tunnel. The server speaks second, so none of its bytes can come with the proxy's answer."""
    headers = "".join(f"{name}: {value}\r\n" for name, value in proxy.headers.items())
    request = f"CONNECT {origin.authority} HTTP/1.1\r\nHost: {origin.authority}\r\n{headers}\r\n"
    await loop.sock_sendall(sock, request.encode("latin-1"))
    head = b""
    while b"\r\n\r\n" not in head:
        received = await loop.sock_recv(sock, 4096)
        if not received or len(head) > _MAX_PROXY_HEAD_BYTES:
            raise ConnectionError(f"proxy {proxy.origin.authority}: it closed the connection")
        head += received
    said = head.partition(b"\r\n")[0].decode("latin-1")
    status = said.partition(" ")[2]
    if status.startswith("407"):
        raise ModelFailed(
            ModelFailure(FailureKind.ADDRESS, f"proxy {proxy.origin.authority}: {status}; it wants a name and password")
        )
    if not status.startswith("2"):
        raise ConnectionError(f"proxy {proxy.origin.authority}: {said}")
