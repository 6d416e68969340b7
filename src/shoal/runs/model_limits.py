"""Connects the model stack of a run with the slots that limit its calls."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from hashlib import blake2b
from itertools import chain
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from shoal.journal import JournalKey
from shoal.machine import Alarm, Failures, Pressure, Throttle, watch_machine
from shoal.models import CHARACTERS_PER_TOKEN, Answer, FailureKind, ModelFailure, Question
from shoal.models.openai import Endpoint
from shoal.slots import (
    AGENTS,
    CANCELLED,
    Backoff,
    BrokerLocation,
    CallEnd,
    CallOutcome,
    Lease,
    RemoteBroker,
    Slots,
    Snapshot,
    open_slots,
    remember_limits,
)

_log = logging.getLogger(__name__)

#: How often the state of all limits is fetched for the run's metrics, and how long the last time may take.
SNAPSHOT_EVERY_SECONDS = 2.0
LAST_SNAPSHOT_SECONDS = 0.5
#: The peak of calls in flight decays by this factor each second: to a half in about a minute.
PEAK_DECAY_PER_SECOND = 0.99

#: How attempts ended, as far as a limit can learn from it. Other failures say nothing about limits.
_ENDS = {
    FailureKind.CONCURRENCY: CallEnd.CONCURRENCY,
    FailureKind.REQUEST_RATE: CallEnd.REQUESTS,
    FailureKind.TOKEN_RATE: CallEnd.TOKENS,
    FailureKind.LIMITED: CallEnd.LIMITED,
    FailureKind.OVERLOAD: CallEnd.OVERLOAD,
    FailureKind.TRANSIENT: CallEnd.FAILED,
    FailureKind.UNREACHABLE: CallEnd.FAILED,
    FailureKind.REFUSED: CallEnd.OK,
    FailureKind.UNREADABLE: CallEnd.OK,
}
#: Failures of the server that have nothing to do with limits.
_SERVER_FAILURES = (FailureKind.TRANSIENT, FailureKind.UNREACHABLE, FailureKind.OVERLOAD)


def name_pool(endpoint: Endpoint) -> str:
    """Name the limit of a model on a server; each key has its own, as limits belong to accounts."""
    if endpoint.file is not None:
        return f"{endpoint.model} on this machine"
    parts = urlsplit(endpoint.base_url)
    account = f" #{blake2b(endpoint.key.encode(), digest_size=3, person=b'shoal').hexdigest()}" if endpoint.key else ""
    return f"{endpoint.model} at {parts.netloc}{account}"


class SharedLimit:
    """The limit of a run's calls, shared with all other runs of this user."""

    def __init__(self, slots: Slots, endpoints: Mapping[str, Endpoint], *, parallel: bool = False) -> None:
        self._slots = slots
        own = (AGENTS,) if parallel else ()
        self._pools = {name: (name_pool(endpoint), *own) for name, endpoint in endpoints.items()}
        #: Questions whose last attempt failed.
        self._failed: set[JournalKey] = set()
        self.is_local = any(endpoint.file is not None for endpoint in endpoints.values())
        self.failures = Failures()

    @property
    def pools(self) -> set[str]:
        """The names of all pools that its calls take slots of."""
        return set(chain.from_iterable(self._pools.values()))

    async def enter(self, question: Question) -> Lease:
        is_retry = question.key in self._failed
        if is_retry:
            self._failed.discard(question.key)
            self._slots.back_off(str(question.key), None)
        # What a provider will probably count against its limit; where it counts otherwise, the limit learns that.
        characters = sum(len(message.content) for message in question.messages)
        tokens = characters // CHARACTERS_PER_TOKEN + (question.max_tokens or 0)
        return await self._slots.acquire(self._pools[question.model], tokens, first=is_retry)

    def leave(self, slot: Lease, question: Question, outcome: Answer | ModelFailure | None, seconds: float) -> None:
        self._slots.release(slot, _to_call_outcome(outcome, seconds))
        if outcome is not None:
            kind = outcome.kind if isinstance(outcome, ModelFailure) else None
            self.failures.add(time.monotonic(), kind in _SERVER_FAILURES)
            if kind is not None:
                self._failed.add(question.key)

    def back_off(self, question: Question, failure: ModelFailure, attempt: int, seconds: float) -> float:
        """Return 0 for a refused call: a limit that learns knows better than `Retry-After` when it has room."""
        pool = self._pools[question.model][0]
        end = _ENDS.get(failure.kind)
        if end is not None and end.is_refusal and pool not in self._slots.sizes:
            return 0.0
        self._slots.back_off(str(question.key), Backoff(pool, failure.kind, attempt, time.monotonic() + seconds))
        return seconds


def _to_call_outcome(outcome: Answer | ModelFailure | None, seconds: float) -> CallOutcome:
    if isinstance(outcome, Answer):
        usage = outcome.usage
        return CallOutcome(CallEnd.OK, seconds, usage.input + usage.output, None, outcome.allowance)
    end = None if outcome is None else _ENDS.get(outcome.kind)
    if outcome is None or end is None:
        return CANCELLED
    return CallOutcome(end, seconds, 0, outcome.retry_after, outcome.allowance)


class CallCounts(NamedTuple):
    """The calls of a process now: sent, waiting for a slot, and waiting to be sent again."""

    in_flight: int = 0
    waiting: int = 0
    backing_off: int = 0


class RunLimits:
    """What limits a run: the slots it shares with other runs, and the load of the machine."""

    def __init__(self, slots: Slots, limit: SharedLimit) -> None:
        self.slots = slots
        self.limit = limit
        #: What is too much on this machine now.
        self.alarms: tuple[Alarm, ...] = ()
        # Where a model answers on this machine itself, a busy CPU is what its calls are for.
        busy = {Pressure.CPU} if limit.is_local else set()
        self._heeded = tuple(kind for kind in Pressure if kind not in busy)
        self._ceiling = slots.ceiling
        self._snapshot: Snapshot | None = None
        #: The calls of the run's other processes, by their numbers.
        self.elsewhere: dict[int, CallCounts] = {}
        #: The most calls in flight lately.
        self._peak = 1.0

    @property
    def own_calls(self) -> CallCounts:
        return CallCounts(self.slots.held, self.slots.waiting, self.slots.backing_off)

    @property
    def in_flight(self) -> int:
        return self.count_calls().in_flight

    @property
    def waiting(self) -> int:
        return self.count_calls().waiting

    def count_calls(self) -> CallCounts:
        """Count the calls of all processes of the run."""
        return CallCounts(*map(sum, zip(self.own_calls, *self.elsewhere.values(), strict=True)))

    def as_dict(self) -> dict[str, Any]:
        """Return, for the run's state and metrics, this run's calls and the pools as all runs see them."""
        pools = () if self._snapshot is None else self._snapshot.pools
        return {
            **self.count_calls()._asdict(),
            "ceiling": self.slots.ceiling,
            "strained": [alarm.kind for alarm in self.alarms],
            "pools": {pool.name: {**pool.control, "held": pool.held, "waiting": pool.waiting} for pool in pools},
        }

    async def follow(self) -> None:
        """Fetch the state of all limits regularly, and do less while the machine is under pressure."""
        async with asyncio.TaskGroup() as group:
            group.create_task(watch_machine(self.apply_throttle, self.limit.failures.share, kinds=self._heeded))
            while True:
                self._snapshot = await self.slots.request_snapshot()
                await asyncio.sleep(SNAPSHOT_EVERY_SECONDS)

    async def finish(self, place: BrokerLocation | RemoteBroker | None) -> None:
        """Fetch the final state, unless that takes long, and keep what was learned for this user's next runs."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_SNAPSHOT_SECONDS):
                self._snapshot = await self.slots.request_snapshot()
        if place is not None and self._snapshot is not None:
            remember_limits(place, self._snapshot, self.limit.pools)

    def apply_throttle(self, throttle: Throttle) -> None:
        """Lower or restore the ceiling of calls at once, and log alarms that begin or end."""
        self.alarms = throttle.alarms
        for alarm in throttle.began:
            _log.warning("%s", alarm.text)
        for alarm in throttle.ended:
            _log.info("%s", alarm.text)
        if throttle.factor < 1:
            self.slots.ceiling = throttle.at_once(round(self._peak))
            return
        self.slots.ceiling = self._ceiling
        # When pressure begins, few calls may be in flight, such as in an outage: what counts is the peak before it.
        self._peak = max(self._peak * PEAK_DECAY_PER_SECOND, self.slots.held, 1.0)


@asynccontextmanager
async def open_limits(
    name: str,
    endpoints: Mapping[str, Endpoint],
    *,
    place: BrokerLocation | RemoteBroker | None,
    parallel: int | None,
    ceiling: int | None,
) -> AsyncIterator[RunLimits]:
    """Open the limits of a run for as long as it is worked on.

    `place` is where runs share their slots, `parallel` how many agents act at once over all runs with that option, and
    `ceiling` how many calls this run makes at once.
    """
    async with open_slots(name, place, ceiling=ceiling) as slots:
        if parallel is not None:
            slots.resize(AGENTS, parallel)
        for endpoint in endpoints.values():
            if endpoint.slots is not None:
                slots.resize(name_pool(endpoint), endpoint.slots)
        limits = RunLimits(slots, SharedLimit(slots, endpoints, parallel=parallel is not None))
        following = asyncio.create_task(limits.follow())
        try:
            yield limits
        finally:
            following.cancel()
            await asyncio.wait([following])
            await limits.finish(place)
