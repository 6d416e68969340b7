"""A force-directed layout: ties attract, people repel each other, communities stay together.

Repulsion is a convolution on a grid, so its cost hardly grows with the number of people. The same people and ties
always give the same layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from shoal.runs.network.communities import find_communities
from shoal.seeds import derive, uniforms

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]

_GRID = 128
_STEPS = 240
#: How far anybody moves in the first step, as a part of the picture's width.
_FIRST_MOVE = 0.1
#: The pull of the middle, which keeps people without ties in the picture, and of the middle of the own community.
_GRAVITY, _COHESION = 0.08, 0.3
#: Steps at the end that only push apart people who lie on one another.
_PARTING_STEPS = 16
#: This share of the people, the farthest ones, is moved nearer, so that the others have room.
_OUTLIERS = 0.02


def arrange(people: int, edges: Integers, communities: Integers, leans: Floats) -> Floats:
    """Return the place of each person in a square from 0 to 1; an edge is a row of two people.

    A picture of a network can be turned as one likes: it is turned so that people with a low lean are at the left.
    """
    if people < 2:
        return np.full((people, 2), 0.5)
    key = derive(0, "network", "places")
    places = np.stack([uniforms(key, np.arange(people), side) for side in (0, 1)], axis=1)
    degrees = np.bincount(edges.ravel(), minlength=people).astype(float)
    masses = (degrees + 1.0) / (degrees.mean() + 1.0)
    sizes = np.maximum(np.bincount(communities), 1)
    for step in range(_STEPS):
        moves = _push(places, masses) / people
        moves += _pull(places, edges, degrees)
        centres = np.stack([np.bincount(communities, places[:, axis]) / sizes for axis in (0, 1)], axis=1)
        moves += (centres[communities] - places) * _COHESION
        moves -= (places - places.mean(axis=0)) * _GRAVITY
        length = np.maximum(np.hypot(moves[:, 0], moves[:, 1]), 1e-12)[:, None]
        longest = _FIRST_MOVE * np.ptp(places, axis=0).max() * (1.0 - step / _STEPS) ** 1.5
        places = places + moves / length * np.minimum(length, longest)
    fitted = _fit(_turn(places, leans))
    for _ in range(_PARTING_STEPS):
        fitted = np.clip(fitted + _part(fitted, 0.7 / np.sqrt(people)), 0.0, 1.0)
    return fitted


def place_nodes(nodes: int, ends: Sequence[tuple[int, int]]) -> list[list[float]]:
    """Return places for the nodes of any graph, in a square from 0 to 1."""
    edges = np.array([pair for pair in ends if pair[0] != pair[1]], np.int32).reshape(-1, 2)
    places = arrange(nodes, edges, find_communities(nodes, edges), np.full(nodes, np.nan))
    found: list[list[float]] = places.round(4).tolist()
    return found


def _pull(places: Floats, edges: Integers, degrees: Floats) -> Floats:
    """Return how ties move people. All ties of a hub together pull it as hard as those of anybody else."""
    along = places[edges[:, 1]] - places[edges[:, 0]]
    moves = np.zeros_like(places)
    for side, sign in ((0, 1.0), (1, -1.0)):
        own = edges[:, side]
        for axis in (0, 1):
            moves[:, axis] += np.bincount(own, sign * along[:, axis] / degrees[own], len(places))
    return moves


def _push(places: Floats, masses: Floats) -> Floats:
    """Return the repulsion of all others: the sum of mass over distance.

    Masses are spread on the four points of a grid around each person, and the field is read at the same points.
    """
    low = places.min(axis=0)
    cell = np.ptp(places, axis=0).max() / (_GRID - 2) + 1e-12
    scaled = (places - low) / cell
    corner = scaled.astype(np.intp)
    part = scaled - corner
    points, weights = [], []
    for right in (0, 1):
        for up in (0, 1):
            points.append((corner[:, 0] + right) * _GRID + corner[:, 1] + up)
            weights.append(np.abs(1 - right - part[:, 0]) * np.abs(1 - up - part[:, 1]))
    grid = np.zeros(_GRID * _GRID)
    for point, weight in zip(points, weights, strict=True):
        grid += np.bincount(point, weight * masses, _GRID * _GRID)
    spectrum = np.fft.rfft2(grid.reshape(_GRID, _GRID), (2 * _GRID, 2 * _GRID))
    moves = np.zeros_like(places)
    for axis, kernel in enumerate(_build_kernels()):
        field = np.fft.irfft2(spectrum * kernel)[:_GRID, :_GRID].ravel()
        moves[:, axis] = sum(field[point] * weight for point, weight in zip(points, weights, strict=True))
    pushed: Floats = moves / cell
    return pushed


@lru_cache(maxsize=1)
def _build_kernels() -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
    """Build the spectra of the push of one mass, along each axis, on a grid twice as wide so that nothing wraps."""
    steps = np.fft.fftfreq(2 * _GRID, 1 / (2 * _GRID))
    x, y = np.meshgrid(steps, steps, indexing="ij")
    square = x**2 + y**2
    square[0, 0] = 1.0
    return np.fft.rfft2(x / square), np.fft.rfft2(y / square)


def _turn(places: Floats, leans: Floats) -> Floats:
    """Turn the picture so that the lean grows from left to right as far as it does along any line."""
    centred = places - places.mean(axis=0)
    gradient = (
        np.nan_to_num(leans - np.nanmean(leans)) if np.isfinite(leans).any() else np.zeros(len(places))
    ) @ centred
    if (length := np.hypot(*gradient)) < 1e-9:
        return np.asarray(centred)
    cosine, sine = gradient / length
    turned: Floats = centred @ np.array([[cosine, -sine], [sine, cosine]])
    return turned


def _fit(places: Floats) -> Floats:
    """Scale to the unit square, with the same scale for both axes."""
    centred = places - np.median(places, axis=0)
    radius = np.hypot(centred[:, 0], centred[:, 1]) / max(np.quantile(np.hypot(*centred.T), 1 - _OUTLIERS), 1e-9)
    nearer = np.where(radius > 1.0, (1.0 + 0.2 * np.tanh(radius - 1.0)) / np.maximum(radius, 1e-9), 1.0)
    centred = centred * nearer[:, None]
    low, high = centred.min(axis=0), centred.max(axis=0)
    fitted: Floats = (centred - (low + high) / 2) / max(float((high - low).max()), 1e-9) + 0.5
    return fitted


def _part(places: Floats, gap: float) -> Floats:
    """Return how people who are closer than a gap move apart, where they lie in the same cell or in the next one."""
    columns = int(1 / gap) + 2
    cells = (places / gap).astype(np.int64)
    moves = np.zeros_like(places)
    number = cells[:, 0] * columns + cells[:, 1]
    order = np.argsort(number, kind="stable")
    # Beside one another in the order are people of one cell, and of the one above it.
    for ahead in (1, 2, 3):
        one, other = order[:-ahead], order[ahead:]
        apart = places[one] - places[other]
        distance = np.maximum(np.hypot(apart[:, 0], apart[:, 1]), 1e-6)
        push = np.maximum(gap - distance, 0.0) / distance * 0.35
        for axis in (0, 1):
            moves[:, axis] += np.bincount(one, push * apart[:, axis], len(places))
            moves[:, axis] -= np.bincount(other, push * apart[:, axis], len(places))
    return moves
