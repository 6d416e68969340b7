"""How often the intervals of experiments hold the truth, and how often corrected comparisons find what is not there.

Samples are drawn from distributions whose truth is known. Each figure is of 4,000 samples, so that its own error is
below 0.7 points 19 times out of 20. The methods were chosen by other draws than these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import exp
from pathlib import Path

import numpy as np

from bench.bars import Bar
from shoal.experiments.statistics import (
    Interval,
    bootstrap_mean,
    compare_paired,
    compare_rates,
    correct_holm,
    estimate_cost_of_pass,
    estimate_rate,
)

TRIALS = 4000
#: An experiment has ten seeds unless it says otherwise. What five seeds cover is shown, and is no bar.
SIZES = (10, 20, 50)
FEW = 5
#: Points around 95 % that are allowed.
MARGIN = 2.0

Draw = np.random.Generator
#: Draws one sample of a size, and returns its interval and the truth.
Sampling = Callable[[Draw, int], tuple[Interval, float]]


def measure_coverage(sample: Sampling, size: int, trials: int = TRIALS) -> float:
    """Return in how many of 100 samples the interval holds the truth."""
    draw = np.random.default_rng([size, 2026])
    held = 0
    for _ in range(trials):
        interval, truth = sample(draw, size)
        held += interval.low <= truth <= interval.high
    return 100 * held / trials


def mean_of(values: Callable[[Draw, int], np.ndarray], truth: float) -> Sampling:
    return lambda draw, size: (bootstrap_mean(values(draw, size).tolist()), truth)


def paired(differ: Callable[[Draw, int], tuple[np.ndarray, np.ndarray]], truth: float) -> Sampling:
    """Compare two arms that share what a seed brings."""

    def sample(draw: Draw, size: int) -> tuple[Interval, float]:
        arm, control = differ(draw, size)
        effect = compare_paired(dict(enumerate(arm.tolist())), dict(enumerate(control.tolist())))
        assert effect is not None
        return effect.difference, truth

    return sample


def normal_pairs(draw: Draw, size: int) -> tuple[np.ndarray, np.ndarray]:
    seeds = draw.normal(0.5, 0.2, size)
    return seeds - 0.1 + draw.normal(0, 0.1, size), seeds + draw.normal(0, 0.1, size)


def skewed_pairs(draw: Draw, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Both arms are log-normal, as sizes of cascades are; the arm adds to every run."""
    seeds = draw.normal(0, 0.5, size)
    return np.exp(seeds + draw.normal(0, 0.8, size)) + 0.5, np.exp(seeds + draw.normal(0, 0.8, size))


def uneven_pairs(draw: Draw, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The effect itself is skewed: small in most seeds and large in a few."""
    return draw.normal(0, 0.3, size) + draw.exponential(1.0, size), np.zeros(size)


def rate(draw: Draw, size: int) -> tuple[Interval, float]:
    truth = float(draw.uniform(0.05, 0.95))
    return estimate_rate(int(draw.binomial(size, truth)), size), truth


def rates_of_pairs(draw: Draw, size: int) -> tuple[Interval, float]:
    """Half of the seeds are alike in both arms."""
    one, other = draw.uniform(0.05, 0.95, 2).tolist()
    shared, luck = draw.random(size), draw.random((2, size))
    alike = draw.random(size) < 0.5
    arm = np.where(alike, shared, luck[0]) < one
    control = np.where(alike, shared, luck[1]) < other
    effect = compare_rates(dict(enumerate(arm.tolist())), dict(enumerate(control.tolist())))
    assert effect is not None
    return effect.difference, one - other


def cost_of_pass(draw: Draw, size: int) -> tuple[Interval, float]:
    """A run that passes costs more than one that does not."""
    passing = float(draw.uniform(0.3, 0.95))
    passed = draw.random(size) < passing
    costs = np.where(passed, 0.5, 0.3) * draw.gamma(16, 1 / 16, size)
    truth = (0.5 * passing + 0.3 * (1 - passing)) / passing
    return estimate_cost_of_pass(costs.tolist(), passed.tolist()), truth


_SIGMA = 0.75
CASES: Mapping[str, Sampling] = {
    "mean, normal": mean_of(lambda draw, size: draw.normal(0.3, 0.1, size), 0.3),
    "mean, shares near 0": mean_of(lambda draw, size: draw.beta(2, 8, size), 0.2),
    "mean, exponential": mean_of(lambda draw, size: draw.exponential(1.0, size), 1.0),
    "mean, log-normal": mean_of(lambda draw, size: draw.lognormal(0, _SIGMA, size), exp(_SIGMA**2 / 2)),
    "rate": rate,
    "paired difference, normal": paired(normal_pairs, -0.1),
    "paired difference, log-normal": paired(skewed_pairs, 0.5),
    "paired difference, uneven effect": paired(uneven_pairs, 1.0),
    "paired difference of rates": rates_of_pairs,
    "cost of a pass": cost_of_pass,
}


def measure_false_findings(arms: int, size: int, trials: int) -> float:
    """Return in how many of 100 experiments a corrected comparison finds an effect of arms that do nothing."""
    draw = np.random.default_rng([arms, size])
    found = 0
    for _ in range(trials):
        seeds = draw.normal(0, 0.5, size)
        control = dict(enumerate(np.exp(seeds + draw.normal(0, 0.8, size)).tolist()))
        values = []
        for _ in range(arms):
            effect = compare_paired(dict(enumerate(np.exp(seeds + draw.normal(0, 0.8, size)).tolist())), control)
            values.append(1.0 if effect is None or effect.p is None else effect.p)
        found += min(correct_holm(values)) < 0.05
    return 100 * found / trials


def coverage(folder: Path) -> list[Bar]:
    """Intervals hold the truth as often as they say, and corrected comparisons seldom find what is not there."""
    bars = []
    for name, sample in CASES.items():
        covered = {size: measure_coverage(sample, size) for size in (FEW, *SIZES)}
        farthest = max(abs(covered[size] - 95) for size in SIZES)
        each = ", ".join(f"{value:.1f} % of {size}" for size, value in covered.items())
        bars.append(Bar(f"95 % interval, {name}: off by", farthest, "pts", MARGIN, False, each))
    false = {size: measure_false_findings(6, size, TRIALS // 2) for size in (5, 12)}
    each = ", ".join(f"{value:.1f} % with {size} seeds" for size, value in false.items())
    bars.append(Bar("experiments of 6 idle arms with a finding", max(false.values()), "%", 5 + 1, False, each))
    return bars
