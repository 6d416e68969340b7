"""Serves a broker to runs that send messages, from the same process or through a socket."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from shoal.slots.broker import Broker
from shoal.slots.leases import Holder, Snapshot
from shoal.slots.protocol import (
    Ask,
    BackOff,
    Beat,
    BrokerMessage,
    ClientMessage,
    Grants,
    Hello,
    PoolSizes,
    Resize,
    Resume,
    Return,
    SnapshotReply,
    SnapshotRequest,
)

_log = logging.getLogger(__name__)
#: Timers are no finer than this.
_SHORTEST_TIMER_SECONDS = 0.001


class BrokerSession:
    """One run that talks to the dispatcher. What it holds is taken back when the session is closed."""

    def __init__(self, dispatcher: Dispatcher, answer: Callable[[Sequence[BrokerMessage]], None]) -> None:
        self.answer = answer
        self.holder: Holder | None = None
        self._dispatcher = dispatcher

    def send(self, messages: Iterable[ClientMessage]) -> None:
        """Carry out what a run asks for. Raises ValueError for messages that are not allowed now."""
        dispatcher, broker, holder = self._dispatcher, self._dispatcher.broker, self.holder
        now = dispatcher.clock()
        for message in messages:
            if holder is not None and isinstance(message, Ask):
                broker.ask(holder, message.ticket, message.pools, message.tokens, now, first=message.first)
            elif holder is not None and isinstance(message, Return):
                broker.end(holder, message.ticket, message.outcome, now)
            elif holder is not None and isinstance(message, Resume):
                broker.resume(holder, message.ticket, message.pools, message.tokens, now)
            elif holder is not None and isinstance(message, BackOff):
                broker.back_off(holder, message.label, message.backoff)
            elif holder is None and isinstance(message, Hello):
                holder = self.holder = Holder(message.name, message.weight, message.pid)
                dispatcher.register(self, holder, message.sizes)
            elif isinstance(message, Resize):
                dispatcher.resize(message.pool, message.size)
            elif isinstance(message, Beat):
                self.answer([message])
            elif isinstance(message, SnapshotRequest):
                self.answer([SnapshotReply(dispatcher.take_snapshot(now))])
            else:
                raise ValueError(f"{type(message).__name__} makes no sense here")
        dispatcher.schedule()

    def close(self) -> None:
        self._dispatcher.unregister(self)


class Dispatcher:
    """Grants slots at the end of each turn of the event loop in which something changed."""

    def __init__(
        self,
        broker: Broker,
        *,
        patience: float = 0.0,
        memory: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Grant nothing for the first `patience` seconds, so that reconnecting runs can re-register their leases.

        `memory` is the file in which this process keeps what is learned; None: the runs must do it.
        """
        self.broker = broker
        self._memory = "" if memory is None else str(memory)
        self.clock = clock
        self.started_at = clock()
        self._opens_at = self.started_at + patience
        self._sessions: dict[Holder, BrokerSession] = {}
        self._is_scheduled = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = math.inf

    def register(self, session: BrokerSession, holder: Holder, sizes: Mapping[str, int]) -> None:
        """Add a holder, and answer with the sizes that hold; all sessions hear of sizes that are new."""
        self._sessions[holder] = session
        self.broker.enter(holder)
        before = self.broker.sizes()
        self.broker.declare(sizes)
        if self.broker.sizes() == before:
            session.answer([PoolSizes(before)])
        else:
            self._announce_sizes()

    def unregister(self, session: BrokerSession) -> None:
        if session.holder is not None and self._sessions.pop(session.holder, None) is not None:
            self.broker.leave(session.holder, self.clock())
            self.schedule()

    def resize(self, pool: str, size: int) -> None:
        _log.info("%s has %d slots now", pool, size)
        self.broker.resize(pool, size)
        self._announce_sizes()

    def take_snapshot(self, now: float) -> Snapshot:
        snapshot = self.broker.take_snapshot(now, os.getpid(), self.started_at)
        return msgspec.structs.replace(snapshot, memory=self._memory)

    def _announce_sizes(self) -> None:
        sizes = PoolSizes(self.broker.sizes())
        for session in self._sessions.values():
            session.answer([sizes])

    def schedule(self) -> None:
        """Grant slots after the current turn of the loop, when all messages that came together are carried out."""
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._grant)

    def _grant(self) -> None:
        self._is_scheduled = False
        now = self.clock()
        if now < self._opens_at:
            self._set_timer(self._opens_at, now)
            return
        tickets: dict[Holder, list[int]] = {}
        for claim in self.broker.grant_claims(now):
            tickets.setdefault(claim.holder, []).append(claim.ticket)
        for holder, granted in tickets.items():
            self._sessions[holder].answer([Grants(granted)])
        self._set_timer(self.broker.wake_at, now)

    def _set_timer(self, when: float, now: float) -> None:
        if self._timer is not None:
            # A timer that fires too early does no harm, and is cheaper than setting another each time.
            if self._timer_at <= when:
                return
            self.close()
        if when < math.inf:
            self._timer_at = when
            delay = max(when - now, _SHORTEST_TIMER_SECONDS)
            self._timer = asyncio.get_running_loop().call_later(delay, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self.schedule()

    def close(self) -> None:
        """Cancel the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
