"""Decides when a failed question is asked again, and waits before it is."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import NamedTuple, Protocol

from shoal.models.base import Answer, FailureKind, Model, ModelFailed, ModelFailure, Question
from shoal.models.costs import Spending
from shoal.models.middleware.limited import Limit
from shoal.seeds import Draws, derive

_log = logging.getLogger(__name__)

#: Share of a question's deadline that one attempt may take, so that others fit in after some that hung. On a server
#: whose answers all take long, it may take longer.
ATTEMPT_SHARE = 0.3
#: Share of a question's deadline within which attempts may begin, so that the last one ends in time.
BEGIN_SHARE = 0.65
#: With less time left than this, no further attempt is made.
SHORTEST_SECONDS = 0.05


class Retry(NamedTuple):
    """The decision whether to ask again: after these seconds, or not at all."""

    seconds: float | None

    @classmethod
    def no(cls) -> Retry:
        return cls(None)

    @classmethod
    def after(cls, seconds: float) -> Retry:
        return cls(seconds)


class BackoffPolicy(NamedTuple):
    """How one kind of failure is waited out: with full jitter below a bound that doubles."""

    attempts: int
    first_seconds: float
    longest_seconds: float

    def bound(self, failures: int) -> float:
        return float(min(self.first_seconds * 2 ** min(failures - 1, 30), self.longest_seconds))


#: Failures of other kinds are not retried: they fail the same way each time, or until the user pays.
BACKOFF_POLICIES = {
    FailureKind.TRANSIENT: BackoffPolicy(attempts=10, first_seconds=0.5, longest_seconds=30),
    FailureKind.UNREACHABLE: BackoffPolicy(attempts=10, first_seconds=0.5, longest_seconds=30),
    FailureKind.OVERLOAD: BackoffPolicy(attempts=12, first_seconds=1, longest_seconds=30),
    FailureKind.REQUEST_RATE: BackoffPolicy(attempts=30, first_seconds=1, longest_seconds=60),
    FailureKind.TOKEN_RATE: BackoffPolicy(attempts=30, first_seconds=2, longest_seconds=60),
    FailureKind.CONCURRENCY: BackoffPolicy(attempts=50, first_seconds=0.25, longest_seconds=10),
    FailureKind.LIMITED: BackoffPolicy(attempts=50, first_seconds=0.5, longest_seconds=30),
}


def decide_retry(failure: ModelFailure, failures: int, left_seconds: float, draw: float) -> Retry:
    """Decide whether to ask again after this many failures of this kind; `draw` is uniform in [0, 1).

    If the server says when to come back, no question comes earlier, and the draw spreads them out after that.
    """
    policy = BACKOFF_POLICIES.get(failure.kind)
    if policy is None or failures >= policy.attempts or left_seconds < SHORTEST_SECONDS:
        return Retry.no()
    if failure.retry_after is None:
        return Retry.after(draw * min(policy.bound(failures), left_seconds))
    wait = failure.retry_after + draw * min(policy.first_seconds, 0.1 + failure.retry_after)
    return Retry.after(wait) if wait < left_seconds else Retry.no()


class RetryClock(Protocol):
    """Time as a parameter, so that tests need not wait."""

    def now(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class RealClock:
    def now(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Retrying:
    """Asks again until there is an answer, no hope or no time. It holds no slot while it waits."""

    def __init__(
        self,
        inner: Model,
        deadline_seconds: float,
        seed: int,
        spending: Spending,
        clock: RetryClock | None = None,
        limit: Limit | None = None,
    ) -> None:
        self._inner = inner
        #: Notified of every backoff.
        self._limit = limit
        self._deadline_seconds = deadline_seconds
        self._seed = seed
        self._spending = spending
        self._clock = clock or RealClock()

    async def answer(self, question: Question) -> Answer:
        failures: list[FailureKind] = []
        # Counts attempts and backoffs, but not waiting for a slot, which may take long in a large population.
        taken_seconds = 0.0
        while True:
            began = self._clock.now()
            try:
                return await self._inner.answer(question)
            except ModelFailed as failed:
                failure = failed.failure
                if failure.usage is not None:
                    # It was paid for, so the budget says whether it may be asked again.
                    raise
                taken_seconds += self._clock.now() - began if failed.seconds is None else failed.seconds
            failures.append(failure.kind)
            attempt, left = len(failures), self._deadline_seconds * BEGIN_SHARE - taken_seconds
            draw = Draws(derive(self._seed, "retry", question.key, attempt)).random()
            wait = decide_retry(failure, failures.count(failure.kind), left, draw).seconds
            if wait is None:
                raise ModelFailed(failure)
            self._spending.retries += 1
            _log.info("%s: again in %.1f s: %s: %s", question.key, wait, failure.kind, failure.text)
            if self._limit is not None:
                wait = self._limit.back_off(question, failure, attempt, wait)
            await self._clock.sleep(wait)
            taken_seconds += wait
