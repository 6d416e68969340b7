"""Finds communities: groups of people with more ties among them than chance would give (Newman, 2006).

The people are split in two along the leading eigenvector of the modularity matrix, and each part again, for as long as
that makes the modularity larger.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.seeds import derive, uniforms

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]

#: More communities than this tell nothing in a picture.
MAX_COMMUNITIES = 8
#: Smaller ones are left with those that they were split from.
_MIN_SHARE = 0.04
_ROUNDS_OF_POWER = 80
#: The best split of a random network with a mean degree of d gains 0.76 / sqrt(d): that is no community.
_GAIN_BY_CHANCE = 0.7632


def find_communities(people: int, edges: Integers) -> Integers:
    """Return the community of each person, by number; the largest one is 0."""
    labels = np.zeros(people, np.int32)
    if not len(edges):
        return labels
    degrees = np.bincount(edges.ravel(), minlength=people).astype(float)
    waiting, done = [0], 1
    while waiting and done < MAX_COMMUNITIES:
        label = waiting.pop(0)
        side = _split(labels == label, edges, degrees)
        if side is not None:
            labels[side] = done
            waiting += [label, done]
            done += 1
    sizes = np.bincount(labels)
    rank = np.empty(len(sizes), np.int32)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    ranked: Integers = rank[labels]
    return ranked


def _split(members: NDArray[np.bool_], edges: Integers, degrees: Floats) -> NDArray[np.bool_] | None:
    """Return which of the members form a community of their own; None where a split gains nothing."""
    inner = edges[members[edges[:, 0]] & members[edges[:, 1]]]
    if not len(inner):
        return None
    own = np.where(members, degrees, 0.0)
    total = degrees.sum()
    expected = own * (own.sum() / total)
    actual = np.bincount(inner.ravel(), minlength=len(members)).astype(float)

    def multiply(vector: Floats) -> Floats:
        product = np.bincount(inner[:, 0], vector[inner[:, 1]], len(vector))
        product += np.bincount(inner[:, 1], vector[inner[:, 0]], len(vector))
        product -= own * (own @ vector / total)
        product -= (actual - expected) * vector
        # Moves all eigenvalues above zero, so that the largest is the leading one.
        result: Floats = product + 2.0 * degrees.max() * vector
        return result

    vector = np.where(members, uniforms(derive(0, "network", "split"), np.arange(len(members))) - 0.5, 0.0)
    for _ in range(_ROUNDS_OF_POWER):
        vector = multiply(vector)
        vector /= max(float(np.abs(vector).max()), 1e-12)
    signs = np.where(members, np.where(vector > 0, 1.0, -1.0), 0.0)
    gain = float(signs @ (multiply(signs) - 2.0 * degrees.max() * signs)) / (2.0 * total)
    share, mean_degree = 2.0 * len(inner) / total, 2.0 * len(inner) / members.sum()
    side: NDArray[np.bool_] = signs > 0
    smaller = min(int(side.sum()), int(members.sum() - side.sum()))
    is_real = gain > share * _GAIN_BY_CHANCE / np.sqrt(mean_degree)
    return side if is_real and smaller >= max(2, _MIN_SHARE * len(members)) else None
