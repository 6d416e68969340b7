"""Where the broker of this user is: a socket and a few files beside it, in a directory that is nobody else's."""

from __future__ import annotations

import os
import socket
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from shoal.errors import SlotsRefused

#: What the kernel takes for the path of a socket, less the ending that it has for a moment.
_MAX_PATH_BYTES = 107 - len(".new")
_SOCKET = "slots.sock"


@dataclass(frozen=True, slots=True)
class BrokerLocation:
    """One broker: where it listens, what it remembers, and how long it stays when nobody needs it."""

    socket: Path
    #: What was learned about limits.
    memory: Path
    idle_seconds: float = 10.0

    @classmethod
    def of_user(cls, environ: Mapping[str, str]) -> BrokerLocation:
        """Where SHOAL_SLOTS says, or where each process of this user looks."""
        home = environ.get("XDG_STATE_HOME") or Path(environ.get("HOME") or Path.home(), ".local", "state")
        memory = Path(home, "shoal", "limits.json")
        if chosen := environ.get("SHOAL_SLOTS"):
            return cls(Path(chosen).expanduser().absolute(), memory)
        return cls(_usual_socket(environ.get("XDG_RUNTIME_DIR")), memory)

    @property
    def lock(self) -> Path:
        """Held by the broker that is alive."""
        return self.socket.with_name(f"{self.socket.name}.lock")

    @property
    def starting(self) -> Path:
        """Held by whoever starts one."""
        return self.socket.with_name(f"{self.socket.name}.starting")

    @property
    def log(self) -> Path:
        return self.socket.with_name(f"{self.socket.name}.log")

    def prepare(self) -> None:
        """Make the directory, or see that nobody else can put a socket of theirs into it."""
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
        """Whether somebody listens."""
        with socket.socket(socket.AF_UNIX) as caller:
            try:
                caller.connect(str(self.socket))
            except OSError:
                return False
            return True


def _usual_socket(runtime: str | None) -> Path:
    own = f"shoal-{os.getuid()}"
    folders = [Path(runtime, "shoal")] if runtime else []
    folders += [Path(tempfile.gettempdir(), own), Path("/tmp", own)]
    return next(filter(_fits, (folder / _SOCKET for folder in folders)))


def _fits(path: Path) -> bool:
    return len(os.fsencode(path)) <= _MAX_PATH_BYTES
