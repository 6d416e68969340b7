"""One connection by itself."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import pytest

from shoal.models.http.connection import HttpConnection


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


async def test_an_end_that_the_loop_has_not_heard_of_yet_is_seen_where_it_matters(listener: socket.socket) -> None:
    """A long round keeps the loop busy; meanwhile the server may have closed what it found idle."""
    loop, lost = asyncio.get_running_loop(), asyncio.Event()
    _, connection = await loop.create_connection(
        lambda: HttpConnection(loop, lambda _: lost.set()), *listener.getsockname()
    )
    peer, _ = listener.accept()
    assert connection.is_usable(idle_seconds=100)
    peer.close()
    # Nothing was awaited since, so the connection has not noticed.
    assert connection.is_open
    assert not connection.is_usable(idle_seconds=100)
    await asyncio.wait_for(lost.wait(), 60)
    assert not connection.is_usable(idle_seconds=0)


async def test_what_comes_unasked_ends_a_connection(listener: socket.socket) -> None:
    loop, lost = asyncio.get_running_loop(), asyncio.Event()
    _, connection = await loop.create_connection(
        lambda: HttpConnection(loop, lambda _: lost.set()), *listener.getsockname()
    )
    peer, _ = listener.accept()
    with peer:
        peer.send(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
        await asyncio.wait_for(lost.wait(), 60)
    assert not connection.is_open
