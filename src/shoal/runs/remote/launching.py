"""What a launcher and the receivers that it has started say to each other: both ends, on the same machine.

The launcher listens at a socket in a private folder. The connection lasts as long as both do, so each sees the end
of the other.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import msgspec

from shoal.errors import RunRefused

T = TypeVar("T", bound=msgspec.Struct)

#: The variable with the path of the launcher's socket.
LAUNCHER_VARIABLE = "SHOAL_LAUNCHER_SOCKET"


class ReceiverHello(msgspec.Struct, frozen=True):
    """From a receiver: which process it is, and which run it holds."""

    pid: int
    directory: str


class ReceiverTerms(msgspec.Struct, frozen=True):
    """From the launcher: where to listen, with which token, and what workers need of the environment."""

    host: str
    token: str
    environ: dict[str, str]


class ReceiverReady(msgspec.Struct, frozen=True):
    """From a receiver: workers may connect to this port."""

    port: int


class TaskEnd(msgspec.Struct, frozen=True):
    """From the launcher: no worker will come any more; the error says why."""

    error: str | None


class LauncherLink:
    """The receiver's end."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, terms: ReceiverTerms) -> None:
        self._reader = reader
        self._writer = writer
        self.terms = terms

    @classmethod
    async def open(cls, directory: Path, environ: Mapping[str, str]) -> LauncherLink:
        """Connect to the launcher that started this process."""
        try:
            reader, writer = await asyncio.open_unix_connection(environ[LAUNCHER_VARIABLE])
        except (KeyError, OSError) as error:
            raise RunRefused("the program that started this run on another machine has ended") from error
        write_line(writer, ReceiverHello(os.getpid(), str(directory)))
        terms = await read_line(reader, ReceiverTerms)
        if terms is None:
            raise RunRefused("the program that started this run on another machine has ended")
        return cls(reader, writer, terms)

    def announce(self, port: int) -> None:
        """Say that workers may connect."""
        write_line(self._writer, ReceiverReady(port))

    async def wait_for_end(self) -> str | None:
        """Wait until the launcher gives the run up, and return why."""
        end = await read_line(self._reader, TaskEnd)
        return "the program that had started it on the Ray cluster ended" if end is None else end.error

    async def __aenter__(self) -> LauncherLink:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()


def write_line(writer: asyncio.StreamWriter, message: msgspec.Struct) -> None:
    """Send a message as a line."""
    writer.write(msgspec.json.encode(message) + b"\n")


async def read_line(reader: asyncio.StreamReader, kind: type[T]) -> T | None:
    """Read a message of this kind; None where the other end is gone."""
    try:
        line = await reader.readline()
    except OSError:
        return None
    return msgspec.json.decode(line, type=kind) if line.endswith(b"\n") else None
