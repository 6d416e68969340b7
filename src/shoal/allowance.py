"""What a server publishes about its limits, with each of its replies."""

from __future__ import annotations

import msgspec


class Published(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One limit: so much a minute, so much of it left, and seconds until it is full again."""

    limit: float
    remaining: float | None = None
    reset_seconds: float | None = None


class Allowance(msgspec.Struct, frozen=True, array_like=True, gc=False, omit_defaults=True):
    requests: Published | None = None
    tokens: Published | None = None
