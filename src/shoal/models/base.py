"""The nouns of this room: a question to a language model, its answer, and its failure.

A question goes through a stack of models, each with the same single method, from the outside in:
`Journaled(Cached(Budgeted(Retrying(Limited(Client)))))`. `stack.py` composes it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Protocol

import msgspec

from shoal.journal import JournalKey, digest
from shoal.rate_limits import RateLimits


class Message(msgspec.Struct, frozen=True, gc=False):
    role: str
    content: str


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that an answer depends on, and the key under which it is journaled."""

    #: For example `twitter/12/345/decide/0`. The answer does not depend on it.
    key: JournalKey
    #: As the scenario names it, for example `openai/gpt-4.1-mini`.
    model: str
    messages: tuple[Message, ...]
    #: JSON schema that the answer must fit; None means free text.
    schema: dict[str, Any] | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    #: Tells samples of the same question apart, so that the cache does not merge them.
    iteration: int = 0

    @property
    def digest(self) -> str:
        return digest((self.model, self.messages, self.schema, self.temperature, self.max_tokens, self.iteration))


class Usage(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Tokens, as the server counted them."""

    input: int = 0
    output: int = 0
    #: The part of the input that the server had in its prefix cache.
    cached: int = 0


class Answer(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    text: str
    usage: Usage = Usage()
    #: How it ended: `stop`, `length` (cut off) or `refused`.
    finish: str = "stop"
    ms: int = 0
    #: The limits that the server published with the answer. Not journaled.
    allowance: RateLimits | None = None


class FailureKind(StrEnum):
    """Kinds of failure. Each kind has its own reaction."""

    TRANSIENT = "transient"
    REQUEST_RATE = "request_rate"
    TOKEN_RATE = "token_rate"
    CONCURRENCY = "concurrency"
    #: A limit was reached, and the server did not say which one.
    LIMITED = "limited"
    QUOTA = "quota"
    OVERLOAD = "overload"
    CONTEXT_TOO_LONG = "context_too_long"
    REFUSED = "refused"
    AUTH = "auth"
    FATAL = "fatal"


class ModelFailure(msgspec.Struct, frozen=True):
    """What went wrong with a question."""

    kind: FailureKind
    text: str
    status: int | None = None
    #: Seconds to wait, as the server asked for.
    retry_after: float | None = None
    #: The limits that the server published.
    allowance: RateLimits | None = None


class ModelFailed(Exception):
    """A question that was not answered."""

    def __init__(self, failure: ModelFailure, seconds: float | None = None) -> None:
        super().__init__(f"{failure.kind}: {failure.text}")
        self.failure = failure
        #: How long the attempt took once it had its slot; None where no limit measured it.
        self.seconds = seconds


class Model(Protocol):
    """Answers questions. A wrapper around a model is a model too."""

    async def answer(self, question: Question) -> Answer:
        """Return the answer, or raise ModelFailed."""
        ...
