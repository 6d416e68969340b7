"""Starts workers as forks of a process that has imported everything, in milliseconds instead of most of a second.

That process, the fork server, has no threads and no event loop, and does nothing but fork. It is a fork of its client
where that is such a process itself, as a command is at first, or else a new process that imports everything again.
Workers lead sessions of their own, as those of the `LocalLauncher` do: neither the end of the fork server nor that of
its client reaches them. The fork server ends when its client has ended, and a client whose fork server was killed
starts another one.

A fork copies every page that it touches, which takes longer than a short run. So a worker that is done with a run works
on another one, if neither names code of the user: what a user's module remembers never passes from one run to the next.
A worker that was asked to stop, that failed, that has grown, or whose fork server has ended, ends after its run.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import os
import resource
import selectors
import signal
import socket
import sys
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import NoReturn

import msgspec

from shoal.errors import WorkerLost
from shoal.runs.directory import LOG, RunDirectory, read_outcome
from shoal.runs.launchers.base import IDLE_VARIABLE, MODE_VARIABLE, WorkerMode, WorkerProcess, find_worker
from shoal.runs.launchers.local import IDLE_SECONDS, LOOK_SECONDS, ROOT, LocalLauncher
from shoal.runs.launchers.process import WorkerEnd, work_as_process
from shoal.runs.state import RunOutcome
from shoal.scenario import list_own_code
from shoal.unix import fork_session, may_fork, spawn_session

# Neither the working directory nor the environment decides which Shoal is started.
_CODE = (
    "import sys; sys.path.append(sys.argv[1]); from importlib import import_module; "
    "import_module('shoal.runs.launchers.fork').serve_forks()"
)
_READ_BYTES = 1 << 16
#: A worker that has needed more memory than this ends after its run, and gives it back.
_MOST_MEMORY_KIB = 512 * 1024


class ForkRequest(msgspec.Struct, tag=True):
    """Asks for a worker on the run in a directory; the folder is where users' own minds are looked for."""

    number: int
    directory: str
    mode: WorkerMode
    folder: str
    #: Whether the run names no code of the user, so that its worker may have worked on others and may go on with more.
    is_shared: bool


class ForkStarted(msgspec.Struct, tag=True):
    """Says which process a request has become."""

    number: int
    pid: int


class ForkDone(msgspec.Struct, tag=True):
    """Says that a worker has done what it was asked for, and is ready for another run."""

    number: int


class ForkEnded(msgspec.Struct, tag=True):
    """Says how a process ended: its exit code, negative for a signal."""

    pid: int
    code: int


class ForkServerLost(Exception):
    """The fork server has ended before its answer."""


# The client


class ForkLauncher:
    """Starts workers as forks, with this Python, environment and working directory; to be closed in the end."""

    def __init__(self, environ: Mapping[str, str], idle_seconds: float = IDLE_SECONDS) -> None:
        self._environ = {**environ, IDLE_VARIABLE: str(idle_seconds)}
        self._unaided = LocalLauncher(environ, idle_seconds)
        self._server: _ForkServer | None = None

    @property
    def server_pid(self) -> int | None:
        """The fork server's process; None before it starts and after it ended."""
        return None if self._server is None else self._server.pid

    async def start(self, run: RunDirectory, mode: WorkerMode = WorkerMode.WORK) -> WorkerProcess:
        """Start a worker, and return once it is at work; WorkerLost with the reason if it ended before."""
        if self._server is None:
            self._server = _ForkServer(self._environ)
        server = self._server
        try:
            return await server.start(run, mode, lambda pid: run.read_env_pid() == pid)
        except ForkServerLost:
            if self._server is server:
                self.close()
        try:
            return await self._unaided.start(run, mode)
        except WorkerLost:
            # The lost one may have forked a worker before it ended.
            if (worker := find_worker(run)) is not None:
                return worker
            raise

    async def start_receiver(self, run: RunDirectory, is_ready: Callable[[int], bool]) -> WorkerProcess:
        """Start the receiver of a worker on another machine, and return once that process is ready."""
        if self._server is None:
            self._server = _ForkServer(self._environ)
        try:
            return await self._server.start(run, WorkerMode.RECEIVE, is_ready)
        except ForkServerLost as error:
            self.close()
            raise WorkerLost(run.path, "the process that starts others was killed; try again") from error

    def close(self) -> None:
        """End the fork server. Workers go on."""
        server, self._server = self._server, None
        if server is not None:
            server.close()

    def __enter__(self) -> ForkLauncher:
        """Start the fork server, best before this process has threads, an event loop, or code of the user."""
        self._server = self._server or _ForkServer(self._environ)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class ForkWork:
    """What a request has become, as far as the fork server has said."""

    def __init__(self) -> None:
        self.pid: int | None = None
        #: How its process ended, negative for a signal; 0 where the work is done and the process goes on.
        self.code: int | None = None
        self.goes_on = False
        #: Set when the work is over, or when the fork server has ended and cannot say so.
        self.over = asyncio.Event()

    def end(self, code: int | None, *, goes_on: bool = False) -> None:
        self.code, self.goes_on = code, goes_on
        self.over.set()


@dataclass(frozen=True)
class ForkedWorker(WorkerProcess):
    """A worker that a fork server looks after."""

    work: ForkWork = field(default_factory=ForkWork)

    async def wait(self) -> RunOutcome:
        await self.work.over.wait()
        return read_outcome(self.run) if self.work.goes_on else await super().wait()


class _ForkServer:
    """A fork server, as its client sees it."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._connection, other = socket.socketpair()
        self._connection.setblocking(False)
        with other:
            if may_fork():
                self.pid = fork_session(serve_forks, environ, Path(os.devnull), other.fileno())
            else:
                command = [sys.executable, "-P", "-c", _CODE, str(ROOT)]
                self.pid = spawn_session(command, environ, Path(os.devnull), other.fileno())
        self._loop: asyncio.AbstractEventLoop | None = None
        self._received = b""
        self._asked = 0
        self._is_lost = False
        #: Number of a request that is not done yet -> what it has become.
        self._works: dict[int, ForkWork] = {}

    async def start(self, run: RunDirectory, mode: WorkerMode, is_at_work: Callable[[int], bool]) -> WorkerProcess:
        """Start a worker and wait until it is at work; ForkServerLost where the fork server ends meanwhile."""
        self._asked += 1
        work = self._works[self._asked] = ForkWork()
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop = loop
            loop.add_reader(self._connection.fileno(), self._read)
        try:
            request = ForkRequest(self._asked, str(run.path.absolute()), mode, str(Path.cwd()), is_shared(run))
            await loop.sock_sendall(self._connection, _encode(request))
        except OSError:
            self._lose()
        if self._is_lost:
            raise ForkServerLost
        while work.pid is None or not is_at_work(work.pid):
            if work.code:
                raise WorkerLost(run.path, run.read_last_words())
            if work.over.is_set():
                if work.pid is None or work.code is None:
                    raise ForkServerLost
                # It had little to do, and has done it.
                break
            await asyncio.sleep(LOOK_SECONDS)
        return ForkedWorker(run, work.pid, may_go_on=True, work=work)

    def _read(self) -> None:
        """Read what the fork server has said."""
        try:
            received = self._connection.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            received = b""
        if not received:
            self._lose()
            return
        *lines, self._received = (self._received + received).split(b"\n")
        for line in lines:
            said = msgspec.json.decode(line, type=ForkStarted | ForkDone | ForkEnded)
            if isinstance(said, ForkStarted):
                self._works[said.number].pid = said.pid
            elif isinstance(said, ForkDone):
                self._works.pop(said.number).end(0, goes_on=True)
            else:
                for number in [number for number, work in self._works.items() if work.pid == said.pid]:
                    self._works.pop(number).end(said.code)

    def _lose(self) -> None:
        """Take in that nothing will be said about workers any more. They end after their runs."""
        self._is_lost = True
        loop, self._loop = self._loop, None
        if loop is not None and not loop.is_closed():
            loop.remove_reader(self._connection.fileno())
        for work in self._works.values():
            work.end(None)
        self._works.clear()

    def close(self) -> None:
        self._lose()
        self._connection.close()
        # It may still be importing.
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


def is_shared(run: RunDirectory) -> bool:
    """Return whether no version of the scenario names code of the user."""
    return not any(any(list_own_code(scenario)) for scenario in run.scenario_versions.versions())


def _encode(message: ForkRequest | ForkStarted | ForkDone | ForkEnded) -> bytes:
    return msgspec.json.encode(message) + b"\n"


# The server


def serve_forks() -> None:
    """Become the fork server of the process at the other end of standard input."""
    # Every run uses it, and numpy itself imports it late.
    import_module("numpy.ma")
    client = socket.socket(fileno=os.dup(0))
    woken, wake = socket.socketpair()
    wake.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    # What is alive now is never garbage: workers need not look at it, nor copy it.
    gc.collect()
    gc.freeze()
    received = b""
    with selectors.DefaultSelector() as selector, suppress(ConnectionError):
        selector.register(client, selectors.EVENT_READ)
        selector.register(woken, selectors.EVENT_READ)
        pool = _WorkerPool(client, selector, (woken, wake))
        while True:
            ready = [key.fileobj for key, _ in selector.select()]
            if woken in ready:
                woken.recv(_READ_BYTES)
                pool.report_ended()
            pool.report_done(ready)
            if client in ready:
                if not (more := client.recv(_READ_BYTES)):
                    return
                *lines, received = (received + more).split(b"\n")
                for line in lines:
                    pool.start(msgspec.json.decode(line, type=ForkRequest))


class _WorkerPool:
    """The workers of a fork server, and those of them that are ready for another run."""

    def __init__(
        self, client: socket.socket, selector: selectors.BaseSelector, inherited: tuple[socket.socket, ...]
    ) -> None:
        self._client = client
        self._selector = selector
        #: What no worker must keep open.
        self._inherited = (client, *inherited)
        #: Process of a worker -> the connection to it.
        self._connections: dict[int, socket.socket] = {}
        self._ready: list[int] = []

    def start(self, request: ForkRequest) -> None:
        """Let a worker that is ready work on a run, or else a new one."""
        while request.is_shared and self._ready:
            pid = self._ready.pop()
            try:
                self._connections[pid].sendall(_encode(request))
                break
            except ConnectionError:
                # It was killed a moment ago, which costs no run.
                continue
        else:
            connection, other = socket.socketpair()
            if (pid := os.fork()) == 0:
                self._selector.close()
                for inherited in (*self._inherited, connection, *self._connections.values()):
                    inherited.close()
                _become_worker(request, other)
            other.close()
            self._connections[pid] = connection
            self._selector.register(connection, selectors.EVENT_READ)
        self._client.sendall(_encode(ForkStarted(request.number, pid)))

    def report_done(self, connections: Collection[object]) -> None:
        """Pass on what workers say, which is that they are ready again."""
        for pid, connection in self._connections.items():
            if connection in connections:
                if said := connection.recv(_READ_BYTES):
                    self._ready.append(pid)
                    self._client.sendall(said)
                else:
                    # It is about to end.
                    self._selector.unregister(connection)

    def report_ended(self) -> None:
        """Say which workers have ended, and how."""
        while self._connections:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            connection = self._connections.pop(pid)
            if connection in self._selector.get_map():
                self._selector.unregister(connection)
            connection.close()
            if pid in self._ready:
                self._ready.remove(pid)
            self._client.sendall(_encode(ForkEnded(pid, os.waitstatus_to_exitcode(status))))


def _become_worker(request: ForkRequest, server: socket.socket) -> NoReturn:
    """Work in a new session, as a process that was started for it, and end. Runs that allow it follow one another."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        if (drawn := sys.modules.get("numpy.random")) is not None:
            # Minds of users may draw from it. `random` sees to this itself.
            drawn.seed()
        following: ForkRequest | None = request
        while following is not None:
            end = _work_on_request(following)
            code = end.exit_code
            following = _await_request(following, server) if end is WorkerEnd.DONE else None
        atexit._run_exitfuncs()
    except BaseException:
        code = 1
        sys.excepthook(*sys.exc_info())
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        # The usual end of an interpreter takes as long as a short run.
        os._exit(code)


def _work_on_request(request: ForkRequest) -> WorkerEnd:
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    null, log = os.open(os.devnull, os.O_RDONLY), os.open(Path(request.directory, LOG), append, 0o644)
    for source, target in ((null, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.close(null)
    os.close(log)
    os.chdir(request.folder)
    os.environ[MODE_VARIABLE] = request.mode
    return work_as_process(request.directory)


def _await_request(done: ForkRequest, server: socket.socket) -> ForkRequest | None:
    """Say that the work is done, and wait for more; None where this process ends now."""
    has_grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > _MOST_MEMORY_KIB
    if not done.is_shared or has_grown or threading.active_count() > 1:
        return None
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    with suppress(ConnectionError):
        server.sendall(_encode(ForkDone(done.number)))
        if received := server.recv(_READ_BYTES):
            return msgspec.json.decode(received, type=ForkRequest)
    return None
