"""HTTP requests and replies, as a transport takes and returns them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import msgspec

from shoal.errors import RunRefused

_PORTS = {"http": 80, "https": 443}
_SAFE_IN_PATH = "/%:@!$&'()*+,;=~?"


class Origin(NamedTuple):
    """The server of a connection. Requests to the same origin share connections."""

    scheme: str
    host: str
    port: int

    @property
    def is_secure(self) -> bool:
        return self.scheme == "https"

    @property
    def authority(self) -> str:
        """Host and port, as a proxy takes them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        """Return the origin as in a URL, without the default port."""
        usual = f":{_PORTS[self.scheme]}"
        return f"{self.scheme}://{self.authority.removesuffix(usual)}"


class HttpTarget:
    """A URL and the headers of many requests to it, prepared once.

    The headers hold the key, so representations hide them.
    """

    __slots__ = ("headers", "origin", "path")

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        try:
            parts = urlsplit(url)
            host = (parts.hostname or "").encode("idna").decode()
            port = parts.port or _PORTS[parts.scheme]
        except (ValueError, KeyError) as error:
            raise RunRefused(f"{url!r} is no address of a server; it looks like http://localhost:8000/v1") from error
        self.origin = Origin(parts.scheme, host, port)
        query = f"?{parts.query}" if parts.query else ""
        self.path = quote(f"{parts.path}{query}" or "/", safe=_SAFE_IN_PATH)
        self.headers = headers

    @property
    def url(self) -> str:
        return f"{self.origin}{self.path}"

    def head(self, proxy: Mapping[str, str] | None = None) -> bytes:
        """Return the request line and the headers up to `Content-Length: `. A request adds its length and body.

        With `proxy`: absolute URL, and these headers too.
        """
        first = self.path if proxy is None else self.url
        host = str(self.origin).partition("://")[2]
        lines = {"Host": host, **self.headers, **(proxy or {})}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return f"POST {first} HTTP/1.1\r\n{head}Content-Length: ".encode("latin-1")

    def __repr__(self) -> str:
        return f"Target({self.url!r})"


class HttpRequest(msgspec.Struct, frozen=True):
    """A request. Its representations hide the key and the prompt."""

    target: HttpTarget
    body: bytes
    #: After this time the connection counts as hung and is cut.
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
    """A reply, whatever its status."""

    status: int
    #: Names are in lower case. Of a repeated header, the first counts.
    headers: Mapping[str, str]
    body: bytes
