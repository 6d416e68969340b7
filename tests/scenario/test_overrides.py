"""Changes to single values of a scenario: the option `--set`."""

from __future__ import annotations

import pytest

from shoal.errors import ScenarioInvalid
from shoal.scenario.declared.distributions import Beta, Normal
from shoal.scenario.declared.population import GroupEntry
from shoal.scenario.loading import override, parse


def test_values_are_changed_by_their_path() -> None:
    scenario = parse("population: {count: 5}", "f.yaml")
    changed = override(
        scenario,
        [
            "time.minutes_per_round=30",
            "population.0.count=50",
            "population.activity={beta: [1, 9]}",
            "population.age.normal.0=60",
            "worlds.reddit={}",
            "worlds.twitter.visibility=2",
            "follows=small-world",
            "events=[{post: 'a = b'}]",
            "mind.latency.median_ms=5",
            "topic=no",
        ],
    )
    group = changed.population[0]
    assert isinstance(group, GroupEntry)
    assert (changed.time.minutes_per_round, group.count, group.activity) == (30, 50, Beta(beta=(1, 9)))
    assert isinstance(group.age, Normal)
    assert group.age.normal == (60, 15)
    assert (list(changed.worlds), vars(changed.worlds["twitter"])["visibility"]) == (["twitter", "reddit"], 2)
    assert (changed.follows.graph, changed.topic, changed.events[0].world) == ("small-world", "no", None)
    assert scenario.time.minutes_per_round == 60


@pytest.mark.parametrize(
    ("assignment", "expected"),
    [
        ("rounds", "--set rounds: expected path=value, for example time.minutes_per_round=30"),
        ("rounds=x", "--set rounds=x: rounds: expected a whole number, found 'x'"),
        ("ronds=3", "--set ronds=3: ronds: unknown field 'ronds'; did you mean 'rounds'?"),
        ("tim.start=3", "--set tim.start=3: unknown field 'tim'; did you mean 'time'?"),
        (
            "population.cuont=3",
            "--set population.cuont=3: population.0.cuont: unknown field 'cuont'; did you mean 'count'?",
        ),
        (
            "population.1.count=3",
            "--set population.1.count=3: population is a list; expected a number (0 to 0), found '1'",
        ),
        ("rounds.x=3", "--set rounds.x=3: rounds is 24, there is nothing below it"),
        (
            "worlds.twiter.visibility=3",
            "--set worlds.twiter.visibility=3: unknown field 'twiter'; did you mean 'twitter'?",
        ),
    ],
)
def test_a_wrong_assignment_is_refused_with_the_nearest_word(assignment: str, expected: str) -> None:
    with pytest.raises(ScenarioInvalid) as caught:
        override(parse("population: {count: 5}", "f.yaml"), [assignment])
    assert caught.value.problems == [expected]


def test_all_wrong_assignments_are_reported_at_once() -> None:
    with pytest.raises(ScenarioInvalid) as caught:
        override(parse("population: {count: 5}", "f.yaml"), ["rounds=x", "seed", "follows=ring"])
    assert len(caught.value.problems) == 3


def test_the_only_entry_may_be_replaced_and_then_changed() -> None:
    changed = override(parse("population: {count: 5}", "f.yaml"), ["population={count: 7}", "population.count=9"])
    group = changed.population[0]
    assert isinstance(group, GroupEntry)
    assert group.count == 9
