"""Derived randomness: every draw is a pure function of (seed, path).

A path names what is being drawn, for example `("twitter", 12, 345, "decide")`. Draws are hashes of their path and
not a shared stream, so a draw for one agent never depends on how many draws another agent made. This keeps a fork's
differences causal. `derive` and `hashes` compute the same function, one for a path, one for whole arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from math import cos, log, pi, sqrt
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")

_MASK = (1 << 64) - 1
_GAMMA = 0x9E3779B97F4A7C15
_MIX_1 = 0xBF58476D1CE4E5B9
_MIX_2 = 0x94D049BB133111EB
_UNIT = 1.0 / (1 << 53)


@lru_cache(maxsize=4096)
def _word(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def _mix(value: int) -> int:
    value = (value + _GAMMA) & _MASK
    value = ((value ^ (value >> 30)) * _MIX_1) & _MASK
    value = ((value ^ (value >> 27)) * _MIX_2) & _MASK
    return value ^ (value >> 31)


def derive(seed: int, *path: int | str) -> int:
    """Return the 64-bit number of this path under this seed."""
    return extend(_mix(seed & _MASK), *path)


def extend(key: int, *path: int | str) -> int:
    """Return the number of a longer path: `extend(derive(seed, a), b) == derive(seed, a, b)`."""
    for part in path:
        key = _mix(key ^ (_word(part) if isinstance(part, str) else part & _MASK))
    return key


def hashes(key: int, *columns: NDArray[np.integer] | int) -> NDArray[np.uint64]:
    """Derive over arrays: with key = derive(seed, *path), element i is derive(seed, *path, column[i], ...)."""
    value = np.asarray(key, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for column in columns:
            value = value ^ np.asarray(column).astype(np.uint64)
            value = value + np.uint64(_GAMMA)
            value = (value ^ (value >> np.uint64(30))) * np.uint64(_MIX_1)
            value = (value ^ (value >> np.uint64(27))) * np.uint64(_MIX_2)
            value = value ^ (value >> np.uint64(31))
    return value


def uniforms(key: int, *columns: NDArray[np.integer] | int) -> NDArray[np.float64]:
    """Draw uniform numbers in [0, 1), one per element of the columns."""
    return (hashes(key, *columns) >> np.uint64(11)).astype(np.float64) * _UNIT


class Draws:
    """A sequence of draws for one path, for code that draws one number after another."""

    __slots__ = ("_state",)

    def __init__(self, key: int) -> None:
        self._state = key

    def random(self) -> float:
        """Draw the next uniform number in [0, 1)."""
        self._state = state = (self._state + _GAMMA) & _MASK
        state = ((state ^ (state >> 30)) * _MIX_1) & _MASK
        state = ((state ^ (state >> 27)) * _MIX_2) & _MASK
        return ((state ^ (state >> 31)) >> 11) * _UNIT

    def below(self, bound: int) -> int:
        """Draw a whole number in [0, bound)."""
        return int(self.random() * bound)

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    def normal(self) -> float:
        """Draw from the standard normal distribution, by Box and Muller."""
        # 1 - u lies in (0, 1], where the logarithm is finite.
        return sqrt(-2.0 * log(1.0 - self.random())) * cos(2.0 * pi * self.random())

    def choice(self, options: Sequence[T]) -> T:
        return options[int(self.random() * len(options))]
