"""Puts a question to its server, once."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

import msgspec

from shoal import __version__
from shoal.models.base import Answer, FailureKind, ModelFailed, ModelFailure, Question
from shoal.models.http.messages import HttpRequest, HttpTarget
from shoal.models.http.pool import Transport
from shoal.models.openai.dialects import Dialect, Writer, read
from shoal.models.openai.endpoints import Endpoint
from shoal.models.openai.errors import of_reply, without_secrets

_log = logging.getLogger(__name__)


class _Server:
    """One endpoint, ready to be asked, and what was learned about it."""

    def __init__(self, name: str, endpoint: Endpoint) -> None:
        self.name = name
        self.endpoint = endpoint
        self.target = HttpTarget(f"{endpoint.base_url}/chat/completions", _headers(endpoint))
        self.dialect = Dialect()

    def learn(self, spoken: Dialect, simpler: Dialect) -> None:
        """Give up one step, unless another question, in flight at the same time, has learned already."""
        if self.dialect == spoken:
            self.dialect = simpler
            _log.info("%s: from now on asked as %s", self.name, simpler)

    def in_words(self, failure: ModelFailure) -> ModelFailure:
        """With what the user can do about it, and without the key."""
        text = without_secrets(failure.text, self.endpoint.key)
        if failure.kind is FailureKind.AUTH:
            variable = self.endpoint.key_variable
            text += f" (the key is that in {variable})" if self.endpoint.key else " (no key was sent)"
        return msgspec.structs.replace(failure, text=f"{self.name}: {text}")


class Client:
    """Answers a question by asking the server that has its model; each failure is raised as what it is."""

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
        self._writer = Writer()

    async def answer(self, question: Question) -> Answer:
        server = self._servers.get(question.model)
        if server is None:
            raise ModelFailed(
                ModelFailure(FailureKind.FATAL, f"{question.model}: this run has no server with this model")
            )
        try:
            return await self._ask(server, question)
        except ModelFailed as failed:
            raise ModelFailed(server.in_words(failed.failure)) from failed

    async def _ask(self, server: _Server, question: Question) -> Answer:
        # Ends, as each turn gives something up and there is little to give up.
        while True:
            dialect = server.dialect
            began = time.perf_counter()
            body = self._writer.body(server.endpoint.model, question, dialect)
            reply = await self._transport.post(HttpRequest(server.target, body, self._attempt_seconds))
            if reply.status == 200:
                answer = read(reply.headers, reply.body, question, self._wall())
                return msgspec.structs.replace(answer, ms=round((time.perf_counter() - began) * 1000))
            failure = of_reply(reply.status, reply.headers, reply.body, self._wall())
            simpler = dialect.after(failure, question)
            if simpler is None:
                raise ModelFailed(failure)
            server.learn(dialect, simpler)


def _headers(endpoint: Endpoint) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "User-Agent": f"shoal/{__version__}"}
    if endpoint.key is not None:
        headers["Authorization"] = f"Bearer {endpoint.key}"
        if (urlsplit(endpoint.base_url).hostname or "").endswith(".azure.com"):
            headers["api-key"] = endpoint.key
    return headers
