"""Journals every answer before it is used, and never asks again for what the journal holds."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.event_loop import IdleQueue
from shoal.journal import BACKGROUND_PURPOSES, Journal, JournalLine
from shoal.models.base import Answer, FailureKind, Model, ModelFailed, ModelFailure, Question, Usage

FAILED = "error"

_KINDS = {kind.value: kind for kind in FailureKind}


class Journaled:
    """Answers from the journal; otherwise asks `inner` and records the answer.

    Failures of background questions are recorded too, so that a resumed run fails the same way instead of diverging.
    The engine records the outcome of a turn that failed.
    """

    def __init__(self, inner: Model | None, journal: Journal) -> None:
        """Pass None for `inner` in a replay: its journal is sealed, so nothing is ever asked."""
        self._inner = inner
        self._journal = journal
        self._idle = IdleQueue()

    async def answer(self, question: Question) -> Answer:
        line = self._journal.lookup(question.key, lambda: question.digest)
        if line is not None:
            if line.outcome is not None:
                kind, _, text = (line.reason or "").partition(": ")
                raise ModelFailed(ModelFailure(_KINDS.get(kind, FailureKind.FATAL), text))
            reply: dict[str, Any] = line.reply
            usage = Usage.restore(line.usage or {})
            return Answer(reply["text"], usage, reply.get("finish", "stop"), line.ms)
        assert self._inner is not None
        request: list[str] = []

        def add_digest() -> None:
            if not request:
                request.append(question.digest)

        # The digest of a long prompt can wait until the request is on its way, and thousands of others with it.
        self._idle.add(add_digest)
        try:
            answer = await self._inner.answer(question)
        except ModelFailed as error:
            if question.key.purpose in BACKGROUND_PURPOSES:
                reason = f"{error.failure.kind}: {error.failure.text}"
                line = JournalLine(question.key, question.digest, outcome=FAILED, reason=reason)
                await self._journal.record(line)
            raise
        add_digest()
        line = JournalLine(
            question.key,
            request[0],
            reply={"text": answer.text, "finish": answer.finish, "model": question.model},
            # None for an answer from the cache, so that a resumed run does not count it as paid.
            usage=None if answer.usage == Usage() else msgspec.structs.asdict(answer.usage),
            ms=answer.ms,
        )
        await self._journal.record(line)
        return answer
