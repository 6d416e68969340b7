"""Prices of models from a maintained table; it is part of the genai-prices package, so nothing is downloaded."""

from __future__ import annotations

from genai_prices import Usage as PricedUsage
from genai_prices import calc_price
from genai_prices.types import ModelPrice, TieredPrices

from shoal.models.spending import Price

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
