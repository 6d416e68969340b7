"""Who follows whom: degrees, tails, camps, and graphs too small to hold what was asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from shoal.scenario.loading import parse, validate
from shoal.scenario.sampling.follow_graph import choose_graph, draw_follow_graph
from shoal.scenario.sampling.people import People
from shoal.scenario.sampling.sampler import sample
from shoal.types import FollowGraph

GENERATED = ["scale-free", "small-world", "homophilous"]


def draw(text: str) -> tuple[FollowGraph, People]:
    scenario = parse(text, "f.yaml")
    people = sample(scenario)
    return draw_follow_graph(scenario, people), people


def draw_kind(kind: str, count: int, degree: float, more: str = "") -> FollowGraph:
    return draw(f"{{population: {{count: {count}}}, follows: {{graph: {kind}, mean_degree: {degree}{more}}}}}")[0]


def list_rows(found: FollowGraph) -> list[list[int]]:
    return [part.tolist() for part in np.split(found.targets, found.starts[1:-1])]


@pytest.mark.parametrize(
    ("follows", "graph"),
    [
        ("", "none"),
        (", follows: {edges: [[Ada, Bo]]}", "none"),
        (", follows: small-world", "small-world"),
        (", follows: {mean_degree: 1}", "scale-free"),
    ],
)
def test_people_who_are_described_follow_only_whom_the_scenario_says(follows: str, graph: str) -> None:
    scenario = parse(f"{{population: [{{name: Ada}}, {{name: Bo, follows: [Ada]}}, {{name: Cy}}]{follows}}}", "f.yaml")
    assert choose_graph(scenario) == graph
    if graph == "none":
        stated = [[1], [0], []] if follows else [[], [0], []]
        assert list_rows(draw_follow_graph(scenario, sample(scenario))) == stated


def test_a_graph_is_drawn_where_people_are_drawn(tmp_path: Path) -> None:
    assert choose_graph(parse("{population: [{name: Ada}, {count: 3}]}", "f.yaml")) == "scale-free"
    (tmp_path / "edges.csv").write_text("from,to\n1,0\n")
    with_file = {"population": {"count": 3}, "follows": {"file": str(tmp_path / "edges.csv")}}
    assert choose_graph(validate(with_file)) == "none"


@pytest.mark.parametrize("kind", GENERATED)
@pytest.mark.parametrize("degree", [1, 2.5, 8, 40])
def test_the_mean_degree_is_the_requested_one(kind: str, degree: float) -> None:
    found = draw_kind(kind, 2000, degree)
    assert found.edges / 2000 == pytest.approx(degree, rel=0.03)
    assert np.diff(found.starts).min() >= 1


@pytest.mark.parametrize("kind", GENERATED)
@pytest.mark.parametrize(("count", "degree"), [(1, 8), (2, 8), (3, 1), (5, 100), (60, 8), (300, 290), (1000, 0.3)])
def test_rows_are_sorted_without_repeats_and_without_self_loops(kind: str, count: int, degree: float) -> None:
    found = draw_kind(kind, count, degree)
    assert (found.starts.dtype.name, found.targets.dtype.name) == ("int64", "int32")
    assert (len(found.starts), found.starts[0], found.starts[-1]) == (count + 1, 0, len(found.targets))
    for agent, row in enumerate(list_rows(found)):
        assert row == sorted(set(row) - {agent})
        assert all(0 <= target < count for target in row)


@pytest.mark.parametrize("kind", GENERATED)
def test_a_small_graph_can_be_complete(kind: str) -> None:
    assert draw_kind(kind, 5, 100).edges == 20


@pytest.mark.parametrize("kind", GENERATED)
def test_the_same_seed_gives_the_same_graph(kind: str) -> None:
    first, again, other = (draw(f"{{seed: {s}, population: {{count: 300}}, follows: {kind}}}")[0] for s in (1, 1, 2))
    assert np.array_equal(first.targets, again.targets)
    assert np.array_equal(first.starts, again.starts)
    assert not np.array_equal(first.targets, other.targets)


def test_a_scale_free_graph_has_a_few_people_with_very_many_followers() -> None:
    followers = np.sort(np.bincount(draw_kind("scale-free", 20_000, 10).targets, minlength=20_000))[::-1]
    assert followers[0] > 50 * np.median(followers)
    assert followers[:200].sum() > 0.12 * followers.sum()
    tail = followers[20:2000]
    slope = np.polyfit(np.log(np.arange(21, 2001)), np.log(tail), 1)[0]
    assert slope == pytest.approx(-1 / 1.5, abs=0.1)


def test_out_degrees_of_a_scale_free_graph_vary_moderately() -> None:
    degrees = np.diff(draw_kind("scale-free", 5000, 12).starts)
    assert (degrees.min(), degrees.max()) == (3, 21)


def test_a_small_world_is_clustered() -> None:
    ring, mixed = draw_kind("small-world", 1000, 8, ", rewire: 0"), draw_kind("small-world", 1000, 8, ", rewire: 1")
    assert measure_clustering(ring) == pytest.approx(9 / 14, abs=0.01)
    assert measure_clustering(mixed) < 0.05
    assert set(np.bincount(ring.targets).tolist()) == {8}


def measure_clustering(found: FollowGraph) -> float:
    """The share of pairs among those somebody follows of which one follows the other."""
    follows = [set(row) for row in list_rows(found)]
    pairs = [(a, b) for row in follows[:200] for a in row for b in row if a != b]
    return sum(b in follows[a] for a, b in pairs) / len(pairs)


def test_homophily_sets_the_share_of_edges_within_a_camp() -> None:
    shares = []
    for homophily in (0, 0.9):
        found, people = draw(
            "{population: [{count: 1000, stance: 0.8}, {count: 1000, stance: -0.8}],"
            f" follows: {{graph: homophilous, homophily: {homophily}, mean_degree: 10}}}}"
        )
        sources = np.repeat(np.arange(2000), np.diff(found.starts))
        shares.append(float((people.stances[sources] == people.stances[found.targets]).mean()))
    assert shares[0] == pytest.approx(0.5, abs=0.06)
    assert shares[1] == pytest.approx(0.95, abs=0.03)


def test_a_person_with_a_unique_stance_still_follows_others() -> None:
    found, _ = draw(
        "{population: [{name: Odd, stance: 1}, {count: 500, stance: -0.9}],"
        " follows: {graph: homophilous, homophily: 1, mean_degree: 20}}"
    )
    assert found.starts[1] >= 5


def test_listed_edges_are_added_to_every_graph() -> None:
    found, _ = draw(
        "{population: [{name: Ann, follows: [Bo]}, {name: Bo}, {count: 8}],"
        " follows: {graph: none, edges: [[Bo, Ann], [9, 2], [9, Ann]]}}"
    )
    assert list_rows(found) == [[1], [0], [], [], [], [], [], [], [], [0, 2]]


def test_listed_edges_that_are_also_drawn_are_not_repeated() -> None:
    found, _ = draw("{population: [{name: Ann, follows: [Bo]}, {name: Bo}], follows: {edges: [[1, 0]]}}")
    assert list_rows(found) == [[1], [0]]


def test_without_a_graph_there_are_no_edges() -> None:
    found, _ = draw("{population: {count: 4}, follows: none}")
    assert (found.edges, found.starts.tolist()) == (0, [0] * 5)
