"""Puts a question to its server, once."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping

import msgspec
from yarl import URL

from shoal import __version__
from shoal.models.dialects import Dialect, Writer, read
from shoal.models.endpoints import Endpoint
from shoal.models.failures import of_reply, without_secrets
from shoal.models.question import Answer, Failure, Kind, ModelFailed, Question
from shoal.models.transport import HttpReply, HttpRequest, Transport

_log = logging.getLogger(__name__)


class _Server:
    """One endpoint, ready to be asked, and what was learned about it."""

    def __init__(self, name: str, endpoint: Endpoint) -> None:
        self.name = name
        self.endpoint = endpoint
        self.url = URL(f"{endpoint.base_url}/chat/completions")
        self.headers = _headers(endpoint, self.url.host or "")
        self.dialect = Dialect()

    def learn(self, spoken: Dialect, simpler: Dialect) -> None:
        """Give up one step, unless another question, in flight at the same time, has learned already."""
        if self.dialect == spoken:
            self.dialect = simpler
            _log.info("%s: from now on asked as %s", self.name, simpler)

    def in_words(self, failure: Failure) -> Failure:
        """With what the user can do about it, and without the key."""
        text = without_secrets(failure.text, self.endpoint.key)
        if failure.kind is Kind.AUTH:
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
            raise ModelFailed(Failure(Kind.FATAL, f"{question.model}: this run has no server with this model"))
        try:
            return await self._ask(server, question)
        except ModelFailed as failed:
            raise ModelFailed(server.in_words(failed.failure)) from failed

    async def _ask(self, server: _Server, question: Question) -> Answer:
        # Ends, as each turn gives something up and there is little to give up.
        while True:
            dialect = server.dialect
            began = time.perf_counter()
            reply = await self._post(server, question, dialect)
            if reply.status == 200:
                answer = read(reply.headers, reply.body, question, self._wall())
                return msgspec.structs.replace(answer, ms=round((time.perf_counter() - began) * 1000))
            failure = of_reply(reply.status, reply.headers, reply.body, self._wall())
            simpler = dialect.after(failure, question)
            if simpler is None:
                raise ModelFailed(failure)
            server.learn(dialect, simpler)

    async def _post(self, server: _Server, question: Question, dialect: Dialect) -> HttpReply:
        body = self._writer.body(server.endpoint.model, question, dialect)
        return await self._transport.post(HttpRequest(server.url, server.headers, body, self._attempt_seconds))


def _headers(endpoint: Endpoint, host: str) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "User-Agent": f"shoal/{__version__}"}
    if endpoint.key is not None:
        headers["Authorization"] = f"Bearer {endpoint.key}"
        if host.endswith(".azure.com"):
            headers["api-key"] = endpoint.key
    return headers
