"""Clients and a provider in virtual time: calls, a limit that decides when each is sent, and how long it all takes.

A call that was refused waits as `Retrying` would make it wait, and then goes to the front of its line.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import Any, Protocol

from bench.providers import Provider, Reply
from shoal.models.base import FailureKind, ModelFailure
from shoal.models.middleware.retrying import BACKOFF_POLICIES, decide_retry
from shoal.rate_limits import RateLimit, RateLimits
from shoal.seeds import Draws, derive
from shoal.slots.broker import Broker
from shoal.slots.leases import CallEnd, CallOutcome, Control, Holder

#: Seconds from a client to the provider, and as many back, at least.
NETWORK_SECONDS = 0.0005
#: Nothing here takes as long, unless it never ends.
LONGEST_SECONDS = 50_000.0

_POOL = ("pool",)
_KINDS = {
    CallEnd.REQUESTS: FailureKind.REQUEST_RATE,
    CallEnd.TOKENS: FailureKind.TOKEN_RATE,
    CallEnd.CONCURRENCY: FailureKind.CONCURRENCY,
    CallEnd.LIMITED: FailureKind.LIMITED,
    CallEnd.OVERLOAD: FailureKind.OVERLOAD,
}


class Stuck(Exception):
    """Calls are left, and nothing will ever happen."""


@dataclass(slots=True, eq=False)
class Call:
    id: int
    tokens: int
    #: Which process has to send it.
    process: int = 0
    failures: int = 0


#: A call that is sent, with what its limit wants to have back.
Begun = tuple[Call, Any]


class Sender(Protocol):
    """Whoever has calls to send."""

    def add(self, call: Call) -> None:
        """One more, at the end of the line."""
        ...

    def add_again(self, call: Call) -> None:
        """One that was refused, at its front."""
        ...

    def begin(self, now: float) -> Begun | float:
        """A call that is sent now; or in how many seconds to ask again."""
        ...

    def end(self, now: float, call: Call, sent: Any, outcome: CallOutcome) -> bool:
        """Whether the slot is given back; if not, a call that was refused is sent again with it."""
        ...


class Alone:
    """A process with a limit of its own."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._line: deque[Call] = deque()

    def add(self, call: Call) -> None:
        self._line.append(call)

    def add_again(self, call: Call) -> None:
        self._line.appendleft(call)

    def begin(self, now: float) -> Begun | float:
        if not self._line:
            return math.inf
        tokens = self._line[0].tokens
        wait = self._control.wait(now, tokens, len(self._line))
        return wait if wait > 0 else (self._line.popleft(), self._control.begin(now, tokens))

    def end(self, now: float, call: Call, sent: Any, outcome: CallOutcome) -> bool:
        self._control.end(now, sent, outcome)
        return True


class Kept(Control, Protocol):
    """A limit that knows nothing of a refused call's end until it is answered."""

    def refused(self, now: float, sent: Any) -> None: ...


class Keeping(Alone):
    """The same, where calls keep their slots while they wait to be sent again."""

    def __init__(self, control: Kept) -> None:
        super().__init__(control)
        self._kept = control

    def end(self, now: float, call: Call, sent: Any, outcome: CallOutcome) -> bool:
        if outcome.end is CallEnd.OK:
            return super().end(now, call, sent, outcome)
        self._kept.refused(now, sent)
        return False


class Apart:
    """Several processes that know nothing of one another."""

    def __init__(self, senders: Sequence[Sender]) -> None:
        self._senders = senders

    def add(self, call: Call) -> None:
        self._senders[call.process].add(call)

    def add_again(self, call: Call) -> None:
        self._senders[call.process].add_again(call)

    def begin(self, now: float) -> Begun | float:
        soonest = math.inf
        for sender in self._senders:
            begun = sender.begin(now)
            if isinstance(begun, tuple):
                return begun
            soonest = min(soonest, begun)
        return soonest

    def end(self, now: float, call: Call, sent: Any, outcome: CallOutcome) -> bool:
        return self._senders[call.process].end(now, call, sent, outcome)


class Together:
    """Several processes at one broker."""

    def __init__(self, control: Control) -> None:
        self._broker = Broker(lambda name: control)
        self._holders: dict[int, Holder] = {}
        self._calls: dict[int, Call] = {}
        self._granted: deque[Begun] = deque()
        self._now = 0.0

    def add(self, call: Call) -> None:
        holder = self._holders.get(call.process)
        if holder is None:
            holder = self._holders[call.process] = Holder(str(call.process))
            self._broker.enter(holder)
        self._calls[call.id] = call
        self._broker.ask(holder, call.id, _POOL, call.tokens, self._now, first=call.failures > 0)

    def add_again(self, call: Call) -> None:
        self.add(call)

    def begin(self, now: float) -> Begun | float:
        self._now = now
        if not self._granted:
            self._granted.extend((self._calls[claim.ticket], claim) for claim in self._broker.grant_claims(now))
        return self._granted.popleft() if self._granted else self._broker.wake_at - now

    def end(self, now: float, call: Call, sent: Any, outcome: CallOutcome) -> bool:
        self._now = now
        self._broker.end(self._holders[call.process], call.id, outcome, now)
        return True


@dataclass(frozen=True, slots=True)
class Drive:
    """How it went."""

    seconds: float
    sends: int
    #: When the first process had everything: what the one had that had least, of an equal share.
    least_share: float


class _Driver:
    """Lets one thing happen after another."""

    def __init__(
        self, provider: Provider, sender: Sender, calls: Sequence[Call], seed: int, jitter_seconds: float
    ) -> None:
        self._provider = provider
        self._sender = sender
        self._order = count()
        self._events: list[tuple[float, int, Any, tuple[Any, ...]]] = []
        self._draws = Draws(derive(seed, "retries"))
        self._jitter_seconds = jitter_seconds
        self._ways = Draws(derive(seed, "ways"))
        self._left = Counter(call.process for call in calls)
        self._answered = Counter(dict.fromkeys(self._left, 0))
        self._least_share: float | None = None
        self._sends = 0
        self._now = 0.0
        for call in calls:
            sender.add(call)

    def drive(self) -> Drive:
        while self._left:
            wake = self._now + self._send()
            if self._events and self._events[0][0] <= wake:
                self._now, _, happen, arguments = heappop(self._events)
                happen(*arguments)
            else:
                self._now = wake
            if self._now > LONGEST_SECONDS:
                raise Stuck(f"{self._left.total()} calls are left")
        return Drive(self._now, self._sends, self._least_share or 0.0)

    def _send(self) -> float:
        """Send what may be sent; seconds until more may be."""
        while isinstance(begun := self._sender.begin(self._now), tuple):
            self._depart(*begun)
        return begun

    def _later(self, at: float, happen: Any, *arguments: Any) -> None:
        heappush(self._events, (at, next(self._order), happen, arguments))

    def _depart(self, call: Call, sent: Any) -> None:
        self._sends += 1
        self._later(self._now + self._way(), self._arrive, call, sent, self._now)

    def _way(self) -> float:
        """Seconds from a client to the provider, or back."""
        if not self._jitter_seconds:
            return NETWORK_SECONDS
        return NETWORK_SECONDS - self._jitter_seconds * math.log(1 - self._ways.random())

    def _arrive(self, call: Call, sent: Any, since: float) -> None:
        reply = self._provider.arrive(self._now, call.id, call.tokens)
        at = reply.at_seconds + self._way()
        self._later(at, self._hear, call, sent, outcome_of(reply, call, at - since))

    def _hear(self, call: Call, sent: Any, outcome: CallOutcome) -> None:
        is_free = self._sender.end(self._now, call, sent, outcome)
        if outcome.end is CallEnd.OK:
            self._count(call.process)
            return
        call.failures += 1
        again = self._now + backoff_seconds(outcome, call.failures, self._draws.random())
        if is_free:
            self._later(again, self._sender.add_again, call)
        else:
            self._later(again, self._depart, call, sent)

    def _count(self, process: int) -> None:
        self._answered[process] += 1
        self._left[process] -= 1
        if self._left[process]:
            return
        del self._left[process]
        if self._least_share is None:
            counts = self._answered.values()
            self._least_share = min(counts) / (sum(counts) / len(counts))


def drive(
    provider: Provider, sender: Sender, calls: Sequence[Call], seed: int, *, jitter_seconds: float = 0.0
) -> Drive:
    """Send all of these calls, until each is answered; each way takes longer by a random time with this mean."""
    return _Driver(provider, sender, calls, seed, jitter_seconds).drive()


def outcome_of(reply: Reply, call: Call, seconds: float) -> CallOutcome:
    allowance = None
    if reply.limits is not None:
        allowance = RateLimits(**{name: RateLimit(*told) for name, told in reply.limits.items()})
    return CallOutcome(CallEnd(reply.kind), seconds, call.tokens if reply.ok else 0, reply.retry_after, allowance)


def backoff_seconds(outcome: CallOutcome, failures: int, draw: float) -> float:
    kind = _KINDS[outcome.end]
    failure = ModelFailure(kind, "", retry_after=outcome.retry_after)
    # Nobody gives up here.
    seconds = decide_retry(failure, min(failures, BACKOFF_POLICIES[kind].attempts - 1), math.inf, draw).seconds
    assert seconds is not None
    return seconds
