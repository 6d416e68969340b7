"""Where the people of a network are drawn, and which of them belong together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.runs.network.communities import find_communities
from shoal.runs.network.layout import arrange
from shoal.seeds import derive, uniforms


def draw_camps(people: int, camps: int, inside: float, across: float) -> NDArray[np.int32]:
    """Draw ties that are likely inside of camps, and less likely across."""
    one, other = np.triu_indices(people, 1)
    chance = np.where(one % camps == other % camps, inside, across)
    drawn = uniforms(derive(1, "ties"), one, other) < chance
    return np.stack([one[drawn], other[drawn]], axis=1).astype(np.int32)


def test_camps_are_found_and_lie_apart() -> None:
    edges = draw_camps(120, 3, 0.3, 0.01)
    communities = find_communities(120, edges)
    assert [len(set(communities[camp::3].tolist())) for camp in range(3)] == [1, 1, 1]
    assert len(set(communities.tolist())) == 3
    places = arrange(120, edges, communities, np.full(120, np.nan))
    centres = [places[camp::3].mean(axis=0) for camp in range(3)]
    spread = max(float(places[camp::3].std(axis=0).max()) for camp in range(3))
    assert min(float(np.hypot(*(centres[one] - centres[one - 1]))) for one in range(3)) > 1.5 * spread


def test_ties_drawn_by_chance_are_no_communities() -> None:
    for people, chance in ((60, 0.1), (200, 0.05), (500, 0.02)):
        assert find_communities(people, draw_camps(people, 2, chance, chance)).max() == 0


def test_the_same_network_is_drawn_the_same_and_inside_of_the_square() -> None:
    edges = draw_camps(80, 2, 0.2, 0.05)
    communities = find_communities(80, edges)
    places = arrange(80, edges, communities, np.linspace(-1, 1, 80))
    assert np.array_equal(places, arrange(80, edges, communities, np.linspace(-1, 1, 80)))
    assert 0 <= places.min() < 0.05
    assert 0.95 < places.max() <= 1


def test_people_against_something_are_at_the_left() -> None:
    edges = draw_camps(100, 2, 0.3, 0.02)
    leans = np.where(np.arange(100) % 2, 0.8, -0.8)
    places = arrange(100, edges, find_communities(100, edges), leans)
    assert places[leans < 0, 0].mean() < 0.4 < 0.6 < places[leans > 0, 0].mean()


def test_people_do_not_lie_on_one_another() -> None:
    edges = draw_camps(400, 4, 0.2, 0.01)
    places = arrange(400, edges, find_communities(400, edges), np.full(400, np.nan))
    apart = np.hypot(*(places[:, None, :] - places[None, :, :]).transpose(2, 0, 1))
    np.fill_diagonal(apart, 1.0)
    # A grid of 400 people would leave 0.05.
    assert np.quantile(apart.min(axis=1), 0.05) > 0.01


def test_people_without_ties_are_drawn_too() -> None:
    none = np.zeros((0, 2), np.int32)
    assert arrange(0, none, np.zeros(0, np.int32), np.zeros(0)).shape == (0, 2)
    assert arrange(1, none, np.zeros(1, np.int32), np.zeros(1)).tolist() == [[0.5, 0.5]]
    places = arrange(30, none, find_communities(30, none), np.zeros(30))
    assert np.isfinite(places).all()
    assert len(np.unique(places.round(3), axis=0)) == 30
