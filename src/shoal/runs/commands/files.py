"""Both ends of the files by which a worker is given commands: `ipc_commands/ID.json` and `ipc_responses/ID.json`.

The sender of a command removes its file once it has the response, or once it no longer waits. A worker whose response
finds no command removes it again. So a late answer leaves nothing behind, in whichever order the two act.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import msgspec

from shoal.errors import QueryFailed, RunRefused
from shoal.runs.files import replace_json, storage_errors
from shoal.runs.state import wall_clock
from shoal.unix import FolderWatch

T = TypeVar("T")

COMMANDS, RESPONSES = "ipc_commands", "ipc_responses"
#: How long a command is carried out after it was written, where it does not say itself how long its sender waits.
_PATIENCE_SECONDS = 600.0


class CommandType(StrEnum):
    INTERVIEW = "interview"
    INTERVIEW_BATCH = "batch_interview"
    INTERVIEW_ALL = "interview_all"
    INJECT = "inject_event"
    PAUSE = "pause"
    CONTINUE = "continue"
    CLOSE = "close_env"
    SEATS = "list_seats"
    TAKE_SEAT = "take_seat"
    ANSWER_TURN = "answer_turn"
    GIVE_SEAT_BACK = "give_seat_back"


class Command(msgspec.Struct, frozen=True):
    """One command to a worker."""

    command_id: str
    command_type: str
    args: dict[str, Any] = {}
    timestamp: str = ""
    #: How long its sender waits for the response; None: as long as it takes.
    timeout: float | None = None


class CommandResponse(msgspec.Struct, frozen=True):
    """The answer to a command: a result, or the error that prevented it."""

    command_id: str
    status: str
    result: Any = None
    error: str | None = None
    timestamp: str = ""
    #: Whether the command was right, but the run cannot carry it out now.
    refused: bool = False

    @classmethod
    def completed(cls, command: Command, result: Any) -> CommandResponse:
        return cls(command.command_id, "completed", result, None, wall_clock())

    @classmethod
    def failed(cls, command: Command, error: str, refused: bool = False) -> CommandResponse:
        return cls(command.command_id, "failed", None, error, wall_clock(), refused)

    def unwrap(self) -> Any:
        """Return the result; where the command failed, raise QueryFailed or RunRefused with the worker's message."""
        if self.status != "completed":
            raise (RunRefused if self.refused else QueryFailed)(self.error or "the worker did not say why it refused")
        return self.result


class CommandFiles:
    """The commands of one run, and their responses."""

    def __init__(self, folder: Path) -> None:
        self.commands = folder / COMMANDS
        self.responses = folder / RESPONSES

    def prepare(self) -> None:
        """Make the folders, so that they can be watched."""
        for folder in (self.commands, self.responses):
            with storage_errors(folder):
                folder.mkdir(exist_ok=True)

    # The sender's end

    async def send(self, command_type: CommandType, args: dict[str, Any], timeout: float) -> CommandResponse:
        """Send a command and wait for its response; TimeoutError if none comes in time."""
        self.prepare()
        command = Command(uuid4().hex, command_type, args, wall_clock(), timeout)
        asked, answered = self.commands / f"{command.command_id}.json", self.responses / f"{command.command_id}.json"
        changed = asyncio.Event()
        with FolderWatch() as watch, watch.watching(self.responses, changed.set):
            try:
                replace_json(asked, command, sync=False)
                async with asyncio.timeout(timeout):
                    while (response := _read(answered, CommandResponse)) is None:
                        await changed.wait()
                        changed.clear()
                return response
            finally:
                asked.unlink(missing_ok=True)
                answered.unlink(missing_ok=True)

    # The worker's end

    def list_commands(self) -> Iterator[Command]:
        """List the commands without a response, oldest first, and remove those whose sender no longer waits."""
        found = []
        for path in self.commands.glob("*.json"):
            with suppress(FileNotFoundError):
                found.append((path.stat().st_mtime, path))
        for written_at, path in sorted(found):
            command, response = _read(path, Command), self.responses / path.name
            if command is None or command.command_id != path.stem:
                continue
            patience = _PATIENCE_SECONDS if command.timeout is None else command.timeout
            if time.time() - written_at > patience:
                path.unlink(missing_ok=True)
                response.unlink(missing_ok=True)
            elif not response.exists():
                yield command

    def is_awaited(self, command: Command) -> bool:
        """Return whether the sender still waits for the response."""
        return (self.commands / f"{command.command_id}.json").exists()

    def respond(self, command: Command, response: CommandResponse) -> None:
        """Write the response, unless the sender no longer waits."""
        path = self.responses / f"{command.command_id}.json"
        replace_json(path, response, sync=False)
        if not self.is_awaited(command):
            path.unlink(missing_ok=True)

    def remove_responses(self) -> None:
        """Remove responses that were never read: their senders asked a worker before this one, and are gone."""
        for path in self.responses.glob("*.json"):
            if not (self.commands / path.name).exists():
                path.unlink(missing_ok=True)


def _read(path: Path, kind: type[T]) -> T | None:
    """Read a file; None where it is not there, or not yet whole: others may write theirs in place."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (FileNotFoundError, msgspec.DecodeError):
        return None
