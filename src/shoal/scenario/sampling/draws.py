"""Values drawn from distributions by their inverse: a uniform number in, a value out.

Only elementary arithmetic on hash-derived uniforms is used, and callers round what they keep, so that results do not
depend on the machine or on the version of numpy.
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
#: Uniform numbers that are held at once when each person needs one per word.
_UNIFORMS_PER_CHUNK = 2_000_000

# Peter Acklam's rational approximation of the inverse normal distribution, good to nine digits.
_CENTRE_TOP = (
    -39.69683028665376, 220.9460984245205, -275.9285104469687,
    138.3577518672690, -30.66479806614716, 2.506628277459239,
)  # fmt: skip
_CENTRE_BOTTOM = (-54.47609879822406, 161.5858368580409, -155.6989798598866, 66.80131188771972, -13.28068155288572, 1.0)
_TAIL_TOP = (
    -0.007784894002430293, -0.3223964580411365, -2.400758277161838,
    -2.549732539343734, 4.374664141464968, 2.938163982698783,
)  # fmt: skip
_TAIL_BOTTOM = (0.007784695709041462, 0.3224671290700398, 2.445134137142996, 3.754408661907416, 1.0)
_TAIL_BEGINS = 0.02425


def find_quantiles(distribution: Distribution, u: Floats, low: float = -math.inf, high: float = math.inf) -> Floats:
    """Return the values at these uniform numbers, never outside low to high."""
    if isinstance(distribution, Normal):
        return np.clip(_find_normal(distribution, u, low, high), low, high)
    if isinstance(distribution, Uniform):
        first, last = distribution.uniform
        first = first if distribution.min is None else max(first, distribution.min)
        last = last if distribution.max is None else min(last, distribution.max)
        return np.clip(first + u * max(last - first, 0.0), low, high)
    if isinstance(distribution, Beta):
        first = 0.0 if distribution.min is None else distribution.min
        last = 1.0 if distribution.max is None else distribution.max
        cumulative, values = _tabulate_beta(*distribution.beta)
        return np.clip(first + (last - first) * np.interp(u, cumulative, values), low, high)
    if isinstance(distribution, Choice):
        return np.array(list(distribution.choice))[pick_options(distribution.choice, u)]
    return np.full(len(u), float(distribution))


def pick_options(weights: Mapping[Any, float], u: Floats) -> NDArray[np.int64]:
    """Return the index of the option that each uniform number falls on."""
    ends = np.cumsum(list(weights.values()))
    chosen: NDArray[np.int64] = np.minimum(np.searchsorted(ends, u * ends[-1], side="right"), len(ends) - 1)
    return chosen


def draw_subsets(weights: Sequence[float], counts: NDArray[np.integer], key: int) -> NDArray[np.int16]:
    """Draw `counts[i]` different options for each person, weighted, as a row of indices filled up with -1.

    Each option waits for a time drawn from its weight, and the first ones to arrive are taken. That is drawing without
    putting back.
    """
    rates = np.asarray(weights, dtype=np.float64)
    width = int(min(counts.max(initial=0), np.count_nonzero(rates)))
    rows = np.full((len(counts), width), -1, dtype=np.int16)
    step = max(1, _UNIFORMS_PER_CHUNK // max(1, len(rates)))
    for start in range(0, len(counts) if width else 0, step):
        part = slice(start, start + step)
        people = np.arange(start, start + len(counts[part]))[:, None]
        with np.errstate(divide="ignore"):
            times = -np.log1p(-uniforms(key, people, np.arange(len(rates))[None, :])) / rates
        order: NDArray[np.int16] = np.argsort(times, axis=1, kind="stable")[:, :width].astype(np.int16)
        order[np.arange(width)[None, :] >= counts[part][:, None]] = -1
        rows[part] = order
    return rows


def _find_normal(distribution: Normal, u: Floats, low: float, high: float) -> Floats:
    mean, deviation = distribution.normal
    low = max(low, -math.inf if distribution.min is None else distribution.min)
    high = min(high, math.inf if distribution.max is None else distribution.max)
    if deviation == 0:
        return np.full(len(u), min(max(mean, low), high))
    # The share of the bell curve below each end.
    first, last = (0.5 * math.erfc(-(end - mean) / deviation / math.sqrt(2.0)) for end in (low, high))
    p = np.clip(first + u * (last - first), 1e-15, 1 - 1e-15)
    centre = p - 0.5
    square = centre * centre
    scores: Floats = centre * _evaluate_polynomial(_CENTRE_TOP, square) / _evaluate_polynomial(_CENTRE_BOTTOM, square)
    tail = np.minimum(p, 1 - p)
    in_tail = tail < _TAIL_BEGINS
    distance = np.sqrt(-2 * np.log(tail[in_tail]))
    sizes = _evaluate_polynomial(_TAIL_TOP, distance) / _evaluate_polynomial(_TAIL_BOTTOM, distance)
    scores[in_tail] = np.where(centre[in_tail] < 0, sizes, -sizes)
    values: Floats = np.clip(mean + deviation * scores, low, high)
    return values


def _evaluate_polynomial(coefficients: Sequence[float], x: Floats) -> Floats:
    value = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        value = value * x + coefficient
    return value


def _tabulate_beta(a: float, b: float) -> tuple[Floats, Floats]:
    """Return the cumulative distribution, and values close together near 0 and 1, where the density may be infinite."""
    values = np.sin(np.linspace(0.0, math.pi / 2, _BETA_CELLS + 1)) ** 2
    middles = (values[1:] + values[:-1]) / 2
    logs = (a - 1) * np.log(middles) + (b - 1) * np.log1p(-middles) + np.log(np.diff(values))
    # In the outermost cells only one factor matters, and its integral is known.
    logs[0] = a * math.log(values[1]) - math.log(a)
    logs[-1] = b * math.log(1 - values[-2]) - math.log(b)
    masses = np.exp(logs - logs.max())
    cumulative = np.concatenate([[0.0], np.cumsum(masses)])
    return cumulative / cumulative[-1], values
