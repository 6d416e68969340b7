"""How many at once is best, judged from measurements alone.

Levels double until more brings nothing more. What is recommended is the knee: the smallest level that does nearly as
much as the best one, among those at which no more fails than does with fewer at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import pairwise
from math import log2, sqrt
from typing import Any

import msgspec

#: A level that does this much of what the best one does is as good.
NEAR_SHARE = 0.9
#: Twice as many at once must do this many times as much, or there is no point in going on.
GROWTH = 1.15
#: Less than this, and the knee may lie before the last level although that was worth it.
BENT_GROWTH = 1.6
#: Failures on top of those with fewer at once that are let pass.
STRAINED_SHARE = 0.01
#: Where half of it takes this many times as long as at best, nobody wants more.
EXPLODED = 8.0
#: Where one at a time fails this often, it is not for being too many.
HOPELESS_SHARE = 0.25
HOPELESS_FAILURES = 3
#: Levels between those that doubled, at most, and how near two levels are that none is worth measuring between.
REFINEMENTS = 3
NEXT_SHARE = 0.25


class MeasuredLevel(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured with so many at once. Durations are in seconds, of a call or of a round."""

    at_once: int
    tried: int
    #: What went wrong, such as `429 concurrency`: how often.
    failures: dict[str, int] = {}
    #: Answers, or steps of agents.
    per_second: float
    p50: float
    p95: float
    seconds: float = 0.0
    tokens_per_second: float | None = None
    #: Of simulations: the share of all cores, and the memory of all of them.
    cpu: float | None = None
    memory_mb: float | None = None

    @property
    def failed(self) -> int:
        return sum(self.failures.values())

    @property
    def failed_share(self) -> float:
        return self.failed / self.tried if self.tried else 0.0


class StopReason(StrEnum):
    """Why going higher has no point."""

    HOPELESS = "hopeless"
    FAILING = "failing"
    SLOW = "slow"
    FLAT = "flat"


class Knee(msgspec.Struct, frozen=True):
    """What is recommended, and why, in words."""

    at_once: int
    reason: str


def usable(levels: Iterable[MeasuredLevel]) -> list[MeasuredLevel]:
    """Levels at which no more fails than with fewer at once, from the smallest on.

    One percent more is let pass, and so is what may well be chance: two standard deviations above that, and one call
    in any case. What fails with one at a time does not fail for being too many.
    """
    found: list[MeasuredLevel] = []
    for level in sorted(levels, key=lambda level: level.at_once):
        if not found or level.failed <= _tolerable(level, found):
            found.append(level)
    return found


def _tolerable(level: MeasuredLevel, below: Sequence[MeasuredLevel]) -> float:
    tried, passing = sum(each.tried for each in below), level.tried * STRAINED_SHARE
    usual = level.tried * failed_share(below)
    # The usual share is itself known only as well as so many calls can tell.
    return max(passing + usual + 2 * sqrt(passing + usual * (1 + level.tried / max(tried, 1))), 1.0)


def failed_share(levels: Sequence[MeasuredLevel]) -> float:
    """Of all that was tried at these levels."""
    return sum(level.failed for level in levels) / max(sum(level.tried for level in levels), 1)


def turn(levels: Sequence[MeasuredLevel]) -> StopReason | None:
    """Why the last of these levels, each higher than the one before, is the last; None: higher ones may be better."""
    *below, last = levels
    if not below:
        is_hopeless = last.failed >= HOPELESS_FAILURES and last.failed_share > HOPELESS_SHARE
        return StopReason.HOPELESS if is_hopeless else None
    if last not in usable(levels):
        return StopReason.FAILING
    if last.p50 > EXPLODED * min(level.p50 for level in below):
        return StopReason.SLOW
    return StopReason.FLAT if _falls_short(levels, GROWTH) else None


def _falls_short(levels: Sequence[MeasuredLevel], growth: float) -> bool:
    """Whether the last level does less than twice as many at once should, or what that makes for a smaller step."""
    *below, last = levels
    if not below:
        return False
    best = max(level.per_second for level in below)
    wanted: float = best * growth ** log2(last.at_once / below[-1].at_once)
    return last.per_second < wanted


def next_level(levels: Sequence[MeasuredLevel], up_to: int) -> int | None:
    """What to measure next, after these, in the order in which they were measured; None: enough is known."""
    if not levels:
        return 1
    climbed = _climbed(levels)
    if turn(climbed) is None:
        top = climbed[-1].at_once
        if top < up_to:
            return min(2 * top, up_to)
        if not _falls_short(climbed, BENT_GROWTH):
            return None
    return _between(levels) if len(levels) - len(climbed) < REFINEMENTS else None


def knee(levels: Sequence[MeasuredLevel], ended: str = "", noun: str = "calls") -> Knee | None:
    """The level to use; `ended` says why no more was measured. None: nothing works."""
    if not levels or turn(_climbed(levels)[:1]) is StopReason.HOPELESS:
        return None
    chosen = _knee(levels)
    return Knee(chosen.at_once, _reason(chosen, levels, ended, noun))


def is_found(levels: Sequence[MeasuredLevel]) -> bool:
    """Whether the end of what more brings was seen."""
    return bool(levels) and turn(_climbed(levels)) is not None


def _climbed(levels: Sequence[MeasuredLevel]) -> list[MeasuredLevel]:
    """The levels on the way up; those after them lie between."""
    count = next((place for place, (one, other) in enumerate(pairwise(levels), 1) if other.at_once < one.at_once), None)
    return list(levels[:count])


def _knee(levels: Sequence[MeasuredLevel]) -> MeasuredLevel:
    fine = usable(levels)
    best = max(level.per_second for level in fine)
    return next(level for level in fine if level.per_second >= NEAR_SHARE * best)


def _between(levels: Sequence[MeasuredLevel]) -> int | None:
    """A level on the side of the knee where it may still lie, if there is room for one."""
    chosen, fine = _knee(levels), usable(levels)
    above = _neighbour(levels, chosen, 1)
    if above is not None and above not in fine:
        if is_rate(above):
            return None
        low, high = chosen.at_once, above.at_once
    else:
        below = _neighbour(levels, chosen, -1)
        if below is None:
            return None
        low, high = below.at_once, chosen.at_once
    return (low + high) // 2 if high - low > max(NEXT_SHARE * low, 1) else None


def is_rate(level: MeasuredLevel) -> bool:
    """Whether most of what fails does so for being too many per minute, which fewer at once do not help."""
    rates = sum(count for name, count in level.failures.items() if name.endswith("_rate"))
    return 2 * rates > level.failed


def _neighbour(levels: Iterable[MeasuredLevel], level: MeasuredLevel, side: int) -> MeasuredLevel | None:
    beyond = [other for other in levels if (other.at_once - level.at_once) * side > 0]
    return min(beyond, key=lambda other: abs(other.at_once - level.at_once), default=None)


# In words


def _reason(chosen: MeasuredLevel, levels: Sequence[MeasuredLevel], ended: str, noun: str) -> str:
    above, most = _neighbour(levels, chosen, 1), usable(levels)[-1]
    if above is not None and above not in usable(levels):
        return f"beyond {chosen.at_once} {_failing(above, noun)}"
    if above is not None:
        return f"beyond {chosen.at_once} nothing is gained: {_idle(chosen, most, noun)}"
    if is_found(levels):
        return f"{chosen.at_once} at once do the most that was measured, though little more than fewer do"
    told = f" ({ended})" if ended else ""
    return f"{chosen.at_once} is the most that was measured{told}, and it still brought more: there may be room"


def _idle(chosen: MeasuredLevel, most: MeasuredLevel, noun: str) -> str:
    share = most.per_second / chosen.per_second if chosen.per_second else 1.0
    slower = f"{most.p50 / chosen.p50:.1f} times" if chosen.p50 else "many times"
    return f"{most.at_once} at once do {share:.0%} as much, and half of the {noun} take {slower} as long"


def _failing(level: MeasuredLevel, noun: str) -> str:
    [(worst, _)] = Counter(level.failures).most_common(1)
    verb = "the server refuses" if worst.startswith("429") else "more fails"
    told = f"{verb}: {level.failed_share:.0%} of {noun} at {level.at_once} ({worst})"
    return f"{told}. What it limits is a rate, which a run keeps to by itself" if is_rate(level) else told


def as_dict(level: MeasuredLevel) -> dict[str, Any]:
    """With what follows from it; figures rounded to what they are worth."""
    plain = {name: _rounded(value) for name, value in msgspec.to_builtins(level).items() if value is not None}
    return {**plain, "failed": level.failed, "failed_share": round(level.failed_share, 4)}


def _rounded(value: Any) -> Any:
    return float(f"{value:.4g}") if isinstance(value, float) else value
