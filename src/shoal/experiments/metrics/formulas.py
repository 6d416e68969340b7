"""Formulas of metrics, on plain numbers. Each returns None where it is not defined.

The Gini coefficient is `shoal.worlds.measure_inequality`, and the polarisation that worlds record for each round is
`shoal.engine.measure_polarisation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Places = NDArray[np.int32]

#: Opinions are grouped into bins of this width for the index of Esteban and Ray.
_BIN = 0.1
#: How much more than inequality the index minds that people flock together. They allow 1 to 1.6.
_ALPHA = 1.6


def measure_balance(turns: Sequence[float] | NDArray[np.integer] | Numbers) -> float | None:
    """Return the entropy of turns over the largest there can be: 1 where all have as many, 0 where one has all."""
    counts = np.asarray(turns, np.float64)
    total = counts.sum()
    if len(counts) < 2 or not total:
        return None
    shares = counts[counts > 0] / total
    return float(-(shares * np.log(shares)).sum() / log(len(counts))) + 0.0


def measure_bimodality(values: Numbers) -> float | None:
    """Return Sarle's coefficient for samples: (g² + 1) / (k + 3 (n-1)² / ((n-2)(n-3))).

    g is the skewness and k the excess kurtosis, both corrected for the sample.
    """
    n = len(values)
    away = values - values.mean() if n > 3 else values
    second = float((away**2).mean()) if n > 3 else 0.0
    if second <= 1e-12:
        return None
    g = float((away**3).mean()) / second**1.5 * np.sqrt(n * (n - 1)) / (n - 2)
    raw = float((away**4).mean()) / second**2 - 3
    k = (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * raw + 6)
    return float((g**2 + 1) / (k + 3 * (n - 1) ** 2 / ((n - 2) * (n - 3))))


def measure_alienation(values: Numbers) -> float | None:
    """Return the index of Esteban and Ray: 2^α Σᵢ Σⱼ πᵢ^(1+α) πⱼ |yᵢ - yⱼ|, over opinions -1 to 1 in groups 0.1 wide.

    πᵢ is the share of people in a group and yᵢ its middle. 1 where one half is at each end, 0 where all agree.
    """
    if not len(values):
        return None
    groups, counts = np.unique(np.rint(values / _BIN), return_counts=True)
    shares, middles = counts / len(values), groups * _BIN
    apart = np.abs(middles[:, None] - middles[None, :])
    return float(2**_ALPHA * (shares[:, None] ** (1 + _ALPHA) * shares[None, :] * apart).sum())


def measure_assortativity(values: Numbers, sources: Places, targets: Places) -> float | None:
    """Return the correlation of a value at both ends of ties, over the ties at whose ends it is known."""
    one, other = values[sources], values[targets]
    known = ~(np.isnan(one) | np.isnan(other))
    one, other = one[known], other[known]
    if len(one) < 2 or one.std() <= 1e-9 or other.std() <= 1e-9:
        return None
    return float(np.clip(((one - one.mean()) * (other - other.mean())).mean() / (one.std() * other.std()), -1, 1))


def measure_reciprocity(sources: Places, targets: Places) -> float | None:
    """Return the share of ties that go both ways. Several between the same two count once."""
    there = np.unique(_number_pairs(sources, targets)[sources != targets])
    if not len(there):
        return None
    back = _number_pairs(there & 0xFFFFFFFF, there >> 32)
    return float(np.isin(back, there).mean())


def measure_virality(parents: Sequence[int]) -> float | None:
    """Return the mean distance between two posts of a cascade: 2 / (n (n-1)) times the sum of s (n-s) over all links.

    s is how many posts came through the link. None for a post that was never passed on.
    """
    n = len(parents)
    if n < 2:
        return None
    below = [1] * n
    for place in range(n - 1, 0, -1):
        below[parents[place]] += below[place]
    return 2 * sum(size * (n - size) for size in below[1:]) / (n * (n - 1))


def _number_pairs(sources: NDArray[np.int32 | np.int64], targets: NDArray[np.int32 | np.int64]) -> NDArray[np.int64]:
    return (sources.astype(np.int64) << 32) | targets.astype(np.int64)
