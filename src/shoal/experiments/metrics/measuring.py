"""Measures runs: values at the end, and over rounds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from typing import TypeVar

from shoal.engine import TOPIC
from shoal.errors import QueryFailed
from shoal.experiments.metrics import conversations, figures, networks, opinions, spreading, texts
from shoal.experiments.metrics.base import Bounds, Metric, NotMeasured
from shoal.experiments.metrics.record import WorldRecord
from shoal.runs import RunDirectory
from shoal.runs.reports import open_world
from shoal.text import hint, one_of

T = TypeVar("T")

#: Every metric that needs no file of the user's, by name.
METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for module in (figures, opinions, spreading, networks, conversations, texts)
    for metric in module.METRICS
}
_FULL_NAME = re.compile(r"(?:([\w-]+)\.)?(\w+)(?:\((.+)\))?")


@dataclass(frozen=True, slots=True)
class MetricName:
    """Names one value: of which world, which metric, and what it is about: `twitter.reach(rumour)`."""

    metric: str
    about: str = ""
    world: str = ""

    @classmethod
    def parse(cls, text: str) -> MetricName:
        """Read a name; QueryFailed where it is none."""
        found = _FULL_NAME.fullmatch(text.strip())
        if found is None:
            raise QueryFailed(f"{text!r} names no metric; write it as reach, reach(rumour) or twitter.reach(rumour)")
        return cls(found[2], (found[3] or "").strip("\"' "), found[1] or "")

    def __str__(self) -> str:
        return f"{self.world}{'.' if self.world else ''}{self.metric}{f'({self.about})' if self.about else ''}"


@dataclass(frozen=True, slots=True)
class Measurement:
    """What was measured of a run, and why some of it has no value."""

    #: By name. Of a run with several worlds, each begins with the name of its world.
    values: dict[str, float] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)


def measure_run(run: RunDirectory, metrics: Iterable[Metric], round: int | None = None) -> Measurement:
    """Measure a run as it was when a round ended; without a round, at its end."""
    wanted, measurement = list(metrics), Measurement()
    reasons: dict[str, list[str]] = {}
    found: set[str] = set()
    for prefix, record in _open_records(run):
        for metric in wanted:
            try:
                at = record.last_round if round is None else round
                values = metric.measure_at(record, at)
            except NotMeasured as reason:
                reasons.setdefault(metric.name, []).append(str(reason))
                continue
            found.add(metric.name)
            names = (MetricName(metric.name, about, prefix) for about in values)
            measurement.values.update(zip(map(str, names), values.values(), strict=True))
    measurement.missing.update({name: given[0] for name, given in reasons.items() if name not in found})
    if not reasons and not found:
        measurement.missing.update({metric.name: "no round of the run is committed" for metric in wanted})
    return measurement


def read_series(run: RunDirectory, name: str, own: Sequence[Metric] = ()) -> list[tuple[int, float]]:
    """Return the value of a metric after each round that has one, such as `reach(rumour)`.

    The last value is that of `measure_run`. QueryFailed where there is no such metric, or several are meant.
    """
    wanted = MetricName.parse(name)
    known = {metric.name: metric for metric in (*list_recorded(run), *own)}
    (metric,) = choose_metrics([name], known.values())
    series: dict[str, list[tuple[int, float]]] = {}
    reason = "no round of the run is committed"
    for prefix, record in _open_records(run):
        if wanted.world and wanted.world != record.world:
            continue
        for round in range(record.last_round + 1) if metric.has_series else (record.last_round,):
            try:
                values = metric.measure_at(record, round)
            except NotMeasured as why:
                reason = str(why)
                continue
            for about, value in values.items():
                series.setdefault(str(MetricName(metric.name, about, prefix)), []).append((round, value))
    found = find_value(series, name)
    if isinstance(found, str):
        raise QueryFailed(f"{name}: {reason if not series else found}")
    return found


def list_recorded(run: RunDirectory) -> list[Metric]:
    """Return every metric that needs no file, and the figures that the run records beside them."""
    others = {name for _, record in _open_records(run) for name, _ in record.figures if name not in METRICS}
    return [*METRICS.values(), *map(figures.define_figure, sorted(others))]


def choose_metrics(names: Iterable[str], known: Iterable[Metric]) -> list[Metric]:
    """Return the metrics of these names, each once; QueryFailed for a name that no metric has."""
    by_name = {metric.name: metric for metric in known}
    chosen = {}
    for name in names:
        metric = MetricName.parse(name).metric
        if metric not in by_name:
            raise QueryFailed(
                f"there is no metric {metric!r}{hint(metric, by_name) or '; there is ' + one_of(by_name)}"
            )
        chosen[metric] = by_name[metric]
    return list(chosen.values())


def find_bounds(name: str, least: float, most: float) -> Bounds:
    """Return what the values of a metric lie between, as far as that is known; of these values, some are known.

    A metric of the user's own may have the name of one of ours, and values beyond its bounds.
    """
    found = _FULL_NAME.fullmatch(name)
    metric = METRICS.get(found[2]) if found else None
    low, high = (-inf, inf) if metric is None else metric.bounds
    return (low, high) if low <= least and most <= high else (-inf, inf)


def find_value(values: Mapping[str, T], name: str) -> T | str:
    """Find a value by its name, or say why there is none.

    A name without what it is about is that of the topic, or of the only thing it is about. Where a run has several
    worlds, and more than one has the metric, the world must be named.
    """
    wanted = MetricName.parse(name)
    parsed = [(MetricName.parse(full), value) for full, value in values.items()]
    alike = [
        (each, value)
        for each, value in parsed
        if each.metric == wanted.metric and wanted.world in ("", each.world) and wanted.about in ("", each.about)
    ]
    for about in (wanted.about, TOPIC):
        exact = [value for each, value in alike if each.about == about]
        if len(exact) == 1 and len({each.world for each, _ in alike}) == 1:
            return exact[0]
    if len(alike) == 1:
        return alike[0][1]
    if alike:
        return f"there are several; write which one: {one_of(str(each) for each, _ in alike)}"
    others = [str(each) for each, _ in parsed if each.metric == wanted.metric]
    return f"there is only {one_of(others)}" if others else f"there is no value of {name}"


@contextmanager
def open_record(run: RunDirectory, world: str) -> Iterator[WorldRecord | None]:
    """Open what is recorded of one world; None where no round is committed."""
    with open_world(run, world) as database:
        yield None if database is None else WorldRecord(run, world, database)


def _open_records(run: RunDirectory) -> Iterator[tuple[str, WorldRecord]]:
    """Open the worlds of a run one after the other, each with what its values begin with."""
    for world in run.worlds:
        with open_record(run, world) as record:
            if record is not None:
                yield world if len(run.worlds) > 1 else "", record
