"""A rehearsal server beside a script or a notebook, which plays the provider of models and costs nothing."""

from __future__ import annotations

import asyncio
import os
import threading
from dataclasses import fields
from types import TracebackType
from typing import Any

from shoal.errors import ArgumentInvalid
from shoal.event_loop import run_async
from shoal.rehearsal import RehearsalSettings, start
from shoal.text import hint

_VARIABLES = ("OPENAI_BASE_URL", "OPENAI_API_KEY")


class RehearsalThread:
    """Serves invented answers from a thread of this process until it is closed, or the script ends.

    Meanwhile models of OpenAI are asked there: the variables that name its address are set in `os.environ`.
    """

    def __init__(self, settings: RehearsalSettings) -> None:
        self._settings = settings
        self._before = {name: os.environ.get(name) for name in _VARIABLES}
        self._is_up = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over = asyncio.Event()
        #: The address of the server.
        self.base_url = ""
        self._thread = threading.Thread(target=lambda: run_async(self._serve()), name="shoal-rehearsal", daemon=True)
        self._thread.start()
        self._is_up.wait()
        os.environ.update(zip(_VARIABLES, (self.base_url, "rehearsal"), strict=True))

    async def _serve(self) -> None:
        async with start(self._settings) as server:
            self._loop, self.base_url = asyncio.get_running_loop(), server.base_url
            self._is_up.set()
            await self._over.wait()

    def close(self) -> None:
        """End the server, and set the variables back."""
        if self._thread.is_alive() and self._loop is not None:
            self._loop.call_soon_threadsafe(self._over.set)
            self._thread.join()
            for name, value in self._before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})

    def __enter__(self) -> RehearsalThread:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<rehearsal at {self.base_url}: answers are invented and mean nothing>"


def rehearse(**settings: Any) -> RehearsalThread:
    """Start a rehearsal server beside the script, for example `rehearse(latency_seconds=0.8, cap=64)`."""
    known = [field.name for field in fields(RehearsalSettings)]
    for name in settings:
        if name not in known:
            raise ArgumentInvalid(name, f"a rehearsal has no setting {name!r}{hint(name, known)}.")
    try:
        return RehearsalThread(RehearsalSettings(**settings))
    except ValueError as error:
        raise ArgumentInvalid("rehearse", f"{error}.") from None
