"""The providers that `shoal rehearse` plays, in virtual time and without sockets, to judge limits within milliseconds.

provider = Provider(RehearsalSettings(latency_seconds=1, latency_sigma=0.5, cap=64, seed=7))
reply = provider.arrive(now, call_id, tokens)        with `now` that never goes back
KnownLimits(provider)                                the limit of a client that knows every limit in advance
ProvenLimits(provider)                               the same, while it must not overfill a server that may be a queue
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, replace
from heapq import heappop, heappush, nlargest
from typing import Any, Literal

from shoal.rehearsal.faults import draw_latency
from shoal.rehearsal.limits import ProviderLimits
from shoal.rehearsal.settings import RehearsalSettings
from shoal.seeds import Draws, derive

Kind = Literal["ok", "requests", "tokens", "concurrency", "limited", "overload"]

#: By name of the limit: so much a minute, so much of it left, and seconds until it is full again.
Told = dict[str, tuple[float, float, float]]

_KINDS: dict[str, Kind] = {"requests": "requests", "tokens": "tokens", "concurrency": "concurrency"}
_PUBLISHING = ("openai", "anthropic")
#: What a rehearsal can do and this cannot.
_NOT_PLAYED = ("quota", "errors", "hangs", "dropped")


@dataclass(frozen=True, slots=True)
class Reply:
    """What comes back, and when. `limited` is a refusal that does not say of what, `overload` one of an outage."""

    at_seconds: float
    kind: Kind
    retry_after: float | None = None
    #: As they were when the call arrived; a server tells them as they are when the reply leaves.
    limits: Told | None = None

    @property
    def ok(self) -> bool:
        return self.kind == "ok"


class Provider:
    """Answers as a rehearsal server with these settings. What is in work ends by itself when its time has come."""

    def __init__(self, settings: RehearsalSettings) -> None:
        for name in _NOT_PLAYED:
            if getattr(settings, name):
                raise ValueError(f"{name} is not played in virtual time")
        self.chosen = settings
        self.answers = 0
        self.peak = 0
        self.refusals: Counter[str] = Counter()
        self._limits = ProviderLimits(settings)
        self._ends: list[float] = []
        self._arrivals = 0
        self._first: float | None = None

    def begin(self, now: float) -> None:
        """Outages, changes, windows and empty buckets are counted from here; if not called, from the first call."""
        self._first = now if self._first is None else self._first

    def arrive(self, now: float, call_id: int, tokens: int) -> Reply:
        """A call is sent. How long it takes is drawn from its id, so that sending it again draws nothing else."""
        self.begin(now)
        self._settle(now)
        settings, seconds = self._limits.settings, self._since(now)
        if any(outage.covers(seconds) for outage in settings.outages):
            return self._refused(now, "overload", None)
        self._arrivals += 1
        if settings.limits and Draws(derive(settings.seed, self._arrivals, "limits")).random() < settings.limits:
            return self._refused(now, "requests", settings.retry_after_seconds)
        if (lacking := self._limits.find_lacking(len(self._ends), tokens, seconds)) is not None:
            return self._refused(now, _KINDS[lacking[0]], lacking[1])
        self._limits.take(tokens, seconds)
        return self._worked_on(now, call_id)

    def settings_at(self, now: float) -> RehearsalSettings:
        """Return the settings with the changes that have come."""
        self._settle(now)
        return self._limits.settings

    def _since(self, now: float) -> float:
        """Seconds since it began."""
        return 0.0 if self._first is None else now - self._first

    def _settle(self, now: float) -> None:
        """Lets end what has ended, one after another, with the changes that came in between."""
        while self._ends and self._ends[0] <= now:
            end = heappop(self._ends)
            self.answers += 1
            self._limits.apply_changes(self._since(end), self.answers)
        self._limits.apply_changes(self._since(now), self.answers)

    def _worked_on(self, now: float, call_id: int) -> Reply:
        settings, in_work, begins_at = self._limits.settings, len(self._ends) + 1, now
        if settings.queue and settings.cap is not None and in_work > settings.cap:
            # Those before it begin in the order in which they came: it begins when all but so many of them have ended.
            begins_at, in_work = nlargest(settings.cap, self._ends)[-1], settings.cap
        self.peak = max(self.peak, in_work)
        end = begins_at + draw_latency(settings, call_id, 0) * self._limits.latency_factor(in_work)
        heappush(self._ends, end)
        return Reply(end, "ok", limits=self._told(self._since(now)))

    def _refused(self, now: float, kind: Kind, wait: float | None) -> Reply:
        self.refusals[kind] += 1
        settings = self._limits.settings
        at = now + settings.refusal_seconds
        if kind == "overload":
            return Reply(at, kind)
        told = self._told(self._since(now)) if settings.labelled else None
        return Reply(at, kind if settings.labelled else "limited", _whole(wait, settings), told)

    def _told(self, seconds: float) -> Told | None:
        if self.chosen.headers not in _PUBLISHING or not self._limits.buckets:
            return None
        return {
            name: (bucket.limit, max(0.0, math.floor(bucket.level(seconds))), bucket.seconds_to_full(seconds))
            for name, bucket in self._limits.buckets.items()
        }


def _whole(wait: float | None, settings: RehearsalSettings) -> float | None:
    """What Retry-After says: milliseconds where they are sent as well, else seconds, and nothing without headers."""
    if wait is None or settings.headers == "none":
        return None
    return math.ceil(wait * 1000) / 1000 if settings.headers == "openai" else float(math.ceil(wait))


class KnownLimits:
    """The limit of a client that knows all limits of a provider, and is never refused if calls do not overtake others.

    Above the knee more at once only wait for one another, so that it stays below.
    """

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._held = 0
        # Refusals by chance are nothing that one could know of.
        self._rates = ProviderLimits(replace(provider.chosen, cap=None, limits=0.0, changes=()))
        self._first: float | None = None

    def wait(self, now: float, tokens: int, waiting: int) -> float:
        settings, seconds = self._provider.settings_at(now), self._since(now)
        if outages := [each for each in settings.outages if each.covers(seconds)]:
            return max(each.after_seconds + each.lasting_seconds for each in outages) - seconds + 1e-9
        if self._held >= min(settings.cap or math.inf, settings.knee or math.inf):
            return math.inf
        lacking = self._rates.find_lacking(0, tokens, seconds)
        return 0.0 if lacking is None else lacking[1] + 1e-9

    def begin(self, now: float, tokens: int) -> object:
        self._held += 1
        self._rates.take(tokens, self._since(now))
        return None

    def end(self, now: float, sent: object, outcome: object) -> None:
        self._held -= 1

    def resume(self, now: float, tokens: int) -> object:
        return self.begin(now, tokens)

    def describe(self, now: float) -> dict[str, object]:
        return {"held": self._held}

    def _since(self, now: float) -> float:
        if self._first is None:
            self._first = now
            self._provider.begin(now)
        return now - self._first


class ProvenLimits(KnownLimits):
    """The limit of a client that knows all limits, and still fills no queue: a floor for every client that learns.

    A queue behind so many workers answers a call only when fewer of those before it are left. Until then it might have
    fewer workers, and no more calls than `beyond` times as many may be in flight, apart from the first.
    """

    def __init__(self, provider: Provider, first: int, beyond: float) -> None:
        super().__init__(provider)
        self._most = float(first)
        self._beyond = beyond
        self._begun = 0
        self._in_flight: list[int] = []

    def wait(self, now: float, tokens: int, waiting: int) -> float:
        return super().wait(now, tokens, waiting) if len(self._in_flight) < int(self._most) else math.inf

    def begin(self, now: float, tokens: int) -> object:
        super().begin(now, tokens)
        self._begun += 1
        self._in_flight.append(self._begun)
        return self._begun

    def end(self, now: float, sent: Any, outcome: object) -> None:
        super().end(now, sent, outcome)
        before = bisect_left(self._in_flight, sent)
        del self._in_flight[before]
        self._most = max(self._most, self._beyond * (before + 1))
