"""What only Unix has: locks that end with their process, processes in sessions of their own, and watched folders.

Another system needs another module with these functions. Sockets of Unix are opened in `daemon` and `slots`.
"""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import fcntl
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_RETRY_SECONDS = 0.002
#: How often a process is looked for, where the system cannot say that it ended.
_POLL_SECONDS = 0.05


# Locks


def try_lock(handle: int, seconds: float = 0.0) -> bool:
    """Lock an open file for this process alone, within these seconds; False where another one holds it.

    A process that only looks whether a file is locked holds the lock itself, for microseconds.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_RETRY_SECONDS)
        else:
            return True


def read_lock(path: Path) -> str | None:
    """Return what the holder of a lock wrote into the locked file; None where the lock is free."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.pread(handle, 256, 0).decode(errors="replace").strip()
    finally:
        os.close(handle)
    return None


def write_lock(handle: int, text: str) -> None:
    """Write into a locked file who holds it."""
    content = f"{text}\n".encode()
    if os.pread(handle, 256, 0) != content:
        os.ftruncate(handle, 0)
        os.pwrite(handle, content, 0)


# Processes


def spawn_session(command: list[str], environ: Mapping[str, str], log: Path, input: int | None = None) -> int:
    """Start a process in a new session, which neither a signal to our group nor our end reaches.

    Its output is appended to the log, and its input is nothing, or an open file. Return its number.
    """
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    actions: list[tuple[Any, ...]] = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0) if input is None else (os.POSIX_SPAWN_DUP2, input, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), append, 0o644),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    # What this process ignores, such as the end of a terminal, its child would ignore too.
    usual = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE]
    return os.posix_spawn(command[0], command, environ, file_actions=actions, setsid=True, setsigdef=usual)


def may_fork() -> bool:
    """Return whether a fork of this process can do what a new one could: it has no threads and no event loop.

    On macOS libraries of the system may have threads of their own, and end forks that use them.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return sys.platform == "linux" and threading.active_count() == 1
    return False


def fork_session(work: Callable[[], object], environ: Mapping[str, str], log: Path, input: int) -> int:
    """Do work in a fork of this process that is in everything else what `spawn_session` starts. Return its number."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            # The fork would write what is left in them, too.
            stream.flush()
    if pid := os.fork():
        return pid
    try:
        os.setsid()
        # What the parent cleans up at its end is still in use.
        atexit._clear()
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.dup2(input, 0)
        os.closerange(1, os.sysconf("SC_OPEN_MAX"))
        os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), 2)
        sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
        os.environ.clear()
        os.environ.update(environ)
        work()
    finally:
        os._exit(0)


def has_ended(pid: int) -> int | None:
    """Return the exit code of a child that has ended, negative for a signal; None for others and while it lives."""
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return None
    return os.waitstatus_to_exitcode(status) if ended else None


def send_signal(pid: int, number: int) -> None:
    """Signal a process and, where it leads a session, all processes of its group."""
    with suppress(ProcessLookupError, PermissionError):
        if os.getpgid(pid) == pid == os.getsid(pid):
            os.killpg(pid, number)
        else:
            # A command in the foreground shares its group with the shell script that called it.
            os.kill(pid, number)


def kill_group(leader: int) -> None:
    """Kill what is left of the group of a process that has ended. Its number is not given away while one is left."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


async def wait_for_exit(pid: int) -> None:
    """Wait until a process has ended, be it a child of this one or not."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    except (AttributeError, OSError):
        while _is_alive(pid):  # noqa: ASYNC110  # nothing else tells
            await asyncio.sleep(_POLL_SECONDS)
        return
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(handle, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)


def read_command_line(pid: int, proc: Path = Path("/proc")) -> bytes:
    """Return the command line of a process with spaces between its parts; empty where there is no such process."""
    if (proc / "self").exists():
        try:
            return (proc / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ")
        except OSError:
            return b""
    # Systems other than Linux have no such folder.
    asked = ["ps", "-ww", "-o", "command=", "-p", str(pid)]
    return subprocess.run(asked, capture_output=True, check=False).stdout.strip() + b" "


def read_core_wait(proc: Path = Path("/proc")) -> float:
    """Return the seconds that this thread could have run and waited for a core; 0 where the system does not say."""
    try:
        return int((proc / "thread-self" / "schedstat").read_bytes().split()[1]) / 1e9
    except OSError:
        return 0.0


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return has_ended(pid) is None


# Folders

#: A file was written to; it was closed after that; it was moved here; it was deleted.
_MODIFIED, _CLOSED, _MOVED_HERE, _DELETED = 0x2, 0x8, 0x80, 0x200
_ADD_TO_MASK = 0x2000_0000
_EVENT = struct.Struct("iIII")
_READ_BYTES = 1 << 16


class FolderWatch:
    """Calls back when files appear in folders, change or are deleted. Belongs to one event loop.

    Linux reports changes at once. On other systems all callbacks are called regularly.
    """

    def __init__(self, poll_seconds: float = _POLL_SECONDS) -> None:
        self._loop = asyncio.get_running_loop()
        self._poll_seconds = poll_seconds
        self._calls: defaultdict[int, list[Callable[[], object]]] = defaultdict(list)
        self._libc = ctypes.CDLL(None, use_errno=True)
        try:
            self._handle = int(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        except AttributeError:
            self._handle = -1
        if self._handle >= 0:
            self._loop.add_reader(self._handle, self._read)

    @contextmanager
    def watching(self, folder: Path, call: Callable[[], object], *, appends: bool = False) -> Iterator[None]:
        """Call back on changes in a folder; with `appends`, also when something is written to an open file."""
        mask = _CLOSED | _MOVED_HERE | _DELETED | _ADD_TO_MASK | (_MODIFIED if appends else 0)
        watch = self._libc.inotify_add_watch(self._handle, os.fsencode(folder), mask) if self._handle >= 0 else -1
        if watch < 0:
            polling = self._loop.create_task(self._poll(call))
            try:
                yield
            finally:
                polling.cancel()
            return
        self._calls[watch].append(call)
        try:
            yield
        finally:
            self._calls[watch].remove(call)
            if not self._calls[watch]:
                del self._calls[watch]
                # Fails where the folder is gone, and its watch with it.
                self._libc.inotify_rm_watch(self._handle, watch)

    def close(self) -> None:
        if self._handle >= 0:
            self._loop.remove_reader(self._handle)
            os.close(self._handle)
            self._handle = -1

    def __enter__(self) -> FolderWatch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self) -> None:
        try:
            events = os.read(self._handle, _READ_BYTES)
        except BlockingIOError:
            return
        changed, position = set[int](), 0
        while position < len(events):
            watch, _, _, length = _EVENT.unpack_from(events, position)
            position += _EVENT.size + length
            changed.add(watch)
        # If there are too many events, the kernel reports one without a folder instead.
        for watch in [*self._calls] if -1 in changed else changed:
            for call in [*self._calls.get(watch, ())]:
                call()

    async def _poll(self, call: Callable[[], object]) -> None:
        while True:
            await asyncio.sleep(self._poll_seconds)
            call()
