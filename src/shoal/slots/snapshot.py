"""How the slots are doing, for people to look at."""

from __future__ import annotations

from typing import Any

import msgspec


class HolderView(msgspec.Struct, frozen=True):
    """One run, as one pool sees it."""

    name: str
    pid: int
    #: How large a share it gets where slots are scarce, against others.
    weight: float
    held: int
    waiting: int
    #: How long its oldest claim that waits has been waiting.
    oldest_wait_seconds: float


class PoolView(msgspec.Struct, frozen=True):
    """One pool and those who want something of it; who has most comes first."""

    name: str
    #: What its control says about itself; `kind` is always there.
    control: dict[str, Any]
    held: int
    waiting: int
    holders: tuple[HolderView, ...]


class BackoffView(msgspec.Struct, frozen=True):
    """A question that failed and waits, without a slot, to be asked again."""

    holder: str
    pid: int
    label: str
    pool: str
    kind: str
    attempt: int
    seconds_left: float


class Snapshot(msgspec.Struct, frozen=True):
    """Everything at one moment."""

    #: The process that hands out the slots, and how long it has been doing so.
    pid: int
    up_seconds: float
    pools: tuple[PoolView, ...]
    #: Those that are due first, and how many there are in all.
    backoffs: tuple[BackoffView, ...]
    backoffs_total: int
