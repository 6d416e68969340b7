"""95 % intervals: of means by bootstrap, of rates by Wilson, and of the cost of a pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

from shoal.experiments.statistics.student import find_t
from shoal.seeds import derive

COVERED = 0.95
#: The normal quantile that belongs to it.
NORMAL = 1.959964
_RESAMPLES = 4000
#: Fewer values have too few different resamples: the bootstrap of three covers 80 %, where Student's t covers 95 %.
FEWEST_RESAMPLED = 5
#: Means of more values scatter as Student's t says, however skewed the values are.
MANY = 400
#: A resample that scatters by less than this share of what all values do has too few different ones. Without this, an
#: interval of five values is a hundred times too wide now and then.
_LEAST_ERROR = 0.25
_TAILS = ((1 - COVERED) / 2, (1 + COVERED) / 2)


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and what it may as well be. Ends that nothing is known about are infinite."""

    value: float
    low: float
    high: float

    def clip(self, low: float, high: float) -> Interval:
        """Leave out what cannot be, where that is known; an interval that says nothing still says nothing."""
        if self.low == -inf:
            return self
        return Interval(self.value, max(self.low, low), min(self.high, high))


def bootstrap_mean(values: Sequence[float], resamples: int = _RESAMPLES) -> Interval:
    """Estimate a mean by what either Student's t or the studentised bootstrap leaves possible.

    The bootstrap covers the truth also where few values are skewed. It is left out with fewer than five values, or more
    than 400.
    """
    found = np.asarray(values, np.float64)
    if not len(found):
        raise ValueError("a mean needs at least one value")
    mean = float(found.mean())
    if len(found) < 2:
        return Interval(mean, -inf, inf)
    error = float(found.std(ddof=1)) / sqrt(len(found))
    if error <= 1e-12 * max(abs(mean), 1.0):
        return Interval(mean, mean, mean)
    half = find_t(1 - COVERED, len(found) - 1) * error
    if not FEWEST_RESAMPLED <= len(found) <= MANY:
        return Interval(mean, mean - half, mean + half)
    low, high = np.quantile(resample_mean(found, resamples), _TAILS).tolist()
    return Interval(mean, min(low, mean - half), max(high, mean + half))


def resample_mean(values: NDArray[np.float64], resamples: int = _RESAMPLES) -> NDArray[np.float64]:
    """Return what the truth may be: the mean, less what resamples are off by in their own standard errors."""
    count, mean = len(values), float(values.mean())
    error = float(values.std(ddof=1)) / sqrt(count)
    counts, centred = _draw_counts(count, resamples), values - mean
    means = counts @ centred / count
    spreads = np.maximum(counts @ centred**2 / count - means**2, 0.0)
    errors = np.maximum(np.sqrt(spreads / (count - 1)), _LEAST_ERROR * error)
    truths: NDArray[np.float64] = mean - error * means / errors
    return truths


@lru_cache(maxsize=4)
def _draw_counts(values: int, resamples: int) -> NDArray[np.float64]:
    """Draw how often each value is in each resample. Equally many values are always resampled in the same way.

    Each resample leaves out one value, another one each time (the bootknife of Hesterberg): resamples of all values
    scatter less than samples do.
    """
    draw = _draw("mean")
    is_kept = np.ones((resamples, values), np.bool_)
    is_kept[np.arange(resamples), draw.integers(0, values, resamples)] = False
    counts = np.zeros((resamples, values))
    counts[is_kept] = draw.multinomial(values, [1 / (values - 1)] * (values - 1), resamples).ravel()
    return counts


def estimate_rate(passed: int, total: int) -> Interval:
    """Estimate a rate with the interval of Wilson, which stays between 0 and 1."""
    if not 0 <= passed <= total or not total:
        raise ValueError(f"{passed} of {total} is no rate")
    rate, scale = passed / total, 1 + NORMAL**2 / total
    middle = (rate + NORMAL**2 / (2 * total)) / scale
    half = NORMAL / scale * sqrt(rate * (1 - rate) / total + NORMAL**2 / (4 * total**2))
    low = 0.0 if passed == 0 else max(middle - half, 0.0)
    high = 1.0 if passed == total else min(middle + half, 1.0)
    return Interval(rate, low, high)


def estimate_cost_of_pass(costs: Sequence[float], passed: Sequence[bool], resamples: int = _RESAMPLES) -> Interval:
    """Estimate mean cost over pass rate, both of them random; infinite where nothing passed.

    The pass rate is drawn from what the runs leave possible (Jeffreys), and the mean costs of runs that passed and of
    runs that did not are drawn apart, because a run that fails often costs something else than one that passes. Around
    these means both scatter alike.
    """
    cost, is_passed = np.asarray(costs, np.float64), np.asarray(passed, np.bool_)
    if not len(cost) or len(cost) != len(is_passed):
        raise ValueError("the cost of a pass needs a cost and a verdict for each run")
    groups = cost[is_passed], cost[~is_passed]
    good, bad = len(groups[0]), len(groups[1])
    draw = _draw("cost of pass")
    rates = draw.beta(good + 0.5, bad + 0.5, resamples)
    squares = sum(float(((group - group.mean()) ** 2).sum()) for group in groups if len(group))
    if freedom := good + bad - bool(good) - bool(bad):
        spread = sqrt(squares / freedom)
    else:
        spread, freedom = float(cost.std()), 1
    means = [
        (group if len(group) else cost).mean() + spread / sqrt(max(len(group), 1)) * draw.standard_t(freedom, resamples)
        for group in groups
    ]
    totals = np.maximum(rates * means[0] + (1 - rates) * means[1], 0.0)
    low, high = np.quantile(totals / rates, _TAILS).tolist()
    return Interval(float(cost.sum()) / good, low, high) if good else Interval(inf, low, inf)


def _draw(purpose: str) -> np.random.Generator:
    """Return the generator of a purpose. The same values have the same interval, each time."""
    return np.random.default_rng(derive(0, "statistics", purpose))
