"""Metrics of how posts were passed on: the size, depth, breadth and virality of cascades."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from statistics import fmean

from shoal.experiments.metrics.base import COUNT, Measured, Metric
from shoal.experiments.metrics.formulas import measure_virality
from shoal.experiments.metrics.record import PLATFORM, WorldRecord
from shoal.runs.reports import Cascade

_NEEDS = "no post was passed on"


def _list_cascades(record: WorldRecord, round: int) -> Iterator[tuple[Cascade, int]]:
    """Yield every cascade with how many of its posts there were after a round, at least two."""
    for cascade in record.cascades:
        size = bisect_right(cascade.dates, round)
        if size > 1:
            yield cascade, size


def _find_most(record: WorldRecord, round: int, formula: Callable[[Cascade, int], float]) -> Mapping[str, float]:
    """Return the largest figure of any cascade, and of the cascades that begin with a post on each claim."""
    most: dict[str, float] = {}
    for cascade, size in _list_cascades(record, round):
        value = formula(cascade, size)
        for about in {"", cascade.claim or ""}:
            most[about] = max(most.get(about, value), value)
    return most


def count_cascades(record: WorldRecord, round: int) -> Measured:
    """How many posts were passed on at least once; `cascades(CLAIM)`: posts on a claim."""
    counts: Counter[str] = Counter({"": 0})
    for cascade, _ in _list_cascades(record, round):
        counts.update({"", cascade.claim or ""})
    return {about: float(count) for about, count in counts.items()}


def find_size(record: WorldRecord, round: int) -> Measured:
    """max |C|: how many posts the largest cascade has, the first one included; `cascade_size(CLAIM)`: the largest that
    begins with a post on a claim."""
    return _find_most(record, round, lambda cascade, size: size)


def find_mean_size(record: WorldRecord, round: int) -> Measured:
    """Σ |C| / c: how many posts a cascade has on average, of the c posts that were passed on."""
    sizes = defaultdict(list)
    for cascade, size in _list_cascades(record, round):
        for about in {"", cascade.claim or ""}:
            sizes[about].append(size)
    return {about: fmean(each) for about, each in sizes.items()}


def find_depth(record: WorldRecord, round: int) -> Measured:
    """max d(post): how many steps the farthest post of any cascade is away from the first. A share came through the
    latest sharer that the person follows, and else from the first post."""
    return _find_most(record, round, lambda cascade, size: max(cascade.depths[:size]))


def find_breadth(record: WorldRecord, round: int) -> Measured:
    """max |{post: d(post) = k}|: how many posts of one cascade are as many steps away from the first."""
    return _find_most(record, round, lambda cascade, size: max(Counter(cascade.depths[:size]).values()))


def find_virality(record: WorldRecord, round: int) -> Measured:
    """Σᵢⱼ d(i, j) / (n (n-1)): the mean distance between two posts of the largest cascade, by size and then by when it
    began (structural virality, Goel and others 2016). 2 - 2/n where all came from the first post, more where it went
    from person to person."""
    largest: dict[str, tuple[int, Cascade]] = {}
    for cascade, size in _list_cascades(record, round):
        for about in {"", cascade.claim or ""}:
            if about not in largest or size > largest[about][0]:
                largest[about] = size, cascade
    found = {about: measure_virality(cascade.parents[:size]) for about, (size, cascade) in largest.items()}
    return {about: value for about, value in found.items() if value is not None}


METRICS = (
    Metric("cascades", count_cascades, (PLATFORM,), about="post", needs=_NEEDS, bounds=COUNT),
    Metric("cascade_size", find_size, (PLATFORM,), about="post", needs=_NEEDS, bounds=COUNT),
    Metric("cascade_mean_size", find_mean_size, (PLATFORM,), about="post", needs=_NEEDS, bounds=COUNT),
    Metric("cascade_depth", find_depth, (PLATFORM,), about="post", needs=_NEEDS, bounds=COUNT),
    Metric("cascade_breadth", find_breadth, (PLATFORM,), about="post", needs=_NEEDS, bounds=COUNT),
    Metric("virality", find_virality, (PLATFORM,), about="post", needs=_NEEDS, bounds=COUNT),
)
