"""Effects of arms against the control, paired by seed, and comparisons that are corrected for their number.

The p of an effect and its interval come from the same tests: an interval holds the differences that they leave
possible. So p is below 0.05 exactly where zero is outside the interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

from shoal.experiments.statistics.intervals import COVERED, FEWEST_RESAMPLED, MANY, Interval, resample_mean
from shoal.experiments.statistics.student import find_t, find_two_sided_p
from shoal.seeds import derive

#: With fewer seeds no way to flip signs is rare enough for a p below 0.05.
FEWEST_FLIPPED = 6
#: With this many seeds at most every way to flip the signs is tried; with more, this number of ways is drawn.
_EXACT_SEEDS = 12
_FLIPS = 10_000
#: How many differences of rates are drawn from what pairs leave possible.
_DRAWN_RATES = 40_000
#: What a difference must exceed to be found with 95 % confidence four times out of five, in standard errors.
_FOUND = 1.96 + 0.84
#: Standardised effects from here on are called large.
_LARGE = 0.8


@dataclass(frozen=True, slots=True)
class Effect:
    """How far an arm is from the control, over the seeds that both have."""

    seeds: int
    difference: Interval
    #: Mean difference over its standard deviation (Cohen's d of pairs); None where all differences are alike.
    standardised: float | None
    #: Chance of a difference as large if the arm did nothing; None with a single seed.
    p: float | None
    #: The test that p and the interval come from: `flips`, `bootstrap`, `t` or `rates`.
    test: str = "flips"


def compare_paired(arm: Mapping[int, float], control: Mapping[int, float]) -> Effect | None:
    """Compare values by seed; None where no seed is in both.

    If the arm did nothing, each difference could as well have the other sign: the test that flips signs is exact then,
    however values are distributed. Where the arm does much in some seeds and little in others, the bootstrap holds
    better. A difference is found where both find it, and the interval holds what either of them leaves possible. Five
    seeds have too few signs to flip; fewer are compared by Student's t, and so are very many.
    """
    seeds = sorted(arm.keys() & control.keys())
    if not seeds:
        return None
    differences = np.asarray([arm[seed] - control[seed] for seed in seeds], np.float64)
    count, mean = len(seeds), float(differences.mean())
    if count < 2:
        return Effect(count, Interval(mean, -inf, inf), None, None)
    spread = float(differences.std(ddof=1))
    if spread <= 1e-12 * max(abs(mean), 1.0):
        return _compare_alike(mean, count)
    if FEWEST_RESAMPLED <= count <= MANY:
        tests = [resample_mean(differences, _FLIPS)]
        if count >= FEWEST_FLIPPED:
            subsets = _list_subsets(count)
            # Flipping the signs of some differences from an assumed effect moves their sum past that of all exactly
            # where the mean of those flipped is on the other side of the assumed effect.
            tests.append(subsets @ differences / subsets.sum(axis=1))
        tiny = 1e-12 * float(np.abs(differences).max())
        found = [_test_zero(np.sort(test), mean, tiny) for test in tests]
        ends = min(low for low, _, _ in found), max(high for _, high, _ in found)
        p = max(p for _, _, p in found)
        return Effect(count, Interval(mean, *ends), mean / spread, p, "flips" if len(tests) > 1 else "bootstrap")
    error = spread / sqrt(count)
    half = find_t(1 - COVERED, count - 1) * error
    p = find_two_sided_p(mean / error, count - 1)
    return Effect(count, Interval(mean, mean - half, mean + half), mean / spread, p, "t")


def _compare_alike(mean: float, count: int) -> Effect:
    """Compare arms that differ by the same in every seed. So few seeds may be alike by chance."""
    if abs(mean) <= 1e-12:
        return Effect(count, Interval(0.0, 0.0, 0.0), None, 1.0)
    end = 0.0 if count >= FEWEST_FLIPPED else inf
    return Effect(count, Interval(mean, mean - end, mean + end), None, max(2.0 ** (1 - count), 2 / _FLIPS))


def _test_zero(truths: NDArray[np.float64], mean: float, tiny: float) -> tuple[float, float, float]:
    """Return the ends of the interval of a test, and its two-sided p, of what it leaves possible in rising order."""
    # What was found belongs to what is as far as what was found.
    ways = len(truths) + 1
    beyond = 1 + int((truths <= tiny).sum() if mean > 0 else (truths >= -tiny).sum())
    # The smallest number of ways that is not rare, the one that was found among them.
    needed = int((1 - COVERED) / 2 * ways) + 1
    low, high = (float(truths[needed - 2]), float(truths[1 - needed])) if needed > 1 else (-inf, inf)
    low, high = (0.0 if abs(end) <= tiny else end for end in (low, high))
    return low, high, min(2 * beyond / ways, 1.0)


@lru_cache(maxsize=4)
def _list_subsets(seeds: int) -> NDArray[np.float64]:
    """Return subsets of the seeds, a row of zeros and ones for each, without the empty one: all, or as many drawn."""
    if seeds <= _EXACT_SEEDS:
        return np.asarray(list(product((0.0, 1.0), repeat=seeds))[1:])
    draw = np.random.default_rng(derive(0, "statistics", "signs"))
    drawn = draw.integers(0, 2, (_FLIPS // 2 - 1, seeds)).astype(np.float64)
    # The opposite of each belongs to them, so that both sides are alike; that of the empty one are all seeds.
    subsets = np.vstack([drawn, 1 - drawn, np.ones(seeds)])
    subsets[subsets.sum(axis=1) == 0] = 1.0
    return subsets


def compare_rates(arm: Mapping[int, bool], control: Mapping[int, bool]) -> Effect | None:
    """Compare how often runs passed, by seed; None where no seed is in both.

    Pairs are better, worse or alike. The interval holds 95 % of what they leave possible if nothing was known before,
    and p is that of McNemar's test, which is the chance by the same measure that the arm is not better, or not worse.
    """
    seeds = sorted(arm.keys() & control.keys())
    if not seeds:
        return None
    differences = np.asarray([int(arm[seed]) - int(control[seed]) for seed in seeds], np.float64)
    better, worse, count = int((differences > 0).sum()), int((differences < 0).sum()), len(seeds)
    mean, spread = float(differences.mean()), float(differences.std(ddof=1)) if count > 1 else 0.0
    low, high, p = _test_zero(_draw_differences(better, worse, count), mean, 0.0)
    interval = Interval(mean, -1.0 if mean <= -1 else min(low, mean), 1.0 if mean >= 1 else max(high, mean))
    standardised = mean / spread if spread > 1e-12 else None
    return Effect(count, interval, standardised, p, "rates")


@lru_cache(maxsize=64)
def _draw_differences(better: int, worse: int, count: int) -> NDArray[np.float64]:
    """Draw what pairs leave possible for the difference of their rates, in rising order."""
    draw = np.random.default_rng(derive(0, "statistics", "rates"))
    shares = draw.dirichlet((better + 1, worse + 1, count - better - worse + 1), _DRAWN_RATES)
    differences: NDArray[np.float64] = np.sort(shares[:, 0] - shares[:, 1])
    return differences


def correct_holm(values: Sequence[float]) -> list[float]:
    """Correct p values for their number by the method of Holm, in the order in which they are given."""
    corrected, largest = [0.0] * len(values), 0.0
    for rank, at in enumerate(sorted(range(len(values)), key=lambda at: values[at])):
        largest = max(largest, min(values[at] * (len(values) - rank), 1.0))
        corrected[at] = largest
    return corrected


def describe_power(seeds: int) -> str | None:
    """Say what so few seeds cannot find; None where they are enough for large effects."""
    if seeds < 2:
        return "One seed shows no difference between arms: run at least 13."
    smallest = _FOUND / sqrt(seeds)
    if smallest <= _LARGE:
        return None
    needed = int(np.ceil((_FOUND / _LARGE) ** 2))
    return (
        f"{seeds} seeds find only effects above {smallest:.2f} standard deviations four times out of five; "
        f"{needed} seeds would find those above {_LARGE}."
    )
