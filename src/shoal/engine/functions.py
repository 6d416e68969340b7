"""Functions of the user's own that interventions call: their results are journaled, so that each is called once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any

from shoal.engine.facts import Facts
from shoal.errors import ShoalError
from shoal.journal import Journal, JournalKey, JournalLine
from shoal.text import clip

_MAX_REASON_CHARS = 300


class InterventionFailed(Exception):
    """An intervention could not be decided upon, or has no effect that could be used; the message says why."""


class UnusableResult(Exception):
    """A function returned something that it should not; the message says what it is and what was expected."""


@dataclass(frozen=True, slots=True)
class OwnFunction:
    """A function of the user's own. It takes the facts of a world and may be a coroutine function."""

    #: Where it is, as `module:function`.
    place: str
    #: Imports it. A replay needs no function, so it is imported when it is called.
    find: Callable[[], Callable[[Facts], Any]]
    #: Turns what it returned into what is journaled; raises UnusableResult.
    read: Callable[[Any], Any]


class FunctionCaller:
    """Calls functions of the user's own, or finds in the journal what they returned."""

    def __init__(self, journal: Journal, deadline_seconds: float, log: logging.Logger | None) -> None:
        self._journal = journal
        self._deadline_seconds = deadline_seconds
        self._log = log

    async def call(self, function: OwnFunction, key: JournalKey, request: str, facts: Facts) -> Any:
        """Return the result, from the journal where it is there; raise InterventionFailed where the function failed."""
        line = self._journal.lookup(key, lambda: request)
        if line is None:
            line = await self._attempt(function, key, request, facts)
            await self._journal.record(line)
        if line.outcome is not None:
            raise InterventionFailed(line.reason or line.outcome)
        return line.reply

    async def _attempt(self, function: OwnFunction, key: JournalKey, request: str, facts: Facts) -> JournalLine:
        found = function.find()
        try:
            result = found(facts)
            if isawaitable(result):
                async with asyncio.timeout(self._deadline_seconds):
                    result = await result
            return JournalLine(key, request, reply=function.read(result))
        except ShoalError:
            raise
        except UnusableResult as error:
            reason = f"{function.place} {error}"
        except TimeoutError:
            reason = f"{function.place} took longer than {self._deadline_seconds:g} s"
        except Exception as error:
            # The function is the user's own code, and may fail in any way.
            reason = f"{function.place}: {type(error).__name__}: {error}"
            if self._log is not None:
                self._log.warning("%s failed in round %d", function.place, key.round, exc_info=error)
        return JournalLine(key, request, outcome="error", reason=clip(reason, _MAX_REASON_CHARS))
