"""Student's t distribution: what means of few values scatter by."""

from __future__ import annotations

from functools import lru_cache
from math import atan, cos, inf, pi, sin, sqrt

_STEPS = 200


def find_two_sided_p(t: float, freedom: int) -> float:
    """Return the chance of a value at least as far from zero, by the finite series of Abramowitz and Stegun, 26.7."""
    angle = atan(abs(t) / sqrt(freedom))
    cosine = cos(angle)
    if freedom == 1:
        return 1 - 2 * angle / pi
    odd = freedom % 2
    term = cosine if odd else 1.0
    total = term
    for k in range(2 + odd, freedom, 2):
        term *= cosine**2 * (k - 1) / k
        total += term
    inside = 2 / pi * (angle + sin(angle) * total) if odd else sin(angle) * total
    return max(1 - inside, 0.0)


@lru_cache(maxsize=512)
def find_t(p: float, freedom: int) -> float:
    """Return the value whose two-sided chance is `p`."""
    low, high = 0.0, 1.0
    while find_two_sided_p(high, freedom) > p:
        low, high = high, high * 2
        if high > 1e12:
            return inf
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if find_two_sided_p(middle, freedom) > p else (low, middle)
    return high
