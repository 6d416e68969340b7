"""Answers the commands to a run, while a worker is at work on it and while it only waits."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from shoal.errors import QueryFailed, RunRefused, ShoalError
from shoal.runs.commands.files import Command, CommandFiles, CommandResponse
from shoal.unix import FolderWatch

_log = logging.getLogger(__name__)

#: Carries out one command, and returns its result.
Handler = Callable[[Command], Awaitable[Any]]


class CommandLoop:
    """Carries out commands side by side, as their files appear. A command whose sender no longer waits is given up."""

    def __init__(self, files: CommandFiles, handlers: dict[str, Handler]) -> None:
        self._files = files
        self._handlers = handlers
        #: Number of a command that is being carried out -> the command and its task.
        self._begun: dict[str, tuple[Command, asyncio.Task[None]]] = {}
        self._busy_at = time.monotonic()

    def idle_seconds(self) -> float:
        """Return for how long there was nothing to do."""
        return 0.0 if self._begun else time.monotonic() - self._busy_at

    def look(self) -> None:
        """Begin new commands, and give up those whose sender no longer waits."""
        for command in self._files.list_commands():
            if command.command_id not in self._begun:
                task = asyncio.create_task(self._answer(command))
                self._begun[command.command_id] = command, task
        for command, task in self._begun.values():
            if not self._files.is_awaited(command):
                task.cancel()

    async def close(self) -> None:
        """Give up what is under way. Senders that wait ask the next worker."""
        tasks = [task for _, task in self._begun.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer(self, command: Command) -> None:
        try:
            response = await self._carry_out(command)
            self._files.respond(command, response)
        finally:
            self._busy_at = time.monotonic()
            del self._begun[command.command_id]

    async def _carry_out(self, command: Command) -> CommandResponse:
        handler = self._handlers.get(command.command_type)
        try:
            if handler is None:
                raise QueryFailed(f"there is no command {command.command_type!r}")
            return CommandResponse.completed(command, await handler(command))
        except ShoalError as error:
            return CommandResponse.failed(command, str(error), isinstance(error, RunRefused))
        except (TypeError, ValueError, LookupError) as error:
            # The file may be anybody's, and a field missing or of another type.
            _log.warning("%s with bad arguments", command.command_type, exc_info=True)
            return CommandResponse.failed(command, f"{command.command_type}: bad arguments: {error}")


@asynccontextmanager
async def answer_commands(files: CommandFiles, handlers: dict[str, Handler]) -> AsyncIterator[CommandLoop]:
    """Answer commands as long as this lasts."""
    files.prepare()
    files.remove_responses()
    loop = CommandLoop(files, handlers)
    with FolderWatch() as watch, watch.watching(files.commands, loop.look):
        loop.look()
        try:
            yield loop
        finally:
            await loop.close()
