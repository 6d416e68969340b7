"""How many calls at once a model's server takes, found by asking it: more and more at once, until it brings no more.

The calls go through the same client, limit and budget as those of a run, but none is made twice: a refusal is what is
being measured. A slot that was refused stays empty for as long as the server said, or as an answer usually takes.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import fmean, median, quantiles

from shoal.errors import BudgetReached, RunRefused
from shoal.models.base import Answer, FailureKind, Model, ModelFailed, ModelFailure
from shoal.models.costs import Spending, find_price
from shoal.models.http.pool import open_transport
from shoal.models.http.routes import Proxies
from shoal.models.middleware.budget import Budget, Budgeted
from shoal.models.middleware.limited import Limited, PlainLimit
from shoal.models.openai.client import Client
from shoal.models.openai.endpoints import Endpoint
from shoal.runs.tuning.knee import REFINEMENTS, MeasuredLevel, failed_share, is_found, next_level, usable
from shoal.runs.tuning.probes import Probes

#: After this a call counts as hung.
CALL_SECONDS = 60.0
#: A level ends after so long, if as many as there are slots have ended.
LEVEL_SECONDS = 20.0
#: Answers while all slots are busy: so many, and so many for each slot; and the fewest calls that tell anything.
FEWEST_ANSWERS = 8
ANSWERS_PER_SLOT = 2
FEWEST_PER_SLOT = 2
FEWEST_CALLS = 4
#: A level is cut short as soon as so many of its calls have failed, on top of what fails anyway.
FAILING_SHARE = 0.10
FEWEST_FAILURES = 3
#: Calls that may fail before anything is measured, for reasons that may pass.
FIRST_CALLS = 3
FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 60.0
#: Prompts differ in length, so a little more than the mean is kept for each call.
MARGIN = 1.1

BUDGET_USED = "the budget is used up"
TIME_USED = "the time is used up"
STOPPED = "stopped"
#: Everybody would be turned away for these, however few ask.
_HOPELESS = frozenset({FailureKind.AUTH, FailureKind.QUOTA})
#: The same question would fail again.
_LASTING = _HOPELESS | {FailureKind.FATAL, FailureKind.CONTEXT_TOO_LONG, FailureKind.REFUSED}


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneBounds:
    """What measuring may take."""

    up_to: int = 256
    seconds: float = 180.0
    #: Counts calls that were refused too.
    max_calls: int = 500
    max_cost: float | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class TuneTarget:
    """Who is measured, and with what."""

    model: str
    endpoint: Endpoint
    probes: Probes
    proxies: Proxies = field(default_factory=Proxies)

    def spending(self) -> Spending:
        return Spending({self.model: self.endpoint.price or find_price(self.model)})


@dataclass(slots=True)
class Gauge:
    """How far measuring is: to be looked at at any time, and whatever becomes of it."""

    #: Told of each level that was measured.
    tell: Callable[[MeasuredLevel], None] | None = None
    levels: list[MeasuredLevel] = field(default_factory=list)
    at_once: int = 0
    wanted: int = 0
    done: int = 0
    failed: int = 0
    #: Seconds that the server asked to be left alone.
    waiting: float = 0.0
    spending: Spending | None = None

    def begin(self, at_once: int, wanted: int) -> None:
        self.at_once, self.wanted, self.done, self.failed = at_once, wanted, 0, 0

    def add(self, level: MeasuredLevel) -> None:
        self.levels.append(level)
        if self.tell is not None:
            self.tell(level)


async def measure_calls(target: TuneTarget, bounds: TuneBounds, gauge: Gauge) -> str:
    """Measure level after level; why it ended, in words. Whoever cancels it finds what was measured in the gauge."""
    spending = gauge.spending = target.spending()
    budget = Budget(bounds.max_cost, bounds.max_tokens)
    budget.check({target.model: spending.price(target.model)})
    if bounds.max_calls < FEWEST_CALLS + 1:
        raise RunRefused(f"max_calls {bounds.max_calls} does not suffice: a first level takes {FEWEST_CALLS + 1} calls")
    async with open_transport(target.proxies) as transport:
        client = Client(transport, {target.model: target.endpoint}, CALL_SECONDS)
        return await _Measuring(target, bounds, gauge, client, budget, spending).run()


def most_calls(up_to: int) -> int:
    """What it takes to go all the way up, and to look more closely there."""
    levels, at_once = [up_to] * REFINEMENTS, 1
    while at_once < up_to:
        levels.append(at_once)
        at_once *= 2
    return 1 + sum(map(_calls_of, [*levels, up_to]))


def _calls_of(at_once: int) -> int:
    return at_once + max(FEWEST_ANSWERS, ANSWERS_PER_SLOT * at_once)


class _HopelessError(Exception):
    """Nobody will be answered any more."""


@dataclass(slots=True)
class _Trial:
    """One level while it is measured."""

    at_once: int
    wanted: int
    began: float
    #: The share of calls that may fail before it is cut short.
    bearable: float
    taken: int = 0
    last_taken: float = 0.0
    #: When they ended, how long they took, and what they used.
    answers: list[tuple[float, float, int]] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)

    def has_more(self, now: float) -> bool:
        """Whether another call is to be made."""
        failed = self.failures.total()
        ended = len(self.answers) + failed
        if self.taken >= self.wanted or ended < self.at_once:
            return self.taken < self.wanted
        is_failing = failed >= FEWEST_FAILURES and failed > self.bearable * ended
        return now < self.began + LEVEL_SECONDS and not is_failing

    def take(self, now: float) -> int:
        self.taken, self.last_taken = self.taken + 1, now
        return self.taken

    def usual_seconds(self) -> float | None:
        return median(seconds for _, seconds, _ in self.answers) if self.answers else None

    def level(self, ended: float) -> MeasuredLevel:
        took = [seconds for _, seconds, _ in self.answers]
        per_second = self._rate(ended)
        return MeasuredLevel(
            at_once=self.at_once,
            tried=len(took) + self.failures.total(),
            failures=dict(sorted(self.failures.items())),
            per_second=per_second,
            p50=median(took) if took else 0.0,
            p95=quantiles(took, n=20, method="inclusive")[-1] if len(took) > 1 else (took or [0.0])[0],
            seconds=ended - self.began,
            tokens_per_second=per_second * fmean(tokens for _, _, tokens in self.answers) if took else 0.0,
        )

    def _rate(self, ended: float) -> float:
        """Answers per second while all slots were busy: after the last call was begun they empty one by one."""
        within, seconds = sum(at <= self.last_taken for at, _, _ in self.answers), self.last_taken - self.began
        if not within or seconds <= 0:
            within, seconds = len(self.answers), ended - self.began
        return within / seconds if seconds > 0 else 0.0


class _Measuring:
    """The calls of one measurement, numbered through."""

    def __init__(
        self, target: TuneTarget, bounds: TuneBounds, gauge: Gauge, client: Model, budget: Budget, spending: Spending
    ) -> None:
        self._target = target
        self._bounds = bounds
        self._gauge = gauge
        self._client = client
        self._budget = budget
        self._spending = spending
        self._asked = 0
        self._until = time.monotonic() + bounds.seconds
        #: Until when the server asked to be left alone.
        self._quiet_until = 0.0

    async def run(self) -> str:
        await self._begin()
        levels = self._gauge.levels
        while (at_once := next_level(levels, self._bounds.up_to)) is not None:
            if (calls := self._affordable(at_once)) is None:
                if not levels:
                    raise self._too_small("a first level", f"it takes {FEWEST_CALLS} calls")
                return BUDGET_USED
            await self._leave_alone()
            if time.monotonic() + self._shortest(at_once) > self._until:
                return TIME_USED
            try:
                await self._level(at_once, calls)
            except BudgetReached:
                return BUDGET_USED
            except _HopelessError as error:
                return str(error)
        return "" if is_found(levels) else f"--up-to is {self._bounds.up_to}"

    async def _begin(self) -> None:
        """A first call, which is not measured: it shows whether there is an answer at all, and how to ask for it."""
        self._gauge.begin(1, 1)
        model = self._model(1)
        for attempt in range(1, FIRST_CALLS + 1):
            try:
                await model.answer(self._target.probes(self._number()))
                return
            except BudgetReached as reached:
                raise self._too_small("one call", str(reached).partition("\n")[0]) from None
            except ModelFailed as failed:
                if failed.failure.kind in _LASTING or attempt == FIRST_CALLS:
                    raise self._unanswered(failed.failure) from failed
                self._respect(failed.failure)
                await asyncio.sleep(FIRST_WAIT_SECONDS)
                await self._leave_alone()

    def _too_small(self, what: str, why: str) -> RunRefused:
        return RunRefused(f"the budget does not suffice for {what}: {why}\nNothing was measured.")

    def _unanswered(self, failure: ModelFailure) -> RunRefused:
        text = f"no answer from {self._target.endpoint.base_url}: {failure.text}"
        if failure.kind is FailureKind.CONTEXT_TOO_LONG:
            text += "\nAsk less with a smaller --prompt-tokens."
        return RunRefused(f"{text}\nNothing was measured.")

    def _model(self, at_once: int) -> Model:
        """The stack of a run, without what would answer in place of the server or ask it again."""
        return Budgeted(Limited(self._client, PlainLimit(at_once)), self._budget, self._spending)

    def _number(self) -> int:
        self._asked += 1
        return self._asked

    # One level

    async def _level(self, at_once: int, calls: int) -> None:
        self._gauge.begin(at_once, calls)
        bearable = FAILING_SHARE + failed_share(usable(self._gauge.levels))
        model, trial = self._model(at_once), _Trial(at_once, calls, time.monotonic(), bearable)
        try:
            async with asyncio.TaskGroup() as slots:
                for _ in range(at_once):
                    slots.create_task(self._slot(model, trial))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        self._gauge.add(trial.level(time.monotonic()))

    async def _slot(self, model: Model, trial: _Trial) -> None:
        while trial.has_more(began := time.monotonic()):
            trial.take(began)
            try:
                answer = await model.answer(self._target.probes(self._number()))
            except ModelFailed as failed:
                if not await self._failed(trial, failed.failure, began):
                    return
            else:
                self._answered(trial, answer, began)

    def _answered(self, trial: _Trial, answer: Answer, began: float) -> None:
        now = time.monotonic()
        trial.answers.append((now, now - began, answer.usage.input + answer.usage.output))
        self._gauge.done += 1

    async def _failed(self, trial: _Trial, failure: ModelFailure, began: float) -> bool:
        """Count it, and leave the slot empty for a while; False: for the rest of the level."""
        if failure.kind in _HOPELESS:
            raise _HopelessError(failure.text)
        now = time.monotonic()
        trial.failures[_named(failure, now - began)] += 1
        self._gauge.failed += 1
        self._respect(failure)
        pause = failure.retry_after if failure.retry_after is not None else self._usual_seconds(trial)
        if not trial.has_more(now) or now + pause > trial.began + LEVEL_SECONDS:
            return False
        await asyncio.sleep(pause)
        return True

    def _usual_seconds(self, trial: _Trial) -> float:
        before = self._gauge.levels[-1].p50 if self._gauge.levels else FIRST_WAIT_SECONDS
        return trial.usual_seconds() or before

    # What is left

    def _affordable(self, at_once: int) -> int | None:
        """How many calls to make at this level; None: there is not enough left for it."""
        left = min(_calls_of(at_once), self._left())
        return left if left >= max(FEWEST_PER_SLOT * at_once, FEWEST_CALLS) else None

    def _left(self) -> int:
        spent, bounds = self._spending.total, self._bounds
        left = float(bounds.max_calls - self._asked)
        if bounds.max_tokens is not None:
            left = min(left, (bounds.max_tokens - spent.tokens) / (spent.tokens / spent.calls * MARGIN))
        if bounds.max_cost is not None and spent.cost:
            left = min(left, (bounds.max_cost - spent.cost) / (spent.cost / spent.calls * MARGIN))
        return int(left)

    def _shortest(self, at_once: int) -> float:
        """What a level takes at least, judged by the last one."""
        return FEWEST_PER_SLOT * self._gauge.levels[-1].p50 if self._gauge.levels else 0.0

    def _respect(self, failure: ModelFailure) -> None:
        seconds = min(failure.retry_after or 0.0, LONGEST_WAIT_SECONDS)
        self._quiet_until = max(self._quiet_until, time.monotonic() + seconds)

    async def _leave_alone(self) -> None:
        """Wait as long as the server asked for."""
        self._gauge.waiting = max(min(self._quiet_until, self._until) - time.monotonic(), 0.0)
        await asyncio.sleep(self._gauge.waiting)
        self._gauge.waiting = 0.0


def _named(failure: ModelFailure, seconds: float) -> str:
    """What went wrong, as short as it is told apart."""
    if failure.status is not None:
        return f"{failure.status} {failure.kind}"
    return "timeout" if seconds >= 0.98 * CALL_SECONDS else "no connection"
