"""Keeps a run within its budget: reserves what a call may cost before it, and charges what it did cost after it."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from shoal.errors import BudgetReached, RunRefused
from shoal.models.base import Answer, Model, ModelFailed, Question, Usage
from shoal.models.costs import Price, Spending, Spent

_log = logging.getLogger(__name__)

#: Assumed until a server has counted tokens: no usual text has more than this.
FIRST_TOKENS_PER_BYTE = 1 / 3
#: Prompts differ in how many tokens their bytes make, so a little more than the mean is reserved.
MARGIN = 1.1
#: Tokens that the server adds around each prompt.
TOKENS_AROUND = 16
#: Reserved output of a question without a limit, until longer outputs were seen.
UNBOUNDED_OUTPUT_TOKENS = 1_024


class Reservation:
    """What is reserved for one call, or for all calls in flight."""

    __slots__ = ("calls", "cost", "tokens")

    def __init__(self, calls: int = 0, tokens: int = 0, cost: float = 0.0) -> None:
        self.calls = calls
        self.tokens = tokens
        self.cost = cost

    def add(self, other: Reservation, sign: int = 1) -> None:
        self.calls += sign * other.calls
        self.tokens += sign * other.tokens
        # Sums of floats do not return to exactly 0 by themselves.
        self.cost = self.cost + sign * other.cost if self.calls else 0.0


@dataclass(frozen=True)
class Budget:
    """What a run may spend over all its sessions; None means no limit."""

    max_cost: float | None = None
    max_tokens: int | None = None
    max_calls: int | None = None

    @property
    def is_open(self) -> bool:
        return self.max_cost is None and self.max_tokens is None and self.max_calls is None

    def check(self, prices: dict[str, Price | None]) -> None:
        """Refuse a limit in dollars if the price of a model is unknown."""
        unknown = [model for model, price in prices.items() if price is None]
        if self.max_cost is not None and unknown:
            raise RunRefused(
                f"max_cost cannot be kept, as the price of {', '.join(unknown)} is not known.\n"
                "Give it in the scenario (dollars per million tokens of input and output), or limit max_tokens instead."
            )

    def find_exceeded(self, spent: Spent, reserved: Reservation, wanted: Reservation) -> str | None:
        """Name the limit that a call might exceed, counting what is spent and what is reserved."""
        if self.max_calls is not None and spent.calls + reserved.calls + wanted.calls > self.max_calls:
            return "max_calls"
        if self.max_tokens is not None and spent.tokens + reserved.tokens + wanted.tokens > self.max_tokens:
            return "max_tokens"
        if self.max_cost is not None and (spent.cost or 0.0) + reserved.cost + wanted.cost > self.max_cost:
            return "max_cost"
        return None


class CallSize(NamedTuple):
    """What the tokens of a call are estimated from."""

    model: str
    prompt_bytes: int
    max_tokens: int | None

    @classmethod
    def of(cls, question: Question) -> CallSize:
        texts = [message.content for message in question.messages]
        count = sum(len(text) if text.isascii() else len(text.encode()) for text in texts)
        return cls(question.model, count, question.max_tokens)


class UsageEstimator:
    """Estimates the tokens of a call from its bytes, corrected by what earlier calls took."""

    def __init__(self) -> None:
        self._bytes = 0
        self._tokens = 0
        self._longest_output = UNBOUNDED_OUTPUT_TOKENS

    def estimate(self, size: CallSize) -> Usage:
        ratio = self._tokens / self._bytes * MARGIN if self._bytes else FIRST_TOKENS_PER_BYTE
        input_tokens = int(size.prompt_bytes * ratio) + TOKENS_AROUND
        return Usage(input_tokens, self._longest_output if size.max_tokens is None else size.max_tokens)

    def learn(self, size: CallSize, usage: Usage) -> None:
        self._bytes += size.prompt_bytes
        self._tokens += usage.input
        self._longest_output = max(self._longest_output, usage.output)


class Funds(Protocol):
    """What is left of the budget of a run, wherever that is counted."""

    async def reserve(self, size: CallSize) -> Any:
        """Wait until a call fits, and return what `release` needs; raise BudgetReached where none will."""
        ...

    def release(self, reserved: Any, size: CallSize, usage: Usage | None) -> None:
        """Give back what was reserved for a call. What it did take is charged by then; None: it failed."""
        ...


class Purse:
    """Reserves what calls may cost, within a budget.

    A call that does not fit beside those in flight waits for them, as they usually take less than was reserved. The
    budget is reached only when none is in flight, so that stopping loses nothing that was paid for.
    """

    def __init__(self, budget: Budget, spending: Spending) -> None:
        self._budget = budget
        self._spending = spending
        self._estimators: dict[str, UsageEstimator] = {}
        self._in_flight = Reservation()
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def reserve(self, size: CallSize) -> Reservation:
        # Waiting calls are served in turn, so that the calls in flight run out and the end of the budget is noticed.
        waits, is_first = bool(self._waiting), False
        estimator = self._estimators.setdefault(size.model, UsageEstimator())
        while True:
            if waits:
                await self._wait_for_turn(is_first)
            usage, price = estimator.estimate(size), self._spending.price(size.model)
            wanted = Reservation(1, usage.input + usage.output, price.of(usage) if price else 0.0)
            setting = self._budget.find_exceeded(self._spending.total, self._in_flight, wanted)
            if setting is None:
                self._in_flight.add(wanted)
                self._wake_next()
                return wanted
            if self._in_flight.calls == 0:
                self._wake_next()
                name = setting.removeprefix("max_")
                raise BudgetReached(
                    setting,
                    limit=getattr(self._budget, setting),
                    spent=getattr(self._spending.total, name) or 0.0,
                    next_call=getattr(wanted, name),
                )
            waits, is_first = True, waits

    async def _wait_for_turn(self, is_first: bool) -> None:
        """Wait until it is worth trying again. A call that has waited before keeps its place."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        (self._waiting.appendleft if is_first else self._waiting.append)(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._wake_next()
            raise

    def _wake_next(self) -> None:
        """Let the next waiting call try again."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    def release(self, reserved: Reservation, size: CallSize, usage: Usage | None) -> None:
        if usage is not None:
            self._estimators[size.model].learn(size, usage)
        self._in_flight.add(reserved, -1)
        self._wake_next()


class Budgeted:
    """Lets a call begin only if what it may cost still fits into the budget, and charges what it did cost."""

    def __init__(self, inner: Model, budget: Budget, spending: Spending, funds: Funds | None = None) -> None:
        """Take the funds that other processes share; None: this one spends the whole budget."""
        self._inner = inner
        self._is_open = budget.is_open
        self._spending = spending
        self._funds = funds or Purse(budget, spending)

    async def answer(self, question: Question) -> Answer:
        """Ask, and once more if the reply cannot be read: each of them is paid for."""
        try:
            return await self._ask(question)
        except ModelFailed as failed:
            if failed.failure.usage is None:
                raise
            _log.info("%s: again: %s", question.key, failed)
            self._spending.retries += 1
        try:
            return await self._ask(question)
        except ModelFailed as failed:
            self._spending.unanswered[failed.failure.kind] += failed.failure.usage is not None
            raise

    async def _ask(self, question: Question) -> Answer:
        if self._is_open:
            return await self._ask_and_charge(question)
        size, usage = CallSize.of(question), None
        reserved = await self._funds.reserve(size)
        try:
            answer = await self._ask_and_charge(question)
            usage = answer.usage
            return answer
        finally:
            self._funds.release(reserved, size, usage)

    async def _ask_and_charge(self, question: Question) -> Answer:
        try:
            answer = await self._inner.answer(question)
        except ModelFailed as failed:
            if failed.failure.usage is not None:
                self._spending.charge_unreadable(question.model, failed.failure.usage)
            raise
        self._spending.charge(question.model, answer.usage)
        self._spending.cut_off += answer.finish == "length"
        self._spending.refused += answer.finish == "refused"
        if answer.is_estimated:
            if not self._spending.estimated:
                _log.warning("%s: the server counts no tokens that can be true; they are estimated", question.model)
            self._spending.estimated += 1
        return answer
