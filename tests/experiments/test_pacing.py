"""How many simulations side by side, and at which hours."""

from __future__ import annotations

from datetime import datetime

import pytest

from shoal.errors import ArgumentInvalid
from shoal.experiments.pacing import DailyWindow, SimulationLimit
from shoal.machine import Alarm, Pressure, Throttle


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-03-02T{text}")


def test_more_than_a_tenth_of_failures_halve_the_number_and_say_so() -> None:
    limit = SimulationLimit(8)
    notes = [limit.add(failed) for failed in [False] * 8 + [True] * 2]
    assert limit.now == 4
    assert notes[:-1] == [None] * 9
    assert notes[-1] == "20% of the last 10 simulations failed (more than 10%), so 4 instead of 8 run side by side"


def test_a_tenth_of_failures_changes_nothing() -> None:
    limit = SimulationLimit(8)
    assert [limit.add(number % 10 == 9) for number in range(100)] == [None] * 100
    assert limit.now == 8


def test_one_simulation_is_always_allowed() -> None:
    limit = SimulationLimit(3)
    for _ in range(100):
        limit.add(True)
    assert limit.now == 1


def test_a_busy_cpu_lowers_the_number_but_not_below_the_cores() -> None:
    limit, busy = SimulationLimit(16, cores=2), Alarm.on(Pressure.CPU, 0.95)
    began = limit.heed(Throttle(alarms=(busy,), began=(busy,), factor=0.5))
    assert (limit.now, limit.has_room(7), limit.has_room(8)) == (8, True, False)
    assert (limit.heed(Throttle(alarms=(busy,), factor=0.1)), limit.now) == ([], 2)
    ended = limit.heed(Throttle(ended=(busy,)))
    assert limit.now == 16
    assert ["fewer" in began[0], "more" in ended[0]] == [True, True]


def test_as_many_simulations_as_cores_may_keep_them_busy() -> None:
    limit, busy = SimulationLimit(2, cores=4), Alarm.on(Pressure.CPU, 0.95)
    assert (limit.heed(Throttle(alarms=(busy,), began=(busy,), factor=0.5)), limit.now) == ([], 2)


def test_without_memory_nothing_starts_beside_what_runs() -> None:
    limit = SimulationLimit(4)
    assert limit.heed(Throttle(may_start=False)) == [
        "memory is short, so no further simulation starts until it is free"
    ]
    assert (limit.has_room(1), limit.has_room(0)) == (False, True)
    assert limit.heed(Throttle()) == []
    assert limit.has_room(3)


def test_failures_and_load_together_allow_the_smaller_number() -> None:
    limit = SimulationLimit(8)
    for _ in range(10):
        limit.add(True)
    limit.heed(Throttle(factor=0.75))
    assert limit.now == 4
    limit.heed(Throttle(factor=0.25))
    assert limit.now == 2


def test_the_number_rises_again_one_by_one_and_not_above_the_most() -> None:
    limit = SimulationLimit(4)
    for _ in range(10):
        limit.add(True)
    assert limit.now == 2
    notes = [note for _ in range(100) if (note := limit.add(False))]
    assert limit.now == 4
    assert notes == [f"few simulations fail now, so {n} instead of {n - 1} run side by side" for n in (3, 4)]


@pytest.mark.parametrize(
    ("hours", "now", "is_open", "seconds"),
    [
        ("22:00-06:00", "23:30:00", True, 6.5 * 3600),
        ("22:00-06:00", "05:59:00", True, 60),
        ("22:00-06:00", "06:00:00", False, 16 * 3600),
        ("22:00-06:00", "21:59:59", False, 1),
        ("9:00-17:00", "09:00:00", True, 8 * 3600),
        ("9:00-17:00", "17:00:00", False, 16 * 3600),
        ("9:00-17:00", "08:00:00", False, 3600),
    ],
)
def test_hours_may_go_past_midnight(hours: str, now: str, is_open: bool, seconds: float) -> None:
    window = DailyWindow.parse(hours)
    assert (window.is_open(at(now)), window.seconds_until_change(at(now))) == (is_open, seconds)


@pytest.mark.parametrize("text", ["", "22-06", "25:00-06:00", "22:00-06:60", "22:00", "06:00-06:00"])
def test_hours_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ArgumentInvalid) as error:
        DailyWindow.parse(text)
    assert error.value.argument == "between"
