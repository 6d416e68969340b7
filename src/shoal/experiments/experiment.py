"""Runs an experiment: every run of its tiers through the scheduler of batches, and a result for each.

The tree is `TIER/ARM/SEED`, each a run directory. As with a batch, nothing is kept in memory alone, so the same call
after a kill repeats no run that has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec

from shoal.errors import RunRefused
from shoal.experiments.batch import RESULTS, Batch, BatchProgress, BatchResult, BatchSettings
from shoal.experiments.batch_rows import BatchRow
from shoal.experiments.design import Experiment, Inheritance, TierSettings
from shoal.experiments.results import RunResult
from shoal.runs import RunResources, storage_errors
from shoal.runs.launchers import Launcher

#: What the scheduler records: how each run ended, before it is judged.
RUNS_FILE = "runs.jsonl"


class ExperimentBatch(Batch):
    """The runs of an experiment in its tree."""

    @property
    def results_file(self) -> Path:
        return self.folder / RUNS_FILE

    @property
    def runs_folder(self) -> Path:
        return self.folder


class ExperimentRun:
    """An experiment in its folder. `run` works through all runs that have no result yet."""

    def __init__(self, experiment: Experiment, folder: Path, settings: BatchSettings) -> None:
        self.experiment = experiment
        self.folder = folder
        #: Is told of every batch of runs before it begins, for those who show it.
        self.watch: Callable[[BatchProgress], object] = lambda _: None
        self._settings = settings
        self._results: dict[str, BatchResult] = {}
        #: Tier -> what its runs change on top of the base scenario, once that is known.
        self._inherited: dict[str, Mapping[str, Any]] = {}

    @property
    def results_file(self) -> Path:
        return self.folder / RESULTS

    def check_models(self, resources: RunResources) -> None:
        """Refuse arms whose models cannot be asked, before anything runs."""
        self._make_batch([tier for tier in self.experiment.tiers if tier.inherits is None]).check_models(resources)

    async def run(self, launcher: Launcher, stop: asyncio.Event) -> list[RunResult]:
        """Run all tiers, and return a result for each run; `Stopped` where it was asked to.

        Tiers that inherit nothing run side by side. One that inherits waits for those before it.
        """
        waiting = list(self.experiment.tiers)
        while waiting:
            unfinished = {tier.name for tier in waiting}
            ready = [tier for tier in waiting if tier.inherits is None or tier.inherits.tier not in unfinished]
            batch = self._make_batch(ready)
            self.watch(batch.progress)
            self._results |= {result.id: result for result in await batch.run(launcher, stop)}
            waiting = [tier for tier in waiting if tier not in ready]
        return self._write_results()

    def _make_batch(self, tiers: list[TierSettings]) -> ExperimentBatch:
        rows: list[BatchRow] = []
        for tier in tiers:
            inherited = {} if tier.inherits is None else self._inherit(tier.inherits)
            self._inherited[tier.name] = inherited
            rows += self.experiment.list_rows(tier, inherited)
        return ExperimentBatch(self.experiment.base, rows, self.folder, self._settings)

    def _inherit(self, inheritance: Inheritance) -> dict[str, Any]:
        """Return what the best arm of an earlier tier changes, with what that tier inherited itself."""
        (tier,) = [tier for tier in self.experiment.tiers if tier.name == inheritance.tier]
        metric = str(inheritance.highest or inheritance.lowest)
        means = {}
        for arm in tier.list_arms():
            results = [self._results[f"{tier.name}/{arm}/{seed}"] for seed in self.experiment.seeds]
            values = [result.metrics[metric] for result in results if metric in result.metrics]
            if values:
                means[arm] = fmean(values)
        if not means:
            raise RunRefused(f"tier {tier.name}: no run of it has the metric {metric!r}, so no arm of it is the best")
        best = (max if inheritance.highest else min)(means, key=lambda arm: means[arm])
        return {**self._inherited[tier.name], **tier.list_arms()[best]}

    def _write_results(self) -> list[RunResult]:
        """Write all results in the order of tiers, arms and seeds."""
        results = [
            _describe_result(self._results[f"{tier.name}/{arm}/{seed}"])
            for tier in self.experiment.tiers
            for arm in tier.list_arms()
            for seed in self.experiment.seeds
        ]
        beside = self.results_file.with_name(f".{RESULTS}")
        with storage_errors(self.results_file):
            beside.write_bytes(b"".join(msgspec.json.encode(result) + b"\n" for result in results))
            beside.replace(self.results_file)
        return results


def _describe_result(result: BatchResult) -> RunResult:
    tier, arm, seed = result.id.split("/")
    return RunResult(
        tier=tier,
        arm=arm,
        seed=int(seed),
        status=str(result.status),
        error=result.error,
        cost=result.cost,
        calls=result.calls,
        input_tokens=result.input_tokens,
        output_tokens=result.output_tokens,
        seconds=result.seconds,
        metrics=result.metrics,
        judgements=(),
        run=result.run,
        digest=result.digest,
        scenario_digest=result.scenario_digest,
    )
