"""Who may act now, and how it went: the nouns of this room.

A *slot* is the right to do one thing at a time. A *pool* has slots of one kind: those of one model on one server, or
those that `--parallel N` gives to agents. A *holder*, usually a run, *claims* a slot of one or more pools at once, gets
a *lease* on all of them together, and ends it with an *outcome*, from which an adaptive pool learns.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from shoal.allowance import Allowance

#: The pool of `--parallel N`: as many agents act at once as it has slots, over all runs that were given the option.
AGENTS = "agents"


class End(StrEnum):
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


_REFUSALS = frozenset((End.CONCURRENCY, End.REQUESTS, End.TOKENS, End.LIMITED))


class Outcome(msgspec.Struct, frozen=True, array_like=True, gc=False, omit_defaults=True):
    end: End
    #: How long the server took.
    seconds: float = 0.0
    #: As the server counted them; 0: it did not say.
    tokens: int = 0
    #: Seconds that the server asked to wait.
    retry_after: float | None = None
    #: What the server published about its limits.
    allowance: Allowance | None = None


CANCELLED = Outcome(End.CANCELLED)


class Holder(msgspec.Struct, eq=False):
    """Somebody who claims slots: a run in its process. What it holds is given back when it is gone."""

    name: str
    #: How large a share it gets where slots are scarce, against others.
    weight: float = 1.0
    pid: int = 0
    claims: dict[int, Claim] = msgspec.field(default_factory=dict)
    #: What it waits to try again: by label, which kind of failure, and until when.
    backoffs: dict[str, Backoff] = msgspec.field(default_factory=dict)


class Claim(msgspec.Struct, eq=False):
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
