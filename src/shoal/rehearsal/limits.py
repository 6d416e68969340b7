"""How much may be asked: buckets that fill up steadily or window by window, and the headers that tell of them."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from shoal.rehearsal.settings import RehearsalSettings, SettingChange

_MINUTE = 60.0
_BUCKETS = {"requests_per_minute": "requests", "tokens_per_minute": "tokens"}
#: Seconds that nobody waits: what is this near was there but for the rounding.
_AT_ONCE = 1e-9


class Bucket:
    """An allowance per minute that fills up steadily. `now` is seconds since the first request, and never goes back."""

    def __init__(self, per_minute: float, burst_seconds: float, level: float | None = None) -> None:
        self._burst_seconds = burst_seconds
        self._then = 0.0
        self._set(per_minute)
        self._level = self.size if level is None else level

    def _set(self, per_minute: float) -> None:
        self.limit = per_minute
        self._rate = per_minute / _MINUTE
        self.size = max(1.0, self._rate * self._burst_seconds)

    def change(self, per_minute: float, now: float) -> None:
        """Fills up at another rate from now on; what is there stays, as far as it fits."""
        level = self.level(now)
        self._set(per_minute)
        self._level = min(self.size, level)

    def level(self, now: float) -> float:
        self._level = min(self.size, self._level + max(0.0, now - self._then) * self._rate)
        self._then = max(now, self._then)
        return self._level

    def wait(self, amount: float, now: float) -> float:
        """Seconds until so much is there; 0 if it is. More than the bucket holds is let through when it is full."""
        seconds = (min(amount, self.size) - self.level(now)) / self._rate
        return seconds if seconds > _AT_ONCE else 0.0

    def take(self, amount: float, now: float) -> None:
        self._level = self.level(now) - amount

    def full_in(self, now: float) -> float:
        return (self.size - self.level(now)) / self._rate


class WindowAllowance:
    """An allowance per minute that is given out window by window, and is lost with its window."""

    def __init__(self, per_minute: float, window_seconds: float) -> None:
        self._seconds = window_seconds
        self._at = 0
        self._used = 0.0
        self._set(per_minute)

    def _set(self, per_minute: float) -> None:
        self.limit = self.size = max(1.0, per_minute * self._seconds / _MINUTE)

    def change(self, per_minute: float, now: float) -> None:
        self._set(per_minute)

    def level(self, now: float) -> float:
        at = int(now / self._seconds + _AT_ONCE)
        if at > self._at:
            self._at, self._used = at, 0.0
        return self.size - self._used

    def wait(self, amount: float, now: float) -> float:
        """Seconds until the next window if there is too little left in this one, else 0."""
        return 0.0 if min(amount, self.size) <= self.level(now) else self.full_in(now)

    def take(self, amount: float, now: float) -> None:
        self.level(now)
        self._used += amount

    def full_in(self, now: float) -> float:
        return max(0.0, (self._at + 1) * self._seconds - now) if self.level(now) < self.size else 0.0


class ProviderLimits:
    """What holds at present: the settings as they were chosen, the changes that have come, and what is used up."""

    def __init__(self, chosen: RehearsalSettings) -> None:
        self.settings = chosen
        self.buckets: dict[str, Bucket | WindowAllowance] = {
            name: self._bucket(per_minute)
            for setting, name in _BUCKETS.items()
            if (per_minute := getattr(chosen, setting)) is not None
        }
        # Those by the clock first: an answer is told of as it leaves, and their moments have passed by then.
        self._to_come = sorted(chosen.changes, key=lambda change: (change.after_answers, change.after_seconds))

    def _bucket(self, per_minute: float) -> Bucket | WindowAllowance:
        settings = self.settings
        if settings.window_seconds is not None:
            return WindowAllowance(per_minute, settings.window_seconds)
        return Bucket(per_minute, settings.burst_seconds, 0.0 if settings.starts_empty else None)

    def keep_up(self, now: float, answers: int) -> None:
        """Lets every change come whose moment is there; to be called with each request and each answer."""
        for change in [change for change in self._to_come if change.is_due(now, answers)]:
            self._to_come.remove(change)
            # What comes by the clock came at its moment, also if nobody has asked since.
            self._change(change, change.after_seconds or now)

    def _change(self, change: SettingChange, now: float) -> None:
        value: Any = int(change.to) if change.what == "cap" else change.to
        self.settings = replace(self.settings, **{change.what: value})
        name = _BUCKETS.get(change.what)
        if name in self.buckets:
            self.buckets[name].change(change.to, now)
        elif name is not None:
            self.buckets[name] = self._bucket(change.to)

    def has_room(self, in_work: int) -> bool:
        return self.settings.cap is None or in_work < self.settings.cap

    def slowness(self, in_work: int) -> float:
        """How many times as long as alone an answer takes among so many."""
        return max(1.0, in_work / self.settings.knee) if self.settings.knee else 1.0

    def lacking(self, in_work: int, tokens: int, now: float) -> tuple[str, float] | None:
        """What one more request of so many tokens lacks, and for how many seconds; None if it may come."""
        if not self.has_room(in_work) and not self.settings.queue:
            return "concurrency", self.settings.retry_after_seconds
        for name, bucket in self.buckets.items():
            if wait := bucket.wait(1 if name == "requests" else tokens, now):
                return name, wait
        return None

    def take(self, tokens: int, now: float) -> None:
        """Charges a request that lacks nothing."""
        for name, bucket in self.buckets.items():
            bucket.take(1 if name == "requests" else tokens, now)

    def headers(self, now: float) -> str:
        """Lines for the head of a response, each with its end."""
        line = _LINES.get(self.settings.headers)
        return "".join(line(name, bucket, now) for name, bucket in self.buckets.items()) if line else ""


def _openai(name: str, bucket: Bucket | WindowAllowance, now: float) -> str:
    left = max(0, int(bucket.level(now)))
    return (
        f"x-ratelimit-limit-{name}: {int(bucket.limit)}\r\n"
        f"x-ratelimit-remaining-{name}: {left}\r\n"
        f"x-ratelimit-reset-{name}: {duration(bucket.full_in(now))}\r\n"
    )


def _anthropic(name: str, bucket: Bucket | WindowAllowance, now: float) -> str:
    left = max(0, int(bucket.level(now)))
    reset = datetime.now(UTC) + timedelta(seconds=bucket.full_in(now))
    return (
        f"anthropic-ratelimit-{name}-limit: {int(bucket.limit)}\r\n"
        f"anthropic-ratelimit-{name}-remaining: {left}\r\n"
        f"anthropic-ratelimit-{name}-reset: {reset:%Y-%m-%dT%H:%M:%SZ}\r\n"
    )


_LINES = {"openai": _openai, "anthropic": _anthropic}


def retry_after(seconds: float, style: str) -> str:
    """What a 429 says about when to come back."""
    if style == "none":
        return ""
    line = f"retry-after: {math.ceil(seconds)}\r\n"
    return line if style != "openai" else f"{line}retry-after-ms: {math.ceil(seconds * 1000)}\r\n"


def duration(seconds: float) -> str:
    """As OpenAI writes it: `12ms`, `7.66s`, `1m30s`."""
    if seconds < 1:
        return f"{math.ceil(seconds * 1000)}ms"
    minutes, rest = divmod(seconds, _MINUTE)
    return f"{int(minutes)}m{rest:.3g}s" if minutes else f"{rest:.3g}s"
