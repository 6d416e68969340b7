"""The nouns of this room: a question to a language model, its answer, and its failure.

A question goes through a stack of models, each with the same single method, from the outside in:
`Journaled(Cached(Budgeted(Available(Retrying(Limited(Watched(ModelClient)))))))`. `stack.py` composes it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum, StrEnum
from typing import Any, Protocol

import msgspec

from shoal.journal import JournalKey, digest
from shoal.rate_limits import RateLimits

#: How much of a reply that cannot be used is shown to the model again.
_MAX_REPLY_CHARS = 1500
_REASONING = re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.DOTALL | re.IGNORECASE)


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

    def ask_again(self, reply: str, complaint: str) -> Question:
        """Return the question with a reply that cannot be used, and what is wrong about it."""
        said = Message("assistant", reply[:_MAX_REPLY_CHARS] or "(nothing)")
        wrong = Message("user", f"That reply cannot be used: {complaint}")
        return msgspec.structs.replace(self, key=self.key.next(), messages=(*self.messages, said, wrong))


class Usage(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Tokens, as the server counted them."""

    input: int = 0
    output: int = 0
    #: The part of the input that the server had in its prefix cache.
    cached: int = 0

    @classmethod
    def restore(cls, fields: Mapping[str, Any]) -> Usage:
        """Restore the usage from a line of a journal; a number that cannot be true counts as 0."""
        found = {name: fields.get(name) for name in cls.__struct_fields__}
        return cls(**{name: int(n) if isinstance(n, int | float) and n > 0 else 0 for name, n in found.items()})


class Answer(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    text: str
    usage: Usage = Usage()
    #: How it ended: `stop`, `length` (cut off) or `refused`.
    finish: str = "stop"
    ms: int = 0
    #: Whether the usage is our estimate, as the server counted none, or nothing that can be true. Not journaled.
    is_estimated: bool = False
    #: The limits that the server published with the answer. Not journaled.
    allowance: RateLimits | None = None

    @property
    def is_refused(self) -> bool:
        return self.finish == "refused"


def strip_reasoning(text: str) -> str:
    """Return an answer without what the model thought aloud before it."""
    return _REASONING.sub("", text)


class FailureKind(StrEnum):
    """Kinds of failure. Each kind has its own reaction."""

    TRANSIENT = "transient"
    #: No connection: the port is closed, the name is unknown, or there is no TLS where there should be.
    UNREACHABLE = "unreachable"
    REQUEST_RATE = "request_rate"
    TOKEN_RATE = "token_rate"
    CONCURRENCY = "concurrency"
    #: A limit was reached, and the server did not say which one.
    LIMITED = "limited"
    QUOTA = "quota"
    OVERLOAD = "overload"
    #: There was a reply, which was probably paid for, but it holds nothing that can be used.
    UNREADABLE = "unreadable"
    CONTEXT_TOO_LONG = "context_too_long"
    REFUSED = "refused"
    AUTH = "auth"
    #: The address, the name of the model or the certificate is wrong.
    ADDRESS = "address"
    FATAL = "fatal"

    @property
    def remedy(self) -> Remedy:
        return _REMEDIES[self]


class Remedy(Enum):
    """What a run does about a failure. `Availability` carries it out."""

    #: It may pass: ask again, and wait while the server is silent. A connection that never worked is to be mended.
    WAIT = "wait"
    #: Every question would meet it until the user mends something: stop.
    MEND = "mend"
    #: It belongs to this question and is its outcome.
    ACCEPT = "accept"
    #: It belongs to this question if others are answered; otherwise the user must mend something.
    COMPARE = "compare"


_REMEDIES = {
    FailureKind.TRANSIENT: Remedy.WAIT,
    FailureKind.UNREACHABLE: Remedy.WAIT,
    FailureKind.REQUEST_RATE: Remedy.WAIT,
    FailureKind.TOKEN_RATE: Remedy.WAIT,
    FailureKind.CONCURRENCY: Remedy.WAIT,
    FailureKind.LIMITED: Remedy.WAIT,
    FailureKind.OVERLOAD: Remedy.WAIT,
    FailureKind.QUOTA: Remedy.MEND,
    FailureKind.AUTH: Remedy.MEND,
    FailureKind.ADDRESS: Remedy.MEND,
    FailureKind.REFUSED: Remedy.ACCEPT,
    FailureKind.UNREADABLE: Remedy.COMPARE,
    FailureKind.CONTEXT_TOO_LONG: Remedy.COMPARE,
    FailureKind.FATAL: Remedy.COMPARE,
}


class ModelFailure(msgspec.Struct, frozen=True):
    """What went wrong with a question."""

    kind: FailureKind
    text: str
    status: int | None = None
    #: Seconds to wait, as the server asked for.
    retry_after: float | None = None
    #: The limits that the server published.
    allowance: RateLimits | None = None
    #: What a reply that cannot be read has probably cost; None where there was no reply.
    usage: Usage | None = None


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
