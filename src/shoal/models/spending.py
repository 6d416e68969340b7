"""What models cost: prices, and what was spent so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from shoal.journal import Line
from shoal.models.question import Kind, Usage

TOKENS_PER_PRICE = 1_000_000


class Price(msgspec.Struct, frozen=True, omit_defaults=True):
    """Dollars per million tokens."""

    input: float
    output: float
    #: For input that the server had in its prefix cache; None: as other input.
    cached: float | None = None

    def of(self, usage: Usage) -> float:
        cached = self.input if self.cached is None else self.cached
        fresh = max(usage.input - usage.cached, 0)
        return (fresh * self.input + usage.cached * cached + usage.output * self.output) / TOKENS_PER_PRICE


class Spent(msgspec.Struct):
    """What some calls took. A cost is None as soon as one of them has no known price: it is not 0."""

    calls: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    cost: float | None = 0.0

    @property
    def tokens(self) -> int:
        return self.input + self.output

    def add(self, usage: Usage, cost: float | None) -> None:
        self.calls += 1
        self.input += usage.input
        self.output += usage.output
        self.cached += usage.cached
        self.cost = None if cost is None or self.cost is None else self.cost + cost


class Spending:
    """What a run has spent on models, live; what its journal holds already is counted from the start."""

    def __init__(self, prices: Mapping[str, Price | None], lines: Iterable[Line] = ()) -> None:
        self._prices = prices
        self.total = Spent()
        self.by_model: dict[str, Spent] = {}
        #: Questions that the response cache answered; they cost nothing.
        self.cache_hits = 0
        #: Attempts after the first.
        self.retries = 0
        #: Every attempt that failed, also those that were then repeated.
        self.failures: Counter[Kind] = Counter()
        #: Questions that stayed without an answer.
        self.unanswered: Counter[Kind] = Counter()
        #: Answers that were cut off at their maximum length, and those in which the model refused.
        self.cut_off = 0
        self.refused = 0
        for line in lines:
            self._recall(line)

    @property
    def calls(self) -> int:
        return self.total.calls

    @property
    def cost(self) -> float | None:
        return self.total.cost

    def price(self, model: str) -> Price | None:
        return self._prices.get(model)

    def charge(self, model: str, usage: Usage) -> None:
        price = self._prices.get(model)
        cost = None if price is None else price.of(usage)
        self.total.add(usage, cost)
        self.by_model.setdefault(model, Spent()).add(usage, cost)

    def _recall(self, line: Line) -> None:
        """Count a call that was paid for before; what a parent run paid, or a cache answered, is not ours."""
        if line.usage is None or line.inherited is not None:
            return
        self.charge(_model(line.reply, self._prices), msgspec.convert(line.usage, Usage))
        finish = line.reply.get("finish") if isinstance(line.reply, dict) else None
        self.cut_off += finish == "length"
        self.refused += finish == "refused"

    def go_on_from(self, earlier: Mapping[str, Any]) -> None:
        """Add what no journal holds, as earlier sessions wrote it down: attempts that failed, and free answers."""
        self.cache_hits += earlier["cache_hits"]
        self.retries += earlier["retries"]
        self.failures.update(_by_kind(earlier["failures"]))
        self.unanswered.update(_by_kind(earlier["unanswered"]))

    def as_dict(self) -> dict[str, Any]:
        """For summaries and metrics."""
        return {
            **msgspec.to_builtins(self.total),
            "cache_hits": self.cache_hits,
            "retries": self.retries,
            "cut_off": self.cut_off,
            "refused": self.refused,
            "failures": {str(kind): count for kind, count in sorted(self.failures.items())},
            "unanswered": {str(kind): count for kind, count in sorted(self.unanswered.items())},
        }


def _by_kind(counts: Mapping[str, int]) -> dict[Kind, int]:
    return {Kind(kind): count for kind, count in counts.items()}


def _model(reply: object, prices: Mapping[str, Price | None]) -> str:
    named = reply.get("model") if isinstance(reply, dict) else None
    return str(named) if named is not None else next(iter(prices), "")
