"""The broker's process: the desk behind a Unix socket. It is started when somebody needs it, and leaves by itself.

python -m shoal.slots.server SOCKET MEMORY IDLE_SECONDS    returns as soon as a broker listens there
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

from shoal.errors import ShoalError
from shoal.event_loop import run_async
from shoal.slots.adaptive.limiter import Adaptive, Learned
from shoal.slots.adaptive.store import LimitStore
from shoal.slots.broker import Broker
from shoal.slots.dispatcher import BrokerSession, Dispatcher
from shoal.slots.leases import Control
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
)

_log = logging.getLogger(__name__)
#: How long those have who held leases of a broker that died, before anything new is granted.
_REUNION_SECONDS = 0.5
_UPKEEP_SECONDS = 2.0
_LOCK_SECONDS = 5.0
_BACKLOG = 1024
_MAX_LOG_BYTES = 1 << 20


class RunConnection(asyncio.Protocol):
    """One run at the socket."""

    transport: asyncio.Transport

    def __init__(self, house: Connections) -> None:
        self._house = house
        self._ears: FrameDecoder[ClientMessage] = FrameDecoder.of_broker()
        self._caller: BrokerSession = house.desk.caller(self._answer)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.write(GREETING)
        self._house.arrived(self)

    def data_received(self, data: bytes) -> None:
        try:
            self._caller.say(self._ears.feed(data))
        except OtherVersion as error:
            # The greeting has told them who this is.
            _log.warning("a run that speaks %s was turned away", error)
            self.transport.close()
        except (Garbled, ValueError) as error:
            _log.warning("a run was turned away: %s", error)
            self._answer([ProtocolRefusal(str(error))])
            self.transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        self._caller.hang_up()
        self._house.left(self)

    def _answer(self, replies: Sequence[BrokerMessage]) -> None:
        self.transport.write(frame(replies))


class Connections:
    """Who is connected, and when it is time to leave."""

    def __init__(self, desk: Dispatcher, idle_seconds: float) -> None:
        self.desk = desk
        self.connections: set[RunConnection] = set()
        self.over = asyncio.Event()
        self._idle_seconds = idle_seconds
        self._leaving: asyncio.TimerHandle | None = None
        self._wait_for_nobody()

    def arrived(self, connection: RunConnection) -> None:
        self.connections.add(connection)
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None

    def left(self, connection: RunConnection) -> None:
        self.connections.discard(connection)
        self._wait_for_nobody()

    def _wait_for_nobody(self) -> None:
        if not self.connections and self._leaving is None:
            self._leaving = asyncio.get_running_loop().call_later(self._idle_seconds, self.over.set)


async def serve(place: BrokerLocation, listening: socket.socket, holding: int, *, patience: float) -> None:
    """Until nobody has been there for a while, or until told to stop."""
    remembered = LimitStore(place.memory, time.time())
    broker = Broker(_learner(remembered))
    desk = Dispatcher(broker, patience=patience)
    house = Connections(desk, place.idle_seconds)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, house.over.set)
    server = await loop.create_unix_server(lambda: RunConnection(house), sock=listening, backlog=_BACKLOG)
    _log.info("process %d listens at %s", os.getpid(), place.socket)
    mine = _identity(place, holding)
    while not await _happens(house.over, _UPKEEP_SECONDS):
        remembered.keep(broker.pools.values(), time.time())
        if _identity(place, holding) != mine:
            _log.warning("somebody removed %s: nobody new can come here", place.socket)
            break
    # First nobody new, then what was learned, then those who are here: they find a new broker, or start one.
    server.close()
    if not house.connections and _identity(place, holding) == mine:
        # Who finds a socket that nobody listens at knows that somebody may come with leases from here.
        place.socket.unlink(missing_ok=True)
    remembered.keep(broker.pools.values(), time.time())
    for connection in list(house.connections):
        connection.transport.close()
    desk.close()
    _log.info("process %d leaves", os.getpid())


def _learner(remembered: LimitStore) -> Callable[[str], Control]:
    def learn(pool: str) -> Control:
        return Adaptive(remembered.of(pool, Learned))

    return learn


async def _happens(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False


def _identity(place: BrokerLocation, holding: int) -> tuple[int | None, ...]:
    """Which files have the names of socket and lock, against the lock that is held."""
    return (_inode(place.socket), _inode(place.lock), os.fstat(holding).st_ino)


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


# becoming the one


def _take_lock(place: BrokerLocation) -> int | None:
    """Be the only broker here; None: another one serves. One that is just leaving, or just coming, is waited for."""
    holding = os.open(place.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            fcntl.flock(holding, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return holding
        except BlockingIOError:
            if place.is_served():
                os.close(holding)
                return None
        if time.monotonic() > deadline:
            raise TimeoutError(f"another broker holds {place.lock}, but does not answer")
        time.sleep(0.005)


def _listen(place: BrokerLocation) -> socket.socket:
    """A socket at the place. It appears there only when it listens, and takes the place of one that a dead one left."""
    listening = socket.socket(socket.AF_UNIX)
    new = place.socket.with_name(f"{place.socket.name}.new")
    new.unlink(missing_ok=True)
    listening.bind(str(new))
    listening.listen(_BACKLOG)
    new.rename(place.socket)
    return listening


def _detach(place: BrokerLocation) -> bool:
    """Go on in a process of its own; false in the one that returns to whoever wanted a broker."""
    if os.fork():
        return False
    os.setsid()
    os.chdir("/")
    too_long = place.log.exists() and place.log.stat().st_size > _MAX_LOG_BYTES
    log = os.open(place.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | (os.O_TRUNC if too_long else 0), 0o600)
    nothing = os.open(os.devnull, os.O_RDWR)
    for source, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(log)
    return True


def main(arguments: Sequence[str]) -> int:
    place = BrokerLocation(Path(arguments[0]), Path(arguments[1]), float(arguments[2]))
    try:
        place.prepare()
        holding = _take_lock(place)
        if holding is None:
            return 0
        was_left = place.socket.exists()
        listening = _listen(place)
        if not _detach(place):
            return 0
    except (OSError, ShoalError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    os.ftruncate(holding, 0)
    os.pwrite(holding, f"{os.getpid()}\n".encode(), 0)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    run_async(serve(place, listening, holding, patience=_REUNION_SECONDS if was_left else 0.0))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
