"""Simulated time, and who is awake when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest

from shoal.types import Happening
from shoal.worlds.base import BaseWorld
from shoal.worlds.clock import ActivationSampler, Clock, TimeSettings
from tests.worlds.context import Crowd, crowd, make_context

MIDNIGHT = datetime(2026, 3, 1, tzinfo=UTC)


def activity(people: Crowd, seed: int = 1, world: str = "twitter", **settings: Any) -> ActivationSampler:
    time = TimeSettings.model_validate({"start": MIDNIGHT, **settings})
    return ActivationSampler(time, Clock(time), people, seed, world)


def counts(who: ActivationSampler, rounds: range) -> list[int]:
    return [len(who.draw(round)) for round in rounds]


# Time


def test_rounds_0_and_1_share_the_start_and_each_further_round_is_later() -> None:
    clock = Clock(TimeSettings(minutes_per_round=90))
    assert [clock.stamp(round) for round in range(4)] == [
        "2026-01-01T08:00:00+00:00",
        "2026-01-01T08:00:00+00:00",
        "2026-01-01T09:30:00+00:00",
        "2026-01-01T11:00:00+00:00",
    ]


def test_timestamps_can_be_read_back() -> None:
    clock = Clock(TimeSettings(minutes_per_round=7))
    assert datetime.fromisoformat(clock.stamp(1000)) == clock.at(1000)


def test_the_hour_of_the_day_begins_where_the_start_is_and_wraps_at_midnight() -> None:
    clock = Clock(TimeSettings(start=MIDNIGHT.replace(hour=22)))
    assert [clock.hour(round) for round in (1, 2, 3, 4)] == [22, 23, 0, 1]


def test_a_start_without_offset_is_utc_and_one_with_an_offset_is_converted() -> None:
    naive = Clock(TimeSettings(start=datetime(2026, 3, 1, 8)))  # noqa: DTZ001
    east = Clock(TimeSettings(start=datetime(2026, 3, 1, 8, tzinfo=timezone(timedelta(hours=5, minutes=30)))))
    assert (naive.stamp(1), naive.hour(1)) == ("2026-03-01T08:00:00+00:00", 8)
    assert (east.stamp(1), east.hour(1)) == ("2026-03-01T02:30:00+00:00", 2)


def test_hours_gone_are_counted_at_the_end_of_a_round() -> None:
    clock = Clock(TimeSettings(minutes_per_round=30))
    assert [clock.hours_gone(round) for round in range(4)] == [0.0, 0.5, 1.0, 1.5]


def test_time_that_is_skipped_passes_before_its_round() -> None:
    clock = Clock(TimeSettings(minutes_per_round=60), [(3, 2 * 24 * 60)])
    assert [clock.stamp(round)[:13] for round in range(1, 5)] == [
        "2026-01-01T08", "2026-01-01T09", "2026-01-03T10", "2026-01-03T11",
    ]  # fmt: skip
    assert [clock.hours_gone(round) for round in range(5)] == [0.0, 1.0, 2.0, 51.0, 52.0]
    assert [clock.hour(round) for round in (2, 3)] == [9, 10]


def test_skips_add_up_in_whatever_order_they_are_given() -> None:
    one, other = [(4, 30), (2, 60), (2, 15)], [(2, 15), (4, 30), (2, 60)]
    clocks = [Clock(TimeSettings(minutes_per_round=60), skips) for skips in (one, other)]
    assert [clock.hours_gone(4) for clock in clocks] == [4 + 105 / 60] * 2
    assert clocks[0].stamp(2) == "2026-01-01T10:15:00+00:00"


def test_time_skipped_before_round_1_moves_round_1_and_not_what_was_before() -> None:
    clock = Clock(TimeSettings(), [(1, 24 * 60)])
    assert [clock.stamp(round)[:10] for round in (0, 1)] == ["2026-01-01", "2026-01-02"]


# Who may not act


def mute(*agents: int, rounds: int = 1) -> Happening:
    return Happening("mute", to=agents, args={"rounds": rounds})


def test_who_is_muted_takes_no_turns_from_that_round_on_for_so_many_rounds() -> None:
    world = BaseWorld("place", make_context(6))
    world.happen(3, mute(1, 4, rounds=2))
    assert world.turns(3) == world.turns(4) == [[0, 2, 3, 5]]
    assert world.turns(5) == [[0, 1, 2, 3, 4, 5]]


def test_being_muted_again_never_ends_it_sooner() -> None:
    world = BaseWorld("place", make_context(2))
    world.happen(1, mute(0, rounds=5))
    world.happen(2, mute(0))
    assert world.turns(5) == [[1]]
    assert world.turns(6) == [[0, 1]]


# Bands


@pytest.mark.parametrize(
    ("hour", "factor"), [(0, 0.05), (5, 0.05), (6, 0.4), (8, 0.4), (9, 0.7), (18, 0.7), (19, 1.5), (22, 1.5), (23, 1.0)]
)
def test_each_hour_is_as_lively_as_its_band(hour: int, factor: float) -> None:
    assert activity(crowd()).factor(hour) == factor


def test_where_bands_overlap_the_peak_counts_first() -> None:
    everything = tuple(range(24))
    who = activity(crowd(), peak_hours=(3,), off_peak_hours=(3, 4), morning_hours=(3, 4, 5), work_hours=everything)
    assert [who.factor(hour) for hour in (3, 4, 5, 6)] == [1.5, 0.05, 0.4, 0.7]


def test_without_daily_rhythm_every_hour_is_alike() -> None:
    who = activity(crowd(), daily_rhythm=False)
    assert {who.factor(hour) for hour in range(24)} == {1.0}


# Who acts


def test_an_agent_with_full_activity_always_acts() -> None:
    assert activity(crowd(5), daily_rhythm=False).draw(1).tolist() == [0, 1, 2, 3, 4]


def test_no_agent_acts_outside_its_hours() -> None:
    people = crowd(3)
    people.active_hours[:] = [1 << 0, 1 << 1, (1 << 0) | (1 << 23)]
    who = activity(people, daily_rhythm=False)
    assert [who.draw(round).tolist() for round in (1, 2, 3, 24, 25)] == [[0, 2], [1], [], [2], [0, 2]]


def test_people_act_as_often_as_their_activity_and_the_hour_say() -> None:
    people = crowd(400)
    people.activity[:200], people.activity[200:] = 0.2, 0.6
    who = activity(people, work_hours=tuple(range(12)), off_peak_hours=(), morning_hours=(), peak_hours=())
    acted = np.zeros((2, 400))
    for round in range(1, 481):
        acted[(round - 1) % 24 // 12, who.draw(round)] += 1
    working, free = acted / 240
    # 48,000 draws each: three standard deviations are below 0.007.
    assert working[:200].mean() == pytest.approx(0.2 * 0.7, abs=0.007)
    assert working[200:].mean() == pytest.approx(0.6 * 0.7, abs=0.007)
    assert free[:200].mean() == pytest.approx(0.2, abs=0.007)
    assert free[200:].mean() == pytest.approx(0.6, abs=0.007)


def test_who_acts_depends_on_seed_world_and_round_and_on_nothing_else() -> None:
    people = crowd(200)
    people.activity[:] = 0.5
    who = activity(people)
    first = [who.draw(round).tolist() for round in range(15, 20)]
    assert [activity(people).draw(round).tolist() for round in range(19, 14, -1)] == first[::-1]
    others = [activity(people, seed=2).draw(15), activity(people, world="reddit").draw(15), who.draw(16)]
    assert all(other.tolist() != first[0] for other in others)


def test_one_more_person_changes_nothing_for_the_others() -> None:
    fewer, more = crowd(100), crowd(101)
    fewer.activity[:], more.activity[:] = 0.5, 0.5
    for round in (1, 20):
        assert [a for a in activity(more).draw(round).tolist() if a < 100] == activity(fewer).draw(round).tolist()


# Quotas


def test_no_more_act_than_the_maximum_and_no_fewer_than_the_minimum() -> None:
    people = crowd(50)
    people.activity[:] = 0.5
    assert counts(activity(people, agents_per_hour_max=3), range(1, 25)).count(3) > 12
    assert set(counts(activity(people, agents_per_hour_min=30, agents_per_hour_max=30), range(1, 25))) == {30}


def test_the_minimum_wakes_no_agent_outside_its_hours() -> None:
    people = crowd(10)
    people.activity[:] = 0.001
    people.activity[3] = 0.0
    people.active_hours[4:] = 0
    assert activity(people, agents_per_hour_min=8).draw(1).tolist() == [0, 1, 2]


def test_who_is_chosen_within_the_quota_is_sorted_and_changes_from_round_to_round() -> None:
    who = activity(crowd(50), daily_rhythm=False, agents_per_hour_max=10)
    chosen = [who.draw(round).tolist() for round in range(1, 11)]
    assert all(agents == sorted(set(agents)) for agents in chosen)
    assert len({tuple(agents) for agents in chosen}) == 10


@pytest.mark.parametrize("minutes", [1, 7, 15, 20, 30, 45, 60, 90, 120, 1440])
@pytest.mark.parametrize("bound", ["agents_per_hour_min", "agents_per_hour_max"])
def test_hourly_bounds_hold_over_the_hours_whatever_a_round_stands_for(minutes: int, bound: str) -> None:
    people = crowd(200)
    people.activity[:] = 1.0 if bound == "agents_per_hour_max" else 1e-9
    who = activity(people, daily_rhythm=False, minutes_per_round=minutes, **dict[str, Any]({bound: 5}))
    acted = np.cumsum(counts(who, range(1, 121)))
    assert acted.tolist() == [5 * minutes * round // 60 for round in range(1, 121)]
