"""The settings of the rehearsal server, checked when they are made."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Literal

Headers = Literal["openai", "anthropic", "retry-after", "none"]

#: Settings that can change while the server runs.
CHANGEABLE = ("cap", "requests_per_minute", "tokens_per_minute", "latency_seconds")

#: Features that a server may not support: fields of a request, and kinds of `response_format`.
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
    """A time of nothing but 503, counted from the first request."""

    after_seconds: float
    lasting_seconds: float

    def covers(self, seconds: float) -> bool:
        return self.after_seconds <= seconds < self.after_seconds + self.lasting_seconds


@dataclass(frozen=True, slots=True)
class SettingChange:
    """Another value of a setting, from a time after the first request or from a number of answers on."""

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
    """The behaviour of the server. With the defaults it answers at once and never fails."""

    seed: int = 0
    #: Seconds until an answer, log-normal with this median; with sigma 0 always the median.
    latency_seconds: float = 0.0
    latency_sigma: float = 0.0
    #: With more requests in work than this, answers take longer in proportion.
    knee: int | None = None
    #: Seconds until a refusal (429, 500, 503).
    refusal_seconds: float = 0.0

    #: The most requests in work at once; others are refused with 429, or wait if `queue`.
    cap: int | None = None
    queue: bool = False
    requests_per_minute: float | None = None
    #: Charged before the call, as providers do: the prompt and `max_tokens`, or `reply_tokens` if that is not given.
    tokens_per_minute: float | None = None
    #: How many seconds of an allowance can be used at once, and whether it is empty at the first request.
    burst_seconds: float = 60.0
    starts_empty: bool = False
    #: If given, allowances are for windows of this length, counted from the first request; what is left is lost.
    window_seconds: float | None = None
    #: After this many answers every request is refused, as when the credit is used up.
    quota: int | None = None
    context_tokens: int | None = None
    headers: Headers = "openai"
    #: Whether a 429 names its limit.
    labelled: bool = True
    #: The wait that a 429 asks for if it is a fault or about the cap.
    retry_after_seconds: float = 1.0
    changes: tuple[SettingChange, ...] = ()

    #: Shares of the attempts that fail: 500, 429, no answer, or a connection that breaks in the middle.
    errors: float = 0.0
    limits: float = 0.0
    hangs: float = 0.0
    dropped: float = 0.0
    #: Shares of the answers that are useless: broken JSON, cut off at a length, refused by the model.
    malformed: float = 0.0
    truncated: float = 0.0
    refused: float = 0.0
    outages: tuple[PlannedOutage, ...] = ()

    #: Words of `REFUSABLE`; requests that use them are answered with 400.
    unsupported: frozenset[str] = frozenset()
    #: The approximate length of texts.
    reply_tokens: int = 24
    #: The least number of tokens that count as cached.
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
