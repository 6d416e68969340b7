"""Effects of arms against the control, paired by seed, and comparisons that are corrected for their number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import sqrt

import numpy as np

from shoal.experiments.statistics.intervals import Interval, bootstrap_mean
from shoal.seeds import derive

#: Up to so many seeds every way to flip the signs is tried; with more, as many ways are drawn.
_EXACT_SEEDS = 12
_FLIPS = 10_000
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
    #: Chance of a difference as large if the arm did nothing, by flipping signs; None with a single seed.
    p: float | None


def compare_paired(arm: Mapping[int, float], control: Mapping[int, float]) -> Effect | None:
    """Compare values by seed; None where no seed is in both."""
    seeds = sorted(arm.keys() & control.keys())
    if not seeds:
        return None
    differences = np.asarray([arm[seed] - control[seed] for seed in seeds], np.float64)
    spread = float(differences.std(ddof=1)) if len(seeds) > 1 else 0.0
    standardised = float(differences.mean()) / spread if spread > 1e-12 else None
    p = _test_signs(differences) if len(seeds) > 1 else None
    return Effect(len(seeds), bootstrap_mean(differences.tolist()), standardised, p)


def _test_signs(differences: np.ndarray) -> float:
    """Return the two-sided p of a permutation test: were the arms alike, each sign could as well be the other."""
    count = len(differences)
    if count <= _EXACT_SEEDS:
        signs = np.asarray(list(product((1.0, -1.0), repeat=count)))
    else:
        draw = np.random.default_rng(derive(0, "statistics", "signs"))
        signs = np.vstack([np.ones(count), draw.choice((1.0, -1.0), (_FLIPS, count))])
    found = np.abs(signs @ differences)
    return float((found >= found[0] * (1 - 1e-12)).mean())


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
        f"{seeds} seeds find only effects above {smallest:.1f} standard deviations four times out of five; "
        f"{needed} seeds would find those above {_LARGE}."
    )
