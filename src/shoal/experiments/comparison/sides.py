"""Compares experiments, arms and runs: what differs in their scenarios, and which metrics differ by how much."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from shoal.errors import RunMissing, RunRefused
from shoal.experiments.batch import RESULTS
from shoal.experiments.report.reading import ArmColumns, read_record
from shoal.experiments.results import PASS_RATE
from shoal.experiments.statistics import Effect, compare_paired, compare_rates, compare_unpaired, correct_holm
from shoal.runs import CONFIG, RunDirectory
from shoal.runs.reports import read_outcomes

#: A seed differs between the runs of an arm, and a name between copies.
_OWN = ("seed", "name")


@dataclass(frozen=True, slots=True)
class Side:
    """Something that is compared: the runs of an arm, or one run."""

    name: str
    #: Metric -> seed -> value.
    metrics: Mapping[str, Mapping[int, float]]
    verdicts: Mapping[int, bool]
    scenario: Mapping[str, Any]

    @property
    def runs(self) -> int:
        return max([len(self.verdicts), *(len(values) for values in self.metrics.values())], default=0)


@dataclass(frozen=True, slots=True)
class ScenarioDifference:
    """A value that differs between scenarios; None where one does not have it."""

    path: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class MetricDifference:
    """How far the second side is from the first in one metric."""

    metric: str
    before: float
    after: float
    effect: Effect
    is_paired: bool
    #: Corrected by Holm for everything that is compared here.
    corrected_p: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sides, compared."""

    before: str
    after: str
    runs: tuple[int, int]
    scenario: Sequence[ScenarioDifference]
    metrics: Sequence[MetricDifference]


def compare_sides(paths: Sequence[Path]) -> list[Comparison]:
    """Compare everything with the first: arms of experiments that have the same name, or whatever else is given."""
    if len(paths) < 2:
        raise RunRefused("there is nothing to compare with.\nGive two or more experiments, arms or runs.")
    read = [_read_sides(path) for path in paths]
    pairs: list[tuple[Side, Side]] = []
    for sides in read[1:]:
        pairs += _match(read[0], sides, paths)
    found = [(one, other, list(_compare(one, other))) for one, other in pairs]
    every = [(row, each.p) for row, (_, _, rows) in enumerate(found) for _, _, _, each, _ in rows if each.p is not None]
    corrected = iter(correct_holm([p for _, p in every]))
    return [
        Comparison(
            one.name,
            other.name,
            (one.runs, other.runs),
            list(_list_differences(one.scenario, other.scenario)),
            [
                MetricDifference(name, before, after, effect, paired, None if effect.p is None else next(corrected))
                for name, before, after, effect, paired in rows
            ],
        )
        for one, other, rows in found
    ]


def _match(first: Mapping[str, Side], second: Mapping[str, Side], paths: Sequence[Path]) -> list[tuple[Side, Side]]:
    if len(first) == 1 or len(second) == 1:
        return [(one, other) for one in first.values() for other in second.values()]
    common = [name for name in first if name in second]
    if not common:
        raise RunRefused(
            f"{' and '.join(map(str, paths))} have no arm of the same name.\n"
            "Name the arms that are to be compared, such as results/NAME/TIER/ARM."
        )
    return [(first[name], second[name]) for name in common]


def _read_sides(path: Path) -> dict[str, Side]:
    """Read an experiment as its arms, or an arm or a run as one side, each under its name in the experiment."""
    path = Path(path)
    if (path / RESULTS).exists():
        return {arm.folder: _make_side(path, arm) for arm in read_record(path).list_arms() if arm.runs}
    if (experiment := path.absolute().parent.parent / RESULTS).exists() and not (path / CONFIG).exists():
        place = "/".join(path.absolute().parts[-2:])
        for arm in read_record(experiment.parent).list_arms():
            if arm.folder == place and arm.runs:
                return {place: _make_side(experiment.parent, arm, str(path))}
    if not (path / CONFIG).exists():
        raise RunMissing(
            f"{path} is no experiment, no arm and no run.\n"
            "An experiment is a folder such as results/NAME; an arm is results/NAME/TIER/ARM; a run is a run directory."
        )
    return {str(path): _read_run(path)}


def _make_side(folder: Path, arm: ArmColumns, name: str | None = None) -> Side:
    metrics = {metric: arm.read_metric(metric) for metric in arm.metrics}
    first = next((folder / run.folder for run in arm.runs if (folder / run.folder / CONFIG).exists()), None)
    return Side(name or str(folder / arm.folder), metrics, arm.read_verdicts(), _read_scenario(first))


def _read_run(path: Path) -> Side:
    """Read one run with what its experiment measured, or else with the figures that it recorded."""
    run = RunDirectory.open(path)
    seed = run.scenario_versions.first.seed
    experiment = path.absolute().parent.parent.parent
    if (experiment / RESULTS).exists():
        place = "/".join(path.absolute().parts[-3:-1])
        for arm in read_record(experiment).list_arms():
            if arm.folder == place:
                metrics = {
                    name: {seed: values[seed]} for name in arm.metrics if seed in (values := arm.read_metric(name))
                }
                verdicts = {at: passed for at, passed in arm.read_verdicts().items() if at == seed}
                return Side(str(path), metrics, verdicts, _read_scenario(path))
    prefixes = {world: f"{world}." if len(run.worlds) > 1 else "" for world in run.worlds}
    found = {
        f"{prefix}{each.name}" + (f"({each.about})" if each.about else ""): {seed: each.last}
        for world, prefix in prefixes.items()
        for each in read_outcomes(run, world)
    }
    return Side(str(path), found, {}, _read_scenario(path))


def _read_scenario(run: Path | None) -> dict[str, Any]:
    if run is None:
        return {}
    try:
        content = msgspec.json.decode((run / CONFIG).read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.MsgspecError) as error:
        raise RunRefused(f"{run / CONFIG} cannot be read: {error}.") from error
    scenario: dict[str, Any] = content.get("scenario", {})
    return {name: value for name, value in scenario.items() if name not in _OWN}


Row = tuple[str, float, float, Effect, bool]


def _compare(one: Side, other: Side) -> Iterator[Row]:
    """Yield the metrics that both have. Runs with the same seeds are compared in pairs."""
    if effect := compare_rates(other.verdicts, one.verdicts):
        yield PASS_RATE, _average(one.verdicts), _average(other.verdicts), effect, True
    for name in one.metrics:
        before, after = one.metrics[name], other.metrics.get(name, {})
        is_paired = len(before.keys() & after.keys()) > 1
        if is_paired:
            found = compare_paired(after, before)
        else:
            found = compare_unpaired(list(after.values()), list(before.values()))
        if found is not None:
            yield name, _average(before), _average(after), found, is_paired


def _average(values: Mapping[int, float]) -> float:
    return sum(values.values()) / len(values)


def _list_differences(one: Any, other: Any, path: str = "") -> Iterator[ScenarioDifference]:
    """Yield every value of two scenarios that differs."""
    if one == other:
        return
    if isinstance(one, dict) and isinstance(other, dict):
        for name in dict.fromkeys([*one, *other]):
            yield from _list_differences(one.get(name), other.get(name), f"{path}.{name}" if path else name)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (before, after) in enumerate(zip(one, other, strict=True)):
            yield from _list_differences(before, after, f"{path}.{number}")
    else:
        yield ScenarioDifference(path, one, other)
