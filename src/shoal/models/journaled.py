"""Each answer is in the journal before anybody acts upon it, and what the journal holds is not asked again."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from shoal.errors import Diverged, JournalIncomplete
from shoal.journal import Journal, Line
from shoal.models.question import Answer, Model, Question, Usage


class Journaled:
    """Answers from the journal, and else into it. `versions`: of Shoal, which wrote the run and which this is."""

    def __init__(self, inner: Model, journal: Journal, versions: tuple[str, str]) -> None:
        self._inner = inner
        self._journal = journal
        self._versions = versions

    async def answer(self, question: Question) -> Answer:
        if self._journal.holds(question.key):
            line = self._known(question.key, question.digest)
            if line is not None:
                return _answer(line)
        if self._journal.is_sealed:
            raise _incomplete(question)
        # Reading a long prompt once more can wait until it is on its way, and with it thousands of others.
        request: list[str] = []
        asyncio.get_running_loop().call_soon(lambda: request.append(question.digest))
        answer = await self._inner.answer(question)
        await self._journal.record(_line(question, request[0] if request else question.digest, answer))
        return answer

    def _known(self, key: str, request: str) -> Line | None:
        """The run's own line, which must answer this request, or its parent's, if it does."""
        own = self._journal.own(key)
        if own is None or own.outcome is not None:
            return _replied(self._journal.inherited(key, request))
        if own.request != request:
            wrote, now = self._versions
            raise Diverged(
                f"{key}: the journal answers request {own.request}, but this run now asks {request}.",
                wrote=wrote,
                now=now,
            )
        return own


class Sealed:
    """Nobody to ask: what a replay has below its journal."""

    async def answer(self, question: Question) -> Answer:
        raise _incomplete(question)


def _incomplete(question: Question) -> JournalIncomplete:
    return JournalIncomplete(f"the journal has no reply under {question.key}; `shoal resume` the run to complete it")


def _replied(line: Line | None) -> Line | None:
    """A decision that failed has a line too, under the same key, but nothing that a model said."""
    return None if line is None or line.outcome is not None else line


def _line(question: Question, request: str, answer: Answer) -> Line:
    reply = {"text": answer.text, "finish": answer.finish, "model": question.model}
    return Line(question.key, request, reply=reply, usage=_tokens(answer.usage), ms=answer.ms)


def _tokens(usage: Usage) -> dict[str, int] | None:
    """None for an answer that cost nothing, as it came from the cache: so it does not count when a run goes on."""
    if usage == Usage():
        return None
    return {"input": usage.input, "output": usage.output, "cached": usage.cached}


def _answer(line: Line) -> Answer:
    reply: dict[str, Any] = line.reply
    usage = msgspec.convert(line.usage or {}, Usage)
    return Answer(reply["text"], usage, reply.get("finish", "stop"), line.ms)
