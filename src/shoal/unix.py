"""What only Unix has: locks that end with their process, and processes in sessions of their own.

Another system needs another module with these functions. Sockets of Unix are opened in `daemon` and `slots`.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

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


def spawn_session(command: list[str], environ: Mapping[str, str], log: Path) -> int:
    """Start a process in a new session, which neither a signal to our group nor our end reaches.

    Its output is appended to the log. Return its number.
    """
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), append, 0o644),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    # What this process ignores, such as the end of a terminal, its child would ignore too.
    usual = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE]
    return os.posix_spawn(command[0], command, environ, file_actions=actions, setsid=True, setsigdef=usual)


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


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return has_ended(pid) is None
