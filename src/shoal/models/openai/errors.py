"""What went wrong, told from what a server says: status, headers and words, as they differ between servers.

Understood are the shapes of OpenAI, Azure, Anthropic, OpenRouter, Groq, vLLM, Ollama and llama.cpp. A failure's text
is what the server said, shortened: it ends up in the journal and in front of people.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import orjson

from shoal.models.base import FailureKind, ModelFailure
from shoal.rate_limits import RateLimit, RateLimits

_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|[dhms])")
_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
#: A limit that is full again only after this long is one of a day or so: not one to pace calls by.
_LONGEST_RESET_SECONDS = 600.0


def number(text: str | None) -> float | None:
    return float(text) if text is not None and _NUMBER.fullmatch(text.strip()) else None


def span(text: str, now: float) -> float | None:
    """`1.5`, `850ms`, `6m0s`, a date, or a moment in seconds or milliseconds since 1970."""
    found = number(text)
    if found is not None:
        if found > 1e12:
            found /= 1000
        return max(found - now, 0.0) if found > 1e9 else max(found, 0.0)
    if "T" in text or "," in text:
        return until(text, now)
    parts = _SPAN.findall(text)
    return sum(float(count) * _UNIT_SECONDS[unit] for count, unit in parts) if parts else None


def until(text: str, now: float) -> float | None:
    """Seconds until a moment, as HTTP or as RFC 3339 writes it."""
    try:
        moment = datetime.fromisoformat(text) if text[:4].isdigit() else parsedate_to_datetime(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(moment.timestamp() - now, 0.0)


def allowance(headers: Mapping[str, str], now: float) -> RateLimits | None:
    """What the server publishes about its limits, in the style of OpenAI or of Anthropic; None: nothing."""
    if "x-ratelimit-limit-requests" in headers or "x-ratelimit-limit-tokens" in headers:
        requests, tokens = _openai(headers, "requests", now), _openai(headers, "tokens", now)
    elif "anthropic-ratelimit-requests-limit" in headers:
        requests = _anthropic_limits(headers, "requests", now)
        tokens = _anthropic_limits(headers, "tokens", now) or _anthropic_limits(headers, "input-tokens", now)
    else:
        return None
    return RateLimits(requests, tokens) if requests or tokens else None


def _openai(headers: Mapping[str, str], what: str, now: float) -> RateLimit | None:
    return _published(
        headers, f"x-ratelimit-limit-{what}", f"x-ratelimit-remaining-{what}", f"x-ratelimit-reset-{what}", now
    )


def _anthropic_limits(headers: Mapping[str, str], what: str, now: float) -> RateLimit | None:
    name = f"anthropic-ratelimit-{what}"
    return _published(headers, f"{name}-limit", f"{name}-remaining", f"{name}-reset", now)


def _published(headers: Mapping[str, str], limit: str, remaining: str, reset: str, now: float) -> RateLimit | None:
    most = number(headers.get(limit))
    if not most or most <= 0:
        return None
    again = headers.get(reset)
    seconds = span(again, now) if again else None
    if seconds is not None and seconds > _LONGEST_RESET_SECONDS:
        return None
    return RateLimit(most, number(headers.get(remaining)), seconds)


LONGEST_TEXT = 300

_TOO_LONG = re.compile(
    r"context[ _](length|size|window)|maximum context|prompt is too long|too many (input )?tokens|input is too long"
    r"|exceed_context|reduce the length|request too large|max_model_len|string_above_max_length"
)
_REFUSED = re.compile(r"content[ _]?(filter|management|policy)|responsibleai|safety (system|policy)|moderation|flagged")
_QUOTA = re.compile(
    r"insufficient[ _](quota|credit|balance|funds)|credit balance|billing|exceeded your (current|monthly) (quota|usage)"
    r"|(per|a) (day|week|month)\b|\b(daily|weekly|monthly)\b|\b[rt]pd\b|usage limit|per-day|spend(ing)? limit"
)
_CONCURRENCY = re.compile(r"concurren|simultaneous|parallel request|in[- ]flight|too many connections|max_num_seqs")
_OVERLOAD = re.compile(
    r"overload|over capacity|at capacity|capacity exceeded|temporarily unavailable|queue is full|busy"
)
_TOKENS = re.compile(
    r"tokens? per (min|sec)|\b(i|o)?tpm\b|tokens?[ _-](rate|limit|usage)|\binput tokens\b|\boutput tokens\b"
)
_REQUESTS = re.compile(r"requests? per (min|sec)|\brpm\b|\brps\b")
_KEY = re.compile(r"api[ _-]?key|unauthori[sz]ed|authentication|invalid[ _](token|credentials)|permission")
_TRY_AGAIN = re.compile(r"(?:try again|retry) (?:in|after) (?P<span>(?:[\d.]+ ?(?:ms|[hms])[a-z]*\s*)+)")
#: Words that look like a key, or like one that the server has masked.
_SECRETS = re.compile(r"\b(sk|gsk|pk|xai|hf)[-_][\w*.…-]{4,}|\S*\*{3,}\S*|(?<=Bearer )\S+")


def of_reply(status: int, headers: Mapping[str, str], body: bytes, now: float) -> ModelFailure:
    """Why a server did not answer; `now` is the time of day, for servers that name a moment to come back at."""
    message, labels = _said(body)
    words = f"{labels} {message}".lower()
    kind = _kind(status, headers, words)
    text = _in_words(kind, status, message)
    return ModelFailure(kind, text, status, _retry_after(kind, headers, words, now), allowance(headers, now))


def of_error(error: dict[str, Any], headers: Mapping[str, str], now: float) -> ModelFailure:
    """The same for servers that report an error with status 200."""
    code = error.get("code")
    status = code if isinstance(code, int) and code >= 400 else 500
    return of_reply(status, headers, orjson.dumps({"error": error}), now)


def unreadable(body: bytes, why: str) -> ModelFailure:
    return ModelFailure(FailureKind.TRANSIENT, _short(f"the reply {why}: {body[:100].decode(errors='replace')!r}"), 200)


def no_answer(seconds: float) -> ModelFailure:
    return ModelFailure(FailureKind.TRANSIENT, f"no answer within {seconds:g} s")


def no_http(why: str, came: bytes) -> ModelFailure:
    """Something came, but it cannot be read: a proxy that went mad, or a server of another kind."""
    return ModelFailure(
        FailureKind.TRANSIENT, _short(f"the reply cannot be read ({why}): {came[:100].decode(errors='replace')!r}")
    )


def too_large(received_bytes: int) -> ModelFailure:
    """It would be as large the next time, and perhaps be paid for again."""
    return ModelFailure(
        FailureKind.FATAL, f"the reply was cut at {received_bytes / 1e6:.1f} MB: no answer of a model is as long"
    )


def unreachable(error: Exception) -> ModelFailure:
    """What the network did; only what cannot get better by itself is fatal."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return ModelFailure(FailureKind.FATAL, _short(f"the server's certificate cannot be trusted: {error}"))
    said = str(error) or type(error).__name__
    return ModelFailure(FailureKind.TRANSIENT, _short(f"the server cannot be reached: {said}"))


def without_secrets(text: str, key: str | None) -> str:
    """Some servers repeat the key, whole or in part, in what they say about it."""
    if key:
        text = text.replace(key, "[key]")
    return _SECRETS.sub("[key]", text)


# what was said


def _said(body: bytes) -> tuple[str, str]:
    """The message for people, and every label for machines."""
    try:
        whole = orjson.loads(body)
    except orjson.JSONDecodeError:
        return re.sub(r"<[^>]*>|\s+", " ", body[:2000].decode(errors="replace")).strip(), ""
    if isinstance(whole, list) and whole:
        whole = whole[0]
    if not isinstance(whole, dict):
        return str(whole), ""
    error = whole.get("error", whole)
    if not isinstance(error, dict):
        return str(error), ""
    inner = error.get("innererror")
    labels = [error.get("type"), error.get("code"), error.get("status"), inner]
    message = error.get("message") or whole.get("message") or error.get("detail") or whole
    return message if isinstance(message, str) else str(message), " ".join(str(label) for label in labels if label)


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


def _in_words(kind: FailureKind, status: int, message: str) -> str:
    if kind is FailureKind.FATAL and status == 404:
        message = f"the server does not know this model or address; check both ({message})"
    elif kind is FailureKind.FATAL and 300 <= status < 400:
        message = "the server sends us elsewhere; give the address it has moved to"
    return _short(f"{status}: {message}" if message else f"status {status}")


# which kind


def _kind(status: int, headers: Mapping[str, str], words: str) -> FailureKind:
    if status == 429:
        return _rate_kind(headers, words)
    if status in (400, 413, 422):
        return _request_kind(status, words)
    if status == 402:
        return FailureKind.QUOTA
    if status in (401, 403):
        return _forbidden_kind(words)
    if status in (408, 409, 425):
        return FailureKind.TRANSIENT
    if status >= 500:
        return _server_kind(status, words)
    return FailureKind.FATAL


def _rate_kind(headers: Mapping[str, str], words: str) -> FailureKind:
    if "request too large" in words:
        return FailureKind.CONTEXT_TOO_LONG
    if _QUOTA.search(words):
        return FailureKind.QUOTA
    if _CONCURRENCY.search(words):
        return FailureKind.CONCURRENCY
    if _REQUESTS.search(words) or words.startswith("requests "):
        return FailureKind.REQUEST_RATE
    if _TOKENS.search(words) or words.startswith("tokens "):
        return FailureKind.TOKEN_RATE
    if _OVERLOAD.search(words):
        return FailureKind.OVERLOAD
    if _is_used_up(headers, "tokens"):
        return FailureKind.TOKEN_RATE
    return FailureKind.REQUEST_RATE if _is_used_up(headers, "requests") else FailureKind.LIMITED


def _is_used_up(headers: Mapping[str, str], what: str) -> bool:
    names = [f"x-ratelimit-remaining-{what}", f"anthropic-ratelimit-{what}-remaining"]
    if what == "tokens":
        names += ["anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-output-tokens-remaining"]
    return any(number(headers.get(name)) == 0 for name in names)


def _request_kind(status: int, words: str) -> FailureKind:
    if _TOO_LONG.search(words) or status == 413:
        return FailureKind.CONTEXT_TOO_LONG
    if _REFUSED.search(words):
        return FailureKind.REFUSED
    if _QUOTA.search(words):
        return FailureKind.QUOTA
    return FailureKind.AUTH if "api key" in words or "api_key" in words else FailureKind.FATAL


def _forbidden_kind(words: str) -> FailureKind:
    if _REFUSED.search(words):
        return FailureKind.REFUSED
    return FailureKind.QUOTA if _QUOTA.search(words) and not _KEY.search(words) else FailureKind.AUTH


def _server_kind(status: int, words: str) -> FailureKind:
    if status in (501, 505):
        return FailureKind.FATAL
    return FailureKind.OVERLOAD if status in (503, 529) or _OVERLOAD.search(words) else FailureKind.TRANSIENT


# when to come back


def _retry_after(kind: FailureKind, headers: Mapping[str, str], words: str, now: float) -> float | None:
    told = number(headers.get("retry-after-ms"))
    if told is not None:
        return max(told / 1000, 0.0)
    if (after := headers.get("retry-after")) is not None:
        seconds = number(after)
        return max(seconds, 0.0) if seconds is not None else until(after, now)
    for name in _reset_headers(kind, headers):
        if (reset := headers.get(name)) and (seconds := span(reset, now)) is not None:
            return seconds
    found = _TRY_AGAIN.search(words)
    return span(found["span"], now) if found else None


def _reset_headers(kind: FailureKind, headers: Mapping[str, str]) -> list[str]:
    """Which counters matter: those that are used up, or the one that this kind of failure is about."""
    if kind not in (FailureKind.REQUEST_RATE, FailureKind.TOKEN_RATE, FailureKind.LIMITED):
        return []
    about = "tokens" if kind is FailureKind.TOKEN_RATE else "requests"
    names = [f"x-ratelimit-reset-{about}", f"anthropic-ratelimit-{about}-reset"]
    if kind is FailureKind.TOKEN_RATE:
        sides = [side for side in ("input", "output") if number(headers.get(_anthropic(side, "remaining"))) == 0]
        names = [_anthropic(side, "reset") for side in sides] + names
    return [*names, "x-ratelimit-reset"]


def _anthropic(side: str, what: str) -> str:
    return f"anthropic-ratelimit-{side}-tokens-{what}"
