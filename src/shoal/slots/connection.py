"""The way from a run to a broker: to one in this process, or to one behind a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol, cast

from shoal.errors import SlotsRefused
from shoal.slots.dispatcher import Dispatcher
from shoal.slots.location import BrokerLocation
from shoal.slots.protocol import (
    GREETING,
    BrokerMessage,
    ClientMessage,
    FrameDecoder,
    Garbled,
    OtherVersion,
    ProtocolRefusal,
    frame,
    other_version,
)
from shoal.slots.start import NoBroker, start

#: How long to look for a broker, and to start one, before giving up.
_DIAL_SECONDS = 30.0
_GREETING_SECONDS = 10.0
_PAUSE_SECONDS = 0.01


class Listener(Protocol):
    """The run's end."""

    def hear(self, replies: Sequence[BrokerMessage]) -> None: ...

    def lost(self, why: Exception | None) -> None:
        """The broker is gone, and with it everything it knew."""
        ...


class Link(Protocol):
    def say(self, messages: Sequence[ClientMessage]) -> None: ...

    def close(self) -> None: ...


class LocalLink:
    """To a desk in this process."""

    def __init__(self, desk: Dispatcher, hear: Callable[[Sequence[BrokerMessage]], None]) -> None:
        self._caller = desk.caller(hear)

    def say(self, messages: Sequence[ClientMessage]) -> None:
        self._caller.say(messages)

    def close(self) -> None:
        self._caller.hang_up()


class SocketLink(asyncio.Protocol):
    """To a broker's process."""

    _transport: asyncio.Transport

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._ears: FrameDecoder[BrokerMessage] = FrameDecoder.of_run()
        self._closed = False
        self._why: Exception | None = None
        #: Done when the other side turns out to be a broker of this version.
        self.greeted: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(GREETING)

    def data_received(self, data: bytes) -> None:
        try:
            self._hear(self._ears.feed(data))
        except (OtherVersion, Garbled) as error:
            self._why = error
            self._transport.close()
            return
        if self._ears.greeted and not self.greeted.done():
            self.greeted.set_result(None)

    def _hear(self, replies: Sequence[BrokerMessage]) -> None:
        if replies and isinstance(replies[-1], ProtocolRefusal):
            self._why = Garbled(replies[-1].why)
        elif not self._closed:
            self._listener.hear(replies)

    def connection_lost(self, error: Exception | None) -> None:
        why = self._why or error
        if not self.greeted.done():
            self.greeted.set_exception(why or ConnectionResetError("the broker left"))
        elif not self._closed:
            self._listener.lost(why)

    def say(self, messages: Sequence[ClientMessage]) -> None:
        self._transport.write(frame(messages))

    def close(self) -> None:
        """What was said before is still sent."""
        self._closed = True
        self._transport.close()


async def dial(place: BrokerLocation, listener: Listener, clock: Callable[[], float]) -> SocketLink:
    """Reach the broker at this place, and start one where there is none."""
    _check(place)
    deadline = clock() + _DIAL_SECONDS
    while True:
        try:
            return await _connect(place, listener)
        except OSError as error:
            if clock() > deadline:
                raise NoBroker(str(error)) from error
            await asyncio.sleep(_PAUSE_SECONDS)
        try:
            await asyncio.to_thread(start, place)
        except RuntimeError as error:  # there may be no more threads
            raise NoBroker(str(error)) from error


def _check(place: BrokerLocation) -> None:
    try:
        place.prepare()
    except OSError as error:
        raise NoBroker(str(error)) from error


async def _connect(place: BrokerLocation, listener: Listener) -> SocketLink:
    _, link = await asyncio.get_running_loop().create_unix_connection(lambda: SocketLink(listener), str(place.socket))
    try:
        async with asyncio.timeout(_GREETING_SECONDS):
            await link.greeted
    except OtherVersion as error:
        raise SlotsRefused(other_version(place.socket, error)) from error
    except BaseException:
        link.close()
        raise
    return link
