"""Each answer is in the journal before anybody acts upon it, and what the journal holds is not asked again."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from shoal.errors import Diverged, JournalIncomplete
from shoal.journal import Journal, JournalLine
from shoal.models.base import Answer, FailureKind, Model, ModelFailed, ModelFailure, Question, Usage


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

    def _known(self, key: str, request: str) -> JournalLine | None:
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


class NoModel:
    """Nobody to ask: what a replay has below its journal."""

    async def answer(self, question: Question) -> Answer:
        raise _incomplete(question)


def _incomplete(question: Question) -> JournalIncomplete:
    return JournalIncomplete(f"the journal has no reply under {question.key}; `shoal resume` the run to complete it")


def _replied(line: JournalLine | None) -> JournalLine | None:
    """A decision that failed has a line too, under the same key, but nothing that a model said."""
    return None if line is None or line.outcome is not None else line


def _line(question: Question, request: str, answer: Answer) -> JournalLine:
    reply = {"text": answer.text, "finish": answer.finish, "model": question.model}
    return JournalLine(question.key, request, reply=reply, usage=_tokens(answer.usage), ms=answer.ms)


def _tokens(usage: Usage) -> dict[str, int] | None:
    """None for an answer that cost nothing, as it came from the cache: so it does not count when a run goes on."""
    if usage == Usage():
        return None
    return {"input": usage.input, "output": usage.output, "cached": usage.cached}


def _answer(line: JournalLine) -> Answer:
    reply: dict[str, Any] = line.reply
    usage = msgspec.convert(line.usage or {}, Usage)
    return Answer(reply["text"], usage, reply.get("finish", "stop"), line.ms)


#: What is asked besides an agent's turns, as the keys of questions have it.
BESIDES = frozenset({"remember", "embed"})
FAILED = "error"

_KINDS = {kind.value: kind for kind in FailureKind}


class JournaledFailures:
    """Writes down how questions failed that are asked besides an agent's turns, and does not ask them again.

    A turn that failed is written down by the engine. Nobody else does it for these, and what was answered only when the
    run was resumed would make it diverge from itself.
    """

    def __init__(self, inner: Model, journal: Journal) -> None:
        self._inner = inner
        self._journal = journal

    async def answer(self, question: Question) -> Answer:
        if BESIDES.isdisjoint(question.key.split("/")[-2:-1]):
            return await self._inner.answer(question)
        request = question.digest
        if (failure := self._known(question.key, request)) is not None:
            raise ModelFailed(failure)
        try:
            return await self._inner.answer(question)
        except ModelFailed as error:
            await self._journal.record(_failure_line(question.key, request, error.failure))
            raise

    def _known(self, key: str, request: str) -> ModelFailure | None:
        """How this very request failed before, if it did."""
        line = self._journal.own(key) or self._journal.inherited(key, request)
        if line is None or line.outcome is None or line.request != request:
            return None
        kind, _, text = (line.reason or "").partition(": ")
        return ModelFailure(_KINDS.get(kind, FailureKind.FATAL), text)


def _failure_line(key: str, request: str, failure: ModelFailure) -> JournalLine:
    return JournalLine(key, request, outcome=FAILED, reason=f"{failure.kind}: {failure.text}")
