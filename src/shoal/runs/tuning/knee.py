"""Finds how many at once is best, from measurements alone.

Levels double until a higher one brings no gain. The knee is recommended: the smallest level whose rate is close to the
best, among the levels that fail no more often than lower ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import log2, sqrt
from typing import Any

import msgspec

#: A level with this share of the best throughput is as good as the best.
NEAR_SHARE = 0.9
#: Twice as many at once must do this many times as much, or going higher has no point.
GROWTH = 1.15
#: With less growth than this the knee may lie before the last level, although that one was worth it.
BENT_GROWTH = 1.6
#: The share of failures, on top of those with fewer at once, that is accepted.
STRAINED_SHARE = 0.01
#: A level whose median duration is this many times the shortest is too slow.
EXPLODED = 8.0
#: If this share and this many fail with one at a time, the number at once is not the cause.
HOPELESS_SHARE = 0.25
HOPELESS_FAILURES = 3
#: The most levels that are measured between those that doubled.
REFINEMENTS = 3
#: The smallest relative gap between two levels that is worth refining.
NEXT_SHARE = 0.25


class MeasuredLevel(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured with this many at once. Durations are in seconds, of a call or of a round."""

    at_once: int
    tried: int
    #: How often each failure occurred, by a name such as `429 concurrency`.
    failures: dict[str, int] = {}
    #: Answers, or steps of agents.
    per_second: float
    p50: float
    p95: float
    seconds: float = 0.0
    tokens_per_second: float | None = None
    #: Of simulations: the share of all cores, and the memory of all processes.
    cpu: float | None = None
    memory_mb: float | None = None

    @property
    def failed(self) -> int:
        return sum(self.failures.values())

    @property
    def failed_share(self) -> float:
        return self.failed / self.tried if self.tried else 0.0

    @property
    def is_rate_limited(self) -> bool:
        """Whether most failures are refusals for too many per minute, which fewer at once do not help."""
        rates = sum(count for name, count in self.failures.items() if name.endswith("_rate"))
        return 2 * rates > self.failed

    def as_dict(self) -> dict[str, Any]:
        """Return the figures to four digits, with the totals of the failures."""
        plain = {
            name: float(f"{value:.4g}") if isinstance(value, float) else value
            for name, value in msgspec.to_builtins(self).items()
            if value is not None
        }
        return {**plain, "failed": self.failed, "failed_share": round(self.failed_share, 4)}


class Knee(msgspec.Struct, frozen=True):
    """The recommended level, and a sentence that says why."""

    at_once: int
    reason: str


# What to measure


def next_level(levels: Sequence[MeasuredLevel], up_to: int) -> int | None:
    """Return what to measure after these levels, which are in the order of measuring; None if enough is known."""
    if not levels:
        return 1
    rising = _select_rising(levels)
    if not has_turned(rising):
        top = rising[-1].at_once
        if top < up_to:
            return min(2 * top, up_to)
        if not _falls_short(rising, BENT_GROWTH):
            return None
    if len(levels) - len(rising) >= REFINEMENTS:
        return None
    # Refine on the side of the knee where a better level may lie.
    best, above = _select_knee(levels), _find_neighbour(levels, _select_knee(levels), 1)
    if above is not None and above not in find_usable(levels):
        if above.is_rate_limited:
            return None
        low, high = best.at_once, above.at_once
    else:
        below = _find_neighbour(levels, best, -1)
        if below is None:
            return None
        low, high = below.at_once, best.at_once
    return (low + high) // 2 if high - low > max(NEXT_SHARE * low, 1) else None


def has_turned(rising: Sequence[MeasuredLevel]) -> bool:
    """Return whether no level above the last of these is worth measuring: it fails, is too slow or brings no more."""
    *below, last = rising
    if not below:
        return is_hopeless(last)
    is_slow = last.p50 > EXPLODED * min(level.p50 for level in below)
    return last not in find_usable(rising) or is_slow or _falls_short(rising, GROWTH)


def is_hopeless(first: MeasuredLevel) -> bool:
    """Return whether so much fails with one at a time that the number at once cannot be the cause."""
    return first.failed >= HOPELESS_FAILURES and first.failed_share > HOPELESS_SHARE


def is_end_found(levels: Sequence[MeasuredLevel]) -> bool:
    """Return whether the end of what more brings was seen."""
    return bool(levels) and has_turned(_select_rising(levels))


def find_usable(levels: Iterable[MeasuredLevel]) -> list[MeasuredLevel]:
    """Return the levels at which no more fails than with fewer at once, from the smallest on.

    One percent more is accepted, and so is what may well be chance: two standard deviations above that, and one call
    in any case. What fails with one at a time does not fail because of the number at once.
    """
    found: list[MeasuredLevel] = []
    for level in sorted(levels, key=lambda level: level.at_once):
        accepted, usual = level.tried * STRAINED_SHARE, level.tried * compute_failed_share(found)
        # The usual share is known only as well as the calls below can tell.
        variance = accepted + usual * (1 + level.tried / max(sum(each.tried for each in found), 1))
        if not found or level.failed <= max(accepted + usual + 2 * sqrt(variance), 1.0):
            found.append(level)
    return found


def compute_failed_share(levels: Sequence[MeasuredLevel]) -> float:
    """Return the share of failures in everything that was tried at these levels."""
    return sum(level.failed for level in levels) / max(sum(level.tried for level in levels), 1)


def _falls_short(levels: Sequence[MeasuredLevel], growth: float) -> bool:
    """Return whether the last level does less than `growth` demands for twice as many, scaled to the step."""
    *below, last = levels
    if not below:
        return False
    best = max(level.per_second for level in below)
    wanted: float = best * growth ** log2(last.at_once / below[-1].at_once)
    return last.per_second < wanted


def _select_rising(levels: Sequence[MeasuredLevel]) -> list[MeasuredLevel]:
    """Return the levels on the way up; those after them lie between."""
    count = next((place for place, (one, other) in enumerate(pairwise(levels), 1) if other.at_once < one.at_once), None)
    return list(levels[:count])


def _select_knee(levels: Sequence[MeasuredLevel]) -> MeasuredLevel:
    usable = find_usable(levels)
    best = max(level.per_second for level in usable)
    return next(level for level in usable if level.per_second >= NEAR_SHARE * best)


def _find_neighbour(levels: Iterable[MeasuredLevel], level: MeasuredLevel, side: int) -> MeasuredLevel | None:
    beyond = [other for other in levels if (other.at_once - level.at_once) * side > 0]
    return min(beyond, key=lambda other: abs(other.at_once - level.at_once), default=None)


# What to recommend


def find_knee(levels: Sequence[MeasuredLevel], ended: str = "", noun: str = "calls") -> Knee | None:
    """Return the level to use; `ended` says why no more was measured. None if nothing works."""
    if not levels or is_hopeless(levels[0]):
        return None
    best, usable = _select_knee(levels), find_usable(levels)
    above, most = _find_neighbour(levels, best, 1), usable[-1]
    if above is not None and above not in usable:
        [(worst, _)] = Counter(above.failures).most_common(1)
        verb = "the server refuses" if worst.startswith("429") else "more fails"
        reason = f"beyond {best.at_once} {verb}: {above.failed_share:.0%} of {noun} at {above.at_once} ({worst})"
        if above.is_rate_limited:
            reason += ". What it limits is a rate, which a run keeps to by itself"
    elif above is not None:
        share = most.per_second / best.per_second if best.per_second else 1.0
        slower = f"{most.p50 / best.p50:.1f} times" if best.p50 else "many times"
        idle = f"{most.at_once} at once do {share:.0%} as much, and half of the {noun} take {slower} as long"
        reason = f"beyond {best.at_once} nothing is gained: {idle}"
    elif is_end_found(levels):
        reason = f"{best.at_once} at once do the most that was measured, though little more than fewer do"
    else:
        why = f" ({ended})" if ended else ""
        reason = f"{best.at_once} is the most that was measured{why}, and it still brought more: there may be room"
    return Knee(best.at_once, reason)
