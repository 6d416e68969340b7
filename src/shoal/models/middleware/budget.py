"""Never more than was allowed: what a call may cost is set aside before it, and settled after it."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

from shoal.errors import BudgetReached, RunRefused
from shoal.models.base import Answer, Model, Question, Usage
from shoal.models.costs import Price, Spending

#: Before a server has counted anything: no usual text has more tokens than this.
FIRST_TOKENS_PER_BYTE = 1 / 3
#: Prompts differ in how many tokens their bytes make, so a little more than the mean is set aside.
MARGIN = 1.1
#: What the server adds around each prompt.
TOKENS_AROUND = 16
#: Output of a question that does not say how much it may have, until longer ones were seen.
UNBOUNDED_OUTPUT_TOKENS = 1_024


@dataclass(frozen=True)
class Budget:
    """What a run may spend, over all its sessions; None: as much as it takes."""

    max_cost: float | None = None
    max_tokens: int | None = None
    max_calls: int | None = None

    @property
    def is_open(self) -> bool:
        return self.max_cost is None and self.max_tokens is None and self.max_calls is None

    def check(self, prices: dict[str, Price | None]) -> None:
        """Refuse a limit in dollars where dollars cannot be counted."""
        unknown = [model for model, price in prices.items() if price is None]
        if self.max_cost is not None and unknown:
            raise RunRefused(
                f"max_cost cannot be kept, as the price of {', '.join(unknown)} is not known.\n"
                "Give it in the scenario (dollars per million tokens of input and output), or limit max_tokens instead."
            )


class Reservation:
    """What is set aside: for one call, or for all that are under way."""

    __slots__ = ("calls", "cost", "tokens")

    def __init__(self, calls: int = 0, tokens: int = 0, cost: float = 0.0) -> None:
        self.calls = calls
        self.tokens = tokens
        self.cost = cost

    def add(self, other: Reservation, sign: int = 1) -> None:
        self.calls += sign * other.calls
        self.tokens += sign * other.tokens
        # Sums of fractions do not come back to 0 by themselves.
        self.cost = self.cost + sign * other.cost if self.calls else 0.0


class Estimate:
    """Guesses what a call will take from its bytes, corrected by what the calls before it took."""

    def __init__(self) -> None:
        self._bytes = 0
        self._tokens = 0
        self._longest_output = UNBOUNDED_OUTPUT_TOKENS

    def usage(self, question: Question) -> Usage:
        ratio = self._tokens / self._bytes * MARGIN if self._bytes else FIRST_TOKENS_PER_BYTE
        given = int(_bytes(question) * ratio) + TOKENS_AROUND
        return Usage(given, self._longest_output if question.max_tokens is None else question.max_tokens)

    def learn(self, question: Question, usage: Usage) -> None:
        self._bytes += _bytes(question)
        self._tokens += usage.input
        self._longest_output = max(self._longest_output, usage.output)


def _bytes(question: Question) -> int:
    texts = [message.content for message in question.messages]
    return sum(len(text) if text.isascii() else len(text.encode()) for text in texts)


class Budgeted:
    """Lets a call begin only if what it may cost still fits.

    A call that does not fit beside those under way waits for them, as they usually take less than was set aside. Only
    when none is under way is the budget reached: so nothing that was paid for is lost by stopping.
    """

    def __init__(self, inner: Model, budget: Budget, spending: Spending) -> None:
        self._inner = inner
        self._budget = budget
        self._spending = spending
        self._estimates: dict[str, Estimate] = {}
        self._under_way = Reservation()
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def answer(self, question: Question) -> Answer:
        if self._budget.is_open:
            answer = await self._inner.answer(question)
            self._charge(question, answer)
            return answer
        claim = await self._set_aside(question)
        try:
            answer = await self._inner.answer(question)
            self._charge(question, answer)
            self._estimate(question).learn(question, answer.usage)
            return answer
        finally:
            self._under_way.add(claim, -1)
            self._wake()

    def _charge(self, question: Question, answer: Answer) -> None:
        self._spending.charge(question.model, answer.usage)
        self._spending.cut_off += answer.finish == "length"
        self._spending.refused += answer.finish == "refused"

    def _estimate(self, question: Question) -> Estimate:
        return self._estimates.setdefault(question.model, Estimate())

    async def _set_aside(self, question: Question) -> Reservation:
        # Those who wait are served in turn, so that calls under way run out and the budget is seen to be reached.
        waits, first = bool(self._waiting), False
        while True:
            if waits:
                await self._turn(first)
            claim = self._claim(question)
            setting = self._exceeded(claim)
            if setting is None:
                self._under_way.add(claim)
                self._wake()
                return claim
            if self._under_way.calls == 0:
                self._wake()
                raise self._reached(setting, claim)
            waits, first = True, waits

    async def _turn(self, first: bool) -> None:
        """Wait until it is worth looking again; who has waited before does not lose the place."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        (self._waiting.appendleft if first else self._waiting.append)(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._wake()
            raise

    def _wake(self) -> None:
        """Let the next one that waits look again."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    def _claim(self, question: Question) -> Reservation:
        usage = self._estimate(question).usage(question)
        price = self._spending.price(question.model)
        return Reservation(1, usage.input + usage.output, price.of(usage) if price else 0.0)

    def _exceeded(self, claim: Reservation) -> str | None:
        """The limit that this call might exceed, counting what is spent and what is set aside."""
        budget, spent, others = self._budget, self._spending.total, self._under_way
        if budget.max_calls is not None and spent.calls + others.calls + claim.calls > budget.max_calls:
            return "max_calls"
        if budget.max_tokens is not None and spent.tokens + others.tokens + claim.tokens > budget.max_tokens:
            return "max_tokens"
        if budget.max_cost is not None and (spent.cost or 0.0) + others.cost + claim.cost > budget.max_cost:
            return "max_cost"
        return None

    def _reached(self, setting: str, claim: Reservation) -> BudgetReached:
        name = setting.removeprefix("max_")
        return BudgetReached(
            setting,
            limit=getattr(self._budget, setting),
            spent=getattr(self._spending.total, name) or 0.0,
            next_call=getattr(claim, name),
        )
