"""Starts the broker's process where none is."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shoal.slots.location import BrokerLocation

#: How long a broker may take until it listens; on a machine with much to do, starting Python takes a while.
_START_SECONDS = 20.0
_ROOT = Path(__file__).parent.parent.parent
# Neither the working directory nor the environment decides which Shoal is started.
_CODE = "import sys; sys.path.append(sys.argv[1]); from shoal.slots.server import main; sys.exit(main(sys.argv[2:]))"


class NoBroker(Exception):
    """There is none, and none can be started."""


def start(place: BrokerLocation) -> None:
    """See that a broker listens. Of many who want one at the same time, one starts it and the others wait for it."""
    try:
        place.prepare()
        with _only_one(place.starting):
            if not place.is_served():
                _spawn(place)
    except (OSError, subprocess.SubprocessError) as error:
        raise NoBroker(str(error)) from error


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
        said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise NoBroker(said or f"it ended with {done.returncode}")


@contextmanager
def _only_one(path: Path) -> Iterator[None]:
    deadline = time.monotonic() + _START_SECONDS
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"another process has been starting a broker at {path} for too long") from None
                time.sleep(0.005)
        yield
    finally:
        os.close(handle)
