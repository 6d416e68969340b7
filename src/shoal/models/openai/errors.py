"""Failures of OpenAI-compatible servers: told apart by status, headers and wording, which differ between servers.

Understood are the shapes of OpenAI, Azure, Anthropic, OpenRouter, Groq, vLLM, Ollama and llama.cpp. The text of a
failure is what the server said, shortened. It is journaled and shown to users.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import orjson

from shoal.models.base import FailureKind, ModelFailure, Question, Usage
from shoal.models.http.errors import shorten_failure_text
from shoal.models.tokens import estimate
from shoal.rate_limits import RateLimit, RateLimits

_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|[dhms])")
_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
#: A limit that takes longer to fill up again counts by the day or so, and is not one to pace calls by.
_LONGEST_RESET_SECONDS = 600.0
#: A reply that cannot be read is taken for at most this much of a model's work.
_MAX_CHARGED_BYTES = 1 << 20


def parse_number(text: str | None) -> float | None:
    return float(text) if text is not None and _NUMBER.fullmatch(text.strip()) else None


def parse_seconds(text: str, now: float) -> float | None:
    """Parse a wait: `1.5`, `850ms`, `6m0s`, a date, or a moment in seconds or milliseconds since 1970."""
    found = parse_number(text)
    if found is not None:
        if found > 1e12:
            found /= 1000
        return max(found - now, 0.0) if found > 1e9 else max(found, 0.0)
    if "T" in text or "," in text:
        return _parse_moment(text, now)
    parts = _SPAN.findall(text)
    return sum(float(count) * _UNIT_SECONDS[unit] for count, unit in parts) if parts else None


def _parse_moment(text: str, now: float) -> float | None:
    """Return the seconds until a moment as HTTP or RFC 3339 writes it."""
    try:
        moment = datetime.fromisoformat(text) if text[:4].isdigit() else parsedate_to_datetime(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(moment.timestamp() - now, 0.0)


def _name_headers(pattern: str, *counters: str) -> dict[str, tuple[str, ...]]:
    parts = ("limit", "remaining", "reset")
    return {counter: tuple(pattern.format(part=part, counter=counter) for part in parts) for counter in counters}


_OPENAI = _name_headers("x-ratelimit-{part}-{counter}", "requests", "tokens")
_ANTHROPIC = _name_headers("anthropic-ratelimit-{counter}-{part}", "requests", "tokens", "input-tokens")


def read_rate_limits(headers: Mapping[str, str], now: float) -> RateLimits | None:
    """Read the limits that a server publishes in the style of OpenAI or of Anthropic; None where it publishes none."""

    def read(names: tuple[str, ...]) -> RateLimit | None:
        limit, remaining, reset = map(headers.get, names)
        most, seconds = parse_number(limit), parse_seconds(reset, now) if reset else None
        if not most or most <= 0 or (seconds is not None and seconds > _LONGEST_RESET_SECONDS):
            return None
        return RateLimit(most, parse_number(remaining), seconds)

    if "x-ratelimit-limit-requests" in headers or "x-ratelimit-limit-tokens" in headers:
        requests, tokens = read(_OPENAI["requests"]), read(_OPENAI["tokens"])
    elif "anthropic-ratelimit-requests-limit" in headers:
        requests = read(_ANTHROPIC["requests"])
        tokens = read(_ANTHROPIC["tokens"]) or read(_ANTHROPIC["input-tokens"])
    else:
        return None
    return RateLimits(requests, tokens) if requests or tokens else None


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
#: A shorter key may stand in a message by chance.
_SHORTEST_UNIQUE_KEY = 8
#: Words that look like a key, or like a key that the server has masked.
_SECRETS = re.compile(r"\b(sk|gsk|pk|xai|hf)[-_][\w*.…-]{4,}|\S*\*{3,}\S*|(?<=Bearer )\S+")


def parse_failure(status: int, headers: Mapping[str, str], body: bytes, now: float) -> ModelFailure:
    """Classify a reply that is no answer. `now` is the time of day, for servers that name a moment to come back at."""
    message, labels = _read_error(body)
    words = f"{labels} {message}".lower()
    kind = _classify(status, headers, words)
    if kind is FailureKind.ADDRESS and status == 404:
        message = f"the server does not know this model or address; check both ({message})"
    elif kind is FailureKind.ADDRESS and status < 400:
        where = headers.get("location") or "it does not say where"
        message = f"the server sends us elsewhere; give the address it has moved to ({where})"
    text = shorten_failure_text(f"{status}: {message}" if message else f"status {status}")
    wait_seconds = _read_retry_after(kind, headers, words, now)
    return ModelFailure(kind, text, status, wait_seconds, read_rate_limits(headers, now))


def parse_error_object(error: dict[str, Any], headers: Mapping[str, str], now: float) -> ModelFailure:
    """Classify an error that a server reports with status 200."""
    code = error.get("code")
    status = code if isinstance(code, int) and code >= 400 else 500
    return parse_failure(status, headers, orjson.dumps({"error": error}), now)


def report_unreadable(body: bytes, why: str, question: Question) -> ModelFailure:
    """Report a reply with status 200 that holds no answer. The model has worked for it, so it is charged."""
    text = shorten_failure_text(f"the reply {why}: {body[:100].decode(errors='replace')!r}")
    made = estimate(body[:_MAX_CHARGED_BYTES].decode(errors="replace"))
    most = made if question.max_tokens is None else question.max_tokens
    usage = Usage(sum(estimate(message.content) for message in question.messages), min(made, most))
    return ModelFailure(FailureKind.UNREADABLE, text, 200, usage=usage)


def mask_secrets(text: str, key: str | None) -> str:
    """Remove the key: some servers repeat it, whole or in part, in their messages."""
    if key and len(key) >= _SHORTEST_UNIQUE_KEY:
        text = text.replace(key, "[key]")
    elif key:
        # Such as `none` for a server that wants any key: within another word, it is that word and no key.
        text = re.sub(rf"(?<![\w-]){re.escape(key)}(?![\w-])", "[key]", text)
    return _SECRETS.sub("[key]", text)


def _read_error(body: bytes) -> tuple[str, str]:
    """Return the message for people, and every label for machines."""
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


def _classify(status: int, headers: Mapping[str, str], words: str) -> FailureKind:
    if status == 429:
        return _classify_rate(headers, words)
    if status in (400, 413, 422):
        if _TOO_LONG.search(words) or status == 413:
            return FailureKind.CONTEXT_TOO_LONG
        if _REFUSED.search(words):
            return FailureKind.REFUSED
        if _QUOTA.search(words):
            return FailureKind.QUOTA
        return FailureKind.AUTH if "api key" in words or "api_key" in words else FailureKind.FATAL
    if status == 402:
        return FailureKind.QUOTA
    if status in (401, 403):
        if _REFUSED.search(words):
            return FailureKind.REFUSED
        return FailureKind.QUOTA if _QUOTA.search(words) and not _KEY.search(words) else FailureKind.AUTH
    if status in (408, 409, 425):
        return FailureKind.TRANSIENT
    if status in (404, 405, 410) or status < 400:
        return FailureKind.ADDRESS
    if status < 500 or status in (501, 505):
        return FailureKind.FATAL
    return FailureKind.OVERLOAD if status in (503, 529) or _OVERLOAD.search(words) else FailureKind.TRANSIENT


def _classify_rate(headers: Mapping[str, str], words: str) -> FailureKind:
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
    return any(parse_number(headers.get(name)) == 0 for name in names)


def _read_retry_after(kind: FailureKind, headers: Mapping[str, str], words: str, now: float) -> float | None:
    milliseconds = parse_number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return max(milliseconds / 1000, 0.0)
    if (after := headers.get("retry-after")) is not None:
        seconds = parse_number(after)
        return max(seconds, 0.0) if seconds is not None else _parse_moment(after, now)
    names: list[str] = []
    if kind is FailureKind.TOKEN_RATE:
        counters = [f"anthropic-ratelimit-{side}-tokens" for side in ("input", "output")]
        used_up = [counter for counter in counters if parse_number(headers.get(f"{counter}-remaining")) == 0]
        names += [f"{counter}-reset" for counter in used_up]
    if kind in (FailureKind.REQUEST_RATE, FailureKind.TOKEN_RATE, FailureKind.LIMITED):
        counter = "tokens" if kind is FailureKind.TOKEN_RATE else "requests"
        names += [f"x-ratelimit-reset-{counter}", f"anthropic-ratelimit-{counter}-reset", "x-ratelimit-reset"]
    for name in names:
        if (reset := headers.get(name)) and (seconds := parse_seconds(reset, now)) is not None:
            return seconds
    found = _TRY_AGAIN.search(words)
    return parse_seconds(found["span"], now) if found else None
