"""A published result as a check: scenarios that are run with many seeds, a figure of each, and what was published."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf, isnan, nan
from pathlib import Path
from typing import Any

import numpy as np

from shoal.runs import RunResources, create_run, work_on_run
from shoal.scenario import validate
from shoal.seeds import derive

#: Resamples of an interval, and the share of them that it covers.
_RESAMPLES, _COVERED = 4000, 0.95
#: The share of seeds that may give no figure. Beyond it those that do are not like the others, and nothing is said.
_MOST_MISSING = 0.1


class CheckVerdict(StrEnum):
    """How what was found compares with what was published."""

    HOLDS = "holds"
    #: The interval crosses a bound: more seeds would tell.
    UNCLEAR = "unclear"
    FAILS = "not reproduced"


@dataclass(frozen=True, slots=True)
class Laboratory:
    """Runs the scenarios of a check, each with one seed and with the mind that is being checked."""

    folder: Path
    seed: int
    #: Settings of a mind instead of the offline one; None: the offline mind.
    mind: Mapping[str, Any] | None = None
    resources: RunResources = field(default_factory=RunResources)

    @contextmanager
    def run(self, scenario: Mapping[str, Any], world: str, seed: int | None = None) -> Iterator[sqlite3.Connection]:
        """Run a scenario to its end, and yield the database of one of its worlds."""
        declared = {"follows": "none", **scenario, "seed": self.seed if seed is None else seed}
        if self.mind is not None:
            declared["mind"] = dict(self.mind)
        number = sum(1 for _ in self.folder.iterdir())
        directory = create_run(validate(declared), self.folder / str(number))
        asyncio.run(work_on_run(directory, asyncio.Event(), resources=self.resources))
        with closing(sqlite3.connect(directory.file(f"{world}_simulation.db"))) as database:
            yield database


@dataclass(frozen=True, slots=True)
class ValidationCheck:
    """One published result."""

    id: str
    result: str
    published: str
    source: str
    #: Runs scenarios, and returns the figure of one seed; not a number where a seed gave nothing to measure.
    measure: Callable[[Laboratory], float]
    #: What the figure is, and between which values it must lie.
    figure: str
    low: float = -inf
    high: float = inf
    #: Whether it is a result about the offline mind's own model, so that other minds have nothing to do with it.
    is_offline_only: bool = False

    @property
    def bounds(self) -> str:
        if self.high == inf:
            return f"above {self.low:g}"
        return f"{self.low:g} to {self.high:g}"

    def judge(self, values: Sequence[float]) -> CheckResult:
        """Compare what seeds gave with what was published."""
        found = np.asarray(values, np.float64)
        found = found[~np.isnan(found)]
        if not len(found):
            return CheckResult(self, tuple(values), nan, nan, nan, CheckVerdict.UNCLEAR)
        rows = np.random.default_rng(derive(0, "check", self.id)).integers(0, len(found), (_RESAMPLES, len(found)))
        tail = (1 - _COVERED) / 2
        low, high = np.quantile(found[rows].mean(axis=1), [tail, 1 - tail]).tolist()
        if len(values) - len(found) > _MOST_MISSING * len(values):
            verdict = CheckVerdict.UNCLEAR
        elif self.low <= low and high <= self.high and (low > self.low or self.high < inf):
            verdict = CheckVerdict.HOLDS
        elif high < self.low or low > self.high:
            verdict = CheckVerdict.FAILS
        else:
            verdict = CheckVerdict.UNCLEAR
        return CheckResult(self, tuple(values), float(found.mean()), low, high, verdict)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What was found: the figure of each seed, the mean of those that have one, and a 95 % interval by bootstrap."""

    check: ValidationCheck
    values: Sequence[float]
    mean: float
    low: float
    high: float
    verdict: CheckVerdict

    @property
    def missing(self) -> int:
        """How many seeds gave no figure."""
        return sum(isnan(value) for value in self.values)


def query_values(database: sqlite3.Connection, sql: str, *args: object) -> list[Any]:
    """Return the first column of a query."""
    return [row[0] for row in database.execute(sql, args)]
