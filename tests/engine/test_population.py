"""The state of the population after each round: figures, and rows for what changed."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.engine.population import PopulationState, StateRecorder, measure_polarisation
from shoal.worlds.figures import measure_inequality


@pytest.mark.parametrize(
    ("opinions", "expected"),
    [([1, -1], 1.0), ([0.5, -0.5], 0.5), ([1, 1, 1], 0.0), ([0, 0], 0.0), ([1, 1, 1, -1], 0.5)],
)
def test_polarisation_is_one_for_two_equal_camps_at_the_ends(opinions: list[float], expected: float) -> None:
    assert measure_polarisation(np.array(opinions, float)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("shares", "expected"), [([1, 1, 1, 1], 0.0), ([0, 0, 0, 1], 0.75), ([0, 0], 0.0), ([], 0.0), ([1, 3], 0.25)]
)
def test_inequality_is_the_gini_coefficient(shares: list[float], expected: float) -> None:
    assert measure_inequality(shares) == pytest.approx(expected)


def test_people_whose_opinion_is_not_known_count_in_no_figure() -> None:
    state = PopulationState(1, 3, {"topic": np.array([1.0, np.nan, 0.0])}, {"DO_NOTHING": 2, "TALK": 3})
    assert state.measure() == {
        ("activity", ""): 1.0,
        ("mean", "topic"): 0.5,
        ("spread", "topic"): 0.5,
        ("polarisation", "topic"): 0.0,
    }


def test_only_opinions_that_changed_make_rows() -> None:
    recorder = StateRecorder(2)

    def list_opinions(round: int, *values: float) -> list[tuple[object, ...]]:
        writes = recorder.record(round, {"topic": values}, {}, {})
        return [tuple(row) for statement, rows in writes.items() if "opinion_change" in statement for row in rows]

    assert list_opinions(0, 0.25, -1) == [(0, 0, "topic", 0.25), (0, 1, "topic", -1.0)]
    assert list_opinions(1, 0.25, -0.5) == [(1, 1, "topic", -0.5)]
    assert list_opinions(2, 0.25, -0.5) == []


def test_people_are_counted_in_each_part_of_the_scale() -> None:
    writes = StateRecorder(4).record(3, {"topic": (-1.0, 0.0, 0.02, 1.0)}, {}, {})
    (rows,) = [list(rows) for statement, rows in writes.items() if "opinion_count" in statement]
    assert rows == [(3, "topic", "[1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1]")]
