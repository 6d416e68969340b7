"""Finds the rounds in which a figure changed its course."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

#: Courses are compared at this many rounds at most, evenly spread.
_MAX_ROUNDS = 240
_MAX_TURNS = 3
#: A course shorter than this is chance.
_MIN_ROUNDS = 3

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TurningPoint:
    """A round in which a figure changed its course, with its change per round before and after."""

    round: int
    before: float
    after: float


def find_turning_points(figure: Mapping[int, float], least: float) -> list[TurningPoint]:
    """Find where straight lines, as many as the data justify, fit a figure best.

    A turn counts if the slopes beside it differ so much that the figure would have ended at least `least` away over
    the shorter of the two courses. The number of lines is chosen by the Bayesian information criterion.
    """
    rounds = np.asarray(sorted(figure), np.float64)
    if len(rounds) < 2 * _MIN_ROUNDS:
        return []
    if len(rounds) > _MAX_ROUNDS:
        rounds = rounds[np.linspace(0, len(rounds) - 1, _MAX_ROUNDS).astype(int)]
    values = np.asarray([figure[int(round)] for round in rounds], np.float64)
    cuts = _choose_cuts(_fit_all(rounds, values), len(rounds))
    ends = [0, *cuts, len(rounds)]
    slopes = [float(np.polyfit(rounds[a:b], values[a:b], 1)[0]) if b - a > 1 else 0.0 for a, b in pairwise(ends)]
    found = []
    for n, cut in enumerate(cuts):
        shorter = min(rounds[cut - 1] - rounds[ends[n]], rounds[ends[n + 2] - 1] - rounds[cut])
        if abs(slopes[n + 1] - slopes[n]) * shorter >= least:
            found.append(TurningPoint(int(rounds[cut]), slopes[n], slopes[n + 1]))
    return found


def _fit_all(rounds: Values, values: Values) -> Values:
    """Return the squared error of the best line from each round up to before each other one."""
    x = rounds - rounds.mean()
    sums = [
        np.concatenate([[0.0], np.cumsum(part)]) for part in (np.ones_like(x), x, values, x * x, x * values, values**2)
    ]
    count, sx, sy, sxx, sxy, syy = (part[None, :] - part[:, None] for part in sums)
    with np.errstate(divide="ignore", invalid="ignore"):
        vxx, vxy, vyy = sxx - sx * sx / count, sxy - sx * sy / count, syy - sy * sy / count
        errors = np.where(vxx > 1e-12, vyy - vxy * vxy / np.where(vxx > 1e-12, vxx, 1.0), vyy)
    return np.where(count >= _MIN_ROUNDS, np.maximum(errors, 0.0), math.inf)


def _choose_cuts(errors: Values, count: int) -> list[int]:
    """Return where one line ends and the next begins, with the number of lines that is worth its parameters."""
    best, ways = [errors[0]], []
    for _ in range(_MAX_TURNS):
        total = best[-1][:, None] + errors
        ways.append(total.argmin(axis=0))
        best.append(total.min(axis=0))
    floor = 1e-9 * count
    scores = [
        count * math.log(max(each[count], floor) / count) + 3 * n * math.log(count) for n, each in enumerate(best)
    ]
    cuts, at = [], count
    for n in reversed(range(int(np.argmin(scores)))):
        at = int(ways[n][at])
        cuts.append(at)
    return cuts[::-1]
