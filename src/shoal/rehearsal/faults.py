"""Faults of the rehearsal server, drawn from the content of a request and never from its time.

Whether an attempt is answered depends on the request and on how often it was sent before, so that a retry can help.
The answer itself depends on the request alone: a run that was killed and resumed gets the same replies again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import TypeVar

from shoal.rehearsal.settings import RehearsalSettings
from shoal.seeds import Draws, derive

T = TypeVar("T")


class Fate(StrEnum):
    """How an attempt ends."""

    ANSWERED = "answered"
    ERROR = "error"
    LIMIT = "limit"
    HANG = "hang"
    DROPPED = "dropped"


class Flaw(StrEnum):
    """The fault of an answer."""

    NONE = "none"
    MALFORMED = "malformed"
    TRUNCATED = "truncated"
    REFUSED = "refused"


def draw_fate(settings: RehearsalSettings, content: int, attempt: int) -> Fate:
    shares = (
        (Fate.ERROR, settings.errors),
        (Fate.LIMIT, settings.limits),
        (Fate.HANG, settings.hangs),
        (Fate.DROPPED, settings.dropped),
    )
    return _draw_share(shares, Fate.ANSWERED, settings.seed, content, attempt, "fate")


def draw_flaw(settings: RehearsalSettings, content: int) -> Flaw:
    shares = (
        (Flaw.MALFORMED, settings.malformed),
        (Flaw.TRUNCATED, settings.truncated),
        (Flaw.REFUSED, settings.refused),
    )
    return _draw_share(shares, Flaw.NONE, settings.seed, content, "flaw")


def _draw_share(shares: Sequence[tuple[T, float]], otherwise: T, seed: int, *path: int | str) -> T:
    if not any(share for _, share in shares):
        return otherwise
    drawn = Draws(derive(seed, *path)).random()
    for what, share in shares:
        drawn -= share
        if drawn < 0:
            return what
    return otherwise


def draw_latency(settings: RehearsalSettings, content: int, attempt: int) -> float:
    """Draw the seconds until the answer."""
    if not settings.latency_sigma or not settings.latency_seconds:
        return settings.latency_seconds
    draws = Draws(derive(settings.seed, content, attempt, "latency"))
    return settings.latency_seconds * math.exp(settings.latency_sigma * draws.normal())


def corrupt_reply(text: str, draws: Draws) -> str:
    """Break JSON as models do. Some of the results can be repaired."""
    way = draws.below(5)
    if way == 0:
        return f"Sure, here is my answer:\n```json\n{text}\n```\nLet me know if you need anything else!"
    if way == 1:
        return text.rstrip("}]")
    if way == 2:
        return text.replace('"', "'")
    if way == 3:
        return text[:-1] + "," + text[-1:]
    return "I would rather say it in my own words: " + text.replace("{", "(").replace("}", ")").replace('"', "")
