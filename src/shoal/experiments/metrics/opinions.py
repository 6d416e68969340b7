"""Metrics of what people think: averages, spread, polarisation in several definitions, change, belief."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from shoal.engine import TOPIC
from shoal.experiments.metrics.base import COUNT, SHARE, SIGNED_SHARE, Measured, Metric
from shoal.experiments.metrics.figures import read_figure
from shoal.experiments.metrics.formulas import Numbers, measure_alienation, measure_bimodality
from shoal.experiments.metrics.record import WorldRecord

_NEEDS = "no opinions are recorded"


def _measure_each(record: WorldRecord, round: int, formula: Callable[[Numbers], float | None]) -> Mapping[str, float]:
    """Apply a formula to what is known of each opinion."""
    found = {}
    for about in record.subjects:
        opinions = record.opinions(about, round)
        value = formula(opinions[~np.isnan(opinions)])
        if value is not None:
            found[about] = value
    return found


def _compare_with_start(
    record: WorldRecord, round: int, formula: Callable[[Numbers, Numbers], float]
) -> Mapping[str, float]:
    """Apply a formula to the opinions in round 0 and now, where both are known."""
    found = {}
    for about in record.subjects:
        first, now = record.opinions(about, 0), record.opinions(about, round)
        known = ~(np.isnan(first) | np.isnan(now))
        if known.any():
            found[about] = formula(first[known], now[known])
    return found


def read_mean(record: WorldRecord, round: int) -> Measured:
    """Σ xᵢ / n: the mean opinion, -1 to 1, as the run recorded it."""
    return read_figure(record, "mean", round)


def read_spread(record: WorldRecord, round: int) -> Measured:
    """√(Σ (xᵢ - x̄)² / n): the standard deviation of opinions, 0 to 1, as the run recorded it."""
    return read_figure(record, "spread", round)


def read_polarisation(record: WorldRecord, round: int) -> Measured:
    """(1 - |n₊ - n₋| / n) (x̄₊ - x̄₋) / 2: how far the mean of those for and of those against are apart, less the more
    one side is larger; 0 to 1 (Morales and others 2015), as the run recorded it."""
    return read_figure(record, "polarisation", round)


def find_bimodality(record: WorldRecord, round: int) -> Measured:
    """(g² + 1) / (k + 3 (n-1)² / ((n-2)(n-3))), with skewness g and excess kurtosis k of opinions: Sarle's
    coefficient. 0.556 where opinions are even, more where there are two camps, up to 1."""
    return _measure_each(record, round, measure_bimodality)


def find_alienation(record: WorldRecord, round: int) -> Measured:
    """2^α Σᵢ Σⱼ πᵢ^(1+α) πⱼ |yᵢ - yⱼ| over groups of opinions 0.1 wide, α = 1.6 (Esteban and Ray 1994): 1 where one
    half is at each end, 0 where all agree."""
    return _measure_each(record, round, measure_alienation)


def find_extremity(record: WorldRecord, round: int) -> Measured:
    """Σ |xᵢ| / n: how far opinions are from the middle, 0 to 1."""
    return _measure_each(record, round, lambda known: float(np.abs(known).mean()) if len(known) else None)


def find_support(record: WorldRecord, round: int) -> Measured:
    """|{i: xᵢ > 0}| / n: the share of people who lean for the topic, of those whose opinion is known."""
    return {about: share for about, share in _count_above(record, round).items() if about == TOPIC}


def find_belief(record: WorldRecord, round: int) -> Measured:
    """|{i: xᵢ > 0}| / n: the share of people who rather believe a claim, of those whose belief is known."""
    return {about: share for about, share in _count_above(record, round).items() if about != TOPIC}


def _count_above(record: WorldRecord, round: int) -> Mapping[str, float]:
    return _measure_each(record, round, lambda known: float((known > 0).mean()) if len(known) else None)


def find_shift(record: WorldRecord, round: int) -> Measured:
    """Σ (xᵢ - xᵢ₀) / n: how much further for the topic or a claim people are than in round 0, on average."""
    return _compare_with_start(record, round, lambda first, now: float((now - first).mean()))


def find_movement(record: WorldRecord, round: int) -> Measured:
    """Σ |xᵢ - xᵢ₀| / n: how far people have moved since round 0, whichever way."""
    return _compare_with_start(record, round, lambda first, now: float(np.abs(now - first).mean()))


def find_conversions(record: WorldRecord, round: int) -> Measured:
    """|{i: xᵢ xᵢ₀ < 0}| / n: the share of people who are on the other side than in round 0."""
    return _compare_with_start(record, round, lambda first, now: float((first * now < 0).mean()))


METRICS = (
    Metric("mean", read_mean, about="opinion", needs=_NEEDS, bounds=SIGNED_SHARE),
    Metric("spread", read_spread, about="opinion", needs=_NEEDS, bounds=SHARE),
    Metric("polarisation", read_polarisation, about="opinion", needs=_NEEDS, bounds=SHARE),
    Metric("bimodality", find_bimodality, about="opinion", needs=f"{_NEEDS}, or all are the same", bounds=SHARE),
    Metric("alienation", find_alienation, about="opinion", needs=_NEEDS, bounds=SHARE),
    Metric("extremity", find_extremity, about="opinion", needs=_NEEDS, bounds=SHARE),
    Metric("support", find_support, about="topic", needs="no opinions on the topic are recorded", bounds=SHARE),
    Metric("belief", find_belief, about="claim", needs="no beliefs in claims are recorded", bounds=SHARE),
    Metric("stance_shift", find_shift, about="opinion", needs=f"{_NEEDS} in round 0", bounds=(-2.0, 2.0)),
    Metric("stance_movement", find_movement, about="opinion", needs=f"{_NEEDS} in round 0", bounds=COUNT),
    Metric("conversions", find_conversions, about="opinion", needs=f"{_NEEDS} in round 0", bounds=SHARE),
)
