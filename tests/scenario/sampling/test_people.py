"""Habits of people: columns that exist only if at least one person states them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shoal.errors import ScenarioInvalid
from shoal.scenario.loading import validate
from shoal.scenario.sampling.sampler import sample
from shoal.types import Habits


def sample_habits(*people: dict[str, Any]) -> Habits:
    entries = [{"name": f"Person {number}", **fields} for number, fields in enumerate(people)]
    return sample(validate({"population": [*entries, {"count": 2}]})).habits


def test_habits_that_no_person_states_have_no_columns() -> None:
    assert sample_habits({}, {"influence": 1, "sentiment": 0}) == Habits()


def test_people_who_do_not_state_a_habit_have_the_usual_value() -> None:
    found = sample_habits({"influence": 2, "sentiment": -0.5, "posts_per_hour": 0, "response_delay": [5, 60]}, {})
    assert found.influence is not None
    assert found.influence.tolist() == [2, 1, 1, 1]
    assert found.sentiment is not None
    assert found.sentiment.tolist() == [-0.5, 0, 0, 0]
    assert found.posts_per_hour is not None
    assert found.posts_per_hour[0] == 0
    assert np.isnan(found.posts_per_hour[1:]).all()
    assert found.comments_per_hour is None
    assert found.response_delay is not None
    assert found.response_delay.tolist() == [[5, 60], [0, 0], [0, 0], [0, 0]]


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("influence", -1, "must be at least 0"),
        ("influence", 101, "must be at most 100"),
        ("sentiment", 2, "must be at most 1"),
        ("posts_per_hour", "many", "expected a number"),
        ("comments_per_hour", -0.5, "must be at least 0"),
        ("response_delay", [60, 5], "expected the least first"),
        ("response_delay", [1], "population.0.response_delay"),
    ],
)
def test_an_impossible_habit_is_refused(field: str, value: Any, problem: str) -> None:
    with pytest.raises(ScenarioInvalid, match=problem):
        sample_habits({field: value})


def test_a_file_of_people_can_state_habits(tmp_path: Path) -> None:
    rows = ["name,influence_weight,posts_per_hour,response_delay", "Ada,2.5,,", 'Ben,,0.5,"5,60"']
    (tmp_path / "people.csv").write_text("\n".join(rows))
    scenario = validate({"population": [{"name": "Cid"}, {"file": "people.csv"}]}, folder=tmp_path)
    people = sample(scenario)
    assert people.habits.influence is not None
    assert people.habits.influence.tolist() == [1, 2.5, 1]
    assert people[2].traits["response_delay"] == [5, 60]


def test_a_persona_lists_only_unusual_habits() -> None:
    entries = [{"name": "Ada", "sentiment": -0.3, "posts_per_hour": 0.2}, {"name": "Ben", "influence": 1}]
    people = sample(validate({"population": entries}))
    assert people[0].traits == {"sentiment": -0.3, "posts_per_hour": 0.2}
    assert people[1].traits == {}
