"""Probes a server for `doctor`: whether it is there, accepts the key, has the model, and which limits it publishes.

Listing the models is free. Only a call shows everything. It may cost a fraction of a cent, so it is made on request.
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
from shoal.models.http.errors import report_unreachable
from shoal.models.http.messages import HttpReply, HttpRequest, HttpTarget
from shoal.models.http.pool import Transport, open_transport
from shoal.models.http.routes import Proxies, is_loopback
from shoal.models.local import ModelSpeed, ServerSize
from shoal.models.openai.client import ModelClient
from shoal.models.openai.endpoints import Endpoint
from shoal.models.openai.errors import mask_secrets, parse_failure, read_rate_limits
from shoal.rate_limits import RateLimits
from shoal.text import nearest

LISTING_SECONDS = 5.0
CALL_SECONDS = 30.0
#: Failures after which a run waits and asks again.
PASSING = (FailureKind.REQUEST_RATE, FailureKind.TOKEN_RATE, FailureKind.CONCURRENCY, FailureKind.LIMITED)


class ProbeResult(msgspec.Struct, frozen=True, kw_only=True):
    """What was found out about one model on one server. It does not hold the key."""

    model: str
    base_url: str
    #: Where the key came from; None if none was sent.
    key_variable: str | None = None
    #: Time to open a connection, and time from a request to its reply on an open one.
    connect_ms: float | None = None
    round_trip_ms: float | None = None
    #: Version of TLS; None if there is no connection, or it is not encrypted.
    tls: str | None = None
    #: How many models it lists; None if it lists none.
    models: int | None = None
    #: How long a call took; None if none was made.
    call_ms: float | None = None
    allowance: RateLimits | None = None
    #: How a model on this machine is served, and how fast it was.
    local: ServerSize | None = None
    speed: ModelSpeed | None = None
    #: Why a run would fail.
    problem: str | None = None
    warning: str | None = None

    @property
    def is_key_proven(self) -> bool:
        """Whether the server accepted the key in a call, or needed none. Many servers list models without a key."""
        return self.call_ms is not None

    @property
    def is_here(self) -> bool:
        """Whether the server runs on this machine."""
        return self.local is not None or is_loopback(urlsplit(self.base_url).hostname or "")


class _RecordingTransport:
    """A transport that keeps the last reply."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.reply: HttpReply | None = None

    async def post(self, request: HttpRequest) -> HttpReply:
        self.reply = await self._inner.post(request)
        return self.reply


async def probe(
    name: str,
    endpoint: Endpoint,
    proxies: Proxies | None = None,
    *,
    call: bool = False,
    listing_seconds: float = LISTING_SECONDS,
) -> ProbeResult:
    """Ask for the list of models, and with `call` for one word. Never raises for what a server does."""
    proxies = proxies or Proxies()
    found = await asyncio.to_thread(_list_models, name, endpoint, proxies, listing_seconds)
    if not call or found.problem is not None:
        return found
    messages = (Message("user", "Say yes."),)
    question = Question(key=JournalKey("doctor", 0, None, "call"), model=name, messages=messages, max_tokens=1)
    changes: dict[str, Any] = {}
    async with open_transport(proxies) as transport:
        recording = _RecordingTransport(transport)
        began = time.perf_counter()
        try:
            await ModelClient(recording, {name: endpoint}, CALL_SECONDS).answer(question)
            changes["call_ms"] = _milliseconds_since(began)
        except ModelFailed as failed:
            changes["warning" if failed.failure.kind in PASSING else "problem"] = failed.failure.text
    if recording.reply is not None:
        changes["allowance"] = read_rate_limits(recording.reply.headers, time.time()) or found.allowance
    return msgspec.structs.replace(found, **changes)


def _list_models(name: str, endpoint: Endpoint, proxies: Proxies, seconds: float) -> ProbeResult:
    key_variable = endpoint.key_variable if endpoint.key else None
    found = ProbeResult(model=name, base_url=endpoint.base_url, key_variable=key_variable)
    headers = {}
    if endpoint.key is not None:
        headers["Authorization"] = f"Bearer {endpoint.key}"
        host = urlsplit(endpoint.base_url).hostname or ""
        if host == "anthropic.com" or host.endswith(".anthropic.com"):
            # Its list of models is not part of its OpenAI-compatible interface.
            headers |= {"x-api-key": endpoint.key, "anthropic-version": "2023-06-01"}
    target = HttpTarget(f"{endpoint.base_url}/models", headers)
    connection, path = _prepare_connection(target, proxies, seconds)
    began = time.perf_counter()
    try:
        connection.connect()
        connect_ms = _milliseconds_since(began)
        tls = connection.sock.version() if isinstance(connection.sock, ssl.SSLSocket) else None
        connection.request("GET", path, headers=headers)
        began = time.perf_counter()
        response = connection.getresponse()
        lowered = {name.lower(): value for name, value in response.headers.items()}
        reply = HttpReply(response.status, lowered, response.read())
        timings = {"connect_ms": connect_ms, "round_trip_ms": _milliseconds_since(began), "tls": tls}
    except OSError as error:
        problem = mask_secrets(report_unreachable(error).text, endpoint.key)
        return msgspec.structs.replace(found, problem=problem)
    except http.client.HTTPException as error:
        return msgspec.structs.replace(found, problem=f"something answers, but not as a server does: {error!r}")
    finally:
        connection.close()
    return msgspec.structs.replace(found, **timings, **_judge_listing(endpoint, reply))


def _prepare_connection(target: HttpTarget, proxies: Proxies, seconds: float) -> tuple[http.client.HTTPConnection, str]:
    """Return a connection, still closed, and the path to request on it; through a proxy, that is the whole URL."""
    origin = target.origin
    proxy = proxies.find(origin)
    host, port = (origin.host, origin.port) if proxy is None else (proxy.origin.host, proxy.origin.port)
    if not origin.is_secure:
        return http.client.HTTPConnection(host, port, timeout=seconds), target.path if proxy is None else target.url
    context = ssl.create_default_context()
    connection = http.client.HTTPSConnection(host, port, timeout=seconds, context=context)
    if proxy is not None:
        connection.set_tunnel(origin.host, origin.port, dict(proxy.headers))
    return connection, target.path


def _judge_listing(endpoint: Endpoint, reply: HttpReply) -> dict[str, Any]:
    """Return the fields of a result that the list of models fills in."""
    if reply.status == 200:
        rate_limits = read_rate_limits(reply.headers, time.time())
        try:
            names = [str(model["id"]) for model in orjson.loads(reply.body)["data"]]
        except (ValueError, KeyError, TypeError):
            return {"allowance": rate_limits}
        listed = {"models": len(names), "allowance": rate_limits}
        # Tags and owners may be left out of a name.
        if any(endpoint.model in (name, name.partition(":")[0], name.rpartition("/")[2]) for name in names):
            return listed
        # No more than a warning, as some lists are incomplete.
        near = nearest(endpoint.model, names)
        hint = f"; did you mean {near}?" if near else ""
        return {**listed, "warning": f"{endpoint.model} is not among the {len(names):,} models that it lists{hint}"}
    if reply.status in (404, 405, 501):
        return {"warning": "it does not list its models, so nothing is known about the key"}
    failure = parse_failure(reply.status, reply.headers, reply.body, time.time())
    text = mask_secrets(failure.text, endpoint.key)
    if failure.kind in PASSING:
        return {"warning": f"it is at its limit now: {text}"}
    if failure.kind is FailureKind.AUTH:
        key = f"that in {endpoint.key_variable}" if endpoint.key else "none was sent"
        text = f"the key is refused ({key}): {text}"
    return {"problem": text}


def _milliseconds_since(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 1)
