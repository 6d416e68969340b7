"""The nouns of this room: slot, pool, holder, claim, lease, outcome, control, snapshot.

A *slot* is the right to do one thing at a time. A *pool* has slots of one kind: those of one model on one server, or
those that `--parallel N` gives to agents. A *holder*, usually a run, *claims* a slot of one or more pools at once, gets
a *lease* on all of them together, and ends it with an *outcome*, from which an adaptive pool learns.
"""

from __future__ import annotations

import asyncio
import math
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

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
    #: The server has too much to do, for all its clients.
    OVERLOAD = "overload"
    #: Any other failure: it says nothing about a limit.
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_refusal(self) -> bool:
        return self in _REFUSALS


_REFUSALS = frozenset((CallEnd.CONCURRENCY, CallEnd.REQUESTS, CallEnd.TOKENS, CallEnd.LIMITED))


class CallOutcome(msgspec.Struct, frozen=True, array_like=True, gc=False, omit_defaults=True):
    """How a call ended, how long it took, and what the server said about its limits."""

    end: CallEnd
    #: How long the server took.
    seconds: float = 0.0
    #: As the server counted them; 0: it did not say.
    tokens: int = 0
    #: Seconds that the server asked to wait.
    retry_after: float | None = None
    #: The limits that the server published with its reply.
    allowance: RateLimits | None = None


CANCELLED = CallOutcome(CallEnd.CANCELLED)


class Holder(msgspec.Struct, eq=False):
    """A run in its process, as the broker knows it. What it holds is taken back when it disconnects."""

    name: str
    #: Its share where slots are scarce, relative to other holders.
    weight: float = 1.0
    pid: int = 0
    claims: dict[int, SlotClaim] = msgspec.field(default_factory=dict)
    #: Questions that wait for another attempt, by label.
    backoffs: dict[str, Backoff] = msgspec.field(default_factory=dict)


class SlotClaim(msgspec.Struct, eq=False):
    """The broker's side of a claim: one slot of each of these pools, waiting or held."""

    holder: Holder
    #: Unique among the claims of its holder.
    ticket: int
    pools: tuple[str, ...]
    #: Estimated size of the call, for limits of tokens.
    tokens: int
    asked_at: float
    #: What `Control.begin` of each pool returned, for its `end`; None: still waiting.
    sent: tuple[Any, ...] | None = None


class Lease(msgspec.Struct, eq=False):
    """The run's side of a claim: the right to do one thing now, as soon as `granted` is done.

    It ends when it is released, or with the process.
    """

    ticket: int
    pools: tuple[str, ...]
    #: Estimated size of the call, for limits of tokens.
    tokens: int
    #: Whether it goes before the other claims of its holder, because it has waited before.
    first: bool
    granted: asyncio.Future[None]
    #: The ticket for which the broker granted the slot: another one than `ticket` if the run handed the slot on.
    granted_ticket: int = 0
    granted_at: float = 0.0


class Backoff(msgspec.Struct, frozen=True, array_like=True):
    """A question that failed and waits, without a slot, for its next attempt."""

    pool: str
    kind: str
    attempt: int
    until: float


class Control(Protocol):
    """The limit of one pool."""

    def wait(self, now: float, tokens: int, waiting: int) -> float:
        """Return the seconds until one more call may begin while `waiting` claims wait.

        0 means now, infinity means not before a lease ends.
        """
        ...

    def begin(self, now: float, tokens: int) -> Any:
        """Count a call that begins, and return what `end` needs to know about it."""
        ...

    def end(self, now: float, sent: Any, outcome: CallOutcome) -> None: ...

    def resume(self, now: float, tokens: int) -> Any:
        """Count a call that began under another control; nothing is learned from it."""
        ...

    def describe(self, now: float) -> dict[str, Any]:
        """Return, for display, its `kind`, how many calls may be and are in flight, and what it learned."""
        ...


@runtime_checkable
class Learnable(Protocol):
    """A control whose knowledge is worth storing."""

    def get_learned(self) -> Any:
        """Return what was learned as a msgspec struct; None if nothing was yet."""
        ...


class Fixed:
    """A limit of `size` calls at once. If it is lowered, leases that are held run to their end."""

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

    def describe(self, now: float) -> dict[str, Any]:
        return {"kind": "fixed", "size": self.size, "held": self.held}


class HolderView(msgspec.Struct, frozen=True):
    """What one run holds and waits for in one pool."""

    name: str
    pid: int
    weight: float
    held: int
    waiting: int
    #: The age of its oldest waiting claim.
    oldest_wait_seconds: float


class PoolView(msgspec.Struct, frozen=True):
    """One pool and the holders that hold or wait for its slots, the largest first."""

    name: str
    #: What `Control.describe` returned.
    control: dict[str, Any]
    held: int
    waiting: int
    holders: tuple[HolderView, ...]
    #: What its control learned, in plain values; None if nothing was.
    learned: Any = None


class BackoffView(msgspec.Struct, frozen=True):
    """A question that failed and waits, without a slot, for its next attempt."""

    holder: str
    pid: int
    label: str
    pool: str
    kind: str
    attempt: int
    seconds_left: float


class Snapshot(msgspec.Struct, frozen=True):
    """The state of a broker at one moment."""

    #: The broker's process.
    pid: int
    up_seconds: float
    pools: tuple[PoolView, ...]
    #: Those that are due first; `backoffs_total` counts all.
    backoffs: tuple[BackoffView, ...]
    backoffs_total: int
    #: The file in which the broker keeps what is learned; empty: it keeps nothing.
    memory: str = ""
