"""The slots of a run's calls: between the model stack, which asks, and the room that hands slots out."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from hashlib import blake2b
from typing import Any
from urllib.parse import urlsplit

from shoal.machine.pressure import Alarm, Failures, Throttle, watch_machine
from shoal.models.base import Answer, FailureKind, ModelFailure, Question
from shoal.models.openai.endpoints import Endpoint
from shoal.models.tokens import CHARACTERS_PER_TOKEN
from shoal.slots.client import Slots, open_slots
from shoal.slots.leases import AGENTS, CANCELLED, Backoff, CallEnd, CallOutcome, Lease, Snapshot
from shoal.slots.location import BrokerLocation

_log = logging.getLogger(__name__)

#: How often the limits are looked at for the run's metrics.
LOOK_SECONDS = 2.0
LAST_LOOK_SECONDS = 0.5
#: What is left after a second of how many calls were in flight: of a peak a minute ago, half.
FORGOTTEN_PER_SECOND = 0.99

#: How attempts ended, as far as a limit can learn from it. The rest are replies that say nothing about limits.
_ENDS = {
    FailureKind.CONCURRENCY: CallEnd.CONCURRENCY,
    FailureKind.REQUEST_RATE: CallEnd.REQUESTS,
    FailureKind.TOKEN_RATE: CallEnd.TOKENS,
    FailureKind.LIMITED: CallEnd.LIMITED,
    FailureKind.OVERLOAD: CallEnd.OVERLOAD,
    FailureKind.TRANSIENT: CallEnd.FAILED,
    FailureKind.REFUSED: CallEnd.OK,
}
#: Those that count as failed calls, and are no matter of limits.
_FAILED = (FailureKind.TRANSIENT, FailureKind.OVERLOAD)


def pool_of(endpoint: Endpoint) -> str:
    """One limit for each model on each server, and for each key, as each account has its own."""
    parts = urlsplit(endpoint.base_url)
    account = f" #{blake2b(endpoint.key.encode(), digest_size=3, person=b'shoal').hexdigest()}" if endpoint.key else ""
    return f"{endpoint.model} at {parts.netloc}{account}"


class SharedLimit:
    """The limit of a run's calls, shared with all other runs of this user that share its slots."""

    def __init__(self, slots: Slots, endpoints: Mapping[str, Endpoint], *, parallel: bool = False) -> None:
        self._slots = slots
        own = (AGENTS,) if parallel else ()
        self._pools = {name: (pool_of(endpoint), *own) for name, endpoint in endpoints.items()}
        #: Questions that were tried before.
        self._again: set[str] = set()
        self.failures = Failures()

    async def enter(self, question: Question) -> Lease:
        again = question.key in self._again
        if again:
            self._again.discard(question.key)
            self._slots.back_off(str(question.key), None)
        return await self._slots.acquire(self._pools[question.model], _tokens(question), first=again)

    def leave(self, slot: Lease, question: Question, outcome: Answer | ModelFailure | None, seconds: float) -> None:
        self._slots.release(slot, _outcome(outcome, seconds))
        if outcome is not None:
            kind = outcome.kind if isinstance(outcome, ModelFailure) else None
            self.failures.add(time.monotonic(), kind in _FAILED)
            if kind is not None:
                self._again.add(question.key)

    def back_off(self, question: Question, failure: ModelFailure, attempt: int, seconds: float) -> None:
        pool = self._pools[question.model][0]
        self._slots.back_off(str(question.key), Backoff(pool, failure.kind, attempt, time.monotonic() + seconds))


def _tokens(question: Question) -> int:
    """What a provider will probably count against its limit, before it knows the answer."""
    characters = sum(len(message.content) for message in question.messages)
    return characters // CHARACTERS_PER_TOKEN + (question.max_tokens or 0)


def _outcome(outcome: Answer | ModelFailure | None, seconds: float) -> CallOutcome:
    if outcome is None:
        return CANCELLED
    if isinstance(outcome, Answer):
        usage = outcome.usage
        return CallOutcome(CallEnd.OK, seconds, usage.input + usage.output, None, outcome.allowance)
    end = _ENDS.get(outcome.kind)
    return CANCELLED if end is None else CallOutcome(end, seconds, 0, outcome.retry_after, outcome.allowance)


class RunLimits:
    """What limits a run: the slots it shares with others, and how strained the machine is."""

    def __init__(self, slots: Slots, limit: SharedLimit) -> None:
        self._slots = slots
        self._ceiling = slots.ceiling
        self.limit = limit
        self._seen: Snapshot | None = None
        #: What is too much now, in words.
        self.strained: tuple[Alarm, ...] = ()
        #: The most that were in flight lately.
        self._busiest = 1.0

    @property
    def in_flight(self) -> int:
        return self._slots.held

    @property
    def waiting(self) -> int:
        return self._slots.waiting

    def as_dict(self) -> dict[str, Any]:
        """For the run's state and metrics: this run's calls, and the pools as all runs see them."""
        pools = () if self._seen is None else self._seen.pools
        return {
            "in_flight": self.in_flight,
            "waiting": self.waiting,
            "ceiling": self._slots.ceiling,
            "backing_off": self._slots.backing_off,
            "strained": [each.kind for each in self.strained],
            "pools": {pool.name: {**pool.control, "held": pool.held, "waiting": pool.waiting} for pool in pools},
        }

    async def follow(self) -> None:
        """Look at the limits now and then, and do less while the machine is strained."""
        async with asyncio.TaskGroup() as group:
            group.create_task(watch_machine(self._heed, self.limit.failures.share))
            group.create_task(self._look())

    async def look_once_more(self) -> None:
        """See how it ended, unless that takes long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_LOOK_SECONDS):
                self._seen = await self._slots.request_snapshot()

    async def _look(self) -> None:
        while True:
            self._seen = await self._slots.request_snapshot()
            await asyncio.sleep(LOOK_SECONDS)

    def _heed(self, verdict: Throttle) -> None:
        self.strained = verdict.strained
        for each in verdict.began:
            _log.warning("%s", each.text)
        for each in verdict.ended:
            _log.info("%s", each.text)
        if verdict.factor < 1:
            self._slots.ceiling = verdict.at_once(round(self._busiest))
            return
        self._slots.ceiling = self._ceiling
        # When strain begins, few may be in flight, such as in an outage: what counts is how many there were.
        self._busiest = max(self._busiest * FORGOTTEN_PER_SECOND, self._slots.held, 1.0)


@asynccontextmanager
async def open_limits(
    name: str,
    endpoints: Mapping[str, Endpoint],
    *,
    place: BrokerLocation | None,
    parallel: int | None,
    ceiling: int | None,
) -> AsyncIterator[RunLimits]:
    """The limits of a run, as long as it is worked on.

    `place` is where runs share their slots, `parallel` how many agents act at once over all runs that say so, and
    `ceiling` how many calls this one makes at once.
    """
    async with open_slots(name, place, ceiling=ceiling) as slots:
        if parallel is not None:
            slots.resize(AGENTS, parallel)
        limits = RunLimits(slots, SharedLimit(slots, endpoints, parallel=parallel is not None))
        following = asyncio.create_task(limits.follow())
        try:
            yield limits
        finally:
            following.cancel()
            await asyncio.wait([following])
            await limits.look_once_more()
