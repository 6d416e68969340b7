"""Judging from measurements how many at once are best."""

from __future__ import annotations

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.runs.tuning.knee import (
    Knee,
    MeasuredLevel,
    find_knee,
    find_usable,
    has_turned,
    is_end_found,
    next_level,
)
from tests.runs.tuning.fake_servers import level, measure_all, queueing, refusing

caps = st.integers(1, 200)


def best(levels: list[MeasuredLevel], ended: str = "") -> Knee:
    found = find_knee(levels, ended)
    assert found is not None
    return found


def list_levels(levels: list[MeasuredLevel]) -> list[int]:
    return [each.at_once for each in levels]


# What to measure


def test_levels_double_and_then_close_in_on_the_knee() -> None:
    assert list_levels(measure_all(refusing(48))) == [1, 2, 4, 8, 16, 32, 64, 48, 56]
    assert list_levels(measure_all(queueing(12))) == [1, 2, 4, 8, 16, 32, 12, 10]


def test_no_level_is_above_what_was_asked_for() -> None:
    assert list_levels(measure_all(queueing(500), up_to=50)) == [1, 2, 4, 8, 16, 32, 50]
    assert list_levels(measure_all(queueing(500), up_to=1)) == [1]


def test_where_a_rate_is_the_limit_no_level_in_between_is_tried() -> None:
    levels = [level(1, 1.0), level(2, 2.0), level(4, 3.0, failures={"429 request_rate": 6})]
    assert next_level(levels, 64) is None
    assert "a rate" in best(levels).reason


@given(caps, st.sampled_from([refusing, queueing]))
def test_measuring_comes_to_an_end_and_measures_nothing_twice(cap: int, server: type) -> None:
    levels = list_levels(measure_all(server(cap)))
    assert len(set(levels)) == len(levels) <= 12


# Why to stop


def test_it_turns_where_more_bring_hardly_more() -> None:
    assert has_turned([level(8, 8.0), level(16, 9.0)])
    assert not has_turned([level(8, 8.0), level(16, 9.5)])


def test_a_smaller_step_need_not_bring_as_much() -> None:
    assert not has_turned([level(8, 8.0), level(10, 8.5)])


def test_it_turns_where_answers_take_many_times_as_long() -> None:
    assert has_turned([level(8, 8.0), level(16, 16.0, p50=9.0)])


def test_it_turns_where_more_fails_and_not_where_one_call_does() -> None:
    assert has_turned([level(8, 8.0), level(16, 16.0, failures={"503 overload": 6})])
    assert not has_turned([level(8, 8.0), level(16, 16.0, failures={"503 overload": 1})])
    assert not has_turned([level(1, 1.0), level(2, 2.0, failures={"500 transient": 1}, tried=10)])


def test_what_fails_with_one_at_a_time_does_not_fail_for_being_too_many() -> None:
    levels = measure_all(refusing(48, usual_failures=0.1))
    assert best(levels).at_once == 48


def test_nothing_is_recommended_where_not_even_one_at_a_time_works() -> None:
    levels = [level(1, 1.0, tried=9, failures={"500 transient": 4})]
    assert has_turned(levels)
    assert next_level(levels, 64) is None
    assert find_knee(levels) is None
    assert find_knee([]) is None


# The knee


@given(caps)
def test_of_a_server_that_refuses_the_knee_is_within_a_fifth_of_its_cap_and_never_above(cap: int) -> None:
    found = best(measure_all(refusing(cap))).at_once
    assert 0.75 * cap <= found
    assert next(each for each in measure_all(refusing(cap)) if each.at_once == found).failed_share < 0.03


@given(caps)
def test_of_a_server_that_queues_the_knee_does_nearly_all_with_little_waiting(cap: int) -> None:
    found = best(measure_all(queueing(cap))).at_once
    assert min(found, cap) >= 0.9 * cap
    assert found <= ceil(1.3 * cap) + 1


@given(st.integers(4, 100), st.lists(st.floats(0.95, 1.05), min_size=16, max_size=16))
def test_noise_costs_little(cap: int, noise: list[float]) -> None:
    drawn = iter(noise)
    exact = queueing(cap)
    levels = measure_all(
        lambda at_once: level(at_once, exact(at_once).per_second * next(drawn), p50=exact(at_once).p50)
    )
    assert exact(best(levels).at_once).per_second >= 0.8 * cap


def test_a_level_that_failed_by_bad_luck_does_not_hide_a_higher_one_that_did_not() -> None:
    levels = [level(1, 1.0), level(2, 2.0, failures={"500 transient": 3}), level(4, 4.0)]
    assert [each.at_once for each in find_usable(levels)] == [1, 4]
    assert best(levels).at_once == 4


# In words


def test_the_reason_says_what_happens_beyond() -> None:
    assert (
        best(measure_all(refusing(48))).reason == "beyond 48 the server refuses: 14% of calls at 56 (429 concurrency)"
    )
    flat = best(measure_all(queueing(12))).reason
    assert flat.startswith("beyond 12 nothing is gained: 32 at once do 100% as much")
    assert "2.7 times as long" in flat


def test_failures_that_are_no_refusals_are_not_called_so() -> None:
    levels = [level(1, 1.0), level(2, 2.0), level(4, 3.0, failures={"timeout": 8})]
    assert best(levels).reason == "beyond 2 more fails: 40% of calls at 4 (timeout)"


def test_where_more_might_have_been_better_that_is_said() -> None:
    levels = measure_all(queueing(100), up_to=16)
    assert not is_end_found(levels)
    assert best(levels, "--up-to is 16").reason == (
        "16 is the most that was measured (--up-to is 16), and it still brought more: there may be room"
    )


def test_figures_are_rounded_and_what_was_not_measured_is_left_out() -> None:
    plain = level(3, 1.23456789, failures={"timeout": 1}, tried=4).as_dict()
    assert (plain["per_second"], plain["failed"], plain["failed_share"]) == (1.235, 1, 0.25)
    assert "cpu" not in plain


@pytest.mark.parametrize("count", [0, 1])
def test_without_calls_no_share_is_made_up(count: int) -> None:
    assert level(1, 0.0, tried=0, failures={"timeout": count} if count else {}).failed_share == 0.0
