"""The client for OpenAI-compatible servers: sends a chat or embedding question once, and reads the reply."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

import msgspec

from shoal import __version__
from shoal.models.base import Answer, FailureKind, ModelFailed, ModelFailure, Question
from shoal.models.http.messages import HttpReply, HttpRequest, HttpTarget
from shoal.models.http.pool import Transport
from shoal.models.openai.dialects import Dialect, RequestWriter, read_answer
from shoal.models.openai.embeddings import is_embedding, read_embeddings, write_embedding_request
from shoal.models.openai.endpoints import Endpoint
from shoal.models.openai.errors import mask_secrets, parse_failure, read_rate_limits

_log = logging.getLogger(__name__)


class _Server:
    """One endpoint, ready to be asked, and the dialect that was learned about it."""

    def __init__(self, name: str, endpoint: Endpoint) -> None:
        self.name = name
        self.endpoint = endpoint
        headers = {"Content-Type": "application/json", "User-Agent": f"shoal/{__version__}"}
        if endpoint.key is not None:
            headers["Authorization"] = f"Bearer {endpoint.key}"
            if (urlsplit(endpoint.base_url).hostname or "").endswith(".azure.com"):
                headers["api-key"] = endpoint.key
        self.chat = HttpTarget(f"{endpoint.base_url}/chat/completions", headers)
        self.embeddings = HttpTarget(f"{endpoint.base_url}/embeddings", headers)
        # Known to refuse bounds in strict schemas; any other server is asked with them first.
        host = urlsplit(endpoint.base_url).hostname or ""
        self.dialect = Dialect(
            has_bounds=not host.endswith(("openai.com", ".azure.com")),
            has_number_bounds=endpoint.file is None,
            line_breaks=endpoint.line_breaks,
        )

    def learn(self, spoken: Dialect, simpler: Dialect) -> None:
        """Give up one step, unless another question in flight at the same time has already done so."""
        if self.dialect == spoken:
            self.dialect = simpler
            _log.info("%s: from now on asked as %s", self.name, simpler)

    def explain(self, failure: ModelFailure) -> ModelFailure:
        """Add what the user can do about a failure, and mask the key."""
        text = mask_secrets(failure.text, self.endpoint.key)
        if failure.kind is FailureKind.AUTH:
            variable = self.endpoint.key_variable
            text += f" (the key is that in {variable})" if self.endpoint.key else " (no key was sent)"
        return msgspec.structs.replace(failure, text=f"{self.name}: {text}")


class ModelClient:
    """Answers a question by asking the server that has its model. Each failure is raised as its kind."""

    def __init__(
        self,
        transport: Transport,
        endpoints: Mapping[str, Endpoint],
        attempt_seconds: float,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._transport = transport
        self._servers = {name: _Server(name, endpoint) for name, endpoint in endpoints.items()}
        self._attempt_seconds = attempt_seconds
        self._wall = wall
        self._writer = RequestWriter()

    async def answer(self, question: Question) -> Answer:
        server = self._servers.get(question.model)
        if server is None:
            text = f"{question.model}: this run has no server with this model"
            raise ModelFailed(ModelFailure(FailureKind.FATAL, text))
        try:
            return await (self._embed if is_embedding(question) else self._chat)(server, question)
        except ModelFailed as failed:
            raise ModelFailed(server.explain(failed.failure)) from failed

    async def _chat(self, server: _Server, question: Question) -> Answer:
        # Ends, as each turn gives something up and there is little to give up.
        while True:
            dialect = server.dialect
            began = time.perf_counter()
            body = self._writer.write_body(server.endpoint.model, question, dialect)
            reply = await self._transport.post(HttpRequest(server.chat, body, self._attempt_seconds))
            if reply.status == 200:
                answer = read_answer(reply.headers, reply.body, question, self._wall())
                return msgspec.structs.replace(answer, ms=_milliseconds_since(began))
            failure = self._read_failure(reply)
            simpler = dialect.simplify_after(failure, question)
            if simpler is None:
                raise ModelFailed(failure)
            server.learn(dialect, simpler)

    async def _embed(self, server: _Server, question: Question) -> Answer:
        began = time.perf_counter()
        body = write_embedding_request(server.endpoint.model, question)
        reply = await self._transport.post(HttpRequest(server.embeddings, body, self._attempt_seconds))
        if reply.status != 200:
            raise ModelFailed(self._read_failure(reply))
        answer = read_embeddings(reply.body, question)
        limits = read_rate_limits(reply.headers, self._wall())
        return msgspec.structs.replace(answer, ms=_milliseconds_since(began), allowance=limits)

    def _read_failure(self, reply: HttpReply) -> ModelFailure:
        return parse_failure(reply.status, reply.headers, reply.body, self._wall())


def _milliseconds_since(began: float) -> int:
    return round((time.perf_counter() - began) * 1000)
