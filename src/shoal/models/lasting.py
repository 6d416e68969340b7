"""Questions whose failure is history, as an answer would be."""

from __future__ import annotations

from shoal.journal import Journal, Line
from shoal.models.question import Answer, Failure, Kind, Model, ModelFailed, Question

#: What is asked besides an agent's turns, as the keys of questions have it.
BESIDES = frozenset({"remember", "embed"})
FAILED = "error"

_KINDS = {kind.value: kind for kind in Kind}


class Lasting:
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
            await self._journal.record(_line(question.key, request, error.failure))
            raise

    def _known(self, key: str, request: str) -> Failure | None:
        """How this very request failed before, if it did."""
        line = self._journal.own(key) or self._journal.inherited(key, request)
        if line is None or line.outcome is None or line.request != request:
            return None
        kind, _, text = (line.reason or "").partition(": ")
        return Failure(_KINDS.get(kind, Kind.FATAL), text)


def _line(key: str, request: str, failure: Failure) -> Line:
    return Line(key, request, outcome=FAILED, reason=f"{failure.kind}: {failure.text}")
