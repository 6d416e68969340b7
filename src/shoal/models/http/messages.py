"""One HTTP request and its reply: what goes through a transport."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import msgspec

from shoal.errors import RunRefused

_PORTS = {"http": 80, "https": 443}
_SAFE_IN_PATH = "/%:@!$&'()*+,;=~?"


class Origin(NamedTuple):
    """What a connection leads to: requests to the same origin share their connections."""

    scheme: str
    host: str
    port: int

    @property
    def is_secure(self) -> bool:
        return self.scheme == "https"

    @property
    def authority(self) -> str:
        """Host and port, as a proxy wants them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        """As it stands in a URL: without the port that goes without saying."""
        usual = f":{_PORTS[self.scheme]}"
        return f"{self.scheme}://{self.authority.removesuffix(usual)}"


class HttpTarget:
    """An address to which many requests go with the same headers, worked out once.

    The headers hold the key, so they show nowhere.
    """

    __slots__ = ("headers", "origin", "path")

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self.origin, self.path = _parts(url)
        self.headers = headers

    @property
    def url(self) -> str:
        return f"{self.origin}{self.path}"

    def head(self, proxy: Mapping[str, str] | None = None) -> bytes:
        """What each request begins with, up to the number that is its length; `proxy`: more headers, for one between.

        A proxy wants the whole URL.
        """
        first = self.path if proxy is None else self.url
        host = str(self.origin).partition("://")[2]
        lines = {"Host": host, **self.headers, **(proxy or {})}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return f"POST {first} HTTP/1.1\r\n{head}Content-Length: ".encode("latin-1")

    def __repr__(self) -> str:
        return f"Target({self.url!r})"


def _parts(url: str) -> tuple[Origin, str]:
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna").decode()
        port = parts.port or _PORTS[parts.scheme]
    except (ValueError, KeyError) as error:
        raise RunRefused(f"{url!r} is no address of a server; it looks like http://localhost:8000/v1") from error
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    return Origin(parts.scheme, host, port), quote(path or "/", safe=_SAFE_IN_PATH)


class HttpRequest(msgspec.Struct, frozen=True):
    """A request whose reply is JSON. It shows neither key nor prompt."""

    target: HttpTarget
    body: bytes
    #: After which a connection counts as hung and is cut.
    seconds: float

    @property
    def url(self) -> str:
        return self.target.url

    @property
    def headers(self) -> Mapping[str, str]:
        return self.target.headers

    def __repr__(self) -> str:
        return f"HttpRequest({self.url!r}, {len(self.body)} bytes, seconds={self.seconds:g})"

    def __rich_repr__(self) -> list[Any]:
        return [self.url, ("seconds", self.seconds)]


class HttpReply(msgspec.Struct, frozen=True):
    status: int
    #: Names in lower case; of a header that comes twice, the first.
    headers: Mapping[str, str]
    body: bytes
