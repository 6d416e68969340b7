"""What models cost: prices, and what was spent so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from genai_prices import Usage as PricedUsage
from genai_prices import calc_price
from genai_prices.types import ModelPrice, TieredPrices

from shoal.journal import JournalLine
from shoal.models.base import FailureKind, Usage

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

    def __init__(self, prices: Mapping[str, Price | None], lines: Iterable[JournalLine] = ()) -> None:
        self._prices = prices
        self.total = Spent()
        self.by_model: dict[str, Spent] = {}
        #: Questions that the response cache answered; they cost nothing.
        self.cache_hits = 0
        #: Attempts after the first.
        self.retries = 0
        #: Every attempt that failed, also those that were then repeated.
        self.failures: Counter[FailureKind] = Counter()
        #: Questions that stayed without an answer.
        self.unanswered: Counter[FailureKind] = Counter()
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

    def _recall(self, line: JournalLine) -> None:
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


def _by_kind(counts: Mapping[str, int]) -> dict[FailureKind, int]:
    return {FailureKind(kind): count for kind, count in counts.items()}


def _model(reply: object, prices: Mapping[str, Price | None]) -> str:
    named = reply.get("model") if isinstance(reply, dict) else None
    return str(named) if named is not None else next(iter(prices), "")


#: As the table names providers that scenarios name otherwise.
_PROVIDERS = {"gemini": "google", "xai": "x-ai"}


def price_of(model: str) -> Price | None:
    """The price of a model as scenarios name it, `openai/gpt-4.1-mini`; None: unknown."""
    provider, slash, name = model.partition("/")
    if not slash:
        provider, name = "openai", model
    try:
        found = calc_price(PricedUsage(input_tokens=1), name, provider_id=_PROVIDERS.get(provider, provider))
    except LookupError:
        return None
    return _price(found.model_price, is_embedding="embed" in name)


def _price(found: ModelPrice, *, is_embedding: bool) -> Price | None:
    given, made = _dollars(found, "input_mtok"), _dollars(found, "output_mtok")
    # Embeddings are no tokens; of any other model a price that lacks one side is not known.
    if made is None and is_embedding:
        made = 0.0
    if given is None or made is None:
        return None
    return Price(given, made, _dollars(found, "cache_read_mtok"))


def _dollars(found: ModelPrice, name: str) -> float | None:
    """A price as it stands, or its base where longer prompts cost more: ours are short of every threshold."""
    value = getattr(found, name, None)
    if isinstance(value, TieredPrices):
        value = value.base
    return None if value is None else float(value)
