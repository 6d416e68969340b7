"""Values from distributions, by their inverse: a uniform number in, a value out.

Only elementary arithmetic on hash-derived uniforms, and callers round what they keep, so that results do not depend
on the machine or on the version of numpy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.scenario.declared.distributions import Beta, Choice, Distribution, Normal, Uniform
from shoal.seeds import uniforms

Floats = NDArray[np.float64]

_BETA_CELLS = 4096
#: How many uniform numbers are held at once when each person needs one per word.
_CHUNK = 2_000_000

# Peter Acklam's rational approximation of the inverse normal distribution, good to nine digits.
_CENTRE_TOP = (
    -39.69683028665376,
    220.9460984245205,
    -275.9285104469687,
    138.3577518672690,
    -30.66479806614716,
    2.506628277459239,
)
_CENTRE_BOTTOM = (-54.47609879822406, 161.5858368580409, -155.6989798598866, 66.80131188771972, -13.28068155288572, 1.0)
_TAIL_TOP = (
    -0.007784894002430293,
    -0.3223964580411365,
    -2.400758277161838,
    -2.549732539343734,
    4.374664141464968,
    2.938163982698783,
)
_TAIL_BOTTOM = (0.007784695709041462, 0.3224671290700398, 2.445134137142996, 3.754408661907416, 1.0)
_TAIL_BEGINS = 0.02425


def quantiles(distribution: Distribution, u: Floats, low: float = -math.inf, high: float = math.inf) -> Floats:
    """The values at these uniform numbers, never outside low to high."""
    if isinstance(distribution, Normal):
        return np.clip(_normal(distribution, u, low, high), low, high)
    if isinstance(distribution, Uniform):
        return np.clip(_uniform(distribution, u), low, high)
    if isinstance(distribution, Beta):
        return np.clip(_beta(distribution, u), low, high)
    if isinstance(distribution, Choice):
        return np.array(list(distribution.choice))[picks(distribution.choice, u)]
    return np.full(len(u), float(distribution))


def picks(weights: Mapping[Any, float], u: Floats) -> NDArray[np.int64]:
    """Which of the options each uniform number falls on."""
    ends = np.cumsum(list(weights.values()))
    chosen: NDArray[np.int64] = np.minimum(np.searchsorted(ends, u * ends[-1], side="right"), len(ends) - 1)
    return chosen


def subsets(weights: Sequence[float], counts: NDArray[np.integer], key: int) -> NDArray[np.int16]:
    """For each person `counts[i]` different options, weighted, as a row of indices filled up with -1.

    Each option waits for a time drawn from its weight, and the first ones to arrive are taken, which is drawing
    without putting back.
    """
    rates = np.asarray(weights, dtype=np.float64)
    width = int(min(counts.max(initial=0), np.count_nonzero(rates)))
    rows = np.full((len(counts), width), -1, dtype=np.int16)
    step = max(1, _CHUNK // max(1, len(rates)))
    for start in range(0, len(counts) if width else 0, step):
        part = slice(start, start + step)
        rows[part] = _first_to_arrive(rates, counts[part], width, key, start)
    return rows


def _first_to_arrive(rates: Floats, counts: NDArray[np.integer], width: int, key: int, start: int) -> NDArray[np.int16]:
    people = np.arange(start, start + len(counts))[:, None]
    with np.errstate(divide="ignore"):
        times = -np.log1p(-uniforms(key, people, np.arange(len(rates))[None, :])) / rates
    order: NDArray[np.int16] = np.argsort(times, axis=1, kind="stable")[:, :width].astype(np.int16)
    order[np.arange(width)[None, :] >= counts[:, None]] = -1
    return order


def _normal(distribution: Normal, u: Floats, low: float, high: float) -> Floats:
    mean, deviation = distribution.normal
    low = max(low, -math.inf if distribution.min is None else distribution.min)
    high = min(high, math.inf if distribution.max is None else distribution.max)
    if deviation == 0:
        return np.full(len(u), min(max(mean, low), high))
    first, last = (_normal_cdf((end - mean) / deviation) for end in (low, high))
    scores = _inverse_normal(np.clip(first + u * (last - first), 1e-15, 1 - 1e-15))
    values: Floats = np.clip(mean + deviation * scores, low, high)
    return values


def _normal_cdf(score: float) -> float:
    return 0.5 * math.erfc(-score / math.sqrt(2.0))


def _inverse_normal(p: Floats) -> Floats:
    centre = p - 0.5
    square = centre * centre
    scores: Floats = centre * _polynomial(_CENTRE_TOP, square) / _polynomial(_CENTRE_BOTTOM, square)
    tail = np.minimum(p, 1 - p)
    in_tail = tail < _TAIL_BEGINS
    distance = np.sqrt(-2 * np.log(tail[in_tail]))
    sizes = _polynomial(_TAIL_TOP, distance) / _polynomial(_TAIL_BOTTOM, distance)
    scores[in_tail] = np.where(centre[in_tail] < 0, sizes, -sizes)
    return scores


def _polynomial(coefficients: Sequence[float], x: Floats) -> Floats:
    value = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        value = value * x + coefficient
    return value


def _uniform(distribution: Uniform, u: Floats) -> Floats:
    low, high = distribution.uniform
    low = low if distribution.min is None else max(low, distribution.min)
    high = high if distribution.max is None else min(high, distribution.max)
    return low + u * max(high - low, 0.0)


def _beta(distribution: Beta, u: Floats) -> Floats:
    low = 0.0 if distribution.min is None else distribution.min
    high = 1.0 if distribution.max is None else distribution.max
    cumulative, values = _beta_table(*distribution.beta)
    return low + (high - low) * np.interp(u, cumulative, values)


def _beta_table(a: float, b: float) -> tuple[Floats, Floats]:
    """The distribution function over values that lie close together near 0 and 1, where the density may be infinite."""
    values = np.sin(np.linspace(0.0, math.pi / 2, _BETA_CELLS + 1)) ** 2
    middles = (values[1:] + values[:-1]) / 2
    logs = (a - 1) * np.log(middles) + (b - 1) * np.log1p(-middles) + np.log(np.diff(values))
    # In the outermost cells only one factor matters, and its integral is known.
    logs[0] = a * math.log(values[1]) - math.log(a)
    logs[-1] = b * math.log(1 - values[-2]) - math.log(b)
    masses = np.exp(logs - logs.max())
    cumulative = np.concatenate([[0.0], np.cumsum(masses)])
    return cumulative / cumulative[-1], values
