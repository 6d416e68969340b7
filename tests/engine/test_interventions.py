"""What becomes due when: what is scheduled, and what interventions do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from shoal.engine.facts import Facts
from shoal.engine.interventions import Rule, Schedule
from shoal.types import Happening

NEWS = Happening("broadcast", "news")
POST = Happening("post", "hello", 0)


def always(facts: Facts) -> bool:
    return True


def rule(condition: Callable[[Facts], bool] = always, key: str = "rule", **more: Any) -> Rule:
    return Rule(key, f"the {key}", condition, (NEWS,), **more)


def fired(schedule: Schedule, rounds: int) -> list[int]:
    """The rounds in which a rule acts, each of which then passes without anything being done."""
    found = []
    for round in range(rounds + 1):
        if any(happening.kind == "intervention" for happening in schedule.due(round)):
            found.append(round)
        schedule.add_round(round, float(round), [], Counter())
    return found


def test_what_is_scheduled_is_due_once_in_its_round_and_in_the_order_of_the_list() -> None:
    schedule = Schedule([(3, NEWS), (1, POST), (3, POST)])
    assert [schedule.due(round) for round in range(5)] == [[], [POST], [], [NEWS, POST], []]
    assert schedule.due(3) == []


def test_an_intervention_is_announced_before_what_it_does_and_after_what_is_scheduled() -> None:
    schedule = Schedule([(1, POST)], [rule()])
    assert schedule.due(0) == []
    assert schedule.due(1) == [POST, Happening("intervention", "the rule"), NEWS]


def test_nothing_is_watched_where_there_are_no_interventions() -> None:
    assert not Schedule([(1, POST)]).watches
    assert Schedule([], [rule()]).watches


def test_an_intervention_happens_in_the_round_after_its_condition_came_true() -> None:
    assert fired(Schedule([], [rule(lambda facts: facts.round >= 3)]), 8) == [4]


def test_an_intervention_never_happens_before_the_first_round() -> None:
    assert fired(Schedule([], [rule()]), 3) == [1]


def test_times_says_how_often_and_pause_for_how_many_rounds_not_again() -> None:
    assert fired(Schedule([], [rule(times=3)]), 8) == [1, 2, 3]
    assert fired(Schedule([], [rule(times=3, pause=2)]), 8) == [1, 4, 7]
    assert fired(Schedule([], [rule(times=99, pause=3)]), 8) == [1, 5]


def test_an_intervention_is_in_force_from_one_round_until_before_another() -> None:
    assert fired(Schedule([], [rule(times=99, since=3, until=6)]), 8) == [3, 4, 5]
    assert fired(Schedule([], [rule(times=99, since=3)]), 5) == [3, 4, 5]


def test_an_intervention_that_stays_when_a_fork_changes_others_does_not_start_counting_again() -> None:
    rules = [rule(times=2, pause=1, until=2), rule(times=2, pause=1, since=2), rule(key="new", since=2)]
    assert fired(Schedule([], rules), 8) == [1, 2, 3]
    schedule = Schedule([], rules)
    said = [[happening.content for happening in schedule.due(round)] for round in range(5)]
    assert said == [[], ["the rule", "news"], ["the new", "news"], ["the rule", "news"], []]


def test_interventions_happen_in_the_order_in_which_they_are_declared() -> None:
    schedule = Schedule([], [rule(key="b"), rule(key="a")])
    assert [happening.content for happening in schedule.due(1)] == ["the b", "news", "the a", "news"]
