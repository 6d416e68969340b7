"""Clients and a provider in virtual time: calls, a limit that decides when each is sent, and how long it all takes.

A call that was refused goes to the front of its line: at once, where the limit learns and decides when it is sent, or
else after the wait that `Retrying` decides on.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from heapq import heappop, heappush
from itertools import count
from typing import Any, Protocol

from bench.loads import Load, World
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
class _Place:
    """Where a world is."""

    world: World
    round: int = 0
    chains_left: int = 0


@dataclass(slots=True, eq=False)
class Call:
    id: int
    tokens: int
    place: _Place
    #: How many calls of its chain are left, itself included.
    left: int
    failures: int = 0

    @property
    def process(self) -> int:
        """Which process has to send it."""
        return self.place.world.process


#: A call that is sent, with what its limit wants to have back.
Begun = tuple[Call, Any]


class Again(Enum):
    """When a refused call is sent again."""

    #: At once, as far as the limit allows it.
    WHEN_ALLOWED = "when allowed"
    #: When the time has passed that the server asked for.
    LATER = "later"
    #: The same, and it keeps its slot until then.
    KEPT = "kept"


class Sender(Protocol):
    """Whoever has calls to send."""

    def add(self, call: Call, now: float) -> None:
        """One more, at the end of the line; at its front if it was refused."""
        ...

    def begin(self, now: float) -> Begun | float:
        """A call that is sent now; or in how many seconds to ask again."""
        ...

    def end(self, now: float, call: Call, sent: Any, outcome: CallOutcome) -> Again: ...


class Alone:
    """A process with a limit of its own."""

    again = Again.LATER

    def __init__(self, control: Control) -> None:
        self._control = control
        self._line: deque[Call] = deque()

    def add(self, call: Call, now: float) -> None:
        if call.failures:
            self._line.appendleft(call)
        else:
            self._line.append(call)

    def begin(self, now: float) -> Begun | float:
        if not self._line:
            return math.inf
        tokens = self._line[0].tokens
        wait = self._control.wait(now, tokens, len(self._line))
        return wait if wait > 0 else (self._line.popleft(), self._control.begin(now, tokens))

    def end(self, now: float, call: Call, sent: Any, outcome: CallOutcome) -> Again:
        self._control.end(now, sent, outcome)
        return self.again


class Learning(Alone):
    """The same, where the limit decides when a refused call is sent again."""

    again = Again.WHEN_ALLOWED


class Kept(Control, Protocol):
    """A limit that knows nothing of a refused call's end until it is answered."""

    def refused(self, now: float, sent: Any) -> None: ...


class Keeping(Alone):
    """The same, where calls keep their slots while they wait to be sent again."""

    def __init__(self, control: Kept) -> None:
        super().__init__(control)
        self._kept = control

    def end(self, now: float, call: Call, sent: Any, outcome: CallOutcome) -> Again:
        if outcome.end is CallEnd.OK:
            return super().end(now, call, sent, outcome)
        self._kept.refused(now, sent)
        return Again.KEPT


class Apart:
    """Several processes that know nothing of one another."""

    def __init__(self, senders: Sequence[Sender]) -> None:
        self._senders = senders

    def add(self, call: Call, now: float) -> None:
        self._senders[call.process].add(call, now)

    def begin(self, now: float) -> Begun | float:
        soonest = math.inf
        for sender in self._senders:
            begun = sender.begin(now)
            if isinstance(begun, tuple):
                return begun
            soonest = min(soonest, begun)
        return soonest

    def end(self, now: float, call: Call, sent: Any, outcome: CallOutcome) -> Again:
        return self._senders[call.process].end(now, call, sent, outcome)


class Together:
    """Several processes at one broker."""

    def __init__(self, control: Control) -> None:
        self._broker = Broker(lambda name: control)
        self._holders: dict[int, Holder] = {}
        self._calls: dict[int, Call] = {}
        self._granted: deque[Begun] = deque()

    def add(self, call: Call, now: float) -> None:
        holder = self._holders.get(call.process)
        if holder is None:
            holder = self._holders[call.process] = Holder(str(call.process))
            self._broker.enter(holder)
        self._calls[call.id] = call
        self._broker.ask(holder, call.id, _POOL, call.tokens, now, first=call.failures > 0)

    def begin(self, now: float) -> Begun | float:
        if not self._granted:
            self._granted.extend((self._calls[claim.ticket], claim) for claim in self._broker.grant_claims(now))
        return self._granted.popleft() if self._granted else self._broker.wake_at - now

    def end(self, now: float, call: Call, sent: Any, outcome: CallOutcome) -> Again:
        self._broker.end(self._holders[call.process], call.id, outcome, now)
        return Again.WHEN_ALLOWED


@dataclass(frozen=True, slots=True)
class Drive:
    """How it went."""

    seconds: float
    sends: int
    #: The most calls in flight at once.
    peak: int
    #: The longest attempt.
    longest_seconds: float
    #: When the first process had everything: what the one had that had least, of an equal share.
    least_share: float


class _Driver:
    """Lets one thing happen after another."""

    def __init__(self, provider: Provider, sender: Sender, load: Load, seed: int, jitter_seconds: float) -> None:
        self._provider = provider
        self._sender = sender
        self._load = load
        self._order = count()
        self._events: list[tuple[float, int, Any, tuple[Any, ...]]] = []
        self._draws = Draws(derive(seed, "retries"))
        self._jitter_seconds = jitter_seconds
        self._ways = Draws(derive(seed, "ways"))
        self._ids = count()
        self._left = Counter[int]()
        for world in load.worlds:
            self._left[world.process] += world.calls
        self._answered = Counter(dict.fromkeys(self._left, 0))
        self._least_share: float | None = None
        self._sends = self._in_flight = self._peak = 0
        self._longest = 0.0
        self._now = 0.0
        for world in load.worlds:
            self._later(world.starts_at, self._begin_round, _Place(world))

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
        return Drive(self._now, self._sends, self._peak, self._longest, self._least_share or 0.0)

    def _begin_round(self, place: _Place) -> None:
        chains = place.world.rounds[place.round]
        place.chains_left = len(chains)
        for length in chains:
            self._ask(place, length)

    def _ask(self, place: _Place, left: int) -> None:
        call_id = next(self._ids)
        self._sender.add(Call(call_id, self._load.tokens_of(call_id), place, left), self._now)

    def _send(self) -> float:
        """Send what may be sent; seconds until more may be."""
        while isinstance(begun := self._sender.begin(self._now), tuple):
            self._depart(*begun)
        return begun

    def _later(self, at: float, happen: Any, *arguments: Any) -> None:
        heappush(self._events, (at, next(self._order), happen, arguments))

    def _depart(self, call: Call, sent: Any) -> None:
        self._sends += 1
        self._in_flight += 1
        self._peak = max(self._peak, self._in_flight)
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
        self._in_flight -= 1
        self._longest = max(self._longest, outcome.seconds)
        again = self._sender.end(self._now, call, sent, outcome)
        if outcome.end is CallEnd.OK:
            self._count(call.process)
            self._go_on(call)
            return
        call.failures += 1
        if again is Again.WHEN_ALLOWED:
            self._sender.add(call, self._now)
            return
        at = self._now + backoff_seconds(outcome, call.failures, self._draws.random())
        if again is Again.LATER:
            self._later(at, lambda: self._sender.add(call, self._now))
        else:
            self._later(at, self._depart, call, sent)

    def _go_on(self, call: Call) -> None:
        """Ask what comes after an answer: the next call of its chain, or the next round."""
        place = call.place
        if call.left > 1:
            self._ask(place, call.left - 1)
            return
        place.chains_left -= 1
        if place.chains_left == 0 and place.round + 1 < len(place.world.rounds):
            place.round += 1
            self._later(self._now + place.world.pause_seconds, self._begin_round, place)

    def _count(self, process: int) -> None:
        self._answered[process] += 1
        self._left[process] -= 1
        if self._left[process]:
            return
        del self._left[process]
        if self._least_share is None:
            counts = self._answered.values()
            self._least_share = min(counts) / (sum(counts) / len(counts))


def drive(provider: Provider, sender: Sender, load: Load, seed: int, *, jitter_seconds: float = 0.0) -> Drive:
    """Send all calls of this load, until each is answered; each way takes longer by a random time with this mean."""
    return _Driver(provider, sender, load, seed, jitter_seconds).drive()


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
