"""A broker that is spoken to in messages: by runs in its own process, and by those that come through a socket."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import time
from collections.abc import Callable, Iterable, Sequence

from shoal.slots.broker import Broker
from shoal.slots.leases import Holder, Snapshot
from shoal.slots.protocol import (
    Ask,
    BackOff,
    BrokerMessage,
    ClientMessage,
    Granted,
    Hello,
    Resize,
    Resume,
    Return,
    Seen,
    Sized,
    SnapshotRequest,
)

_log = logging.getLogger(__name__)
#: Timers are no finer than this.
_SHORTEST_NAP_SECONDS = 0.001


class BrokerSession:
    """One who talks to the desk. What it holds is given back when it hangs up."""

    def __init__(self, desk: Dispatcher, answer: Callable[[Sequence[BrokerMessage]], None]) -> None:
        self.answer = answer
        self.holder: Holder | None = None
        self._desk = desk

    def say(self, messages: Iterable[ClientMessage]) -> None:
        """Raises ValueError where what is said makes no sense."""
        broker, holder, now = self._desk.broker, self.holder, self._desk.clock()
        for message in messages:
            if holder is None:
                self._say_rarely(message, now)
                holder = self.holder
            elif isinstance(message, Ask):
                broker.ask(holder, message.ticket, message.pools, message.tokens, now, first=message.first)
            elif isinstance(message, Return):
                broker.end(holder, message.ticket, message.outcome, now)
            elif isinstance(message, Resume):
                broker.resume(holder, message.ticket, message.pools, message.tokens, now)
            elif isinstance(message, BackOff):
                broker.back_off(holder, message.label, message.backoff)
            else:
                self._say_rarely(message, now)
        self._desk.stir()

    def _say_rarely(self, message: ClientMessage, now: float) -> None:
        if isinstance(message, Hello) and self.holder is None:
            self.holder = Holder(message.name, message.weight, message.pid)
            self._desk.seat(self, self.holder, message)
        elif isinstance(message, Resize):
            self._desk.resize(message.pool, message.size)
        elif isinstance(message, SnapshotRequest):
            self.answer([Seen(self._desk.look(now))])
        else:
            raise ValueError(f"{type(message).__name__} makes no sense here")

    def hang_up(self) -> None:
        self._desk.unseat(self)


class Dispatcher:
    """Hands out slots at the end of each turn of the loop in which something changed."""

    def __init__(self, broker: Broker, *, patience: float = 0.0, clock: Callable[[], float] = time.monotonic) -> None:
        """Nothing is granted before `patience` seconds are over: so long do those have who bring leases with them."""
        self.broker = broker
        self.clock = clock
        self._since = clock()
        self._opens_at = self._since + patience
        self._callers: dict[Holder, BrokerSession] = {}
        self._stirred = False
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = math.inf

    def caller(self, answer: Callable[[Sequence[BrokerMessage]], None]) -> BrokerSession:
        return BrokerSession(self, answer)

    def seat(self, caller: BrokerSession, holder: Holder, hello: Hello) -> None:
        self._callers[holder] = caller
        self.broker.enter(holder)
        before = self.broker.sizes()
        self.broker.declare(hello.sizes)
        if self.broker.sizes() == before:
            caller.answer([Sized(before)])
        else:
            self._tell_sizes()

    def unseat(self, caller: BrokerSession) -> None:
        if caller.holder is not None and self._callers.pop(caller.holder, None) is not None:
            self.broker.leave(caller.holder, self.clock())
            self.stir()

    def resize(self, pool: str, size: int) -> None:
        _log.info("%s has %d slots now", pool, size)
        self.broker.resize(pool, size)
        self._tell_sizes()

    def _tell_sizes(self) -> None:
        sizes = Sized(self.broker.sizes())
        for caller in self._callers.values():
            caller.answer([sizes])

    def look(self, now: float) -> Snapshot:
        return self.broker.look(now, os.getpid(), self._since)

    # handing out

    def stir(self) -> None:
        """Something changed: see who may begin, once everything is heard that came at the same time."""
        if not self._stirred:
            self._stirred = True
            asyncio.get_running_loop().call_soon(self._hand_out)

    def _hand_out(self) -> None:
        self._stirred = False
        now = self.clock()
        if now < self._opens_at:
            self._wake_at(self._opens_at, now)
            return
        tickets: dict[Holder, list[int]] = {}
        for claim in self.broker.grants(now):
            tickets.setdefault(claim.holder, []).append(claim.ticket)
        for holder, granted in tickets.items():
            self._callers[holder].answer([Granted(granted)])
        self._wake_at(self.broker.wake, now)

    def _wake_at(self, when: float, now: float) -> None:
        if self._alarm is not None:
            # One that rings too early does no harm, and is cheaper than setting another each time.
            if self._alarm_at <= when:
                return
            self._alarm.cancel()
            self._alarm = None
        if when < math.inf:
            self._alarm_at = when
            delay = max(when - now, _SHORTEST_NAP_SECONDS)
            self._alarm = asyncio.get_running_loop().call_later(delay, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self.stir()

    def close(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
