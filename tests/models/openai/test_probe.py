"""Finding out about a server before a run depends on it."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from shoal.models.http.routes import Proxies
from shoal.models.openai.endpoints import Endpoint
from shoal.models.openai.probe import ProbeResult, probe
from shoal.rate_limits import RateLimit, RateLimits
from shoal.rehearsal.server import start
from shoal.rehearsal.settings import RehearsalSettings
from tests.models.servers import make_certificate

KEY = "sk-very-secret-0123456789"
NAME = "openai/gpt-4.1-mini"
LISTED = {"object": "list", "data": [{"id": "gpt-4.1"}, {"id": "gpt-4.1-mini"}]}


def at(base_url: str, model: str = "gpt-4.1-mini", key: str | None = KEY) -> Endpoint:
    return Endpoint(model=model, base_url=base_url, key=key, key_variable="OPENAI_API_KEY")


@asynccontextmanager
async def serving(
    status: int = 200, body: object = LISTED, headers: Mapping[str, str] | None = None
) -> AsyncIterator[tuple[str, list[str]]]:
    """A server that says the same to every request; its address, and what it was asked."""
    asked: list[str] = []
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = {"Content-Length": str(len(content)), **(headers or {})}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(f"HTTP/1.1 {status} ChatReply\r\n{head}\r\n".encode() + content)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", asked


async def probed(model: str = "gpt-4.1-mini", key: str | None = KEY, **said: Any) -> ProbeResult:
    async with serving(**said) as (base_url, _):
        return await probe(NAME, at(base_url, model, key))


async def test_a_server_that_lists_its_models_is_there() -> None:
    async with serving() as (base_url, asked):
        found = await probe(NAME, at(base_url))
    assert (found.problem, found.warning, found.models, found.tls) == (None, None, 2, None)
    assert not found.is_key_proven
    assert found.is_here
    assert found.connect_ms is not None
    assert found.round_trip_ms is not None
    assert asked[0].startswith("GET /v1/models HTTP/1.1\r\n")
    assert f"Authorization: Bearer {KEY}\r\n" in asked[0]


async def test_without_a_key_none_is_sent() -> None:
    async with serving() as (base_url, asked):
        found = await probe(NAME, at(base_url, key=None))
    assert found.key_variable is None
    assert "authorization" not in asked[0].lower()


@pytest.mark.parametrize("status", [401, 403])
async def test_a_key_that_is_refused_is_a_problem_and_never_shown(status: int) -> None:
    said = {"error": {"message": f"Incorrect API key provided: {KEY}", "code": "invalid_api_key"}}
    found = await probed(status=status, body=said)
    assert found.problem is not None
    assert "the key is refused (that in OPENAI_API_KEY)" in found.problem
    assert KEY not in repr(found)


async def test_a_server_in_trouble_is_a_problem() -> None:
    found = await probed(status=503, body={"error": {"message": "down for maintenance"}})
    assert found.problem == "503: down for maintenance"


async def test_a_server_at_its_limit_is_only_warned_of() -> None:
    found = await probed(status=429, body={"error": {"message": "Rate limit reached for requests per min"}})
    assert found.problem is None
    assert found.warning is not None
    assert "at its limit" in found.warning


@pytest.mark.parametrize("status", [404, 405])
async def test_a_server_that_lists_nothing_is_there_and_no_more_is_known(status: int) -> None:
    found = await probed(status=status, body=b"not found")
    assert (found.problem, found.models, found.is_key_proven) == (None, None, False)
    assert found.warning is not None


async def test_a_closed_port_is_a_problem() -> None:
    # A port that is taken and not listened at cannot be given to another process.
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        found = await probe(NAME, at(f"http://127.0.0.1:{taken.getsockname()[1]}/v1"), call=True)
    assert found.problem is not None
    assert "cannot be reached" in found.problem


async def test_a_server_that_never_answers_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        base_url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        found = await probe(NAME, at(base_url), listing_seconds=0.05)
    assert found.problem is not None
    assert "timed out" in found.problem


async def test_a_self_signed_certificate_is_a_problem(tmp_path: Path) -> None:
    context, _ = make_certificate(tmp_path)
    async with await asyncio.start_server(_say_nothing, "127.0.0.1", 0, ssl=context) as server:
        port = server.sockets[0].getsockname()[1]
        found = await probe(NAME, at(f"https://localhost:{port}/v1"))
    assert found.problem is not None
    assert "certificate cannot be trusted" in found.problem


async def _say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def test_something_that_is_no_web_server_is_a_problem() -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example ESMTP\r\n")
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        found = await probe(NAME, at(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"))
    assert found.problem is not None


async def test_a_model_that_is_not_listed_is_asked_about() -> None:
    found = await probed(model="gpt-4.1-mimi")
    assert found.problem is None
    assert found.warning == "gpt-4.1-mimi is not among the 2 models that it lists; did you mean gpt-4.1-mini?"


@pytest.mark.parametrize("listed", ["llama3.2:latest", "models/llama3.2", "llama3.2"])
async def test_tags_and_owners_may_be_left_out_of_a_name(listed: str) -> None:
    assert (await probed(model="llama3.2", body={"data": [{"id": listed}]})).warning is None


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"data": 5}', b'{"data": [{"name": "x"}]}'])
async def test_a_list_that_cannot_be_read_is_none(body: bytes) -> None:
    found = await probed(body=body)
    assert (found.problem, found.models) == (None, None)


async def test_through_a_proxy_the_whole_address_is_asked_for() -> None:
    async with serving() as (proxy, asked):
        proxies = Proxies.of({"http_proxy": proxy.removesuffix("/v1")})
        found = await probe(NAME, at("http://models.example/v1"), proxies)
    assert found.models == 2
    assert asked[0].startswith("GET http://models.example/v1/models HTTP/1.1\r\n")


# what it publishes


@pytest.mark.parametrize(
    ("headers", "allowance"),
    [
        (
            {"X-RateLimit-Limit-Requests": "500", "x-ratelimit-remaining-requests": "499"},
            RateLimits(requests=RateLimit(500.0, 499.0)),
        ),
        (
            {"anthropic-ratelimit-requests-limit": "50", "anthropic-ratelimit-input-tokens-limit": "40000"},
            RateLimits(RateLimit(50.0), RateLimit(40000.0)),
        ),
        ({"x-ratelimit-limit-tokens": "many"}, None),
        ({}, None),
    ],
)
async def test_published_limits_are_read_in_either_style(headers: dict[str, str], allowance: RateLimits | None) -> None:
    assert (await probed(headers=headers)).allowance == allowance


@pytest.mark.parametrize("style", ["openai", "anthropic"])
async def test_a_call_shows_what_comes_with_an_answer(style: Any) -> None:
    settings = RehearsalSettings(requests_per_minute=600, tokens_per_minute=90_000, headers=style)
    async with start(settings) as server:
        quiet = await probe("openai/rehearsal", at(server.base_url, "rehearsal"))
        assert server.stats.requests == 0
        found = await probe("openai/rehearsal", at(server.base_url, "rehearsal"), call=True)
        assert server.stats.requests == 1
    assert (quiet.call_ms, quiet.allowance) == (None, None)
    assert found.is_key_proven
    assert found.allowance is not None
    assert found.allowance.requests is not None
    assert found.allowance.tokens is not None
    assert (found.allowance.requests.limit, found.allowance.tokens.limit) == (600, 90_000)


async def test_a_key_that_only_a_call_proves_wrong_is_a_problem() -> None:
    async with start(RehearsalSettings(key="another")) as server:
        found = await probe("openai/rehearsal", at(server.base_url, "rehearsal"), call=True)
    assert found.problem is not None
    assert "the key is that in OPENAI_API_KEY" in found.problem


async def test_a_call_that_meets_a_limit_is_only_warned_of() -> None:
    async with start(RehearsalSettings(limits=1.0)) as server:
        found = await probe("openai/rehearsal", at(server.base_url, "rehearsal"), call=True)
    assert found.problem is None
    assert found.warning is not None
