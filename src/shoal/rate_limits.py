"""Rate limits as a server publishes them in the headers of its replies.

A module apart from `types`, so that the broker process loads no numpy.
"""

from __future__ import annotations

import msgspec


class RateLimit(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One limit: so much a minute, so much of it left, and seconds until it is full again."""

    limit: float
    remaining: float | None = None
    reset_seconds: float | None = None


class RateLimits(msgspec.Struct, frozen=True, array_like=True, gc=False, omit_defaults=True):
    requests: RateLimit | None = None
    tokens: RateLimit | None = None
