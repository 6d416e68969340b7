"""The broker's process: the dispatcher behind a Unix socket. Runs start it when they need it; it leaves when idle.

python -m shoal.slots SOCKET MEMORY IDLE_SECONDS    returns as soon as a broker listens there
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

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
#: How long a broker may take until it listens; on a busy machine, starting Python takes a while.
_START_SECONDS = 20.0
_LOCK_SECONDS = 5.0
_LOCK_POLL_SECONDS = 0.005
_BACKLOG = 1024
_MAX_LOG_BYTES = 1 << 20
_ROOT = Path(__file__).parent.parent.parent
# Neither the working directory nor the environment decides which Shoal is started.
_CODE = "import sys; sys.path.append(sys.argv[1]); from shoal.slots.server import main; sys.exit(main(sys.argv[2:]))"


# starting one, from a run


class NoBroker(Exception):
    """No broker is running, and none can be started."""


def start_broker(place: BrokerLocation) -> None:
    """Make sure that a broker listens. Of many processes that do so at once, one starts it and the others wait."""
    try:
        place.prepare()
        starting = os.open(place.starting, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            deadline = time.monotonic() + _START_SECONDS
            while not _try_lock(starting):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"another process has been starting a broker at {place.starting} for too long")
                time.sleep(_LOCK_POLL_SECONDS)
            if _is_lost(place):
                _spawn(place)
        finally:
            os.close(starting)
    except (OSError, subprocess.SubprocessError) as error:
        raise NoBroker(str(error)) from error


def _is_lost(place: BrokerLocation) -> bool:
    """Return whether there is no broker, and end one that listens but says nothing.

    It is lost to its runs anyway, and the next one hears from them what they hold.
    """
    deadline, ended = time.monotonic() + _START_SECONDS, ""
    while place.is_served():
        if place.answers():
            return False
        if time.monotonic() > deadline:
            raise NoBroker(f"the process at {place.socket} never began to answer")
        # A process that has not written its number yet has just begun.
        pid = place.lock.read_text().strip()
        if pid not in ("", ended):
            if not _is_broker(place, pid):
                raise NoBroker(f"what listens at {place.socket} is silent, and no process that may be ended from here")
            ended = pid
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
            _log.warning("the process that hands out slots (%s) is silent: it was ended, and another begins", pid)
    return True


def _is_broker(place: BrokerLocation, pid: str) -> bool:
    """Return whether this is the broker's process: the number may be old, or that of a process in another container."""
    try:
        command = Path("/proc", pid, "cmdline").read_bytes()
    except OSError:
        return False
    return os.fsencode(place.socket) in command.split(b"\0")


def _spawn(place: BrokerLocation) -> None:
    arguments = [_ROOT, place.socket, place.memory, place.idle_seconds]
    done = subprocess.run(
        [sys.executable, "-P", "-c", _CODE, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        timeout=_START_SECONDS,
        start_new_session=True,
        check=False,
    )
    if done.returncode:
        last_line = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise NoBroker(last_line or f"it ended with {done.returncode}")


def _try_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


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
    # Whoever finds this number knows that this process has begun to answer.
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    files = _inodes(place, lock)
    while not connections.over.is_set():
        try:
            async with asyncio.timeout(_UPKEEP_SECONDS):
                await connections.over.wait()
        except TimeoutError:
            connections.drop_silent()
            limits.keep(broker.pools.values(), time.time())
            if _inodes(place, lock) != files:
                _log.warning("%s was removed: no new run can connect", place.socket)
                break
    # First accept no new runs, then write down what was learned, then disconnect: the runs find or start a new broker.
    server.close()
    if not connections.connections and _inodes(place, lock) == files:
        # A socket that is left behind tells the next broker that runs may come with leases of this one.
        place.socket.unlink(missing_ok=True)
    limits.keep(broker.pools.values(), time.time())
    for connection in list(connections.connections):
        connection.transport.close()
    dispatcher.close()
    _log.info("process %d leaves", os.getpid())


def _inodes(place: BrokerLocation, lock: int) -> tuple[int | None, ...]:
    """Identify the files that have the names of socket and lock, and the lock that is held."""
    found: list[int | None] = []
    for path in (place.socket, place.lock):
        try:
            found.append(path.stat().st_ino)
        except OSError:
            found.append(None)
    return (*found, os.fstat(lock).st_ino)


# becoming the broker's process


def main(arguments: Sequence[str]) -> int:
    """Become the broker at a place, unless there is one; return as soon as it listens."""
    place = BrokerLocation(Path(arguments[0]), Path(arguments[1]), float(arguments[2]))
    try:
        place.prepare()
        lock = _take_lock(place)
        if lock is None:
            return 0
        has_predecessor = place.socket.exists()
        listening = _listen(place)
        if os.fork():
            return 0
        _detach(place)
    except (OSError, ShoalError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    run_async(serve(place, listening, lock, patience=_REUNION_SECONDS if has_predecessor else 0.0))
    return 0


def _take_lock(place: BrokerLocation) -> int | None:
    """Lock out other brokers; None if one serves already. Waits for one that is just leaving or just coming."""
    lock = os.open(place.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + _LOCK_SECONDS
    while not _try_lock(lock):
        if place.answers():
            os.close(lock)
            return None
        if time.monotonic() > deadline:
            raise TimeoutError(f"another broker holds {place.lock}, but does not answer")
        time.sleep(_LOCK_POLL_SECONDS)
    os.ftruncate(lock, 0)
    return lock


def _listen(place: BrokerLocation) -> socket.socket:
    """Open the socket under another name and rename it, so that it replaces a dead broker's and always listens."""
    listening = socket.socket(socket.AF_UNIX)
    new = place.socket.with_name(f"{place.socket.name}.new")
    new.unlink(missing_ok=True)
    listening.bind(str(new))
    listening.listen(_BACKLOG)
    new.rename(place.socket)
    return listening


def _detach(place: BrokerLocation) -> None:
    """Leave the session, the directory and the standard streams of the process that started this one."""
    os.setsid()
    os.chdir("/")
    too_long = place.log.exists() and place.log.stat().st_size > _MAX_LOG_BYTES
    log = os.open(place.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | (os.O_TRUNC if too_long else 0), 0o600)
    null = os.open(os.devnull, os.O_RDWR)
    for source, target in ((null, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.close(null)
    os.close(log)
