"""Who follows whom when the run starts.

People are worked on in chunks of rows. What a row draws depends on its own number only, never on the chunk, and
popularity is counted in whole numbers, so that sums are exact on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from shoal.scenario.declared.follows import FollowSettings
from shoal.scenario.declared.population import PersonEntry, number_own_names
from shoal.scenario.sampling.links import read_links
from shoal.scenario.sampling.people import People
from shoal.scenario.scenario import Scenario
from shoal.seeds import derive, hashes, uniforms
from shoal.types import FollowGraph

Ints = NDArray[np.int64]
#: Whom these people follow: (rows, slots, attempt) -> targets, one per row and slot.
Draw = Callable[[Ints, Ints, int], Ints]

_EDGES_PER_CHUNK = 1_000_000
#: Times that links which hit the same person twice are drawn again.
_ATTEMPTS = 12
#: Up to so many people, what is still missing after that is filled in one by one.
_EXACT_UP_TO = 5_000
#: Nobody follows fewer than this share of the mean; the most that anybody follows lies as far above it.
_FEWEST = 0.25
#: Exponent of the popularity weights: in-degrees fall off with a power of about -2.5.
_POPULARITY = -1 / 1.5
_WEIGHT_UNIT = 1000
#: How far apart stances of similar people are, at most.
_SIMILAR = 0.2


def follow_graph(scenario: Scenario, people: People) -> FollowGraph:
    """The graph that the scenario asks for, with the edges listed by hand."""
    seed, settings, count = scenario.seed, scenario.follows, len(people)
    extra = _listed_edges(scenario, count)
    if settings.graph == "none" or settings.mean_degree == 0 or count == 1:
        return _compressed(count, iter([extra]))
    degrees = _degrees(seed, settings, count)
    return _compressed(count, _chunks(count, degrees, _draw(seed, settings, people), extra))


def _draw(seed: int, settings: FollowSettings, people: People) -> Draw:
    if settings.graph == "small-world":
        return _small_world(seed, settings.rewire, len(people))
    popularity = _popularity(seed, len(people))
    if settings.graph == "homophilous":
        return _homophilous(seed, settings.homophily, people.stances, popularity)
    return _scale_free(derive(seed, "follows", "anybody"), popularity)


def _degrees(seed: int, settings: FollowSettings, count: int) -> Ints:
    """How many each person follows: whole numbers around the mean, at least 1 (unless the mean is less)."""
    mean, rows = min(settings.mean_degree, count - 1.0), np.arange(count)
    fewest = min(mean, max(_FEWEST * mean, 1.0, 2 * mean - (count - 1)))
    if settings.graph == "small-world":
        fewest = mean
    ranks = np.empty(count, dtype=np.float64)
    # Evenly spread over the people in an order of their own, so that the mean is what was asked for.
    ranks[np.argsort(hashes(derive(seed, "follows", "degree"), rows), kind="stable")] = (rows + 0.5) / count
    wanted = fewest + 2 * (mean - fewest) * ranks
    return np.floor(wanted + uniforms(derive(seed, "follows", "rounding"), rows)).astype(np.int64).clip(0, count - 1)


def _popularity(seed: int, count: int) -> Ints:
    """Running sums of heavy-tailed weights, one per person."""
    luck = 1.0 - uniforms(derive(seed, "follows", "popularity"), np.arange(count))
    return np.cumsum(np.rint(_WEIGHT_UNIT * luck**_POPULARITY).astype(np.int64))


def _scale_free(key: int, popularity: Ints) -> Draw:
    def draw(rows: Ints, slots: Ints, attempt: int) -> Ints:
        points = np.floor(uniforms(key, rows, slots, attempt) * popularity[-1]).astype(np.int64)
        targets: Ints = np.searchsorted(popularity, points, side="right")
        return targets

    return draw


def _small_world(seed: int, rewire: float, count: int) -> Draw:
    """A ring in which neighbours follow one another, except for links that go to anybody."""
    order = np.argsort(hashes(derive(seed, "follows", "ring"), np.arange(count)), kind="stable")
    places = np.empty(count, dtype=np.int64)
    places[order] = np.arange(count)
    coin, anybody = derive(seed, "follows", "rewire"), derive(seed, "follows", "anybody")

    def draw(rows: Ints, slots: Ints, attempt: int) -> Ints:
        steps = (slots // 2 + 1) * np.where(slots % 2 == 0, 1, -1)
        neighbours = order[(places[rows] + steps) % count]
        others = np.floor(uniforms(anybody, rows, slots, attempt) * count).astype(np.int64)
        rewired = (uniforms(coin, rows, slots) < rewire) | (attempt > 0)
        return np.where(rewired, others, neighbours)

    return draw


def _homophilous(seed: int, homophily: float, stances: NDArray[np.float32], popularity: Ints) -> Draw:
    """Mostly people whose stance is near one's own, the popular ones more often."""
    anybody = _scale_free(derive(seed, "follows", "anybody"), popularity)
    coin, similar = derive(seed, "follows", "homophily"), derive(seed, "follows", "similar")
    order = np.argsort(stances, kind="stable")
    ranked = stances[order]
    sums = np.concatenate([[0], np.cumsum(np.diff(popularity, prepend=0)[order])])

    def draw(rows: Ints, slots: Ints, attempt: int) -> Ints:
        mine = stances[rows]
        low = sums[np.searchsorted(ranked, mine - np.float32(_SIMILAR), side="left")]
        high = sums[np.searchsorted(ranked, mine + np.float32(_SIMILAR), side="right")]
        points = low + np.floor(uniforms(similar, rows, slots, attempt) * (high - low)).astype(np.int64)
        alike = order[np.searchsorted(sums, points, side="right") - 1]
        # Late attempts look anywhere, so that somebody with few of their kind ends up following enough people.
        stays = (uniforms(coin, rows, slots) < homophily) & (attempt < _ATTEMPTS // 2)
        return np.where(stays, alike, anybody(rows, slots, attempt))

    return draw


def _chunks(count: int, degrees: Ints, draw: Draw, extra: Ints) -> Iterator[Ints]:
    """Edges as row * count + target, sorted, some rows at a time."""
    step = max(1, int(_EDGES_PER_CHUNK // max(1.0, float(degrees.mean()))))
    for start in range(0, count, step):
        rows = np.arange(start, min(start + step, count))
        edges = _distinct_edges(rows, degrees[rows], draw, count)
        first, last = np.searchsorted(extra, [start * count, (start + len(rows)) * count])
        mine = extra[first:last]
        yield _merged(edges, mine[~_among(mine, edges)])


def _distinct_edges(rows: Ints, degrees: Ints, draw: Draw, count: int) -> Ints:
    """Draw, and draw again what hit oneself or somebody twice, until everybody has their number or attempts run out."""
    edges = late = np.empty(0, dtype=np.int64)
    missing = degrees
    for attempt in range(_ATTEMPTS):
        new = _attempted(rows, missing, draw, attempt, count)
        new = new[~_among(new, edges) & ~_among(new, late)]
        missing = missing - np.bincount(new // count - rows[0], minlength=len(rows))
        # Later attempts are small: they are kept apart, so that the bulk is sorted only once.
        edges, late = (new, late) if attempt == 0 else (edges, np.sort(np.concatenate([late, new])))
        if not missing.any():
            break
    edges = _merged(edges, late)
    return _completed(edges, rows, missing, count) if missing.any() and count <= _EXACT_UP_TO else edges


def _attempted(rows: Ints, missing: Ints, draw: Draw, attempt: int, count: int) -> Ints:
    """One edge for each that is missing, without those that cannot be used."""
    sources = np.repeat(rows, missing)
    slots = np.arange(len(sources)) - np.repeat(np.cumsum(missing) - missing, missing)
    targets = draw(sources, slots, attempt)
    return _unique((sources * count + targets)[sources != targets])


def _among(edges: Ints, known: Ints) -> NDArray[np.bool_]:
    if not len(known):
        return np.zeros(len(edges), dtype=bool)
    places = np.minimum(np.searchsorted(known, edges), len(known) - 1)
    return np.equal(known[places], edges)


def _unique(edges: Ints) -> Ints:
    edges = np.sort(edges)
    return edges[np.concatenate([[True], edges[1:] != edges[:-1]])] if len(edges) else edges


def _merged(edges: Ints, more: Ints) -> Ints:
    # A stable sort takes two sorted runs for what they are.
    return np.sort(np.concatenate([edges, more]), kind="stable") if len(more) else edges


def _completed(edges: Ints, rows: Ints, missing: Ints, count: int) -> Ints:
    """Give people who are still short of links the ones they lack, in an order of their own."""
    added = [edges]
    for row, lack in zip(rows[missing > 0].tolist(), missing[missing > 0].tolist(), strict=True):
        first, last = np.searchsorted(edges, [row * count, (row + 1) * count])
        free = np.setdiff1d(np.arange(count), [*(edges[first:last] % count).tolist(), row])
        order = np.argsort(hashes(row, free), kind="stable")
        added.append(row * count + free[order[:lack]])
    return np.sort(np.concatenate(added))


def _compressed(count: int, chunks: Iterator[Ints]) -> FollowGraph:
    parts: list[NDArray[np.int32]] = []
    degrees = np.zeros(count, dtype=np.int64)
    for edges in chunks:
        sources, targets = np.divmod(edges, count)
        if len(edges):
            degrees[sources[0] : sources[-1] + 1] += np.bincount(sources - sources[0])
        parts.append(targets.astype(np.int32))
    starts = np.concatenate([[0], np.cumsum(degrees)])
    return FollowGraph(starts=starts, targets=np.concatenate(parts))


def _listed_edges(scenario: Scenario, count: int) -> Ints:
    """Edges written by hand or in files, as row * count + target."""
    numbers = number_own_names(scenario.population)
    edges = [(_number(source, numbers), _number(target, numbers)) for source, target in scenario.follows.edges]
    for entry in scenario.population:
        if isinstance(entry, PersonEntry):
            edges += [(numbers[entry.name], numbers[name]) for name in entry.follows]
    by_hand = np.array([source * count + target for source, target in edges], dtype=np.int64)
    in_files = read_links(scenario.population, scenario.follows)
    return _unique(np.concatenate([by_hand, in_files.sources * count + in_files.targets]))


def _number(who: str | int, numbers: dict[str, int]) -> int:
    return numbers[who] if isinstance(who, str) else who
