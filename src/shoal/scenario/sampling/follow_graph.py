"""Draws the follow graph at the start of a run.

People are processed in chunks of rows. What a row draws depends only on its own number, never on the chunk, and
popularity is counted in whole numbers, so that sums are exact on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from shoal.scenario.declared.follows import FollowSettings, GraphKind
from shoal.scenario.declared.population import FileEntry, GroupEntry, PersonEntry, number_own_names
from shoal.scenario.sampling.links import read_links
from shoal.scenario.sampling.people import People
from shoal.scenario.scenario import Scenario
from shoal.seeds import derive, hashes, uniforms
from shoal.types import FollowGraph

Ints = NDArray[np.int64]
#: Draws edges: (rows, slots, attempt) -> targets, one per row and slot.
Draw = Callable[[Ints, Ints, int], Ints]

_EDGES_PER_CHUNK = 1_000_000
#: How often edges are drawn again that hit the same person twice.
_ATTEMPTS = 12
#: In populations up to this size, edges that are missing after the last attempt are added one by one.
_MAX_PEOPLE_COMPLETED = 5_000
#: The fewest people that anybody follows, as a share of the mean; the most lies as far above the mean.
_FEWEST_SHARE = 0.25
#: Exponent of the popularity weights: in-degrees fall off with a power of about -2.5.
_POPULARITY_EXPONENT = -1 / 1.5
_WEIGHT_UNIT = 1000
#: The largest difference between stances of similar people.
_SIMILAR_STANCE = 0.2


def draw_follow_graph(scenario: Scenario, people: People) -> FollowGraph:
    """Draw the graph that the scenario asks for, and add the edges written by hand and in files."""
    seed, settings, count = scenario.seed, scenario.follows, len(people)
    # The edges written by hand and in files, as row * count + target.
    numbers = number_own_names(scenario.population)
    edges = [tuple(numbers[who] if isinstance(who, str) else who for who in edge) for edge in settings.edges]
    for entry in scenario.population:
        if isinstance(entry, PersonEntry):
            edges += [(numbers[entry.name], numbers[name]) for name in entry.follows]
    by_hand = np.array([source * count + target for source, target in edges], dtype=np.int64)
    in_files = read_links(scenario.population, settings)
    extra = _sort_distinct(np.concatenate([by_hand, in_files.sources * count + in_files.targets]))
    graph = choose_graph(scenario)
    if graph == "none" or settings.mean_degree == 0 or count == 1:
        return _compress(count, iter([extra]))
    if graph == "small-world":
        draw = _make_small_world(seed, settings.rewire, count)
    else:
        # Running sums of heavy-tailed weights, one per person.
        luck = 1.0 - uniforms(derive(seed, "follows", "popularity"), np.arange(count))
        popularity = np.cumsum(np.rint(_WEIGHT_UNIT * luck**_POPULARITY_EXPONENT).astype(np.int64))
        if graph == "homophilous":
            draw = _make_homophilous(seed, settings.homophily, people.stances, popularity)
        else:
            draw = _make_scale_free(derive(seed, "follows", "anybody"), popularity)
    return _compress(count, _draw_chunks(count, _draw_degrees(seed, settings, count), draw, extra))


def list_late_follows(scenario: Scenario, first: int) -> tuple[tuple[int, int], ...]:
    """List the declared edges of people that were added to the run later, with numbers from `first` on."""
    numbers = number_own_names(scenario.population)
    late = [entry for entry in scenario.population if isinstance(entry, PersonEntry) and numbers[entry.name] >= first]
    return tuple((numbers[entry.name], numbers[name]) for entry in late for name in dict.fromkeys(entry.follows))


def choose_graph(scenario: Scenario) -> GraphKind:
    """Return the graph that the scenario names. By default one is drawn for groups, but not beside lists in files."""
    follows = scenario.follows
    if follows.graph is not None:
        return follows.graph
    files = (entry.roster for entry in scenario.population if isinstance(entry, FileEntry))
    is_stated = follows.file is not None or any("follows" in roster.fields for roster in files)
    is_drawn = any(isinstance(entry, GroupEntry) for entry in scenario.population)
    return "scale-free" if is_drawn and not is_stated else "none"


def _draw_degrees(seed: int, settings: FollowSettings, count: int) -> Ints:
    """Draw how many others each person follows: whole numbers around the mean, at least 1 unless the mean is less."""
    mean, rows = min(settings.mean_degree, count - 1.0), np.arange(count)
    fewest = min(mean, max(_FEWEST_SHARE * mean, 1.0, 2 * mean - (count - 1)))
    if settings.graph == "small-world":
        fewest = mean
    ranks = np.empty(count, dtype=np.float64)
    # Evenly spread over the people in a random order, so that the mean comes out exactly.
    ranks[np.argsort(hashes(derive(seed, "follows", "degree"), rows), kind="stable")] = (rows + 0.5) / count
    wanted = fewest + 2 * (mean - fewest) * ranks
    return np.floor(wanted + uniforms(derive(seed, "follows", "rounding"), rows)).astype(np.int64).clip(0, count - 1)


def _make_scale_free(key: int, popularity: Ints) -> Draw:
    def draw(rows: Ints, slots: Ints, attempt: int) -> Ints:
        points = np.floor(uniforms(key, rows, slots, attempt) * popularity[-1]).astype(np.int64)
        targets: Ints = np.searchsorted(popularity, points, side="right")
        return targets

    return draw


def _make_small_world(seed: int, rewire: float, count: int) -> Draw:
    """Place people on a ring where neighbours follow one another; a share of the edges goes to anybody."""
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


def _make_homophilous(seed: int, homophily: float, stances: NDArray[np.float32], popularity: Ints) -> Draw:
    """Prefer people of a similar stance, the popular ones more often."""
    anybody = _make_scale_free(derive(seed, "follows", "anybody"), popularity)
    coin, similar = derive(seed, "follows", "homophily"), derive(seed, "follows", "similar")
    order = np.argsort(stances, kind="stable")
    ranked = stances[order]
    sums = np.concatenate([[0], np.cumsum(np.diff(popularity, prepend=0)[order])])

    def draw(rows: Ints, slots: Ints, attempt: int) -> Ints:
        mine = stances[rows]
        low = sums[np.searchsorted(ranked, mine - np.float32(_SIMILAR_STANCE), side="left")]
        high = sums[np.searchsorted(ranked, mine + np.float32(_SIMILAR_STANCE), side="right")]
        points = low + np.floor(uniforms(similar, rows, slots, attempt) * (high - low)).astype(np.int64)
        alike = order[np.searchsorted(sums, points, side="right") - 1]
        # Late attempts look anywhere, so that people with few similar ones still follow enough others.
        stays = (uniforms(coin, rows, slots) < homophily) & (attempt < _ATTEMPTS // 2)
        return np.where(stays, alike, anybody(rows, slots, attempt))

    return draw


def _draw_chunks(count: int, degrees: Ints, draw: Draw, extra: Ints) -> Iterator[Ints]:
    """Yield edges as row * count + target, sorted, some rows at a time."""
    step = max(1, int(_EDGES_PER_CHUNK // max(1.0, float(degrees.mean()))))
    for start in range(0, count, step):
        rows = np.arange(start, min(start + step, count))
        edges = _draw_distinct_edges(rows, degrees[rows], draw, count)
        first, last = np.searchsorted(extra, [start * count, (start + len(rows)) * count])
        mine = extra[first:last]
        yield _merge(edges, mine[~_find_known(mine, edges)])


def _draw_distinct_edges(rows: Ints, degrees: Ints, draw: Draw, count: int) -> Ints:
    """Draw edges, and draw again those that go to oneself or twice to one person, until none or no attempt is left."""
    edges = late = np.empty(0, dtype=np.int64)
    missing = degrees
    for attempt in range(_ATTEMPTS):
        sources = np.repeat(rows, missing)
        slots = np.arange(len(sources)) - np.repeat(np.cumsum(missing) - missing, missing)
        targets = draw(sources, slots, attempt)
        new = _sort_distinct((sources * count + targets)[sources != targets])
        new = new[~_find_known(new, edges) & ~_find_known(new, late)]
        missing = missing - np.bincount(new // count - rows[0], minlength=len(rows))
        # Later attempts are small: they are kept apart, so that the bulk is sorted only once.
        edges, late = (new, late) if attempt == 0 else (edges, np.sort(np.concatenate([late, new])))
        if not missing.any():
            break
    edges = _merge(edges, late)
    if not missing.any() or count > _MAX_PEOPLE_COMPLETED:
        return edges
    added = [edges]
    for row, lack in zip(rows[missing > 0].tolist(), missing[missing > 0].tolist(), strict=True):
        first, last = np.searchsorted(edges, [row * count, (row + 1) * count])
        free = np.setdiff1d(np.arange(count), [*(edges[first:last] % count).tolist(), row])
        order = np.argsort(hashes(row, free), kind="stable")
        added.append(row * count + free[order[:lack]])
    return np.sort(np.concatenate(added))


def _find_known(edges: Ints, known: Ints) -> NDArray[np.bool_]:
    """Mark the edges that are among the known ones, which are sorted."""
    if not len(known):
        return np.zeros(len(edges), dtype=bool)
    places = np.minimum(np.searchsorted(known, edges), len(known) - 1)
    return np.equal(known[places], edges)


def _sort_distinct(edges: Ints) -> Ints:
    edges = np.sort(edges)
    return edges[np.concatenate([[True], edges[1:] != edges[:-1]])] if len(edges) else edges


def _merge(edges: Ints, more: Ints) -> Ints:
    # A stable sort recognises two sorted runs.
    return np.sort(np.concatenate([edges, more]), kind="stable") if len(more) else edges


def _compress(count: int, chunks: Iterator[Ints]) -> FollowGraph:
    parts: list[NDArray[np.int32]] = []
    degrees = np.zeros(count, dtype=np.int64)
    for edges in chunks:
        sources, targets = np.divmod(edges, count)
        if len(edges):
            degrees[sources[0] : sources[-1] + 1] += np.bincount(sources - sources[0])
        parts.append(targets.astype(np.int32))
    starts = np.concatenate([[0], np.cumsum(degrees)])
    return FollowGraph(starts=starts, targets=np.concatenate(parts))
