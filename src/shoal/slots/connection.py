"""The connection from a run to the broker's process, and a short one to look at it or resize its pools."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from typing import Protocol, cast

from shoal.errors import SlotsRefused
from shoal.slots.leases import Snapshot
from shoal.slots.location import BrokerLocation, RemoteBroker
from shoal.slots.protocol import (
    BEAT_SECONDS,
    BROKER_SILENCE_SECONDS,
    GREETING,
    RUN_SILENCE_SECONDS,
    Beat,
    BrokerMessage,
    BrokerSilent,
    ClientMessage,
    FrameDecoder,
    InvalidFrame,
    OtherVersion,
    ProtocolRefusal,
    Resize,
    SnapshotReply,
    SnapshotRequest,
    encode_frame,
)
from shoal.slots.server import NoBroker, start_broker

#: How long to look for a broker, and to start one, before giving up.
_CONNECT_SECONDS = 30.0
_GREETING_SECONDS = 1.0
_PAUSE_SECONDS = 0.01
_SNAPSHOT_SECONDS = 2.0
#: A broker of another machine is looked for again after this long, and has this long to greet.
_REMOTE_PAUSE_SECONDS = 0.2
_REMOTE_GREETING_SECONDS = 30.0


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

    def __init__(self, listener: Listener, clock: Callable[[], float], greeting: bytes = GREETING) -> None:
        self._listener = listener
        self._clock = clock
        self._greeting = greeting
        #: When this run showed last that it is alive, and when the broker did.
        self._beat_at = self._heard_at = clock()
        self._timer: asyncio.TimerHandle | None = None
        self._decoder: FrameDecoder[BrokerMessage] = FrameDecoder.of_run()
        self._is_closed = False
        self._why: Exception | None = None
        #: Done when the other side turns out to be a broker of this version.
        self.greeted: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(self._greeting)

    def data_received(self, data: bytes) -> None:
        self._heard_at = self._clock()
        if self._was_stopped():
            return
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
            self.beat()

    def beat(self) -> None:
        """Show that this run is alive, and give up a broker that does not."""
        if self._was_stopped():
            return
        now = self._clock()
        if now - self._beat_at > 2 * BEAT_SECONDS:
            # This process was busy, and what the broker said in the meantime is not read yet.
            self._heard_at = now
        self._beat_at = now
        if now - self._heard_at > BROKER_SILENCE_SECONDS:
            self._drop(BrokerSilent(f"it has not answered for {now - self._heard_at:.1f} seconds"))
        else:
            self.send([Beat()])
            self._timer = asyncio.get_running_loop().call_later(BEAT_SECONDS, self.beat)

    def _was_stopped(self) -> bool:
        """Drop the connection if this process was stopped long enough for its slots to have gone to others.

        Grants that were sent in that time may not hold any more, so claims must be made again.
        """
        seconds = self._clock() - self._beat_at
        if self.greeted.done() and not self._is_closed and seconds > RUN_SILENCE_SECONDS / 2:
            self._drop(TimeoutError(f"this process was stopped for {seconds:.1f} seconds"))
            return True
        return False

    def _drop(self, why: Exception) -> None:
        self._why = why
        self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        why = self._why or error
        if self._timer is not None:
            self._timer.cancel()
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


async def connect(
    place: BrokerLocation | RemoteBroker, listener: Listener, clock: Callable[[], float], *, was_silent: bool = False
) -> SocketLink:
    """Connect to the broker at this place; start one if none is running, or if it says nothing."""
    if isinstance(place, RemoteBroker):
        return await _connect_remotely(place, listener, clock)
    try:
        place.prepare()
    except OSError as error:
        raise NoBroker(str(error)) from error
    deadline = clock() + _CONNECT_SECONDS
    while True:
        try:
            if not was_silent:
                return await _open_link(place, listener, clock)
        except OSError as error:
            if clock() > deadline:
                raise NoBroker(str(error)) from error
            await asyncio.sleep(_PAUSE_SECONDS)
        was_silent = False
        try:
            await asyncio.to_thread(start_broker, place)
        except RuntimeError as error:  # no thread can be started
            raise NoBroker(str(error)) from error


async def _connect_remotely(place: RemoteBroker, listener: Listener, clock: Callable[[], float]) -> SocketLink:
    """Connect to the broker of another machine, however long it takes: without it, its limits would not hold."""
    while True:
        try:
            _, link = await asyncio.get_running_loop().create_connection(
                lambda: SocketLink(listener, clock, place.greeting + GREETING), place.host, place.port
            )
            return await _wait_for_greeting(link, _REMOTE_GREETING_SECONDS)
        except OSError:
            await asyncio.sleep(_REMOTE_PAUSE_SECONDS)


async def open_broker(place: BrokerLocation) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a connection whose bytes come from elsewhere; start a broker if none is running, or raise SlotsRefused."""
    try:
        place.prepare()
        try:
            return await asyncio.open_unix_connection(str(place.socket))
        except OSError:
            await asyncio.to_thread(start_broker, place)
            return await asyncio.open_unix_connection(str(place.socket))
    except (OSError, NoBroker) as error:
        raise SlotsRefused(f"no broker can be started at {place.socket}, so no limit would hold: {error}") from error


async def _open_link(place: BrokerLocation, listener: Listener, clock: Callable[[], float]) -> SocketLink:
    _, link = await asyncio.get_running_loop().create_unix_connection(
        lambda: SocketLink(listener, clock), str(place.socket)
    )
    try:
        return await _wait_for_greeting(link, _GREETING_SECONDS)
    except OtherVersion as error:
        raise SlotsRefused(error.explain(place.socket)) from error


async def _wait_for_greeting(link: SocketLink, seconds: float) -> SocketLink:
    try:
        async with asyncio.timeout(seconds):
            await link.greeted
    except BaseException:
        link.close()
        raise
    return link


# for callers that take no part, and start no broker


def fetch_snapshot(place: BrokerLocation) -> Snapshot | None:
    """Return the state of the broker; None if no broker is running, so that no slots are in use."""
    return _exchange(place, [SnapshotRequest()])


def resize_pool(place: BrokerLocation, pool: str, size: int) -> Snapshot | None:
    """Give a pool a fixed size and return the state after it; None if no broker is running."""
    return _exchange(place, [Resize(pool, size), SnapshotRequest()])


def _exchange(place: BrokerLocation, requests: Sequence[ClientMessage]) -> Snapshot | None:
    decoder: FrameDecoder[BrokerMessage] = FrameDecoder.of_run()
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_SNAPSHOT_SECONDS)
            connection.connect(str(place.socket))
            connection.sendall(GREETING + encode_frame(requests))
            while data := connection.recv(1 << 16):
                for reply in decoder.feed(data):
                    if isinstance(reply, SnapshotReply):
                        return reply.snapshot
                    if isinstance(reply, ProtocolRefusal):
                        raise SlotsRefused(f"The broker does not understand: {reply.why}")
            return None
    except TimeoutError as error:
        raise SlotsRefused(f"The broker at {place.socket} does not answer.") from error
    except OSError:
        return None
    except OtherVersion as error:
        raise SlotsRefused(error.explain(place.socket)) from error
