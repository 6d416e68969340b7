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
_FEWEST_RESAMPLED = 5
#: Means of more values scatter as Student's t says, however skewed the values are.
MANY = 400
_TAILS = ((1 - COVERED) / 2, (1 + COVERED) / 2)


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and what it may as well be. Ends that nothing is known about are infinite."""

    value: float
    low: float
    high: float


def bootstrap_mean(values: Sequence[float], resamples: int = _RESAMPLES) -> Interval:
    """Estimate a mean by the studentised bootstrap, which covers the truth also where few values are skewed.

    With fewer than five values, or more than 400, the interval is that of Student.
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
    if not _FEWEST_RESAMPLED <= len(found) <= MANY:
        half = find_t(1 - COVERED, len(found) - 1) * error
        return Interval(mean, mean - half, mean + half)
    counts, centred = _draw_counts(len(found), resamples), found - mean
    means = counts @ centred / len(found)
    spreads = np.maximum(counts @ centred**2 / len(found) - means**2, 0.0)
    errors = np.sqrt(spreads / (len(found) - 1))
    # A resample of one value alone says nothing about how far means scatter.
    is_usable = errors > error * 1e-6
    low, high = np.quantile(means[is_usable] / errors[is_usable], _TAILS).tolist()
    return Interval(mean, mean - high * error, mean - low * error)


@lru_cache(maxsize=4)
def _draw_counts(values: int, resamples: int) -> NDArray[np.float64]:
    """Draw how often each value is in each resample. Equally many values are always resampled in the same way."""
    drawn = _draw("mean").multinomial(values, [1 / values] * values, resamples)
    return drawn.astype(np.float64)


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
    runs that did not are drawn apart, because a run that fails often costs something else than one that passes.
    """
    cost, is_passed = np.asarray(costs, np.float64), np.asarray(passed, np.bool_)
    if not len(cost) or len(cost) != len(is_passed):
        raise ValueError("the cost of a pass needs a cost and a verdict for each run")
    good = int(is_passed.sum())
    bad = len(cost) - good
    draw = _draw("cost of pass")
    rates = draw.beta(good + 0.5, bad + 0.5, resamples)
    means = rates * _draw_means(draw, cost[is_passed], cost, resamples)
    means += (1 - rates) * _draw_means(draw, cost[~is_passed], cost, resamples)
    low, high = np.quantile(np.maximum(means, 0.0) / rates, _TAILS).tolist()
    return Interval(float(cost.sum()) / good, low, high) if good else Interval(inf, low, inf)


def _draw_means(
    draw: np.random.Generator, group: NDArray[np.float64], everybody: NDArray[np.float64], resamples: int
) -> NDArray[np.float64]:
    """Draw what the mean cost of a group may be. One that is too small scatters as all runs do."""
    own = group if len(group) > 1 else everybody
    mean = float(group.mean()) if len(group) else float(everybody.mean())
    if len(own) < 2:
        return np.full(resamples, mean)
    error = float(own.std(ddof=1)) / sqrt(max(len(group), 1))
    scattered: NDArray[np.float64] = mean + error * draw.standard_t(len(own) - 1, resamples)
    return scattered


def _draw(purpose: str) -> np.random.Generator:
    """Return the generator of a purpose. The same values have the same interval, each time."""
    return np.random.default_rng(derive(0, "statistics", purpose))
