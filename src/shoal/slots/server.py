"""The broker's process: the dispatcher behind a Unix socket. Runs start it when they need it; it leaves when idle.

python -m shoal.slots SOCKET MEMORY IDLE_SECONDS    returns as soon as a broker listens there
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from shoal.daemon import DaemonMissing, announce_daemon, become_daemon, start_daemon
from shoal.errors import ShoalError
from shoal.event_loop import run_async
from shoal.slots.adaptive.limiter import Adaptive, Learned
from shoal.slots.adaptive.store import LimitStore
from shoal.slots.broker import Broker
from shoal.slots.dispatcher import BrokerSession, Dispatcher
from shoal.slots.location import BrokerLocation
from shoal.slots.protocol import (
    GREETING,
    RUN_SILENCE_SECONDS,
    BrokerMessage,
    ClientMessage,
    FrameDecoder,
    InvalidFrame,
    OtherVersion,
    ProtocolRefusal,
    encode_frame,
)

_log = logging.getLogger(__name__)
#: After a broker died, how long its runs have to re-register their leases before anything new is granted.
_REUNION_SECONDS = 0.5
_UPKEEP_SECONDS = 1.0
_BACKLOG = 1024


# starting one, from a run


class NoBroker(Exception):
    """No broker is running, and none can be started."""


def start_broker(place: BrokerLocation) -> None:
    """Make sure that a broker listens. Of many processes that do so at once, one starts it and the others wait."""
    try:
        start_daemon(place, __name__, [place.socket, place.memory, place.idle_seconds])
    except DaemonMissing as error:
        raise NoBroker(str(error)) from error


# serving, in the broker's process


class RunConnection(asyncio.Protocol):
    """The connection of one run."""

    transport: asyncio.Transport

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._decoder: FrameDecoder[ClientMessage] = FrameDecoder.of_broker()
        self._session = BrokerSession(connections.dispatcher, self._answer)
        self.heard_at = connections.dispatcher.clock()

    def give_up(self) -> None:
        """Take back everything from a run that is silent. It asks anew when it goes on."""
        holder = self._session.holder
        _log.warning("%s is silent: its slots go to others", "a connection" if holder is None else holder.name)
        self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.write(GREETING)
        self._connections.add(self)

    def data_received(self, data: bytes) -> None:
        self.heard_at = self._connections.dispatcher.clock()
        try:
            self._session.send(self._decoder.feed(data))
        except OtherVersion as error:
            # The greeting of this side has named its version.
            _log.warning("a run that speaks %s was turned away", error)
            self.transport.close()
        except (InvalidFrame, ValueError) as error:
            _log.warning("a run was turned away: %s", error)
            self._answer([ProtocolRefusal(str(error))])
            self.transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        self._session.close()
        self._connections.remove(self)

    def _answer(self, replies: Sequence[BrokerMessage]) -> None:
        self.transport.write(encode_frame(replies))


class Connections:
    """The runs that are connected. Sets `over` when none has been for `idle_seconds`."""

    def __init__(self, dispatcher: Dispatcher, idle_seconds: float) -> None:
        self.dispatcher = dispatcher
        self.connections: set[RunConnection] = set()
        self.over = asyncio.Event()
        self._idle_seconds = idle_seconds
        self._looked_at = dispatcher.clock()
        self._leaving: asyncio.TimerHandle | None = None
        self._leave_when_idle()

    def add(self, connection: RunConnection) -> None:
        self.connections.add(connection)
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None

    def remove(self, connection: RunConnection) -> None:
        self.connections.discard(connection)
        self._leave_when_idle()

    def drop_silent(self) -> None:
        """Give up runs that have been silent for too long. Time in which this process was stopped does not count."""
        now = self.dispatcher.clock()
        was_stopped, self._looked_at = now - self._looked_at > 2 * _UPKEEP_SECONDS, now
        for connection in list(self.connections):
            if was_stopped:
                connection.heard_at = now
            elif now - connection.heard_at > RUN_SILENCE_SECONDS:
                connection.give_up()

    def _leave_when_idle(self) -> None:
        if not self.connections and self._leaving is None:
            self._leaving = asyncio.get_running_loop().call_later(self._idle_seconds, self.over.set)


async def serve(place: BrokerLocation, listening: socket.socket, lock: int, *, patience: float) -> None:
    """Serve until no run has been connected for a while, or until a signal comes."""
    limits = LimitStore(place.memory, time.time())
    broker = Broker(lambda pool: Adaptive(limits.of(pool, Learned)))
    dispatcher = Dispatcher(broker, patience=patience, memory=place.memory)
    connections = Connections(dispatcher, place.idle_seconds)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, connections.over.set)
    server = await loop.create_unix_server(lambda: RunConnection(connections), sock=listening, backlog=_BACKLOG)
    _log.info("process %d listens at %s", os.getpid(), place.socket)
    announce_daemon(lock)
    files = place.identify(lock)
    while not connections.over.is_set():
        try:
            async with asyncio.timeout(_UPKEEP_SECONDS):
                await connections.over.wait()
        except TimeoutError:
            connections.drop_silent()
            limits.keep(broker.pools.values(), time.time())
            if place.identify(lock) != files:
                _log.warning("%s was removed: no new run can connect", place.socket)
                break
    # First accept no new runs, then write down what was learned, then disconnect: the runs find or start a new broker.
    server.close()
    if not connections.connections and place.identify(lock) == files:
        # A socket that is left behind tells the next broker that runs may come with leases of this one.
        place.socket.unlink(missing_ok=True)
    limits.keep(broker.pools.values(), time.time())
    for connection in list(connections.connections):
        connection.transport.close()
    dispatcher.close()
    _log.info("process %d leaves", os.getpid())


# becoming the broker's process


def main(arguments: Sequence[str]) -> int:
    """Become the broker at a place, unless there is one; return as soon as it listens."""
    place = BrokerLocation(Path(arguments[0]), Path(arguments[1]), float(arguments[2]))
    has_predecessor = place.socket.exists()
    try:
        begun = become_daemon(place)
    except (OSError, ShoalError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if begun is not None:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
        run_async(serve(place, *begun, patience=_REUNION_SECONDS if has_predecessor else 0.0))
    return 0
