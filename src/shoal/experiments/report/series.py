"""Metrics over rounds: the mean of an arm's runs after each round, with its interval."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shoal.errors import ShoalError
from shoal.experiments.metrics import find_bounds
from shoal.experiments.report.figures import ExperimentReport, TierReport
from shoal.experiments.statistics import COVERED, find_t
from shoal.runs import RunDirectory
from shoal.runs.reports import read_figures

#: Runs of one experiment that are opened for its curves, at most.
MAX_RUNS = 600
_MIN_RUNS_OF_ARM = 3
#: The most points that a curve has.
_MAX_POINTS = 240

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Band:
    """The mean of a metric over the runs of an arm, round by round."""

    arm: str
    rounds: Sequence[int]
    mean: Values
    low: Values
    high: Values
    runs: int


@dataclass(frozen=True, slots=True)
class TierCurves:
    """The curves of a tier: metric -> a band for each arm that has it."""

    tier: str
    bands: Mapping[str, Sequence[Band]]
    #: How many runs each arm's curves are of, where not of all.
    sampled: int | None


def read_curves(report: ExperimentReport) -> list[TierCurves]:
    """Read the curves of every tier from the databases of its runs: of very many, those of the first seeds."""
    arms = max(sum(len(tier.arms) for tier in report.tiers), 1)
    most = max(MAX_RUNS // arms, _MIN_RUNS_OF_ARM)
    return [_read_tier(tier, report.record.folder, most) for tier in report.tiers]


def _read_tier(tier: TierReport, folder: Path, most: int) -> TierCurves:
    bands: dict[str, list[Band]] = {}
    for arm in tier.arms:
        series: dict[str, list[Mapping[int, float]]] = {}
        for run in arm.record.runs[:most]:
            for name, values in _read_run(folder / run.folder):
                series.setdefault(name, []).append(values)
        for name, runs in series.items():
            bands.setdefault(name, []).append(_average(arm.name, name, runs))
    known = [name for arm in tier.arms for name in arm.metrics]
    ordered = {name: bands[name] for name in dict.fromkeys([*known, *bands]) if name in bands}
    is_sampled = any(len(arm.record.runs) > most for arm in tier.arms)
    return TierCurves(tier.name, ordered, most if is_sampled else None)


def _read_run(path: Path) -> Iterator[tuple[str, Mapping[int, float]]]:
    """Yield the figures of a run over its rounds, named as its metrics are; nothing where the run cannot be read."""
    try:
        run = RunDirectory.open(path)
        worlds = run.worlds
        for world in worlds:
            prefix = f"{world}." if len(worlds) > 1 else ""
            for (name, about), values in read_figures(run, world).items():
                yield f"{prefix}{name}({about})" if about else f"{prefix}{name}", values
    except ShoalError:
        # The run was moved, or never began. Its figures are in the results all the same.
        return


def _average(arm: str, metric: str, runs: Sequence[Mapping[int, float]]) -> Band:
    """Average a metric over runs after each round. A run that ended before a round has no value there."""
    rounds = sorted({round for values in runs for round in values})
    if len(rounds) > _MAX_POINTS:
        rounds = [rounds[at] for at in np.linspace(0, len(rounds) - 1, _MAX_POINTS).astype(int)]
    table = np.asarray([[values.get(round, np.nan) for round in rounds] for values in runs], np.float64)
    known = np.isfinite(table)
    counts = known.sum(axis=0)
    filled = np.where(known, table, 0.0)
    mean = filled.sum(axis=0) / counts
    squares = np.where(known, (table - mean) ** 2, 0.0).sum(axis=0)
    error = np.sqrt(squares / np.maximum(counts - 1, 1) / counts)
    factors = np.asarray([find_t(1 - COVERED, int(count) - 1) if count > 1 else 0.0 for count in counts])
    half = factors * error
    low, high = find_bounds(metric, float(np.nanmin(table)), float(np.nanmax(table)))
    return Band(arm, rounds, mean, np.maximum(mean - half, low), np.minimum(mean + half, high), len(runs))
