"""Which proxy stands between this machine and a server, as the environment says it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from urllib.parse import unquote, urlsplit

from shoal.errors import RunRefused
from shoal.models.exchange import Origin


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
