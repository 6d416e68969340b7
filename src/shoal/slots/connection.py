"""The connection from a run to the broker's process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol, cast

from shoal.errors import SlotsRefused
from shoal.slots.location import BrokerLocation
from shoal.slots.protocol import (
    GREETING,
    BrokerMessage,
    ClientMessage,
    FrameDecoder,
    InvalidFrame,
    OtherVersion,
    ProtocolRefusal,
    encode_frame,
)
from shoal.slots.server import NoBroker, start_broker

#: How long to look for a broker, and to start one, before giving up.
_CONNECT_SECONDS = 30.0
_GREETING_SECONDS = 10.0
_PAUSE_SECONDS = 0.01


class Listener(Protocol):
    """The run's end of a link."""

    def receive(self, replies: Sequence[BrokerMessage]) -> None: ...

    def on_lost(self, why: Exception | None) -> None:
        """Handle the end of the broker, which takes everything it knew along."""
        ...


class Link(Protocol):
    """The way to a broker: a session of a dispatcher in this process, or a socket."""

    def send(self, messages: Sequence[ClientMessage]) -> None: ...

    def close(self) -> None: ...


class SocketLink(asyncio.Protocol):
    """A link to the broker's process."""

    _transport: asyncio.Transport

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._decoder: FrameDecoder[BrokerMessage] = FrameDecoder.of_run()
        self._is_closed = False
        self._why: Exception | None = None
        #: Done when the other side turns out to be a broker of this version.
        self.greeted: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(GREETING)

    def data_received(self, data: bytes) -> None:
        try:
            replies = self._decoder.feed(data)
        except (OtherVersion, InvalidFrame) as error:
            self._why = error
            self._transport.close()
            return
        if replies and isinstance(replies[-1], ProtocolRefusal):
            self._why = InvalidFrame(replies[-1].why)
        elif not self._is_closed:
            self._listener.receive(replies)
        if self._decoder.is_greeted and not self.greeted.done():
            self.greeted.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        why = self._why or error
        if not self.greeted.done():
            self.greeted.set_exception(why or ConnectionResetError("the broker left"))
        elif not self._is_closed:
            self._listener.on_lost(why)

    def send(self, messages: Sequence[ClientMessage]) -> None:
        self._transport.write(encode_frame(messages))

    def close(self) -> None:
        """Close the connection after sending what is still to be sent."""
        self._is_closed = True
        self._transport.close()


async def connect(place: BrokerLocation, listener: Listener, clock: Callable[[], float]) -> SocketLink:
    """Connect to the broker at this place; start one if none is running."""
    try:
        place.prepare()
    except OSError as error:
        raise NoBroker(str(error)) from error
    deadline = clock() + _CONNECT_SECONDS
    while True:
        try:
            return await _open_link(place, listener)
        except OSError as error:
            if clock() > deadline:
                raise NoBroker(str(error)) from error
            await asyncio.sleep(_PAUSE_SECONDS)
        try:
            await asyncio.to_thread(start_broker, place)
        except RuntimeError as error:  # no thread can be started
            raise NoBroker(str(error)) from error


async def _open_link(place: BrokerLocation, listener: Listener) -> SocketLink:
    _, link = await asyncio.get_running_loop().create_unix_connection(lambda: SocketLink(listener), str(place.socket))
    try:
        async with asyncio.timeout(_GREETING_SECONDS):
            await link.greeted
    except OtherVersion as error:
        raise SlotsRefused(error.explain(place.socket)) from error
    except BaseException:
        link.close()
        raise
    return link
