"""The rehearsal server: an OpenAI-compatible endpoint that has the limits and the faults it was given.

async with start(RehearsalSettings(latency_seconds=0.2, cap=64)) as server:
    ... server.base_url, server.stats, server.reset()
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Any

import msgspec

from shoal.rehearsal.chat import ChatRequest, completion, reply_to, stream, tokens_of
from shoal.rehearsal.embeddings import EmbeddingsRequest, PrefixCache, embeddings
from shoal.rehearsal.faults import Fate, Flaw, fate_of, flaw_of, latency_of
from shoal.rehearsal.http import ClientConnection, ServerRequest, ServerResponse
from shoal.rehearsal.limits import ProviderLimits, retry_after
from shoal.rehearsal.settings import RehearsalSettings
from shoal.rehearsal.stats import Stats

BACKLOG = 8192

_chat = msgspec.json.Decoder(ChatRequest)
_embeddings = msgspec.json.Decoder(EmbeddingsRequest)
_encode = msgspec.json.encode

_LIMITS = {
    "requests": "Rate limit reached on requests per min (RPM)",
    "tokens": "Rate limit reached on tokens per min (TPM)",
    "concurrency": "Too many concurrent requests",
}
#: What a request that is no good raises while it is read or answered.
_WRONG = (msgspec.MsgspecError, KeyError, TypeError, ValueError, AttributeError, RecursionError)


#: The body of an answer, its type, and tokens in, out and cached.
Made = tuple[bytes, str, tuple[int, int, int]]


@dataclass(slots=True, eq=False)
class RequestJob:
    """One request that is being worked on."""

    connection: ClientConnection
    content: int
    make: Callable[[], Made]
    flaw: Flaw = Flaw.NONE
    attempt: int = 0
    fate: Fate = Fate.ANSWERED
    timer: asyncio.TimerHandle | None = None
    working: bool = False
    client: str = ""


class Refusal(Exception):
    """A request that is answered with an error, in the words of the protocol."""

    def __init__(
        self, status: int, message: str, *, code: str | None = None, type: str = "", headers: str = ""
    ) -> None:
        super().__init__(message)
        self.code = code
        kind = type or ("invalid_request_error" if status < 500 else "server_error")
        body = {"error": {"message": message, "type": kind, "param": None, "code": code}}
        self.response = ServerResponse(status, _encode(body), headers)


class Rehearsal:
    """The server's memory and its decisions; `Connection` brings requests and takes responses away."""

    def __init__(self, settings: RehearsalSettings, loop: asyncio.AbstractEventLoop) -> None:
        self._chosen = settings
        self.base_url = ""
        self._loop = loop
        self._epoch = time.time() - loop.time()
        self._connections: set[ClientConnection] = set()
        self._jobs: dict[ClientConnection, RequestJob] = {}
        self._waiting: deque[RequestJob] = deque()
        self._routes = {
            ("POST", "/chat/completions"): self._paid,
            ("POST", "/embeddings"): self._paid,
            ("GET", "/models"): self._models,
            ("GET", "/rehearsal/stats"): self._show,
            ("POST", "/rehearsal/reset"): self._forget,
        }
        self.reset()

    def reset(self) -> None:
        """Forgets everything that was counted, seen and used up; what is under way goes on."""
        working = sum(job.working for job in self._jobs.values())
        self.stats = Stats(in_flight=working, in_flight_peak=working, waiting=len(self._waiting))
        self._limits = ProviderLimits(self._chosen)
        self._prefixes = PrefixCache(self.settings.cache_from_tokens)
        self._attempts: Counter[int] = Counter()
        self._first: float | None = None

    @property
    def settings(self) -> RehearsalSettings:
        """As they are at present."""
        return self._limits.settings

    # connections

    def connect(self) -> ClientConnection:
        connection = ClientConnection(self.serve, self.lost)
        self._connections.add(connection)
        return connection

    def serve(self, connection: ClientConnection, request: ServerRequest) -> None:
        try:
            handle = self._handler(request)
        except Refusal as refusal:
            connection.answer(refusal.response)
            return
        handle(connection, request)

    def lost(self, connection: ClientConnection) -> None:
        """The client is gone; whoever waits behind it moves up."""
        self._connections.discard(connection)
        job = self._jobs.pop(connection, None)
        if job is None:
            return
        self.stats.abandoned += 1
        if job.timer is not None:
            job.timer.cancel()
        self._leave(job)

    def close(self) -> None:
        for connection in list(self._connections):
            connection.close()

    # routes

    def _handler(self, request: ServerRequest) -> Callable[[ClientConnection, ServerRequest], None]:
        path = request.path.removeprefix("/v1").rstrip("/")
        if (found := self._routes.get((request.method, path))) is not None:
            return found
        if any(path == known for _, known in self._routes):
            raise Refusal(405, f"{path} cannot be used with {request.method}")
        raise Refusal(404, f"there is no {request.path} here; try /v1/chat/completions, /v1/embeddings or /v1/models")

    def _models(self, connection: ClientConnection, request: ServerRequest) -> None:
        models = [{"id": name, "object": "model", "created": 0, "owned_by": "shoal"} for name in self.settings.models]
        connection.answer(ServerResponse(200, _encode({"object": "list", "data": models})))

    def _show(self, connection: ClientConnection, request: ServerRequest) -> None:
        connection.answer(ServerResponse(200, _encode(self.stats.as_json())))

    def _forget(self, connection: ClientConnection, request: ServerRequest) -> None:
        self.reset()
        connection.answer(ServerResponse(200, b"{}"))

    # what costs money at a provider

    def _paid(self, connection: ClientConnection, request: ServerRequest) -> None:
        if self._first is None:
            self._begin()
        self._limits.keep_up(self._now(), self.stats.answers)
        client = request.headers.get("x-client", "")
        self.stats.requests += 1
        self.stats.count(client, "requests")
        self.stats.received_bytes += len(request.body)
        content = int.from_bytes(blake2b(request.body, digest_size=8).digest(), "big")
        attempt = self._attempts[content]
        self._attempts[content] += 1
        try:
            job = self._admitted(connection, request, content, attempt)
        except Refusal as refusal:
            self.stats.count(client, "refused")
            self._refuse(connection, refusal)
            return
        job.client = client
        self._jobs[connection] = job
        if self._limits.has_room(self.stats.in_flight):
            self._work(job)
        else:
            self._waiting.append(job)
            self.stats.waiting += 1

    def _begin(self) -> None:
        """The first request: outages, changes and windows are counted from here."""
        self._first = self._loop.time()
        self.stats.first_request_at = self._epoch + self._first
        for change in self.settings.changes if self.settings.queue else ():
            # Nobody may come or go at the moment at which there is more room for those who wait.
            self._loop.call_later(change.after_seconds, self._move_up)

    def _now(self) -> float:
        """Seconds since the first request."""
        return 0.0 if self._first is None else self._loop.time() - self._first

    def _admitted(self, connection: ClientConnection, request: ServerRequest, content: int, attempt: int) -> RequestJob:
        """The job, if the request is right and within the limits."""
        self._check_key(request)
        self._check_outage()
        try:
            job, tokens = self._prepared(connection, request, content)
        except _WRONG as error:
            raise Refusal(400, f"this request cannot be read: {error}") from error
        job.attempt = attempt
        job.fate = fate_of(self.settings, content, attempt)
        if job.fate is Fate.ERROR:
            self.stats.faults["error"] += 1
            raise Refusal(500, "The server had an error while processing your request.")
        if job.fate is Fate.LIMIT:
            self.stats.faults["limit"] += 1
            raise self._too_many(("requests", "tokens")[content & 1], self.settings.retry_after_seconds)
        self._check_limits(tokens)
        return job

    def _check_key(self, request: ServerRequest) -> None:
        key = self.settings.key
        if key is not None and request.headers.get("authorization") != f"Bearer {key}":
            raise Refusal(401, "Incorrect API key provided.", code="invalid_api_key")

    def _check_outage(self) -> None:
        now = self._now()
        if any(outage.covers(now) for outage in self.settings.outages):
            self.stats.faults["outage"] += 1
            raise Refusal(503, "The server is overloaded or not ready yet.", code="overloaded")

    def _check_limits(self, tokens: int) -> None:
        settings = self.settings
        if settings.quota is not None and self.stats.answers >= settings.quota:
            self.stats.refusals["quota"] += 1
            message = "You exceeded your current quota, please check your plan and billing details."
            raise Refusal(429, message, code="insufficient_quota", type="insufficient_quota")
        now = self._now()
        if (lacking := self._limits.lacking(self.stats.in_flight, tokens, now)) is not None:
            self.stats.refusals[lacking[0]] += 1
            raise self._too_many(*lacking)
        self._limits.take(tokens, now)

    def _too_many(self, what: str, seconds: float) -> Refusal:
        """A 429 as OpenAI words it, for clients that tell the limits apart by the words; or one that tells nothing."""
        headers = retry_after(seconds, self.settings.headers)
        if not self.settings.labelled:
            return Refusal(429, "Too many requests", type="rate_limit_error", headers=headers)
        headers += self._limits.headers(self._now())
        message = f"{_LIMITS[what]}. Please try again in {seconds:.3g}s."
        return Refusal(429, message, code="rate_limit_exceeded", type=what, headers=headers)

    def _prepared(self, connection: ClientConnection, request: ServerRequest, content: int) -> tuple[RequestJob, int]:
        """The job, and how many tokens it may use."""
        if request.path.endswith("embeddings"):
            wanted = _embeddings.decode(request.body)
            tokens = sum(map(tokens_of, wanted.texts))
            return RequestJob(connection, content, partial(_embedded, wanted, tokens)), tokens
        asked = _chat.decode(request.body)
        prompt = asked.prompt()
        tokens, most = _input_tokens(asked, prompt), asked.most
        self._check_chat(asked, tokens + (most or 0))
        flaw = flaw_of(self.settings, content)
        job = RequestJob(connection, content, partial(self._completion, content, flaw, asked, prompt), flaw)
        return job, tokens + (self.settings.reply_tokens if most is None else most)

    def _check_chat(self, asked: ChatRequest, tokens: int) -> None:
        settings = self.settings
        if settings.unsupported and (unknown := sorted(asked.uses() & settings.unsupported)):
            raise Refusal(400, _unsupported(unknown[0]), code="unsupported_value")
        if settings.context_tokens is not None and tokens > settings.context_tokens:
            message = (
                f"This model's maximum context length is {settings.context_tokens} tokens; you asked for {tokens}."
            )
            raise Refusal(400, message, code="context_length_exceeded")

    def _completion(self, content: int, flaw: Flaw, asked: ChatRequest, prompt: str) -> Made:
        reply = reply_to(asked, content, flaw, self.settings)
        tokens, cached = _input_tokens(asked, prompt), self._prefixes.cached(prompt)
        usage: dict[str, Any] = {
            "prompt_tokens": tokens,
            "completion_tokens": reply.tokens,
            "total_tokens": tokens + reply.tokens,
            "prompt_tokens_details": {"cached_tokens": cached},
        }
        figures = (tokens, reply.tokens, cached)
        if asked.stream:
            return stream(asked, reply, content, usage), "text/event-stream", figures
        return _encode(completion(asked, reply, content, usage)), "application/json", figures

    # work

    def _work(self, job: RequestJob) -> None:
        """Makes the answer at once and sends it when its time has come: many that came together leave together."""
        job.working = True
        self.stats.entered()
        if job.fate is Fate.HANG:
            self.stats.faults["hang"] += 1
            return
        latency = latency_of(self.settings, job.content, job.attempt) * self._limits.slowness(self.stats.in_flight)
        leaves = self._loop.time() + latency
        try:
            made = job.make()
        except _WRONG as error:
            self._end(job)
            self._answer(job.connection, Refusal(400, f"this schema cannot be answered: {error!r}").response)
            return
        # With a queue, finishing one starts the next, which must not finish within the same call.
        if self.settings.latency_seconds > 0 or self.settings.queue:
            job.timer = self._loop.call_at(leaves, self._finish, job, made)
        else:
            self._finish(job, made)

    def _finish(self, job: RequestJob, made: Made) -> None:
        """Counts it and makes room before anything is sent, so that who asks again upon the answer finds the room."""
        body, kind, tokens = made
        broken = job.fate is Fate.DROPPED
        if broken:
            self.stats.faults["dropped"] += 1
        else:
            self._count(job, tokens)
        self._end(job)
        response = ServerResponse(200, body, self._limits.headers(self._now()), kind, broken)
        self._answer(job.connection, response)

    def _count(self, job: RequestJob, tokens: tuple[int, int, int]) -> None:
        self.stats.paid(f"{job.content:016x}", tokens)
        self.stats.last_answer_at = self._epoch + self._loop.time()
        self.stats.count(job.client, "answered")
        if job.flaw is not Flaw.NONE:
            self.stats.faults[job.flaw] += 1

    def _end(self, job: RequestJob) -> None:
        self._jobs.pop(job.connection, None)
        self._leave(job)

    def _leave(self, job: RequestJob) -> None:
        """Makes room."""
        if job.working:
            self.stats.in_flight -= 1
        elif job in self._waiting:
            self._waiting.remove(job)
            self.stats.waiting -= 1
        self._move_up()

    def _move_up(self) -> None:
        """Gives the room that there is to those who have waited longest."""
        self._limits.keep_up(self._now(), self.stats.answers)
        while self._waiting and self._limits.has_room(self.stats.in_flight):
            self.stats.waiting -= 1
            self._work(self._waiting.popleft())

    def _refuse(self, connection: ClientConnection, refusal: Refusal) -> None:
        if self.settings.refusal_seconds > 0:
            self._loop.call_later(self.settings.refusal_seconds, self._answer, connection, refusal.response)
        else:
            self._answer(connection, refusal.response)

    def _answer(self, connection: ClientConnection, response: ServerResponse) -> None:
        if not response.broken:
            self.stats.by_status[response.status] += 1
        connection.answer(response)


def _unsupported(word: str) -> str:
    if word.startswith("json"):
        return f"Invalid parameter: 'response_format' of type '{word}' is not supported with this model."
    instead = " Use 'max_completion_tokens' instead." if word == "max_tokens" else ""
    return f"Unsupported parameter: '{word}' is not supported with this model.{instead}"


def _embedded(asked: EmbeddingsRequest, tokens: int) -> Made:
    return _encode(embeddings(asked, tokens)), "application/json", (tokens, 0, 0)


def _input_tokens(asked: ChatRequest, prompt: str) -> int:
    more = [bytes(raw) for raw in (asked.response_format, asked.tools)]
    return tokens_of(prompt) + sum(len(raw) for raw in more if raw != b"null") // 4


@asynccontextmanager
async def start(settings: RehearsalSettings, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[Rehearsal]:
    """A server that runs as long as the block; port 0 takes one that is free."""
    loop = asyncio.get_running_loop()
    rehearsal = Rehearsal(settings, loop)
    listening = await loop.create_server(rehearsal.connect, host, port, backlog=BACKLOG)
    taken = listening.sockets[0].getsockname()[1]
    rehearsal.base_url = f"http://{f'[{host}]' if ':' in host else host}:{taken}/v1"
    try:
        yield rehearsal
    finally:
        listening.close()
        rehearsal.close()
        await listening.wait_closed()
