"""HTTP as the rehearsal server speaks it: whole, in pieces, one after another, and wrong."""

from __future__ import annotations

import asyncio
import json

import pytest

from shoal.rehearsal.http import MAX_BODY_BYTES, MAX_HEAD_BYTES, BadRequest, RequestReader, ServerResponse
from shoal.rehearsal.server import start
from shoal.rehearsal.settings import RehearsalSettings

BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hello"}]}).encode()
POST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
WHOLE = POST + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n" + b"%x\r\n%b\r\n4;x=y\r\n    \r\n0\r\n\r\n" % (len(BODY), BODY)


@pytest.mark.parametrize("raw", [WHOLE, CHUNKED], ids=["sized", "chunked"])
def test_a_request_that_comes_byte_by_byte_is_the_same_request(raw: bytes) -> None:
    reader = RequestReader()
    for at in range(len(raw) - 1):
        reader.feed(raw[at : at + 1])
        assert reader.next() is None
    reader.feed(raw[-1:])
    request = reader.next()
    assert request is not None
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    assert request.headers["host"] == "x"
    assert json.loads(request.body) == json.loads(BODY)
    assert reader.next() is None


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: many\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (MAX_BODY_BYTES + 1), 413),
        (b"x" * (MAX_HEAD_BYTES + 1), 431),
    ],
)
def test_bytes_that_are_not_http_are_refused(raw: bytes, status: int) -> None:
    reader = RequestReader()
    reader.feed(raw)
    with pytest.raises(BadRequest) as caught:
        reader.next()
    assert caught.value.status == status


def test_permission_to_send_a_body_is_given_once() -> None:
    reader = RequestReader()
    reader.feed(POST + b"Expect: 100-continue\r\nContent-Length: 4\r\n\r\n")
    assert reader.next() is None
    assert [reader.take_permission(), reader.take_permission()] == [True, False]
    reader.feed(b"body")
    assert reader.next() is not None


def test_a_broken_response_promises_more_than_it_sends() -> None:
    head, _, body = ServerResponse(200, b"0123456789", "x-more: yes\r\n", broken=True).encode().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"content-length: 10\r\nx-more: yes" in head
    assert body == b"01234"


async def talk(raw: bytes) -> bytes:
    """Everything a server says to this, until it closes the connection."""
    async with start(RehearsalSettings(latency_seconds=0.001)) as server:
        port = int(server.base_url.removesuffix("/v1").rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(raw)
        said = await reader.read()
        writer.close()
        await writer.wait_closed()
    return said


async def test_requests_sent_without_waiting_are_answered_one_after_another() -> None:
    last = b"GET /v1/models?x=1 HTTP/1.1\r\nConnection: close\r\n\r\n"
    said = await talk(WHOLE + CHUNKED + last)
    assert said.count(b"HTTP/1.1 200 OK") == 3
    assert said.count(b'"object":"chat.completion"') == 2
    assert said.rstrip().endswith(b'"owned_by":"shoal"}]}')


async def test_nonsense_is_answered_and_the_connection_closed() -> None:
    said = await talk(b"hello?\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 400 Bad Request")


async def test_permission_comes_before_the_answer() -> None:
    head = POST + b"Expect: 100-continue\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(BODY)
    async with start(RehearsalSettings()) as server:
        port = int(server.base_url.removesuffix("/v1").rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head)
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(BODY)
        assert (await reader.read()).startswith(b"HTTP/1.1 200 OK")
        writer.close()
        await writer.wait_closed()
