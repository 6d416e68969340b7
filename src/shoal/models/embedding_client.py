"""Puts texts to the /embeddings of an OpenAI-compatible server, once."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import msgspec

from shoal import __version__
from shoal.models.embedding import is_embedding, pack
from shoal.models.endpoints import Endpoint
from shoal.models.exchange import HttpRequest, Target
from shoal.models.failures import of_reply, unreadable, without_secrets
from shoal.models.headers import allowance
from shoal.models.question import Answer, Failure, Kind, Model, ModelFailed, Question, Usage
from shoal.models.transport import Transport


class _Row(msgspec.Struct):
    index: int
    embedding: list[float]


class _Used(msgspec.Struct):
    prompt_tokens: int = 0


class _Reply(msgspec.Struct):
    data: list[_Row]
    usage: _Used = msgspec.field(default_factory=_Used)


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Reply).decode


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
            raise ModelFailed(Failure(Kind.FATAL, f"{question.model}: this run has no server with this model"))
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


def _target(endpoint: Endpoint) -> Target:
    headers = {"Content-Type": "application/json", "User-Agent": f"shoal/{__version__}"}
    if endpoint.key is not None:
        headers["Authorization"] = f"Bearer {endpoint.key}"
    return Target(f"{endpoint.base_url}/embeddings", headers)


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
