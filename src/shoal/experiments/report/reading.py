"""Reads the folder of an experiment into columns, so that the results of many runs need little memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite, nan
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from shoal.errors import RunRefused
from shoal.experiments.batch import RESULTS, RESULTS_CSV
from shoal.experiments.folder import DESIGN, STATE, DesignChange
from shoal.experiments.results import RunResult
from shoal.experiments.stopping import ArmStop
from shoal.runs import RUNS
from shoal.text import clip

#: The arm that others are compared with where none is declared, if there is one of this name.
_BASE = "base"
_MAX_ERROR_CHARS = 400


class DeclaredTier(msgspec.Struct, frozen=True):
    """What the design says of a tier."""

    name: str
    control: str | None = None
    #: Arm -> what it changes.
    arms: dict[str, dict[str, Any]] = {}
    inherits: dict[str, Any] | None = None


class DeclaredDesign(msgspec.Struct, frozen=True):
    """What a report needs of the design. Whatever else is in the file is for others."""

    name: str | None = None
    #: The file that declares the experiment.
    file: str | None = None
    #: The metric that the experiment is about.
    outcome: str | None = None
    tiers: list[DeclaredTier] = []
    changes: list[DesignChange] = []


class ReachedState(msgspec.Struct, frozen=True):
    """What a report needs of how far the experiment is."""

    stops: list[ArmStop] = []
    #: Tier -> the arm that it starts from, as TIER/ARM.
    starts: dict[str, str] = {}
    #: Tier -> why it was not run.
    skipped: dict[str, str] = {}
    notes: list[str] = []


class RunLine(msgspec.Struct, frozen=True, gc=False):
    """One run of an arm, without its metrics."""

    seed: int
    status: str
    passed: bool | None
    cost: float | None
    calls: int
    tokens: int
    seconds: float
    #: The run directory, from the experiment's folder.
    folder: str
    #: Why it did not complete, or what its judges failed with.
    error: str | None
    #: Makes the run again.
    command: str


@dataclass(slots=True)
class JudgeCounts:
    """What one judge said of runs."""

    passed: int = 0
    refused: int = 0
    failed: int = 0
    scores: array[float] = field(default_factory=lambda: array("d"))
    #: Of each run with several votes: how many pass it, and how many do not.
    votes: list[tuple[int, int]] = field(default_factory=list)

    @property
    def mean_score(self) -> float | None:
        return sum(self.scores) / len(self.scores) if self.scores else None

    @classmethod
    def join(cls, parts: Iterable[JudgeCounts]) -> JudgeCounts:
        joined = cls()
        for part in parts:
            joined.passed += part.passed
            joined.refused += part.refused
            joined.failed += part.failed
            joined.scores.extend(part.scores)
            joined.votes += part.votes
        return joined


@dataclass(slots=True)
class ArmColumns:
    """One arm: its runs, and each metric as a column beside them."""

    tier: str
    name: str
    changes: Mapping[str, Any]
    runs: list[RunLine] = field(default_factory=list)
    #: Metric -> a value for each run, NaN where a run does not have it or did not complete.
    metrics: dict[str, array[float]] = field(default_factory=dict)
    judges: dict[str, JudgeCounts] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        return f"{self.tier}/{self.name}"

    def add(self, result: RunResult) -> None:
        for name, value in result.metrics.items() if result.status == "completed" else ():
            column = self.metrics.setdefault(name, array("d"))
            column.extend([nan] * (len(self.runs) - len(column)))
            column.append(value if isfinite(value) else nan)
        problems = [] if result.error is None else [result.error]
        for judgement in result.judgements:
            record = self.judges.setdefault(judgement.judge, JudgeCounts())
            if judgement.error is not None:
                record.failed += 1
                problems.append(f"judge {judgement.judge}: {judgement.error}")
            elif judgement.passed is not None:
                record.passed += judgement.passed
                record.refused += not judgement.passed
            if judgement.score is not None and isfinite(judgement.score):
                record.scores.append(judgement.score)
            if len(judgement.votes) > 1:
                record.votes.append(judgement.count_votes())
        line = RunLine(
            seed=result.seed,
            status=result.status,
            passed=result.passed,
            cost=result.cost,
            calls=result.calls,
            tokens=result.input_tokens + result.output_tokens,
            seconds=result.seconds,
            folder=result.id,
            error=clip("; ".join(problems), _MAX_ERROR_CHARS) or None,
            command=result.command,
        )
        self.runs.append(line)

    def read_metric(self, name: str) -> dict[int, float]:
        """Return a metric by seed, where it is known."""
        column = self.metrics.get(name, array("d"))
        return {run.seed: value for run, value in zip(self.runs, column, strict=False) if value == value}

    def read_verdicts(self) -> dict[int, bool]:
        """Return by seed whether the run passed, where that is known."""
        return {run.seed: run.passed for run in self.runs if run.passed is not None}


@dataclass(slots=True)
class TierColumns:
    """One tier with its arms, in the order in which they are declared."""

    name: str
    arms: dict[str, ArmColumns]
    control: str
    #: Whether the design says which arm is the control.
    is_control_declared: bool
    inherits: Mapping[str, Any] | None


@dataclass(slots=True)
class ExperimentColumns:
    """The folder of an experiment, read."""

    folder: Path
    name: str
    design: DeclaredDesign
    state: ReachedState
    tiers: dict[str, TierColumns]

    def list_arms(self) -> list[ArmColumns]:
        return [arm for tier in self.tiers.values() for arm in tier.arms.values()]


def stream_results(folder: Path) -> Iterator[RunResult]:
    """Yield the results of an experiment, line by line; RunRefused where there are none to be read."""
    path = folder / RESULTS
    decode = msgspec.json.Decoder(RunResult).decode
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                try:
                    yield decode(line)
                except msgspec.DecodeError as error:
                    if not (folder / DESIGN).exists() and (folder / RUNS.name).is_dir():
                        raise RunRefused(
                            f"{folder} is a batch, which has no arms.\n"
                            f"Its results are in {folder / RESULTS_CSV}; its runs can be compared, two or more of "
                            f"{folder / RUNS.name}/ID."
                        ) from None
                    raise RunRefused(
                        f"{path}:{number}: is no result of an experiment: {error}.\n"
                        "The same `shoal experiment` command again writes it anew."
                    ) from error
    except OSError as error:
        if isinstance(error, FileNotFoundError) and (folder / DESIGN).exists():
            # No run has ended yet.
            return
        raise RunRefused(
            f"{folder} is no experiment: {error.strerror} ({path.name}).\n"
            "Give the folder that `shoal experiment` printed, such as results/NAME."
        ) from error


def read_record(folder: Path) -> ExperimentColumns:
    """Read an experiment: what was declared, and the results so far."""
    design = _read_file(folder / DESIGN, DeclaredDesign)
    state = _read_file(folder / STATE, ReachedState)
    tiers: dict[str, TierColumns] = {}
    for each in design.tiers:
        arms = {name: ArmColumns(each.name, name, changes) for name, changes in each.arms.items()}
        tiers[each.name] = TierColumns(each.name, arms, each.control or "", each.control is not None, each.inherits)
    for result in stream_results(folder):
        tier = tiers.setdefault(result.tier, TierColumns(result.tier, {}, "", False, None))
        tier.arms.setdefault(result.arm, ArmColumns(result.tier, result.arm, {})).add(result)
    for tier in tiers.values():
        if not tier.control:
            tier.control = _BASE if _BASE in tier.arms else next(iter(tier.arms), "")
    return ExperimentColumns(folder, design.name or folder.absolute().name, design, state, tiers)


F = TypeVar("F", DeclaredDesign, ReachedState)


def _read_file(path: Path, kind: type[F]) -> F:
    """Read one of the files beside the results; what it holds without anything where the folder has none."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return kind()
    except (OSError, msgspec.DecodeError) as error:
        raise RunRefused(f"{path}: cannot be read: {error}.\nThe same `shoal experiment` again writes it.") from error
