"""Recommends how many simulations side by side suit a purpose, and says what calls need of the network."""

from __future__ import annotations

from typing import NamedTuple

#: What a usual call sends and receives, headers included, as `scripts/bench language_cpu` counts it; rounded up.
SENT_BYTES_PER_CALL, RECEIVED_BYTES_PER_CALL = 10_500, 1_500
#: More than this are too many to follow what each of them does.
_MOST_IN_DEVELOPMENT = 4
_BITS = 8


class PurposeAdvice(NamedTuple):
    """How many simulations side by side suit a purpose, and why."""

    purpose: str
    simulations: int
    reason: str


def suit_purposes(most: int) -> tuple[PurposeAdvice, ...]:
    """Recommend a number for each purpose, on a machine and a server that bear at most this many."""
    quarter, half = max(min(most // 4, _MOST_IN_DEVELOPMENT), 1), max(most // 2, 1)
    return (
        PurposeAdvice("development", quarter, "a result soon, and most of the machine is left to work on"),
        PurposeAdvice("research", half, "half of what is possible, so that another study or a server has room"),
        PurposeAdvice("batch work", most, "all that is possible; runs hold back by themselves when it gets tight"),
        PurposeAdvice("large studies", most, "the same here; more need more machines: --on ray://HOST:PORT"),
    )


class NetworkNeed(NamedTuple):
    """What calls need of the line to their server, in megabits a second."""

    sent: float
    received: float

    @classmethod
    def of_calls(cls, at_once: int, seconds_per_call: float) -> NetworkNeed:
        """Return what this many calls at once need, each of which takes these seconds."""
        megabits = _BITS * at_once / seconds_per_call / 1e6
        return cls(megabits * SENT_BYTES_PER_CALL, megabits * RECEIVED_BYTES_PER_CALL)
