"""The rehearsal server: an OpenAI-compatible endpoint with the limits and faults of its settings.

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

import msgspec

from shoal.rehearsal.chat import ChatRequest, build_completion, build_stream, estimate_tokens, invent_reply
from shoal.rehearsal.embeddings import EmbeddingsRequest, PrefixCache, build_embeddings
from shoal.rehearsal.faults import Fate, Flaw, draw_fate, draw_flaw, draw_latency
from shoal.rehearsal.http import ClientConnection, ServerRequest, ServerResponse
from shoal.rehearsal.limits import ProviderLimits, format_retry_after
from shoal.rehearsal.schema import SchemaUnanswerable
from shoal.rehearsal.settings import RehearsalSettings
from shoal.rehearsal.stats import Stats

BACKLOG = 8192

_METHODS = {
    "/chat/completions": "POST",
    "/embeddings": "POST",
    "/models": "GET",
    "/rehearsal/stats": "GET",
    "/rehearsal/reset": "POST",
}

_decode_chat = msgspec.json.Decoder(ChatRequest).decode
_decode_embeddings = msgspec.json.Decoder(EmbeddingsRequest).decode
_encode = msgspec.json.encode

_LIMIT_MESSAGES = {
    "requests": "Rate limit reached on requests per min (RPM)",
    "tokens": "Rate limit reached on tokens per min (TPM)",
    "concurrency": "Too many concurrent requests",
}
#: Errors that an unusable request raises while it is read or answered.
_REQUEST_ERRORS = (msgspec.MsgspecError, KeyError, TypeError, ValueError, AttributeError, RecursionError)

#: The body of an answer, its type, and its tokens: input, output, and cached input.
MadeAnswer = tuple[bytes, str, tuple[int, int, int]]


@dataclass(slots=True, eq=False)
class RequestJob:
    """One request that is waiting or in work."""

    connection: ClientConnection
    content: int
    make: Callable[[], MadeAnswer]
    flaw: Flaw = Flaw.NONE
    attempt: int = 0
    fate: Fate = Fate.ANSWERED
    timer: asyncio.TimerHandle | None = None
    working: bool = False
    client: str = ""


class Refusal(Exception):
    """A request that is answered with an error of the protocol."""

    def __init__(
        self, status: int, message: str, *, code: str | None = None, type: str = "", headers: str = ""
    ) -> None:
        super().__init__(message)
        self.code = code
        kind = type or ("invalid_request_error" if status < 500 else "server_error")
        body = {"error": {"message": message, "type": kind, "param": None, "code": code}}
        self.response = ServerResponse(status, _encode(body), headers)


class Rehearsal:
    """Decides how each request is answered. `ClientConnection` brings requests and sends responses."""

    def __init__(self, settings: RehearsalSettings, loop: asyncio.AbstractEventLoop) -> None:
        self._chosen = settings
        self.base_url = ""
        self._loop = loop
        self._epoch = time.time() - loop.time()
        self._connections: set[ClientConnection] = set()
        self._jobs: dict[ClientConnection, RequestJob] = {}
        self._waiting: deque[RequestJob] = deque()
        self.reset()

    def reset(self) -> None:
        """Forget what was counted, seen and used up. Requests that are under way go on."""
        working = sum(job.working for job in self._jobs.values())
        self.stats = Stats(in_flight=working, in_flight_peak=working, waiting=len(self._waiting))
        self._limits = ProviderLimits(self._chosen)
        self._prefixes = PrefixCache(self.settings.cache_from_tokens)
        self._attempts: Counter[int] = Counter()
        self._first: float | None = None

    @property
    def settings(self) -> RehearsalSettings:
        """The settings as they are now, after the changes that have come."""
        return self._limits.settings

    # connections

    def connect(self) -> ClientConnection:
        connection = ClientConnection(self.serve, self.forget)
        self._connections.add(connection)
        return connection

    def serve(self, connection: ClientConnection, request: ServerRequest) -> None:
        """Answer a request, or keep it until its answer is due."""
        path = request.path.removeprefix("/v1").rstrip("/")
        if path not in _METHODS:
            known = "/v1/chat/completions, /v1/embeddings or /v1/models"
            connection.answer(Refusal(404, f"there is no {request.path} here; try {known}").response)
        elif request.method != _METHODS[path]:
            connection.answer(Refusal(405, f"{path} cannot be used with {request.method}").response)
        elif path == "/models":
            names = self.settings.models
            models = [{"id": name, "object": "model", "created": 0, "owned_by": "shoal"} for name in names]
            connection.answer(ServerResponse(200, _encode({"object": "list", "data": models})))
        elif path == "/rehearsal/stats":
            connection.answer(ServerResponse(200, _encode(self.stats.as_json())))
        elif path == "/rehearsal/reset":
            self.reset()
            connection.answer(ServerResponse(200, b"{}"))
        else:
            self._accept(connection, request)

    def forget(self, connection: ClientConnection) -> None:
        """Drop the request of a client that is gone. The next waiting request takes its place."""
        self._connections.discard(connection)
        job = self._jobs.pop(connection, None)
        if job is None:
            return
        self.stats.abandoned += 1
        if job.timer is not None:
            job.timer.cancel()
        self._make_room(job)

    def close(self) -> None:
        for connection in list(self._connections):
            connection.close()

    # requests that a provider charges for

    def _accept(self, connection: ClientConnection, request: ServerRequest) -> None:
        """Count a request, then refuse it, start it, or let it wait."""
        if self._first is None:
            # Outages, changes and windows are counted from the first request.
            self._first = self._loop.time()
            self.stats.first_request_at = self._epoch + self._first
            for change in self.settings.changes if self.settings.queue else ():
                # A change may make room for waiting requests at a moment at which no request comes or ends.
                self._loop.call_later(change.after_seconds, self._start_waiting)
        self._limits.apply_changes(self._now(), self.stats.answers)
        client = request.headers.get("x-client", "")
        self.stats.requests += 1
        self.stats.count_client(client, "requests")
        self.stats.received_bytes += len(request.body)
        content = int.from_bytes(blake2b(request.body, digest_size=8).digest(), "big")
        attempt = self._attempts[content]
        self._attempts[content] += 1
        try:
            job = self._admit(connection, request, content, attempt)
        except Refusal as refusal:
            self.stats.count_client(client, "refused")
            if self.settings.refusal_seconds > 0:
                self._loop.call_later(self.settings.refusal_seconds, self._answer, connection, refusal.response)
            else:
                self._answer(connection, refusal.response)
            return
        job.client = client
        self._jobs[connection] = job
        if self._limits.has_room(self.stats.in_flight):
            self._work(job)
        else:
            self._waiting.append(job)
            self.stats.waiting += 1

    def _now(self) -> float:
        """Return the seconds since the first request."""
        return 0.0 if self._first is None else self._loop.time() - self._first

    def _admit(self, connection: ClientConnection, request: ServerRequest, content: int, attempt: int) -> RequestJob:
        """Return the job of a request that is valid and within the limits. Raise Refusal otherwise."""
        settings, stats, now = self.settings, self.stats, self._now()
        if settings.key is not None and request.headers.get("authorization") != f"Bearer {settings.key}":
            raise Refusal(401, "Incorrect API key provided.", code="invalid_api_key")
        if any(outage.covers(now) for outage in settings.outages):
            stats.faults["outage"] += 1
            raise Refusal(503, "The server is overloaded or not ready yet.", code="overloaded")
        try:
            job, tokens = self._prepare(connection, request, content)
        except _REQUEST_ERRORS as error:
            raise Refusal(400, f"this request cannot be read: {error}") from error
        job.attempt = attempt
        job.fate = draw_fate(settings, content, attempt)
        if job.fate is Fate.ERROR:
            stats.faults["error"] += 1
            raise Refusal(500, "The server had an error while processing your request.")
        if job.fate is Fate.LIMIT:
            stats.faults["limit"] += 1
            raise self._refuse_rate(("requests", "tokens")[content & 1], settings.retry_after_seconds)
        if settings.quota is not None and stats.answers >= settings.quota:
            stats.refusals["quota"] += 1
            message = "You exceeded your current quota, please check your plan and billing details."
            raise Refusal(429, message, code="insufficient_quota", type="insufficient_quota")
        if (lacking := self._limits.find_lacking(stats.in_flight, tokens, now)) is not None:
            stats.refusals[lacking[0]] += 1
            raise self._refuse_rate(*lacking)
        self._limits.take(tokens, now)
        return job

    def _refuse_rate(self, limit: str, seconds: float) -> Refusal:
        """Return a 429 in the words of OpenAI, by which clients tell limits apart, or one that names no limit."""
        headers = format_retry_after(seconds, self.settings.headers)
        if not self.settings.labelled:
            return Refusal(429, "Too many requests", type="rate_limit_error", headers=headers)
        headers += self._limits.format_headers(self._now())
        message = f"{_LIMIT_MESSAGES[limit]}. Please try again in {seconds:.3g}s."
        return Refusal(429, message, code="rate_limit_exceeded", type=limit, headers=headers)

    def _prepare(self, connection: ClientConnection, request: ServerRequest, content: int) -> tuple[RequestJob, int]:
        """Return the job of a request, and how many tokens it may use."""
        settings = self.settings
        if request.path.endswith("embeddings"):
            wanted = _decode_embeddings(request.body)
            tokens = sum(map(estimate_tokens, wanted.texts))
            figures = (tokens, 0, 0)
            return RequestJob(
                connection, content, lambda: (_encode(build_embeddings(wanted, tokens)), "application/json", figures)
            ), tokens
        asked = _decode_chat(request.body)
        prompt, limit = asked.join_prompt(), asked.reply_limit
        tokens = asked.count_tokens(prompt)
        if settings.unsupported and (unknown := sorted(asked.features & settings.unsupported)):
            word = unknown[0]
            what = f"Unsupported parameter: '{word}'"
            if word.startswith("json"):
                what = f"Invalid parameter: 'response_format' of type '{word}'"
            instead = " Use 'max_completion_tokens' instead." if word == "max_tokens" else ""
            message = f"{what} is not supported with this model.{instead}"
            raise Refusal(400, message, code="unsupported_value")
        if settings.context_tokens is not None and tokens + (limit or 0) > settings.context_tokens:
            most, found = settings.context_tokens, tokens + (limit or 0)
            message = f"This model's maximum context length is {most} tokens; you asked for {found}."
            raise Refusal(400, message, code="context_length_exceeded")
        flaw = draw_flaw(settings, content)
        job = RequestJob(connection, content, partial(self._make_completion, content, flaw, asked, prompt), flaw)
        return job, tokens + (settings.reply_tokens if limit is None else limit)

    def _make_completion(self, content: int, flaw: Flaw, asked: ChatRequest, prompt: str) -> MadeAnswer:
        reply = invent_reply(asked, content, flaw, self.settings)
        tokens, cached = asked.count_tokens(prompt), self._prefixes.count_cached(asked.form + prompt)
        usage = {
            "prompt_tokens": tokens,
            "completion_tokens": reply.tokens,
            "total_tokens": tokens + reply.tokens,
            "prompt_tokens_details": {"cached_tokens": cached},
        }
        figures = (tokens, reply.tokens, cached)
        if asked.stream:
            return build_stream(asked, reply, content, usage), "text/event-stream", figures
        return _encode(build_completion(asked, reply, content, usage)), "application/json", figures

    # work

    def _work(self, job: RequestJob) -> None:
        """Make the answer at once and send it when it is due, so that requests that came together leave together."""
        job.working = True
        self.stats.enter()
        if job.fate is Fate.HANG:
            self.stats.faults["hang"] += 1
            return
        factor = self._limits.latency_factor(self.stats.in_flight)
        due = self._loop.time() + draw_latency(self.settings, job.content, job.attempt) * factor
        try:
            made = job.make()
        except _REQUEST_ERRORS as error:
            self._end(job)
            why = error if isinstance(error, SchemaUnanswerable) else repr(error)
            self._answer(job.connection, Refusal(400, f"this schema cannot be answered: {why}").response)
            return
        # With a queue, finishing one request starts the next, which must not finish within the same call.
        if self.settings.latency_seconds > 0 or self.settings.queue:
            job.timer = self._loop.call_at(due, self._finish, job, made)
        else:
            self._finish(job, made)

    def _finish(self, job: RequestJob, made: MadeAnswer) -> None:
        """Count an answer, make room, then send it, so that a client that asks again at once finds the room."""
        body, kind, tokens = made
        broken = job.fate is Fate.DROPPED
        if broken:
            self.stats.faults["dropped"] += 1
        else:
            self.stats.count_answer(f"{job.content:016x}", tokens)
            self.stats.last_answer_at = self._epoch + self._loop.time()
            self.stats.count_client(job.client, "answered")
            if job.flaw is not Flaw.NONE:
                self.stats.faults[job.flaw] += 1
        self._end(job)
        self._answer(job.connection, ServerResponse(200, body, self._limits.format_headers(self._now()), kind, broken))

    def _end(self, job: RequestJob) -> None:
        self._jobs.pop(job.connection, None)
        self._make_room(job)

    def _make_room(self, job: RequestJob) -> None:
        if job.working:
            self.stats.in_flight -= 1
        elif job in self._waiting:
            self._waiting.remove(job)
            self.stats.waiting -= 1
        self._start_waiting()

    def _start_waiting(self) -> None:
        """Start the requests that have waited longest, as far as there is room."""
        self._limits.apply_changes(self._now(), self.stats.answers)
        while self._waiting and self._limits.has_room(self.stats.in_flight):
            self.stats.waiting -= 1
            self._work(self._waiting.popleft())

    def _answer(self, connection: ClientConnection, response: ServerResponse) -> None:
        if not response.broken:
            self.stats.by_status[response.status] += 1
        connection.answer(response)


@asynccontextmanager
async def start(settings: RehearsalSettings, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[Rehearsal]:
    """Run a server as long as the block; port 0 takes a free port."""
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
