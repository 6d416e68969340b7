"""A process that all runs of a user share: the first run that needs it starts it, the others find it at a socket.

It holds a lock as long as it lives and writes its number into the locked file once it answers. The directory of the
socket is open to this user alone.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from shoal.errors import SlotsRefused
from shoal.unix import read_command_line, try_lock

_log = logging.getLogger(__name__)
#: The kernel's limit for the path of a socket, less the ending that it has for a moment.
_MAX_PATH_BYTES = 107 - len(".new")
#: A process that answers greets each connection at once.
_ANSWER_SECONDS = 0.5
#: How long a process may take until it listens; on a busy machine, starting Python takes a while.
START_SECONDS = 20.0
_LOCK_SECONDS = 5.0
_LOCK_POLL_SECONDS = 0.005
_BACKLOG = 1024
_MAX_LOG_BYTES = 1 << 20
_ROOT = Path(__file__).parent.parent
# Neither the working directory nor the environment decides which Shoal is started.
_CODE = (
    "import sys; sys.path.append(sys.argv[1]); from importlib import import_module; "
    "sys.exit(import_module(sys.argv[2]).main(sys.argv[3:]))"
)


class DaemonMissing(Exception):
    """No such process is running, and none can be started."""


@dataclass(frozen=True, slots=True)
class DaemonFiles:
    """The files of one shared process: its socket, and others beside it."""

    socket: Path

    @property
    def lock(self) -> Path:
        """The file that the running process holds a lock on."""
        return self.socket.with_name(f"{self.socket.name}.lock")

    @property
    def starting(self) -> Path:
        """The file that another process locks while it starts this one."""
        return self.socket.with_name(f"{self.socket.name}.starting")

    @property
    def log(self) -> Path:
        return self.socket.with_name(f"{self.socket.name}.log")

    @property
    def is_short_enough(self) -> bool:
        """Whether the kernel takes the path of the socket."""
        return len(os.fsencode(self.socket)) <= _MAX_PATH_BYTES

    def prepare(self) -> None:
        """Make the directory, or check that other users cannot put a socket of theirs into it."""
        if not self.is_short_enough:
            raise SlotsRefused(
                f"{self.socket} is too long for the path of a socket, which may have {_MAX_PATH_BYTES} bytes.\n"
                "Choose a shorter one with SHOAL_SLOTS."
            )
        folder = self.socket.parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise SlotsRefused(f"{folder} belongs to somebody else.\nChoose another path with SHOAL_SLOTS.")
        if stat.S_IMODE(found.st_mode) & 0o077:
            raise SlotsRefused(
                f"{folder} is open to others, who could take part in your runs.\n"
                f"Close it with `chmod 700 {folder}`, or choose another path with SHOAL_SLOTS."
            )

    def is_served(self) -> bool:
        """Return whether a process listens at the socket; it may be stopped."""
        return _try_connection(self.socket, hear=False)

    def answers(self) -> bool:
        """Return whether a process at the socket says something."""
        return _try_connection(self.socket, hear=True)

    def identify(self, lock: int) -> tuple[int | None, ...]:
        """Identify the files that have the names of socket and lock, and the lock that is held."""
        found: list[int | None] = []
        for path in (self.socket, self.lock):
            try:
                found.append(path.stat().st_ino)
            except OSError:
                found.append(None)
        return (*found, os.fstat(lock).st_ino)


def _try_connection(path: Path, *, hear: bool) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_ANSWER_SECONDS)
        try:
            connection.connect(str(path))
            return not hear or bool(connection.recv(1))
        except OSError:
            return False


# starting one, from a run


def start_daemon(files: DaemonFiles, module: str, arguments: Sequence[object], seconds: float = START_SECONDS) -> None:
    """Make sure that a process listens. Of many that do so at once, one starts it and the others wait.

    `module` has a function `main` that becomes the process with these arguments, the socket among them.
    """
    try:
        files.prepare()
        starting = os.open(files.starting, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            deadline = time.monotonic() + seconds
            while not try_lock(starting):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"another process has been starting one at {files.starting} for too long")
                time.sleep(_LOCK_POLL_SECONDS)
            if _end_if_silent(files, seconds):
                done = subprocess.run(
                    [sys.executable, "-P", "-c", _CODE, str(_ROOT), module, *map(str, arguments)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    timeout=START_SECONDS,
                    start_new_session=True,
                    check=False,
                )
                if done.returncode:
                    last_line = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
                    raise DaemonMissing(last_line or f"it ended with {done.returncode}")
        finally:
            os.close(starting)
    except (OSError, subprocess.SubprocessError) as error:
        raise DaemonMissing(str(error)) from error


def _end_if_silent(files: DaemonFiles, seconds: float) -> bool:
    """End a process that listens but says nothing; return whether none is left.

    A silent one is lost to its runs anyway, and they tell the next one what it has to know.
    """
    deadline, ended = time.monotonic() + seconds, ""
    while files.is_served():
        if files.answers():
            return False
        if time.monotonic() > deadline:
            raise DaemonMissing(f"the process at {files.socket} never began to answer")
        # A process that has not written its number yet has just begun.
        pid = files.lock.read_text().strip()
        if pid not in ("", ended):
            # The number may be old, or that of a process in another container.
            if not (pid.isdecimal() and b" %s " % os.fsencode(files.socket) in read_command_line(int(pid))):
                raise DaemonMissing(
                    f"what listens at {files.socket} is silent, and no process that may be ended from here"
                )
            ended = pid
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
            _log.warning("the process at %s (%s) is silent: it was ended, and another begins", files.socket, pid)
    return True


# becoming one


def become_daemon(files: DaemonFiles) -> tuple[socket.socket, int] | None:
    """Return the listening socket and the held lock in a new process; None in the process that called.

    The caller's process also gets None where another one serves already. OSError and ShoalError say why it cannot be.
    """
    files.prepare()
    lock = _take_lock(files)
    if lock is None:
        return None
    # Open the socket under another name and rename it, so that it replaces a dead process's and always listens.
    listening = socket.socket(socket.AF_UNIX)
    new = files.socket.with_name(f"{files.socket.name}.new")
    new.unlink(missing_ok=True)
    listening.bind(str(new))
    listening.listen(_BACKLOG)
    new.rename(files.socket)
    if os.fork():
        return None
    # Leave the session, the directory and the standard streams of the process that started this one.
    os.setsid()
    os.chdir("/")
    too_long = files.log.exists() and files.log.stat().st_size > _MAX_LOG_BYTES
    log = os.open(files.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | (os.O_TRUNC if too_long else 0), 0o600)
    null = os.open(os.devnull, os.O_RDWR)
    for source, target in ((null, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.close(null)
    os.close(log)
    return listening, lock


def _take_lock(files: DaemonFiles) -> int | None:
    """Lock out others; None if one serves already. Waits for one that is just leaving or just coming."""
    lock = os.open(files.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + _LOCK_SECONDS
    while not try_lock(lock):
        if files.answers():
            os.close(lock)
            return None
        if time.monotonic() > deadline:
            raise TimeoutError(f"another process holds {files.lock}, but does not answer")
        time.sleep(_LOCK_POLL_SECONDS)
    os.ftruncate(lock, 0)
    return lock


def announce_daemon(lock: int) -> None:
    """Write down the number of this process, as a sign that it has begun to answer."""
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
