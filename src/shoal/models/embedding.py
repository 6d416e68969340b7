"""What texts are about, as directions in space: asked for like any other question.

Because it is one, it goes through the same stack: journaled, cached, within the budget, retried and limited. At the
bottom `EmbeddingClient` (embedding_client.py) takes it out of the other client's way.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.models.question import Answer, Failure, Kind, Message, Model, ModelFailed, Question

#: The role of messages that are not to be answered but embedded.
EMBED = "embed"
_PRECISION = "<f2"


class Passages(msgspec.Struct, frozen=True, kw_only=True):
    """Texts to embed together, and the key under which that is journaled."""

    key: str
    model: str
    texts: tuple[str, ...]

    def question(self) -> Question:
        messages = tuple(Message(EMBED, text) for text in self.texts)
        return Question(key=self.key, model=self.model, messages=messages, max_tokens=0)


class Embedder(Protocol):
    async def embed(self, passages: Passages) -> NDArray[np.float32]:
        """A row of length 1 for each text, or ModelFailed."""
        ...


class AskedEmbedder:
    """Embeds by asking a model: the stack."""

    def __init__(self, ask: Model) -> None:
        self._ask = ask

    async def embed(self, passages: Passages) -> NDArray[np.float32]:
        answer = await self._ask.answer(passages.question())
        return unpack(answer, len(passages.texts))


def is_embedding(question: Question) -> bool:
    return bool(question.messages) and question.messages[0].role == EMBED


def pack(vectors: Sequence[Sequence[float]]) -> str:
    """As an answer holds them: in half precision, which is enough to compare, at a tenth of what JSON takes."""
    rows = np.asarray(vectors, np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    units = rows / np.where(lengths > 0, lengths, 1)
    return b64encode(units.astype(_PRECISION).tobytes()).decode()


def unpack(answer: Answer, count: int) -> NDArray[np.float32]:
    """The same values whether the answer is new or from the journal."""
    try:
        values = np.frombuffer(b64decode(answer.text, validate=True), _PRECISION)
    except ValueError as error:
        raise ModelFailed(Failure(Kind.FATAL, "the answer holds no embeddings")) from error
    if not len(values) or len(values) % count or not np.isfinite(values).all():
        raise ModelFailed(Failure(Kind.FATAL, f"the answer does not hold {count} embeddings"))
    return values.reshape(count, -1).astype(np.float32)
