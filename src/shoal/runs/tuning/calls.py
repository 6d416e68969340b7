"""Measures how many calls at once a model's server takes, by making more and more of them at once.

The calls go through the same client, limit and budget as those of a run, but failed calls are not repeated: refusals
are what is measured. A refused slot stays empty for as long as the server asked, or as an answer usually takes.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from statistics import fmean, median

from shoal.errors import BudgetReached, RunRefused
from shoal.models import Answer, FailureKind, Model, ModelFailed, ModelFailure, Price, Remedy, Spending
from shoal.models.http import Proxies, open_transport
from shoal.models.middleware import Budget, Budgeted, Limited, PlainLimit
from shoal.models.openai import Endpoint, ModelClient
from shoal.runs.tuning.knee import REFINEMENTS, MeasuredLevel, compute_failed_share, find_usable
from shoal.runs.tuning.levels import BUDGET_USED, TIME_USED, Gauge, compute_percentiles, measure_levels
from shoal.runs.tuning.probes import Probes

#: A call that takes longer counts as hung.
CALL_SECONDS = 60.0
#: A level ends after this time, if as many calls have ended as there are slots.
LEVEL_SECONDS = 20.0
#: The fewest answers of a level while all slots are busy: in all, and for each slot.
FEWEST_ANSWERS = 8
ANSWERS_PER_SLOT = 2
#: The fewest calls from which a level can be judged: for each slot, and in all.
FEWEST_PER_SLOT = 2
FEWEST_CALLS = 4
#: A level is cut short when this share of its calls has failed, on top of what fails anyway, and at least this many.
FAILING_SHARE = 0.10
FEWEST_FAILURES = 3
#: Tries of the first call, for failures that may pass.
FIRST_CALLS = 3
FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 60.0
#: Prompts differ in length, so each call is planned with a little more than the mean.
MARGIN = 1.1

#: These failures meet every call, however few are made.
_HOPELESS = frozenset(kind for kind in FailureKind if kind.remedy is Remedy.MEND)
#: The same question would fail again.
_LASTING = frozenset(kind for kind in FailureKind if kind.remedy is not Remedy.WAIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneBounds:
    """What a measurement may take."""

    up_to: int = 256
    seconds: float = 180.0
    #: Counts refused calls too.
    max_calls: int = 500
    max_cost: float | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class TuneTarget:
    """The model that is measured, and the questions it is asked."""

    model: str
    endpoint: Endpoint
    probes: Probes
    proxies: Proxies = field(default_factory=Proxies)

    @property
    def price(self) -> Price | None:
        return self.endpoint.find_price(self.model)


async def measure_calls(target: TuneTarget, bounds: TuneBounds, gauge: Gauge) -> str:
    """Measure level after level and return why it ended. If it is cancelled, the gauge has what was measured."""
    Budget(bounds.max_cost).check({target.model: target.price})
    if bounds.max_calls < FEWEST_CALLS + 1:
        raise RunRefused(f"max_calls {bounds.max_calls} does not suffice: a first level takes {FEWEST_CALLS + 1} calls")
    async with open_transport(target.proxies) as transport:
        client = ModelClient(transport, {target.model: target.endpoint}, CALL_SECONDS)
        measurement = _Measurement(target, bounds, gauge, client)
        await measurement.make_first_call()
        return await measure_levels(gauge, bounds.up_to, measurement.measure_level)


def count_most_calls(up_to: int) -> int:
    """Return how many calls it takes to go all the way up, and to refine there."""
    levels, at_once = [up_to] * REFINEMENTS, 1
    while at_once < up_to:
        levels.append(at_once)
        at_once *= 2
    return 1 + sum(map(_count_level_calls, [*levels, up_to]))


def _count_level_calls(at_once: int) -> int:
    return at_once + max(FEWEST_ANSWERS, ANSWERS_PER_SLOT * at_once)


class _HopelessError(Exception):
    """No call will be answered any more."""


@dataclass(slots=True)
class _Trial:
    """One level while it is measured."""

    at_once: int
    wanted: int
    began: float
    #: The share of calls that may fail before the level is cut short.
    bearable: float
    taken: int = 0
    last_taken: float = 0.0
    #: When each answer came, how long it took, and its tokens.
    answers: list[tuple[float, float, int]] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)

    def has_more(self, now: float) -> bool:
        """Return whether another call is to be made."""
        failed = self.failures.total()
        ended = len(self.answers) + failed
        if self.taken >= self.wanted or ended < self.at_once:
            return self.taken < self.wanted
        is_failing = failed >= FEWEST_FAILURES and failed > self.bearable * ended
        return now < self.began + LEVEL_SECONDS and not is_failing

    def finish(self, ended: float) -> MeasuredLevel:
        """Return the figures of the level.

        Answers per second are counted while all slots were busy: after the last call was begun they empty one by one.
        """
        took = [seconds for _, seconds, _ in self.answers]
        within, seconds = sum(at <= self.last_taken for at, _, _ in self.answers), self.last_taken - self.began
        if not within or seconds <= 0:
            within, seconds = len(self.answers), ended - self.began
        per_second = within / seconds if seconds > 0 else 0.0
        p50, p95 = compute_percentiles(took)
        return MeasuredLevel(
            at_once=self.at_once,
            tried=len(took) + self.failures.total(),
            failures=dict(sorted(self.failures.items())),
            per_second=per_second,
            p50=p50,
            p95=p95,
            seconds=ended - self.began,
            tokens_per_second=per_second * fmean(tokens for _, _, tokens in self.answers) if took else 0.0,
        )


class _Measurement:
    """The calls of one measurement, numbered through."""

    def __init__(self, target: TuneTarget, bounds: TuneBounds, gauge: Gauge, client: Model) -> None:
        self._target = target
        self._bounds = bounds
        self._gauge = gauge
        self._client = client
        self._budget = Budget(bounds.max_cost, bounds.max_tokens)
        self._spending = gauge.spending = Spending({target.model: target.price})
        self._asked = 0
        self._until = time.monotonic() + bounds.seconds
        #: Until when the server asked to wait.
        self._quiet_until = 0.0

    async def make_first_call(self) -> None:
        """Make a call that is not measured: it shows whether there is an answer at all, and how to ask for it."""
        self._gauge.begin(1, 1)
        model = self._build_model(1)
        for attempt in range(1, FIRST_CALLS + 1):
            try:
                await self._ask(model)
                return
            except BudgetReached as reached:
                raise _refuse_budget("one call", str(reached).partition("\n")[0]) from None
            except ModelFailed as failed:
                failure = failed.failure
                if failure.kind in _LASTING or attempt == FIRST_CALLS:
                    text = f"no answer from {self._target.endpoint.base_url}: {failure.text}"
                    if failure.kind is FailureKind.CONTEXT_TOO_LONG:
                        text += "\nAsk less with a smaller --prompt-tokens."
                    raise RunRefused(f"{text}\nNothing was measured.") from failed
                self._note_wait(failure)
                await asyncio.sleep(FIRST_WAIT_SECONDS)
                await self._wait_as_asked()

    async def measure_level(self, at_once: int) -> str | None:
        """Measure a level into the gauge; return why it cannot be measured, if so."""
        levels = self._gauge.levels
        calls = min(_count_level_calls(at_once), self._count_affordable())
        if calls < max(FEWEST_PER_SLOT * at_once, FEWEST_CALLS):
            if not levels:
                raise _refuse_budget("a first level", f"it takes {FEWEST_CALLS} calls")
            return BUDGET_USED
        await self._wait_as_asked()
        shortest = FEWEST_PER_SLOT * levels[-1].p50 if levels else 0.0
        if time.monotonic() + shortest > self._until:
            return TIME_USED
        self._gauge.begin(at_once, calls)
        bearable = FAILING_SHARE + compute_failed_share(find_usable(levels))
        model, trial = self._build_model(at_once), _Trial(at_once, calls, time.monotonic(), bearable)
        try:
            async with asyncio.TaskGroup() as slots:
                for _ in range(at_once):
                    slots.create_task(self._use_slot(model, trial))
        except BaseExceptionGroup as errors:
            first = errors.exceptions[0]
            if isinstance(first, BudgetReached | _HopelessError):
                return BUDGET_USED if isinstance(first, BudgetReached) else str(first)
            raise first from None
        self._gauge.add(trial.finish(time.monotonic()))
        return None

    async def _use_slot(self, model: Model, trial: _Trial) -> None:
        """Make one call after another until the level has enough. A slot whose call failed stays empty for a while."""
        while trial.has_more(began := time.monotonic()):
            trial.taken, trial.last_taken = trial.taken + 1, began
            try:
                answer = await self._ask(model)
            except ModelFailed as failed:
                pause = self._count_failure(trial, failed.failure, time.monotonic() - began)
                now = time.monotonic()
                if not trial.has_more(now) or now + pause > trial.began + LEVEL_SECONDS:
                    return
                await asyncio.sleep(pause)
            else:
                now = time.monotonic()
                trial.answers.append((now, now - began, answer.usage.input + answer.usage.output))
                self._gauge.done += 1

    def _count_failure(self, trial: _Trial, failure: ModelFailure, took: float) -> float:
        """Count a failure, and return for how long its slot is to stay empty."""
        if failure.kind in _HOPELESS:
            raise _HopelessError(failure.text)
        if failure.status is not None:
            name = f"{failure.status} {failure.kind}"
        else:
            name = "timeout" if took >= 0.98 * CALL_SECONDS else "no connection"
        trial.failures[name] += 1
        self._gauge.failed += 1
        self._note_wait(failure)
        if failure.retry_after is not None:
            return failure.retry_after
        if trial.answers:
            return median(seconds for _, seconds, _ in trial.answers)
        return self._gauge.levels[-1].p50 if self._gauge.levels else FIRST_WAIT_SECONDS

    def _build_model(self, at_once: int) -> Model:
        """Build the stack of a run, without what would answer in place of the server or ask it again."""
        return Budgeted(Limited(self._client, PlainLimit(at_once)), self._budget, self._spending)

    async def _ask(self, model: Model) -> Answer:
        self._asked += 1
        return await model.answer(self._target.probes(self._asked))

    def _count_affordable(self) -> int:
        """Return how many calls the budget is still good for."""
        spent, bounds = self._spending.total, self._bounds
        left = float(bounds.max_calls - self._asked)
        if bounds.max_tokens is not None:
            left = min(left, (bounds.max_tokens - spent.tokens) / (spent.tokens / spent.calls * MARGIN))
        if bounds.max_cost is not None and spent.cost:
            left = min(left, (bounds.max_cost - spent.cost) / (spent.cost / spent.calls * MARGIN))
        return int(left)

    def _note_wait(self, failure: ModelFailure) -> None:
        seconds = min(failure.retry_after or 0.0, LONGEST_WAIT_SECONDS)
        self._quiet_until = max(self._quiet_until, time.monotonic() + seconds)

    async def _wait_as_asked(self) -> None:
        """Wait as long as the server asked for."""
        self._gauge.waiting = max(min(self._quiet_until, self._until) - time.monotonic(), 0.0)
        await asyncio.sleep(self._gauge.waiting)
        self._gauge.waiting = 0.0


def _refuse_budget(what: str, why: str) -> RunRefused:
    return RunRefused(f"the budget does not suffice for {what}: {why}\nNothing was measured.")
