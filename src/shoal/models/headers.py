"""What the headers of a reply say: numbers, times, and what a server publishes about its limits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from shoal.allowance import Allowance, Published

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


def allowance(headers: Mapping[str, str], now: float) -> Allowance | None:
    """What the server publishes about its limits, in the style of OpenAI or of Anthropic; None: nothing."""
    if "x-ratelimit-limit-requests" in headers or "x-ratelimit-limit-tokens" in headers:
        requests, tokens = _openai(headers, "requests", now), _openai(headers, "tokens", now)
    elif "anthropic-ratelimit-requests-limit" in headers:
        requests = _anthropic(headers, "requests", now)
        tokens = _anthropic(headers, "tokens", now) or _anthropic(headers, "input-tokens", now)
    else:
        return None
    return Allowance(requests, tokens) if requests or tokens else None


def _openai(headers: Mapping[str, str], what: str, now: float) -> Published | None:
    return _published(
        headers, f"x-ratelimit-limit-{what}", f"x-ratelimit-remaining-{what}", f"x-ratelimit-reset-{what}", now
    )


def _anthropic(headers: Mapping[str, str], what: str, now: float) -> Published | None:
    name = f"anthropic-ratelimit-{what}"
    return _published(headers, f"{name}-limit", f"{name}-remaining", f"{name}-reset", now)


def _published(headers: Mapping[str, str], limit: str, remaining: str, reset: str, now: float) -> Published | None:
    most = number(headers.get(limit))
    if not most or most <= 0:
        return None
    again = headers.get(reset)
    seconds = span(again, now) if again else None
    if seconds is not None and seconds > _LONGEST_RESET_SECONDS:
        return None
    return Published(most, number(headers.get(remaining)), seconds)
