"""How far two samples are from one another: their means, their spread and their distributions; and agreement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import inf, log2, sqrt

import numpy as np
from numpy.typing import NDArray

from shoal.experiments.statistics.effects import Effect
from shoal.experiments.statistics.intervals import COVERED, Interval
from shoal.experiments.statistics.student import find_t, find_two_sided_p
from shoal.seeds import derive

_RESAMPLES = 2000
_TAILS = ((1 - COVERED) / 2, (1 + COVERED) / 2)

Values = NDArray[np.float64]


def compare_unpaired(one: Sequence[float], other: Sequence[float]) -> Effect | None:
    """Compare the means of two samples that share no seeds, by the t test of Welch; None where one is empty.

    Its degrees of freedom are rounded down. `seeds` of the effect is the size of the smaller sample.
    """
    first, second = np.asarray(one, np.float64), np.asarray(other, np.float64)
    count = min(len(first), len(second))
    if not count:
        return None
    mean = float(first.mean() - second.mean())
    if count < 2:
        return Effect(count, Interval(mean, -inf, inf), None, None, "t")
    parts = [float(each.var(ddof=1)) / len(each) for each in (first, second)]
    error = sqrt(sum(parts))
    if error <= 1e-12 * max(abs(mean), 1.0):
        return Effect(count, Interval(mean, -inf, inf), None, None, "t")
    freedom = error**4 / sum(part**2 / (len(each) - 1) for part, each in zip(parts, (first, second), strict=True))
    whole = max(int(freedom), 1)
    half = find_t(1 - COVERED, whole) * error
    spread = sqrt((float(first.var(ddof=1)) + float(second.var(ddof=1))) / 2)
    p = find_two_sided_p(mean / error, whole)
    return Effect(count, Interval(mean, mean - half, mean + half), mean / spread, p, "t")


def measure_wasserstein(one: Sequence[float], other: Sequence[float]) -> float:
    """Return how far values have to be moved on average to turn one distribution into the other."""
    first, second = np.sort(np.asarray(one, np.float64)), np.sort(np.asarray(other, np.float64))
    every = np.sort(np.concatenate([first, second]))
    shares = [np.searchsorted(each, every[:-1], side="right") / len(each) for each in (first, second)]
    return float((np.abs(shares[0] - shares[1]) * np.diff(every)).sum())


def measure_total_variation(one: Sequence[Hashable], other: Sequence[Hashable]) -> float:
    """Return the share of answers that would have to change: half the sum of the differences of shares."""
    return sum(abs(p - q) for p, q in _pair_shares(one, other)) / 2


def measure_jensen_shannon(one: Sequence[Hashable], other: Sequence[Hashable]) -> float:
    """Return the Jensen-Shannon distance with logarithms to base 2: 0 for equal shares, 1 for none in common."""
    total = 0.0
    for p, q in _pair_shares(one, other):
        middle = (p + q) / 2
        total += sum(each * log2(each / middle) for each in (p, q) if each) / 2
    return sqrt(max(total, 0.0))


def estimate_diversity_ratio(one: Sequence[Hashable], other: Sequence[Hashable]) -> Interval | None:
    """Estimate the variance of categories, how likely two answers drawn at random differ, over that of the other."""
    known = {answer: number for number, answer in enumerate(dict.fromkeys([*one, *other]))}
    first, second = (np.eye(len(known))[[known[answer] for answer in each]] for each in (one, other))
    if min(len(first), len(second)) < 2 or not _measure_diversity(second.mean(axis=0)):
        return None
    draw = _draw("diversity ratio")
    upper, lower = (
        _measure_diversity(draw.multinomial(len(each), each.mean(axis=0), _RESAMPLES) / len(each))
        for each in (first, second)
    )
    ratios = np.divide(upper, lower, out=np.full(_RESAMPLES, np.inf), where=lower > 0)
    low, high = np.quantile(ratios, _TAILS, method="nearest").tolist()
    return Interval(float(_measure_diversity(first.mean(axis=0)) / _measure_diversity(second.mean(axis=0))), low, high)


def _measure_diversity(shares: Values) -> Values:
    diversity: Values = 1 - (shares**2).sum(axis=-1)
    return np.where(diversity < 1e-12, 0.0, diversity)


def _pair_shares(one: Sequence[Hashable], other: Sequence[Hashable]) -> list[tuple[float, float]]:
    first, second = Counter(one), Counter(other)
    return [(first[each] / len(one), second[each] / len(other)) for each in dict.fromkeys([*first, *second])]


def estimate_variance_ratio(groups: Sequence[Sequence[float]], other: Sequence[float]) -> Interval | None:
    """Estimate the variance of values that come in groups over that of a sample; None where the sample has none.

    The interval is a bootstrap over groups, such as runs, because what one run brings to all its people is one draw.
    """
    first = [np.asarray(group, np.float64) for group in groups if len(group)]
    second = np.asarray(other, np.float64)
    if sum(map(len, first)) < 2 or len(second) < 2 or not second.var():
        return None
    value = float(np.concatenate(first).var(ddof=1) / second.var(ddof=1))
    if len(first) < 2:
        return Interval(value, 0.0, inf)
    draw = _draw("variance ratio")
    moments = np.asarray([(len(group), group.sum(), (group**2).sum()) for group in first])
    counts, sums, squares = moments[draw.integers(0, len(first), (_RESAMPLES, len(first)))].sum(axis=1).T
    upper = np.maximum(squares - sums**2 / counts, 0.0) / np.maximum(counts - 1, 1)
    lower = second[draw.integers(0, len(second), (_RESAMPLES, len(second)))].var(axis=1, ddof=1)
    ratios = np.divide(upper, lower, out=np.full(_RESAMPLES, np.inf), where=lower > 0)
    low, high = np.quantile(ratios, _TAILS, method="nearest").tolist()
    return Interval(value, low, high)


@dataclass(frozen=True, slots=True)
class Agreement:
    """How well simulated answers agree with those of the same people, beside how well people agree with themselves."""

    people: int
    #: Mean agreement of simulated answers, 0 to 1.
    simulated: float
    #: Mean agreement of people who were asked twice; None where nobody was.
    retest: float | None
    #: The one over the other: 1 is as good as people themselves.
    normalised: Interval | None


def estimate_agreement(simulated: Sequence[float], retests: Sequence[float | None]) -> Agreement | None:
    """Estimate agreement over people, each with the agreement of the simulated answer and of the second answer.

    The normalised one is of the people who were asked twice. Its interval is a bootstrap over people.
    """
    if not simulated:
        return None
    mean = float(np.mean(simulated))
    pairs = np.asarray([pair for pair in zip(simulated, retests, strict=True) if pair[1] is not None], np.float64)
    if not len(pairs):
        return Agreement(len(simulated), mean, None, None)
    one, again = pairs.mean(axis=0).tolist()
    if not again:
        return Agreement(len(simulated), mean, again, None)
    rows = _draw("agreement").integers(0, len(pairs), (_RESAMPLES, len(pairs)))
    sums = pairs[rows].sum(axis=1)
    ratios = np.divide(sums[:, 0], sums[:, 1], out=np.full(_RESAMPLES, np.inf), where=sums[:, 1] > 0)
    low, high = np.quantile(ratios, _TAILS, method="nearest").tolist()
    return Agreement(len(simulated), mean, again, Interval(one / again, low, high))


def _draw(purpose: str) -> np.random.Generator:
    return np.random.default_rng(derive(0, "statistics", purpose))
