"""Who may act now, and how it went: the nouns of this room.

A *slot* is the right to do one thing at a time. A *pool* has slots of one kind: those of one model on one server, or
those that `--parallel N` gives to agents. A *holder*, usually a run, *claims* a slot of one or more pools at once, gets
a *lease* on all of them together, and ends it with an *outcome*, from which an adaptive pool learns.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Any, Protocol

import msgspec

from shoal.rate_limits import RateLimits

#: The pool of `--parallel N`: as many agents act at once as it has slots, over all runs that were given the option.
AGENTS = "agents"


class CallEnd(StrEnum):
    """How a lease ended, as far as a limit can learn from it."""

    OK = "ok"
    #: Refused as too much at once: calls in flight, requests, tokens, or the server did not say of what.
    CONCURRENCY = "concurrency"
    REQUESTS = "requests"
    TOKENS = "tokens"
    LIMITED = "limited"
    #: The server has too much to do, whoever asks.
    OVERLOAD = "overload"
    #: Anything else that went wrong: it says nothing about a limit.
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_refusal(self) -> bool:
        return self in _REFUSALS


_REFUSALS = frozenset((CallEnd.CONCURRENCY, CallEnd.REQUESTS, CallEnd.TOKENS, CallEnd.LIMITED))


class CallOutcome(msgspec.Struct, frozen=True, array_like=True, gc=False, omit_defaults=True):
    end: CallEnd
    #: How long the server took.
    seconds: float = 0.0
    #: As the server counted them; 0: it did not say.
    tokens: int = 0
    #: Seconds that the server asked to wait.
    retry_after: float | None = None
    #: What the server published about its limits.
    allowance: RateLimits | None = None


CANCELLED = CallOutcome(CallEnd.CANCELLED)


class Holder(msgspec.Struct, eq=False):
    """Somebody who claims slots: a run in its process. What it holds is given back when it is gone."""

    name: str
    #: How large a share it gets where slots are scarce, against others.
    weight: float = 1.0
    pid: int = 0
    claims: dict[int, SlotClaim] = msgspec.field(default_factory=dict)
    #: What it waits to try again: by label, which kind of failure, and until when.
    backoffs: dict[str, Backoff] = msgspec.field(default_factory=dict)


class SlotClaim(msgspec.Struct, eq=False):
    """One slot of each of these pools, wanted or held."""

    holder: Holder
    #: Tells the holder's claims apart.
    ticket: int
    pools: tuple[str, ...]
    #: What the call will probably take, where tokens are limited.
    tokens: int
    asked_at: float
    #: What each pool wants to have back when the lease ends; None: still waiting.
    sent: tuple[Any, ...] | None = None


class Lease(msgspec.Struct, eq=False, gc=False):
    """The right to do one thing now. It ends when it is released, or with the process."""

    ticket: int
    pools: tuple[str, ...]
    #: What the call will probably take, where tokens are limited.
    tokens: int
    #: The ticket for which the broker granted it, and when that was; it may have been handed over since.
    granted: int = 0
    granted_at: float = 0.0
    #: Whether it goes before the other claims of its holder: it has waited before.
    first: bool = False


class Backoff(msgspec.Struct, frozen=True, array_like=True):
    """A question that failed and waits, without a slot, to be asked again."""

    pool: str
    kind: str
    attempt: int
    until: float


class Control(Protocol):
    """The limit of one pool."""

    def wait(self, now: float, tokens: int, waiting: int) -> float:
        """Seconds until one more may begin, with so many waiting: 0 is now, infinity is not before one ends."""
        ...

    def begin(self, now: float, tokens: int) -> Any:
        """One more begins. What is returned is handed back at its end."""
        ...

    def end(self, now: float, sent: Any, outcome: CallOutcome) -> None: ...

    def resume(self, now: float, tokens: int) -> Any:
        """One that began before this control was there: it counts, but nothing is learned from it."""
        ...

    def look(self, now: float) -> dict[str, Any]:
        """For people: how many may be in flight, how many are, and what was learned."""
        ...


class Fixed:
    """So many at once. Fewer, if the number is lowered, as soon as enough have ended."""

    def __init__(self, size: int, held: int = 0) -> None:
        self.size = size
        self.held = held

    def wait(self, now: float, tokens: int, waiting: int) -> float:
        return 0.0 if self.held < self.size else math.inf

    def begin(self, now: float, tokens: int) -> Any:
        self.held += 1
        return True

    def end(self, now: float, sent: Any, outcome: CallOutcome) -> None:
        self.held -= 1

    def resume(self, now: float, tokens: int) -> Any:
        return self.begin(now, tokens)

    def look(self, now: float) -> dict[str, Any]:
        return {"kind": "fixed", "size": self.size, "held": self.held}


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
