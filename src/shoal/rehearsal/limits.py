"""The limits of a provider: allowances that fill up steadily or window by window, and the headers that report them."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from shoal.rehearsal.settings import RehearsalSettings

_MINUTE_SECONDS = 60.0
_BUCKETS = {"requests_per_minute": "requests", "tokens_per_minute": "tokens"}
#: Waits that are shorter than this come from rounding.
_ROUNDING_SECONDS = 1e-9


class Bucket:
    """An allowance per minute that fills up steadily. `now` is seconds since the first request and never decreases."""

    def __init__(self, per_minute: float, burst_seconds: float, level: float | None = None) -> None:
        self._burst_seconds = burst_seconds
        self._then = 0.0
        self._set(per_minute)
        self._level = self.size if level is None else level

    def _set(self, per_minute: float) -> None:
        self.limit = per_minute
        self._rate = per_minute / _MINUTE_SECONDS
        self.size = max(1.0, self._rate * self._burst_seconds)

    def change(self, per_minute: float, now: float) -> None:
        """Fill up at another rate from now on. The level stays, as far as it fits."""
        level = self.level(now)
        self._set(per_minute)
        self._level = min(self.size, level)

    def level(self, now: float) -> float:
        self._level = min(self.size, self._level + max(0.0, now - self._then) * self._rate)
        self._then = max(now, self._then)
        return self._level

    def wait(self, amount: float, now: float) -> float:
        """Return the seconds until the amount can be taken. A full bucket also gives more than its size."""
        seconds = (min(amount, self.size) - self.level(now)) / self._rate
        return seconds if seconds > _ROUNDING_SECONDS else 0.0

    def take(self, amount: float, now: float) -> None:
        self._level = self.level(now) - amount

    def seconds_to_full(self, now: float) -> float:
        return (self.size - self.level(now)) / self._rate


class WindowAllowance:
    """An allowance per minute that is granted window by window; what a window leaves is lost."""

    def __init__(self, per_minute: float, window_seconds: float) -> None:
        self._seconds = window_seconds
        self._at = 0
        self._used = 0.0
        self._set(per_minute)

    def _set(self, per_minute: float) -> None:
        self.limit = self.size = max(1.0, per_minute * self._seconds / _MINUTE_SECONDS)

    def change(self, per_minute: float, now: float) -> None:
        self._set(per_minute)

    def level(self, now: float) -> float:
        at = int(now / self._seconds + _ROUNDING_SECONDS)
        if at > self._at:
            self._at, self._used = at, 0.0
        return self.size - self._used

    def wait(self, amount: float, now: float) -> float:
        """Return the seconds until the next window if too little is left in this one, else 0."""
        return 0.0 if min(amount, self.size) <= self.level(now) else self.seconds_to_full(now)

    def take(self, amount: float, now: float) -> None:
        self.level(now)
        self._used += amount

    def seconds_to_full(self, now: float) -> float:
        return max(0.0, (self._at + 1) * self._seconds - now) if self.level(now) < self.size else 0.0


class ProviderLimits:
    """The settings after the changes that have come, and the allowances that are left."""

    def __init__(self, chosen: RehearsalSettings) -> None:
        self.settings = chosen
        self.buckets: dict[str, Bucket | WindowAllowance] = {
            name: self._make_bucket(per_minute)
            for setting, name in _BUCKETS.items()
            if (per_minute := getattr(chosen, setting)) is not None
        }
        # Changes by the clock come first: when an answer is counted, their moments have passed.
        self._pending = sorted(chosen.changes, key=lambda change: (change.after_answers, change.after_seconds))

    def _make_bucket(self, per_minute: float) -> Bucket | WindowAllowance:
        settings = self.settings
        if settings.window_seconds is not None:
            return WindowAllowance(per_minute, settings.window_seconds)
        return Bucket(per_minute, settings.burst_seconds, 0.0 if settings.starts_empty else None)

    def apply_changes(self, now: float, answers: int) -> None:
        """Apply every change that is due. Called with each request and each answer."""
        for change in [change for change in self._pending if change.is_due(now, answers)]:
            self._pending.remove(change)
            value: Any = int(change.to) if change.what == "cap" else change.to
            self.settings = replace(self.settings, **{change.what: value})
            name = _BUCKETS.get(change.what)
            if name in self.buckets:
                # A change by the clock came at its moment, also if no request has come since.
                self.buckets[name].change(change.to, change.after_seconds or now)
            elif name is not None:
                self.buckets[name] = self._make_bucket(change.to)

    def has_room(self, in_work: int) -> bool:
        return self.settings.cap is None or in_work < self.settings.cap

    def latency_factor(self, in_work: int) -> float:
        """Return how many times longer an answer takes among this many than alone."""
        return max(1.0, in_work / self.settings.knee) if self.settings.knee else 1.0

    def find_lacking(self, in_work: int, tokens: int, now: float) -> tuple[str, float] | None:
        """Return the limit that stands against one more request, and for how many seconds; None if none does."""
        if not self.has_room(in_work) and not self.settings.queue:
            return "concurrency", self.settings.retry_after_seconds
        for name, bucket in self.buckets.items():
            if wait := bucket.wait(1 if name == "requests" else tokens, now):
                return name, wait
        return None

    def take(self, tokens: int, now: float) -> None:
        """Charge a request."""
        for name, bucket in self.buckets.items():
            bucket.take(1 if name == "requests" else tokens, now)

    def format_headers(self, now: float) -> str:
        """Return lines for the head of a response, each with its line break."""
        lines = ""
        for name, bucket in self.buckets.items():
            limit, left, seconds = int(bucket.limit), max(0, int(bucket.level(now))), bucket.seconds_to_full(now)
            if self.settings.headers == "openai":
                prefix = "x-ratelimit"
                figures = {f"limit-{name}": limit, f"remaining-{name}": left, f"reset-{name}": format_reset(seconds)}
            elif self.settings.headers == "anthropic":
                prefix = f"anthropic-ratelimit-{name}"
                reset = datetime.now(UTC) + timedelta(seconds=seconds)
                figures = {"limit": limit, "remaining": left, "reset": f"{reset:%Y-%m-%dT%H:%M:%SZ}"}
            else:
                return ""
            lines += "".join(f"{prefix}-{key}: {value}\r\n" for key, value in figures.items())
        return lines


def format_retry_after(seconds: float, style: str) -> str:
    """Return the lines of a 429 that say when to come back."""
    if style == "none":
        return ""
    line = f"retry-after: {math.ceil(seconds)}\r\n"
    return line if style != "openai" else f"{line}retry-after-ms: {math.ceil(seconds * 1000)}\r\n"


def format_reset(seconds: float) -> str:
    """Write the seconds until a limit is reset as OpenAI does: `12ms`, `7.66s`, `1m30s`."""
    if seconds < 1:
        return f"{math.ceil(seconds * 1000)}ms"
    minutes, rest = divmod(seconds, _MINUTE_SECONDS)
    return f"{int(minutes)}m{rest:.3g}s" if minutes else f"{rest:.3g}s"
