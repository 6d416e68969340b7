"""How the rehearsal server behaves: a frozen value, checked when it is made."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Literal

Headers = Literal["openai", "anthropic", "retry-after", "none"]

#: What can change while the server runs.
CHANGEABLE = ("cap", "requests_per_minute", "tokens_per_minute", "latency_seconds")

#: What a server may refuse to know: fields of a request, and kinds of `response_format`.
REFUSABLE = (
    "json_schema",
    "json_object",
    "tools",
    "seed",
    "temperature",
    "max_tokens",
    "max_completion_tokens",
    "stream",
)


@dataclass(frozen=True, slots=True)
class PlannedOutage:
    """Nothing but 503 for a while, counted from the first request."""

    after_seconds: float
    lasting_seconds: float

    def covers(self, seconds: float) -> bool:
        return self.after_seconds <= seconds < self.after_seconds + self.lasting_seconds


@dataclass(frozen=True, slots=True)
class SettingChange:
    """From a moment on a setting has another value: so long after the first request, or after so many answers."""

    what: str
    to: float
    after_seconds: float = 0.0
    after_answers: int = 0

    def __post_init__(self) -> None:
        if self.what not in CHANGEABLE:
            raise ValueError(f"a change: {self.what} is none of {', '.join(CHANGEABLE)}")
        if not math.isfinite(self.to) or self.to < 0 or (self.to == 0 and self.what != "latency_seconds"):
            raise ValueError(f"a change: {self.what} must be more than 0")
        if self.what == "cap" and self.to != int(self.to):
            raise ValueError("a change: cap must be a whole number")
        if min(self.after_seconds, self.after_answers) < 0 or (self.after_seconds and self.after_answers):
            raise ValueError("a change must come after some seconds or after some answers")

    def is_due(self, seconds: float, answers: int) -> bool:
        return seconds >= self.after_seconds and answers >= self.after_answers


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsalSettings:
    """Everything that can be chosen; the defaults are a server that answers at once and never fails."""

    seed: int = 0
    #: Seconds until an answer: log-normal with this median; sigma 0 is always the median.
    latency_seconds: float = 0.0
    latency_sigma: float = 0.0
    #: Where the server gets slower: with more than so many in work, all the slower the more there are.
    knee: int | None = None
    #: Seconds until a refusal (429, 500, 503).
    refusal_seconds: float = 0.0

    #: Requests in work at once, at most; what comes on top is refused with 429, or waits if `queue`.
    cap: int | None = None
    queue: bool = False
    requests_per_minute: float | None = None
    #: Charged before the call, as providers do: the prompt and `max_tokens`, or the reply where that is not given.
    tokens_per_minute: float | None = None
    #: How much of a minute's allowance can be used at once, and whether none of it is there at the first request.
    burst_seconds: float = 60.0
    starts_empty: bool = False
    #: If given, an allowance is for windows of this length, counted from the first request, and is lost with them.
    window_seconds: float | None = None
    #: After so many answers every request is refused for good, as when the credit is used up.
    quota: int | None = None
    context_tokens: int | None = None
    headers: Headers = "openai"
    #: Whether a 429 says which limit it is about.
    labelled: bool = True
    #: What a 429 asks to wait if it is invented or about the cap.
    retry_after_seconds: float = 1.0
    changes: tuple[SettingChange, ...] = ()

    #: Shares of the attempts that are not answered: 500, 429, never, or with a connection that breaks in the middle.
    errors: float = 0.0
    limits: float = 0.0
    hangs: float = 0.0
    dropped: float = 0.0
    #: Shares of the answers that are no use: broken JSON, cut off at a length, refused by the model.
    malformed: float = 0.0
    truncated: float = 0.0
    refused: float = 0.0
    outages: tuple[PlannedOutage, ...] = ()

    #: Words of `REFUSABLE` that are answered with 400, as a server does that does not know them.
    unsupported: frozenset[str] = frozenset()
    #: About how long texts are.
    reply_tokens: int = 24
    #: Prompts shorter than this are not kept in the prefix cache.
    cache_from_tokens: int = 1024
    #: If given, requests with another key are refused with 401.
    key: str | None = None
    models: tuple[str, ...] = ("rehearsal", "rehearsal-embedding")

    def __post_init__(self) -> None:
        for name in ("errors", "limits", "hangs", "dropped", "malformed", "truncated", "refused"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is a share and must be between 0 and 1")
        unanswered = self.errors + self.limits + self.hangs + self.dropped
        for total in (unanswered, self.malformed + self.truncated + self.refused):
            if total > 1:
                raise ValueError("the shares of failures add up to more than 1")
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, int | float) and field.name != "seed" and value < 0:
                raise ValueError(f"{field.name} must not be negative")
        for name in ("cap", "knee", "requests_per_minute", "tokens_per_minute", "burst_seconds", "window_seconds"):
            if getattr(self, name) == 0:
                raise ValueError(f"{name} must be more than 0")
        if unknown := sorted(self.unsupported - set(REFUSABLE)):
            raise ValueError(f"unsupported: {unknown[0]} is none of {', '.join(REFUSABLE)}")
