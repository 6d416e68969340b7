"""Prices in a negotiation of the offline mind: each names what its stance makes of a common price, until they meet."""

from __future__ import annotations

import re

from shoal.seeds import derive

_PRICE_WORDS = frozenset("price cost rent salary wage fee loan budget rate offer".split())
#: How far the price of a person who is fully for or against it lies above or below the common one.
_MARGIN = 0.3
#: Prices that differ by less than this share make a deal.
_NEAR = 0.03
#: Prices that differ by more than this are far apart.
_FAR = 0.1
_NUMBER = re.compile(r"\d[\d,]*")
_OFFERS = (
    "I could do {price}.", "My figure is {price}.", "Let us say {price}.", "I was thinking of {price}.",
    "What about {price}?", "I would settle for {price}.", "Say {price}, and we go on from there.", "{price} is fair.",
    "At {price} I would not complain.", "Make it {price}.", "I have {price} in mind.", "{price}, and I sleep well.",
)  # fmt: skip
_DEALS = ("{price} then, it is a deal.", "Deal: {price}.", "{price}, and we have a deal.", "Agreed on {price}, deal.")


def is_about_price(subject: str | None) -> bool:
    return subject is not None and not _PRICE_WORDS.isdisjoint(subject.lower().split())


def set_price(seed: int, world: str, agent: int, partner: int, stance: float) -> int:
    """Return an agent's price. The two share a common price, which follows from the seed; their stances part them."""
    common = 200 + derive(seed, world, min(agent, partner), max(agent, partner), "price") % 18 * 100
    return int(round(common * (1 + _MARGIN * stance), -1))


def find_price(text: str) -> int | None:
    """Return the last number of a text as a price."""
    found = _NUMBER.findall(text)
    return int(found[-1].replace(",", "")) if found else None


def compare_prices(own: int, theirs: int) -> int:
    """Return 1 where two prices make a deal, -1 where they are far apart, 0 in between."""
    apart = abs(own - theirs) / own
    return 1 if apart <= _NEAR else -1 if apart > _FAR else 0


def name_price(own: int, theirs: int | None, nth: int) -> str:
    """Return a sentence that names the price, or makes a deal where the other's is near."""
    if theirs is not None and compare_prices(own, theirs) > 0:
        return _DEALS[nth % len(_DEALS)].format(price=f"{theirs:,}")
    return _OFFERS[nth % len(_OFFERS)].format(price=f"{own:,}")
