"""Prices of models, and what a run has spent on them so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from shoal.journal import JournalLine
from shoal.models.base import FailureKind, Usage
from shoal.models.local import is_local

TOKENS_PER_PRICE = 1_000_000


class Price(msgspec.Struct, frozen=True, omit_defaults=True):
    """Dollars per million tokens."""

    input: float
    output: float
    #: For input that the server had in its prefix cache; None means as other input.
    cached: float | None = None

    def of(self, usage: Usage) -> float:
        cached = self.input if self.cached is None else self.cached
        fresh = max(usage.input - usage.cached, 0)
        return (fresh * self.input + usage.cached * cached + usage.output * self.output) / TOKENS_PER_PRICE


class Spent(msgspec.Struct):
    """What some calls took. The cost is None, not 0, as soon as one of them has no known price."""

    calls: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    cost: float | None = 0.0

    @property
    def tokens(self) -> int:
        return self.input + self.output

    def add(self, usage: Usage, cost: float | None) -> None:
        """Count a call. One whose cost is not known makes the sum unknown."""
        self.calls += 1
        self.input += usage.input
        self.output += usage.output
        self.cached += usage.cached
        self.cost = None if cost is None or self.cost is None else self.cost + cost

    def merge(self, other: Spent) -> None:
        self.add(Usage(other.input, other.output, other.cached), other.cost)
        self.calls += other.calls - 1


class Spending:
    """What a run has spent on models. Calls that its journal holds already are counted from the start."""

    def __init__(self, prices: Mapping[str, Price | None], lines: Iterable[JournalLine] = ()) -> None:
        self._prices = prices
        self.total = Spent()
        self.by_model: dict[str, Spent] = {}
        #: Questions that the response cache answered. They cost nothing.
        self.cache_hits = 0
        #: Attempts after the first.
        self.retries = 0
        #: Every attempt that failed, including those that were then repeated.
        self.failures: Counter[FailureKind] = Counter()
        #: Questions that stayed without an answer.
        self.unanswered: Counter[FailureKind] = Counter()
        #: How often and how long servers did not answer at all.
        self.pauses = 0
        self.paused_seconds = 0.0
        #: Answers that were cut off at their maximum length, and answers in which the model refused.
        self.cut_off = 0
        self.refused = 0
        #: Calls whose tokens were estimated, and calls whose reply could not be read, which the total counts too.
        self.estimated = 0
        self.unreadable = Spent()
        for line in lines:
            # The parent of a fork paid for inherited lines, and answers from the cache have no usage.
            if line.usage is None or line.inherited is not None:
                continue
            reply = line.reply if isinstance(line.reply, dict) else {}
            model = reply.get("model", next(iter(prices), ""))
            self.charge(str(model), Usage.restore(line.usage))
            self.cut_off += reply.get("finish") == "length"
            self.refused += reply.get("finish") == "refused"

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

    def charge_unreadable(self, model: str, usage: Usage) -> None:
        """Charge a call whose reply cannot be read. No journal holds it."""
        self.failures[FailureKind.UNREADABLE] += 1
        price = self._prices.get(model)
        self.unreadable.add(usage, None if price is None else price.of(usage))
        self.charge(model, usage)

    def add_earlier(self, earlier: Mapping[str, Any]) -> None:
        """Add what no journal holds, from the `as_dict` of earlier sessions: failed attempts and free answers."""
        self.cache_hits += earlier["cache_hits"]
        self.retries += earlier["retries"]
        # Earlier versions did not count these.
        self.estimated += earlier.get("estimated", 0)
        lost = msgspec.convert(earlier.get("unreadable", {}), Spent)
        for spent in (self.unreadable, self.total):
            spent.merge(lost)
        self.pauses += earlier.get("pauses", 0)
        self.paused_seconds += earlier.get("paused_seconds", 0.0)
        for name, counter in (("failures", self.failures), ("unanswered", self.unanswered)):
            counter.update({FailureKind(kind): count for kind, count in earlier[name].items()})

    def take(self) -> Spending:
        """Return what was counted since the last call, and start anew."""
        taken = Spending(self._prices)
        taken.__dict__, self.__dict__ = self.__dict__, taken.__dict__
        return taken

    def add(self, other: Spending) -> None:
        """Add what another process has counted."""
        self.total.merge(other.total)
        self.unreadable.merge(other.unreadable)
        for model, spent in other.by_model.items():
            self.by_model.setdefault(model, Spent()).merge(spent)
        self.failures.update(other.failures)
        self.unanswered.update(other.unanswered)
        for count in ("cache_hits", "retries", "pauses", "paused_seconds", "cut_off", "refused", "estimated"):
            setattr(self, count, getattr(self, count) + getattr(other, count))

    def as_dict(self) -> dict[str, Any]:
        """Return all figures, for summaries and metrics."""
        return {
            **msgspec.to_builtins(self.total),
            "cache_hits": self.cache_hits,
            "retries": self.retries,
            "pauses": self.pauses,
            "paused_seconds": round(self.paused_seconds, 3),
            "cut_off": self.cut_off,
            "refused": self.refused,
            "estimated": self.estimated,
            "unreadable": msgspec.to_builtins(self.unreadable),
            "failures": {str(kind): count for kind, count in sorted(self.failures.items())},
            "unanswered": {str(kind): count for kind, count in sorted(self.unanswered.items())},
        }


#: Providers that the table of prices names otherwise than scenarios do.
_PROVIDERS = {"gemini": "google", "xai": "x-ai"}


def find_price(model: str) -> Price | None:
    """Find the price of a model as scenarios name it, `openai/gpt-4.1-mini`; None where it is unknown."""
    if is_local(model):
        return Price(0.0, 0.0)
    # The table takes a sixth of the start of a command, and only commands with a model need it.
    import genai_prices  # noqa: PLC0415

    provider, slash, name = model.partition("/")
    if not slash:
        provider, name = "openai", model
    try:
        usage = genai_prices.Usage(input_tokens=1)
        found = genai_prices.calc_price(usage, name, provider_id=_PROVIDERS.get(provider, provider))
    except LookupError:
        return None
    prices = found.model_price
    given, made = _read_dollars(prices, "input_mtok"), _read_dollars(prices, "output_mtok")
    # Embeddings are not tokens. Of any other model, a price that lacks one side is not known.
    if made is None and "embed" in name:
        made = 0.0
    if given is None or made is None:
        return None
    return Price(given, made, _read_dollars(prices, "cache_read_mtok"))


def _read_dollars(prices: object, name: str) -> float | None:
    """Read a price, or the base price where longer prompts cost more: ours stay below every threshold."""
    value = getattr(prices, name, None)
    value = getattr(value, "base", value)
    return None if value is None else float(value)
