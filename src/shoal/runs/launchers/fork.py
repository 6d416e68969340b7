"""Starts workers as forks of a process that has imported everything, in milliseconds instead of most of a second.

That process, the fork server, has no threads and no event loop, and does nothing but fork. Workers lead sessions of
their own, as those of the `LocalLauncher` do: neither the end of the fork server nor that of its client reaches them.
The fork server ends when its client has ended, and a client whose fork server was killed starts another one.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import os
import selectors
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NoReturn

import msgspec

from shoal.errors import WorkerLost
from shoal.runs.directory import LOG, RunDirectory
from shoal.runs.launchers.base import IDLE_VARIABLE, MODE_VARIABLE, WorkerMode, WorkerProcess, find_worker
from shoal.runs.launchers.local import IDLE_SECONDS, LOOK_SECONDS, ROOT, LocalLauncher
from shoal.unix import spawn_session

# Neither the working directory nor the environment decides which Shoal is started. Imported is all that a run uses.
_CODE = (
    "import sys; sys.path.append(sys.argv[1]); from importlib import import_module; "
    "import_module('numpy.ma'); work = import_module('shoal.runs.launchers.process').main; "
    "import_module('shoal.runs.launchers.fork').serve_forks(work)"
)
_READ_BYTES = 1 << 16


class ForkRequest(msgspec.Struct, tag=True):
    """Asks for a worker on the run in a directory; the folder is where users' own minds are looked for."""

    number: int
    directory: str
    mode: WorkerMode
    folder: str


class ForkStarted(msgspec.Struct, tag=True):
    """Says which process a request has become."""

    number: int
    pid: int


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
            return await server.start(run, mode)
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

    def close(self) -> None:
        """End the fork server. Workers go on."""
        server, self._server = self._server, None
        if server is not None:
            server.close()

    def __enter__(self) -> ForkLauncher:
        # It imports while runs are prepared.
        self._server = self._server or _ForkServer(self._environ)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _ForkServer:
    """A fork server, as its client sees it."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._connection, other = socket.socketpair()
        with other:
            command = [sys.executable, "-P", "-c", _CODE, str(ROOT)]
            self.pid = spawn_session(command, environ, Path(os.devnull), other.fileno())
        self._received = b""
        self._asked = 0
        #: Number of a request whose worker is not at work yet -> its process, once that is known.
        self._starting: dict[int, int | None] = {}
        #: Process of such a worker that has ended -> its exit code.
        self._codes: dict[int, int] = {}

    async def start(self, run: RunDirectory, mode: WorkerMode) -> WorkerProcess:
        """Start a worker and wait until it is at work; ForkServerLost where the fork server ends meanwhile."""
        self._asked += 1
        number, request = self._asked, ForkRequest(self._asked, str(run.path.absolute()), mode, str(Path.cwd()))
        self._starting[number] = None
        try:
            try:
                self._connection.sendall(_encode(request))
            except OSError as error:
                raise ForkServerLost from error
            while (pid := self._starting[number]) is None or run.read_env_pid() != pid:
                if pid is not None and (code := self._codes.pop(pid, None)) is not None:
                    if code == 0:
                        # It had little to do, and has done it.
                        return WorkerProcess(run, pid)
                    raise WorkerLost(run.path, run.read_last_words())
                self._read()
                await asyncio.sleep(LOOK_SECONDS)
            return WorkerProcess(run, pid)
        finally:
            del self._starting[number]

    def _read(self) -> None:
        """Read what the fork server has said."""
        try:
            while received := self._connection.recv(_READ_BYTES, socket.MSG_DONTWAIT):
                *lines, self._received = (self._received + received).split(b"\n")
                for line in lines:
                    said = msgspec.json.decode(line, type=ForkStarted | ForkEnded)
                    if isinstance(said, ForkStarted):
                        if said.number in self._starting:
                            self._starting[said.number] = said.pid
                    elif said.pid in self._starting.values():
                        self._codes[said.pid] = said.code
        except BlockingIOError:
            return
        except OSError as error:
            raise ForkServerLost from error
        raise ForkServerLost

    def close(self) -> None:
        self._connection.close()
        # It may still be importing.
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


def _encode(message: ForkRequest | ForkStarted | ForkEnded) -> bytes:
    return msgspec.json.encode(message) + b"\n"


# The server


def serve_forks(work: Callable[[str], int]) -> None:
    """Become the fork server of the process at the other end of standard input; `work` is what a worker does."""
    connection = socket.socket(fileno=os.dup(sys.stdin.fileno()))
    woken, wake = socket.socketpair()
    wake.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    # What is alive now is never garbage: workers need not look at it, nor copy it.
    gc.collect()
    gc.freeze()
    received = b""
    with selectors.DefaultSelector() as selector, suppress(ConnectionError):
        selector.register(connection, selectors.EVENT_READ)
        selector.register(woken, selectors.EVENT_READ)
        while True:
            ready = [key.fileobj for key, _ in selector.select()]
            if woken in ready:
                woken.recv(_READ_BYTES)
                _report_ended(connection)
            if connection in ready:
                if not (more := connection.recv(_READ_BYTES)):
                    return
                *lines, received = (received + more).split(b"\n")
                for line in lines:
                    request = msgspec.json.decode(line, type=ForkRequest)
                    if (pid := os.fork()) == 0:
                        selector.close()
                        for inherited in (connection, woken, wake):
                            inherited.close()
                        _become_worker(request, work)
                    connection.sendall(_encode(ForkStarted(request.number, pid)))


def _report_ended(connection: socket.socket) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        connection.sendall(_encode(ForkEnded(pid, os.waitstatus_to_exitcode(status))))


def _become_worker(request: ForkRequest, work: Callable[[str], int]) -> NoReturn:
    """Work in a new session, as a process that was started for it, and end."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        null, log = os.open(os.devnull, os.O_RDONLY), os.open(Path(request.directory, LOG), append, 0o644)
        for source, target in ((null, 0), (log, 1), (log, 2)):
            os.dup2(source, target)
        os.close(null)
        os.close(log)
        os.chdir(request.folder)
        os.environ[MODE_VARIABLE] = request.mode
        if (drawn := sys.modules.get("numpy.random")) is not None:
            # Minds of users may draw from it. `random` sees to this itself.
            drawn.seed()
        code = work(request.directory)
        atexit._run_exitfuncs()
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        # The usual end of an interpreter takes as long as a short run.
        os._exit(code)
