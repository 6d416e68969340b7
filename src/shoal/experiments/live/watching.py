"""Where every run of an experiment stands, seen from outside of the process that works on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from shoal.experiments.batch import RESULTS
from shoal.experiments.experiment import ExperimentRun
from shoal.experiments.folder import DesignRecord, TierRecord, open_design, read_design, read_experiment_state
from shoal.experiments.results import RunResult, read_results
from shoal.experiments.standing import ArmStanding, ExperimentStanding, take_standing
from shoal.runs import LOG, RunDirectory


class RunMark(StrEnum):
    """Where one run stands, as a letter: an experiment may have very many."""

    WAITING = "w"
    RUNNING = "r"
    PASSED = "p"
    NOT_PASSED = "n"
    #: It completed, and no judge says whether it passed.
    COMPLETED = "c"
    FAILED = "f"
    STOPPED = "s"
    #: Its arm was stopped before, so it is not run.
    LEFT_OUT = "x"
    #: It was begun, and no process works on it.
    INTERRUPTED = "i"

    @classmethod
    def of(cls, result: RunResult) -> RunMark:
        if result.status != "completed":
            return cls.FAILED if result.status == "failed" else cls.STOPPED
        return {True: cls.PASSED, False: cls.NOT_PASSED, None: cls.COMPLETED}[result.passed]


@dataclass(frozen=True, slots=True)
class ArmProgress:
    """One arm with all its runs."""

    standing: ArmStanding
    changes: Mapping[str, object]
    seeds: Sequence[int]
    #: A mark for each seed.
    marks: Sequence[RunMark]


@dataclass(frozen=True, slots=True)
class ExperimentProgress:
    """How far an experiment is, run by run."""

    design: DesignRecord
    standing: ExperimentStanding
    #: `running`, `completed`, `stopped` or `interrupted`.
    status: str
    arms: Sequence[ArmProgress]


def watch_experiment(folder: Path) -> ExperimentProgress:
    """Read where every run of the experiment in a folder stands; RunMissing where the folder has none."""
    record, is_at_work = read_design(folder), ExperimentRun.is_at_work(folder)
    state = read_experiment_state(folder)
    planned = {(tier.name, arm) for tier in record.tiers for arm in tier.arms}
    results = {each.id: each for each in read_results(folder / RESULTS) if (each.tier, each.arm) in planned}
    begun = {name for tier in record.tiers for name in _list_begun(folder, tier) if name not in results}
    running = {name for name in begun if RunDirectory(folder / name).has_worker()} if is_at_work else set()
    standing = take_standing(open_design(folder), results.values(), state, running)
    status = "running" if is_at_work else "interrupted" if state.status == "running" else state.status
    tiers = {tier.name: tier for tier in record.tiers}
    arms = []
    for arm in standing.arms:
        tier = tiers[arm.tier]
        names = [f"{arm.tier}/{arm.arm}/{seed}" for seed in tier.seeds]
        marks = [_mark_run(name, results, running, begun) for name in names]
        left_out = [RunMark.LEFT_OUT if mark is RunMark.WAITING else mark for mark in marks[arm.runs :]]
        arms.append(ArmProgress(arm, tier.arms[arm.arm], tier.seeds, [*marks[: arm.runs], *left_out]))
    return ExperimentProgress(record, standing, status, arms)


def _list_begun(folder: Path, tier: TierRecord) -> Iterable[str]:
    """Name the runs of a tier that a worker was started for. Others may be made already."""
    for arm in tier.arms:
        place = folder / tier.name / arm
        if place.is_dir():
            yield from (
                f"{tier.name}/{arm}/{path.name}"
                for path in place.iterdir()
                if path.name.isdecimal() and (path / LOG).exists()
            )


def _mark_run(name: str, results: Mapping[str, RunResult], running: set[str], begun: set[str]) -> RunMark:
    """Return where a run stands: a result counts most, then a worker, then a directory that is there."""
    if name in results:
        return RunMark.of(results[name])
    if name in running:
        return RunMark.RUNNING
    return RunMark.INTERRUPTED if name in begun else RunMark.WAITING
