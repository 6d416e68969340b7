"""How much may be asked: buckets that fill up steadily, and the headers that tell of them."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

from shoal.models.rehearsal.settings import RehearsalSettings

_MINUTE = 60.0


class Bucket:
    """An allowance per minute. `now` is seconds on any clock that does not go back."""

    def __init__(self, per_minute: float, burst_seconds: float) -> None:
        self.per_minute = per_minute
        self._rate = per_minute / _MINUTE
        self.size = max(1.0, self._rate * burst_seconds)
        self._level = self.size
        self._then = 0.0

    def level(self, now: float) -> float:
        self._level = min(self.size, self._level + max(0.0, now - self._then) * self._rate)
        self._then = now
        return self._level

    def wait(self, amount: float, now: float) -> float:
        """Seconds until so much is there; 0 if it is. More than the bucket holds is let through when it is full."""
        return max(0.0, (min(amount, self.size) - self.level(now)) / self._rate)

    def take(self, amount: float, now: float) -> None:
        self._level = self.level(now) - amount

    def full_in(self, now: float) -> float:
        return (self.size - self.level(now)) / self._rate


class Allowance:
    """Requests and tokens per minute."""

    def __init__(self, settings: RehearsalSettings) -> None:
        self._style = settings.headers
        self.buckets = {
            name: Bucket(limit, settings.burst_seconds)
            for name, limit in (("requests", settings.requests_per_minute), ("tokens", settings.tokens_per_minute))
            if limit is not None
        }

    def admit(self, tokens: int, now: float) -> tuple[str, float] | None:
        """Takes one request of so many tokens; or says which bucket lacks, and for how many seconds."""
        amounts = {"requests": 1, "tokens": tokens}
        for name, bucket in self.buckets.items():
            if wait := bucket.wait(amounts[name], now):
                return name, wait
        for name, bucket in self.buckets.items():
            bucket.take(amounts[name], now)
        return None

    def headers(self, now: float) -> str:
        """Lines for the head of a response, each with its end."""
        if self._style == "none" or not self.buckets:
            return ""
        line = _openai if self._style == "openai" else _anthropic
        return "".join(line(name, bucket, now) for name, bucket in self.buckets.items())


def _openai(name: str, bucket: Bucket, now: float) -> str:
    left = max(0, int(bucket.level(now)))
    return (
        f"x-ratelimit-limit-{name}: {int(bucket.per_minute)}\r\n"
        f"x-ratelimit-remaining-{name}: {left}\r\n"
        f"x-ratelimit-reset-{name}: {duration(bucket.full_in(now))}\r\n"
    )


def _anthropic(name: str, bucket: Bucket, now: float) -> str:
    left = max(0, int(bucket.level(now)))
    reset = datetime.now(UTC) + timedelta(seconds=bucket.full_in(now))
    return (
        f"anthropic-ratelimit-{name}-limit: {int(bucket.per_minute)}\r\n"
        f"anthropic-ratelimit-{name}-remaining: {left}\r\n"
        f"anthropic-ratelimit-{name}-reset: {reset:%Y-%m-%dT%H:%M:%SZ}\r\n"
    )


def retry_after(seconds: float, style: str) -> str:
    """What a 429 says about when to come back."""
    if style == "none":
        return ""
    line = f"retry-after: {math.ceil(seconds)}\r\n"
    return line if style == "anthropic" else f"{line}retry-after-ms: {math.ceil(seconds * 1000)}\r\n"


def duration(seconds: float) -> str:
    """As OpenAI writes it: `12ms`, `7.66s`, `1m30s`."""
    if seconds < 1:
        return f"{math.ceil(seconds * 1000)}ms"
    minutes, rest = divmod(seconds, _MINUTE)
    return f"{int(minutes)}m{rest:.3g}s" if minutes else f"{rest:.3g}s"
