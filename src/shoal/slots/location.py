"""Where the broker of this user is: a socket and a few files beside it, in a directory that only the user can enter."""

from __future__ import annotations

import os
import socket
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from shoal.errors import SlotsRefused

#: The kernel's limit for the path of a socket, less the ending that it has for a moment.
_MAX_PATH_BYTES = 107 - len(".new")

#: A broker greets whoever connects, at once.
_ANSWER_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class BrokerLocation:
    """The files of one broker, and how long it stays when it is not needed."""

    socket: Path
    #: The file of learned limits.
    memory: Path
    idle_seconds: float = 10.0

    @classmethod
    def of_user(cls, environ: Mapping[str, str]) -> BrokerLocation:
        """Return the location that SHOAL_SLOTS names, or the one that all processes of this user share."""
        home = environ.get("XDG_STATE_HOME") or Path(environ.get("HOME") or Path.home(), ".local", "state")
        memory = Path(home, "shoal", "limits.json")
        if chosen := environ.get("SHOAL_SLOTS"):
            return cls(Path(chosen).expanduser().absolute(), memory)
        runtime, own = environ.get("XDG_RUNTIME_DIR"), f"shoal-{os.getuid()}"
        folders = [Path(runtime, "shoal")] if runtime else []
        folders += [Path(tempfile.gettempdir(), own), Path("/tmp", own)]
        return cls(next(filter(_fits, (folder / "slots.sock" for folder in folders))), memory)

    @property
    def lock(self) -> Path:
        """The file that the running broker holds a lock on."""
        return self.socket.with_name(f"{self.socket.name}.lock")

    @property
    def starting(self) -> Path:
        """The file that a process locks while it starts a broker."""
        return self.socket.with_name(f"{self.socket.name}.starting")

    @property
    def log(self) -> Path:
        return self.socket.with_name(f"{self.socket.name}.log")

    def prepare(self) -> None:
        """Make the directory, or check that other users cannot put a socket of theirs into it."""
        if not _fits(self.socket):
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
        """Return whether a broker at the socket says something."""
        return _try_connection(self.socket, hear=True)


def _try_connection(path: Path, *, hear: bool) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_ANSWER_SECONDS)
        try:
            connection.connect(str(path))
            return not hear or bool(connection.recv(1))
        except OSError:
            return False


def _fits(path: Path) -> bool:
    return len(os.fsencode(path)) <= _MAX_PATH_BYTES
