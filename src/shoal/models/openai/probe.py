"""Whether a server is there, knows the key and the model, and what it publishes about its limits.

Listing the models costs nothing. Only a call shows everything, and may cost a fraction of a cent, so it is made only
when it is wanted.
"""

from __future__ import annotations

import asyncio
import http.client
import ssl
import time
from typing import Any
from urllib.parse import urlsplit

import msgspec
import orjson

from shoal.journal import JournalKey
from shoal.models.base import FailureKind, Message, ModelFailed, Question
from shoal.models.http.messages import HttpReply, HttpRequest, HttpTarget
from shoal.models.http.pool import Transport, open_transport
from shoal.models.http.routes import Proxies
from shoal.models.openai.client import Client
from shoal.models.openai.endpoints import Endpoint
from shoal.models.openai.errors import mask_secrets, parse_failure, read_rate_limits, report_unreachable
from shoal.rate_limits import RateLimits
from shoal.text import nearest

LISTING_SECONDS = 5.0
CALL_SECONDS = 30.0
#: Failures that a run lives with: it waits, and asks again.
PASSING = (FailureKind.REQUEST_RATE, FailureKind.TOKEN_RATE, FailureKind.CONCURRENCY, FailureKind.LIMITED)

_MODELS = tuple[str, ...]


class ProbeResult(msgspec.Struct, frozen=True, kw_only=True):
    """What was found out about one model on one server. The key is not in it."""

    model: str
    base_url: str
    #: Where the key came from; None: none was sent.
    key_variable: str | None = None
    #: To open a connection, and from a request to its reply on one that is open.
    connect_ms: float | None = None
    round_trip_ms: float | None = None
    #: Version of TLS; None: the connection is not encrypted, or there is none.
    tls: str | None = None
    #: How many models it lists; None: it does not say.
    models: int | None = None
    #: What a call took; None: none was made.
    call_ms: float | None = None
    allowance: RateLimits | None = None
    #: Why a run would fail.
    problem: str | None = None
    warning: str | None = None

    @property
    def is_key_proven(self) -> bool:
        """Whether the server was seen to accept the key, or to need none. Many list their models to anybody."""
        return self.call_ms is not None

    @property
    def is_here(self) -> bool:
        """Whether it runs on this machine."""
        host = urlsplit(self.base_url).hostname or ""
        return host == "localhost" or host == "::1" or host.startswith("127.")


async def probe(
    name: str,
    endpoint: Endpoint,
    proxies: Proxies | None = None,
    *,
    call: bool = False,
    listing_seconds: float = LISTING_SECONDS,
) -> ProbeResult:
    """Ask for the list of models, and, if it is wanted, for one word; never raises for what a server does."""
    proxies = proxies or Proxies()
    found = await asyncio.to_thread(_listed, name, endpoint, proxies, listing_seconds)
    if not call or found.problem is not None:
        return found
    async with open_transport(proxies) as transport:
        return await _called(found, endpoint, transport)


# Listing the models


def _listed(name: str, endpoint: Endpoint, proxies: Proxies, seconds: float) -> ProbeResult:
    found = ProbeResult(
        model=name, base_url=endpoint.base_url, key_variable=endpoint.key_variable if endpoint.key else None
    )
    target = HttpTarget(f"{endpoint.base_url}/models", _headers(endpoint))
    connection, first = _connection(target, proxies, seconds)
    began = time.perf_counter()
    try:
        connection.connect()
        connect_ms = _since(began)
        tls = connection.sock.version() if isinstance(connection.sock, ssl.SSLSocket) else None
        connection.request("GET", first, headers=dict(target.headers))
        began = time.perf_counter()
        response = connection.getresponse()
        reply = HttpReply(response.status, _lower(response.headers), response.read())
        timed = {"connect_ms": connect_ms, "round_trip_ms": _since(began), "tls": tls}
    except OSError as error:
        return msgspec.structs.replace(found, problem=_without(endpoint, report_unreachable(error).text))
    except http.client.HTTPException as error:
        return msgspec.structs.replace(found, problem=f"something answers, but not as a server does: {error!r}")
    finally:
        connection.close()
    return _judged(msgspec.structs.replace(found, **timed), endpoint, reply)


def _connection(target: HttpTarget, proxies: Proxies, seconds: float) -> tuple[http.client.HTTPConnection, str]:
    """The connection, still closed, and what to ask for on it: through a proxy, the whole address."""
    origin = target.origin
    proxy = proxies.between(origin)
    host, port = (origin.host, origin.port) if proxy is None else (proxy.origin.host, proxy.origin.port)
    if not origin.is_secure:
        return http.client.HTTPConnection(host, port, timeout=seconds), target.path if proxy is None else target.url
    context = ssl.create_default_context()
    connection = http.client.HTTPSConnection(host, port, timeout=seconds, context=context)
    if proxy is not None:
        connection.set_tunnel(origin.host, origin.port, dict(proxy.headers))
    return connection, target.path


def _headers(endpoint: Endpoint) -> dict[str, str]:
    if endpoint.key is None:
        return {}
    headers = {"Authorization": f"Bearer {endpoint.key}"}
    if _is_at(endpoint.base_url, ("anthropic.com",)):
        # Its list of models is not among what it answers as OpenAI does.
        headers |= {"x-api-key": endpoint.key, "anthropic-version": "2023-06-01"}
    return headers


def _judged(found: ProbeResult, endpoint: Endpoint, reply: HttpReply) -> ProbeResult:
    if reply.status == 200:
        names = _names(reply.body)
        warning = None if names is None else _unlisted(endpoint, names)
        return msgspec.structs.replace(
            found, models=names and len(names), allowance=read_rate_limits(reply.headers, time.time()), warning=warning
        )
    if reply.status in (404, 405, 501):
        return msgspec.structs.replace(found, warning="it does not list its models, so nothing is known about the key")
    failure = parse_failure(reply.status, reply.headers, reply.body, time.time())
    text = _without(endpoint, failure.text)
    if failure.kind in PASSING:
        return msgspec.structs.replace(found, warning=f"it is at its limit now: {text}")
    if failure.kind is FailureKind.AUTH:
        text = f"the key is refused ({_key(endpoint)}): {text}"
    return msgspec.structs.replace(found, problem=text)


def _names(body: bytes) -> _MODELS | None:
    try:
        listed = orjson.loads(body)
        return tuple(str(model["id"]) for model in listed["data"])
    except (ValueError, KeyError, TypeError):
        return None


def _unlisted(endpoint: Endpoint, names: _MODELS) -> str | None:
    """Some lists are not complete, so this is no more than a hint. Tags and owners may be left out of a name."""
    model = endpoint.model
    if any(model in (name, name.partition(":")[0], name.rpartition("/")[2]) for name in names):
        return None
    near = nearest(model, names)
    hint = f"; did you mean {near}?" if near else ""
    return f"{model} is not among the {len(names):,} models that it lists{hint}"


# One call


class _Overheard:
    """A transport that remembers what the server said last."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.reply: HttpReply | None = None

    async def post(self, request: HttpRequest) -> HttpReply:
        self.reply = await self._inner.post(request)
        return self.reply


async def _called(found: ProbeResult, endpoint: Endpoint, transport: Transport) -> ProbeResult:
    overheard = _Overheard(transport)
    client = Client(overheard, {found.model: endpoint}, CALL_SECONDS)
    question = Question(
        key=JournalKey("doctor", 0, None, "call"),
        model=found.model,
        messages=(Message("user", "Say yes."),),
        temperature=None,
        max_tokens=1,
    )
    changes: dict[str, Any] = {}
    began = time.perf_counter()
    try:
        await client.answer(question)
        changes["call_ms"] = _since(began)
    except ModelFailed as failed:
        changes["warning" if failed.failure.kind in PASSING else "problem"] = failed.failure.text
    if overheard.reply is not None:
        changes["allowance"] = read_rate_limits(overheard.reply.headers, time.time()) or found.allowance
    return msgspec.structs.replace(found, **changes)


# In words


def _key(endpoint: Endpoint) -> str:
    return f"that in {endpoint.key_variable}" if endpoint.key else "none was sent"


def _without(endpoint: Endpoint, text: str) -> str:
    return mask_secrets(text, endpoint.key)


def _is_at(base_url: str, hosts: tuple[str, ...]) -> bool:
    host = urlsplit(base_url).hostname or ""
    return any(host == name or host.endswith(f".{name}") for name in hosts)


def _lower(headers: http.client.HTTPMessage) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _since(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 1)
