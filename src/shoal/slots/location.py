"""Where the broker of this user is: a socket and a few files beside it, in a directory that only the user can enter."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from shoal.daemon import DaemonFiles


@dataclass(frozen=True, slots=True)
class BrokerLocation(DaemonFiles):
    """The files of one broker, and how long it stays when it is not needed."""

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
        places = (cls(folder / "slots.sock", memory) for folder in folders)
        return next(place for place in places if place.is_short_enough)


@dataclass(frozen=True, slots=True)
class RemoteBroker:
    """The broker of another machine, behind a port that passes bytes on to it. Only that machine starts it."""

    host: str
    port: int
    #: What a connection begins with.
    greeting: bytes
