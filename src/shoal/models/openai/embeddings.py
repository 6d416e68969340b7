"""What texts are about, as directions in space: asked for like any other question.

Because it is one, it goes through the same stack: journaled, cached, within the budget, retried and limited. At the
bottom `EmbeddingClient` (embedding_client.py) takes it out of the other client's way.
"""

from __future__ import annotations

import time
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal import __version__
from shoal.journal import JournalKey
from shoal.models.base import Answer, FailureKind, Message, Model, ModelFailed, ModelFailure, Question, Usage
from shoal.models.http.messages import HttpRequest, HttpTarget
from shoal.models.http.pool import Transport
from shoal.models.openai.endpoints import Endpoint
from shoal.models.openai.errors import allowance, of_reply, unreadable, without_secrets

#: The role of messages that are not to be answered but embedded.
EMBED = "embed"
_PRECISION = "<f2"


class EmbeddingRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Texts to embed together, and the key under which that is journaled."""

    key: JournalKey
    model: str
    texts: tuple[str, ...]

    def question(self) -> Question:
        messages = tuple(Message(EMBED, text) for text in self.texts)
        return Question(key=self.key, model=self.model, messages=messages, max_tokens=0)


class Embedder(Protocol):
    async def embed(self, passages: EmbeddingRequest) -> NDArray[np.float32]:
        """A row of length 1 for each text, or ModelFailed."""
        ...


class StackEmbedder:
    """Embeds by asking a model: the stack."""

    def __init__(self, ask: Model) -> None:
        self._ask = ask

    async def embed(self, passages: EmbeddingRequest) -> NDArray[np.float32]:
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
        raise ModelFailed(ModelFailure(FailureKind.FATAL, "the answer holds no embeddings")) from error
    if not len(values) or len(values) % count or not np.isfinite(values).all():
        raise ModelFailed(ModelFailure(FailureKind.FATAL, f"the answer does not hold {count} embeddings"))
    return values.reshape(count, -1).astype(np.float32)


class _Row(msgspec.Struct):
    index: int
    embedding: list[float]


class _Used(msgspec.Struct):
    prompt_tokens: int = 0


class _EmbeddingsReply(msgspec.Struct):
    data: list[_Row]
    usage: _Used = msgspec.field(default_factory=_Used)


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_EmbeddingsReply).decode


class EmbeddingClient:
    """Answers questions that are texts to embed, and leaves all others to the client it stands before."""

    def __init__(
        self, inner: Model, transport: Transport, endpoints: Mapping[str, Endpoint], attempt_seconds: float
    ) -> None:
        self._inner = inner
        self._transport = transport
        self._endpoints = endpoints
        self._targets = {name: _target(endpoint) for name, endpoint in endpoints.items()}
        self._attempt_seconds = attempt_seconds

    async def answer(self, question: Question) -> Answer:
        if not is_embedding(question):
            return await self._inner.answer(question)
        endpoint = self._endpoints.get(question.model)
        if endpoint is None:
            raise ModelFailed(
                ModelFailure(FailureKind.FATAL, f"{question.model}: this run has no server with this model")
            )
        try:
            return await self._embed(endpoint, question)
        except ModelFailed as failed:
            text = without_secrets(failed.failure.text, endpoint.key)
            raise ModelFailed(msgspec.structs.replace(failed.failure, text=f"{question.model}: {text}")) from failed

    async def _embed(self, endpoint: Endpoint, question: Question) -> Answer:
        began = time.perf_counter()
        body = {"model": endpoint.model, "input": [message.content for message in question.messages]}
        request = HttpRequest(self._targets[question.model], _encode(body), self._attempt_seconds)
        reply = await self._transport.post(request)
        if reply.status != 200:
            raise ModelFailed(of_reply(reply.status, reply.headers, reply.body, time.time()))
        text, used = _read(reply.body, len(question.messages))
        ms = round((time.perf_counter() - began) * 1000)
        return Answer(text, Usage(input=used), ms=ms, allowance=allowance(reply.headers, time.time()))


def _target(endpoint: Endpoint) -> HttpTarget:
    headers = {"Content-Type": "application/json", "User-Agent": f"shoal/{__version__}"}
    if endpoint.key is not None:
        headers["Authorization"] = f"Bearer {endpoint.key}"
    return HttpTarget(f"{endpoint.base_url}/embeddings", headers)


def _read(body: bytes, count: int) -> tuple[str, int]:
    """The embeddings in the order in which they were asked for, packed, and the tokens they took."""
    try:
        reply = _decode(body)
    except msgspec.DecodeError as error:
        raise ModelFailed(unreadable(body, f"holds no embeddings ({error})")) from error
    rows = [row.embedding for row in sorted(reply.data, key=lambda row: row.index)]
    if not _is_whole(rows, count):
        raise ModelFailed(unreadable(body, f"does not hold {count} embeddings of one length"))
    return pack(rows), reply.usage.prompt_tokens


def _is_whole(rows: Sequence[Sequence[float]], count: int) -> bool:
    return len(rows) == count and len({len(row) for row in rows}) == 1 and bool(rows[0])
