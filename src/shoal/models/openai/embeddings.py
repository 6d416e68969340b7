"""Text embeddings: requested through the same stack as chat questions, and packed into the text of an answer.

They are therefore journaled, cached, budgeted, retried and limited as every other question is.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.journal import JournalKey
from shoal.models.base import Answer, FailureKind, Message, Model, ModelFailed, ModelFailure, Question, Usage
from shoal.models.openai.dialects import BYTE_ORDER_MARK, read_usage
from shoal.models.openai.errors import report_unreadable

#: The role of messages that are to be embedded, not answered.
EMBED_ROLE = "embed"
#: Half precision is enough to compare, and takes a tenth of what JSON takes.
_PRECISION = "<f2"


class EmbeddingRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Texts to embed together, and the key under which the answer is journaled."""

    key: JournalKey
    model: str
    texts: tuple[str, ...]

    def question(self) -> Question:
        messages = tuple(Message(EMBED_ROLE, text) for text in self.texts)
        return Question(key=self.key, model=self.model, messages=messages, max_tokens=0)


class Embedder(Protocol):
    async def embed(self, passages: EmbeddingRequest) -> NDArray[np.float32]:
        """Return a row of length 1 for each text, or raise ModelFailed."""
        ...


class StackEmbedder:
    """Embeds texts by asking a model."""

    def __init__(self, ask: Model) -> None:
        self._ask = ask

    async def embed(self, passages: EmbeddingRequest) -> NDArray[np.float32]:
        answer = await self._ask.answer(passages.question())
        return unpack(answer, len(passages.texts))


def is_embedding(question: Question) -> bool:
    return bool(question.messages) and question.messages[0].role == EMBED_ROLE


def pack(vectors: Sequence[Sequence[float]]) -> str:
    """Normalise vectors and write them as the text of an answer."""
    rows = np.asarray(vectors, np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    units = rows / np.where(lengths > 0, lengths, 1)
    return b64encode(units.astype(_PRECISION).tobytes()).decode()


def unpack(answer: Answer, count: int) -> NDArray[np.float32]:
    """Read the vectors from an answer. The values are the same whether it is new or from the journal."""
    try:
        values = np.frombuffer(b64decode(answer.text, validate=True), _PRECISION)
    except ValueError as error:
        raise ModelFailed(ModelFailure(FailureKind.FATAL, "the answer holds no embeddings")) from error
    if not len(values) or len(values) % count or not np.isfinite(values).all():
        raise ModelFailed(ModelFailure(FailureKind.FATAL, f"the answer does not hold {count} embeddings"))
    return values.reshape(count, -1).astype(np.float32)


class _Row(msgspec.Struct):
    index: int
    embedding: list[float]


class _EmbeddingsReply(msgspec.Struct):
    data: list[_Row]
    usage: Any = None


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_EmbeddingsReply).decode


def write_embedding_request(model: str, question: Question) -> bytes:
    return _encode({"model": model, "input": [message.content for message in question.messages]})


def read_embeddings(body: bytes, question: Question) -> Answer:
    """Read a reply: the embeddings in the order in which they were asked for, packed, and the tokens they took."""
    count = len(question.messages)
    try:
        reply = _decode(body.removeprefix(BYTE_ORDER_MARK))
    except (msgspec.DecodeError, RecursionError) as error:
        raise ModelFailed(report_unreadable(body, f"holds no embeddings ({error})", question)) from error
    rows = [row.embedding for row in sorted(reply.data, key=lambda row: row.index)]
    if len(rows) != count or len({len(row) for row in rows}) != 1 or not rows[0]:
        raise ModelFailed(report_unreadable(body, f"does not hold {count} embeddings of one length", question))
    usage, is_estimated = read_usage(reply.usage, question, "")
    return Answer(pack(rows), Usage(usage.input), is_estimated=is_estimated)
