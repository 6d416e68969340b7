"""When a run does less at once, and when it does more again."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.machine.pressure import THRESHOLDS, Failures, LoadMonitor, Pressure, Throttle
from shoal.machine.sampling import Sample

CALM = {"cpu": 0.5, "memory": 0.5, "failed": 0.01}


def update(monitor: LoadMonitor, at: float, **shares: float | None) -> Throttle:
    given = {**CALM, **shares}
    return monitor.update(Sample(at, given["cpu"], given["memory"]), given["failed"])


def update_over(monitor: LoadMonitor, seconds: Iterable[int], **shares: float | None) -> list[Throttle]:
    """A sample for each second."""
    return [update(monitor, float(at), **shares) for at in seconds]


def alarm_kinds(throttle: Throttle) -> list[Pressure]:
    return [each.kind for each in throttle.alarms]


def test_the_thresholds_are_those_of_the_guide() -> None:
    assert {kind: threshold.above for kind, threshold in THRESHOLDS.items()} == {
        Pressure.CPU: 0.90,
        Pressure.MEMORY: 0.85,
        Pressure.FAILURES: 0.10,
    }


def test_a_calm_run_is_left_alone() -> None:
    assert set(update_over(LoadMonitor(), range(100))) == {Throttle()}


@pytest.mark.parametrize("shares", [{"cpu": 0.9}, {"memory": 0.85}, {"failed": 0.1}])
def test_exactly_at_a_threshold_nothing_is_wrong(shares: dict[str, float]) -> None:
    assert set(update_over(LoadMonitor(), range(100), **shares)) == {Throttle()}


@pytest.mark.parametrize(
    ("shares", "kind", "after"),
    [
        ({"cpu": 0.95}, Pressure.CPU, 10),
        ({"memory": 0.9}, Pressure.MEMORY, 2),
        ({"failed": 0.2}, Pressure.FAILURES, 0),
    ],
)
def test_a_warning_begins_once_when_it_has_lasted(shares: dict[str, float], kind: Pressure, after: int) -> None:
    throttles = update_over(LoadMonitor(), range(30), **shares)
    assert [number for number, throttle in enumerate(throttles) if throttle.began] == [after]
    assert [each.kind for each in throttles[after].began] == [kind]
    assert alarm_kinds(throttles[-1]) == [kind]
    assert {throttle.factor for throttle in throttles[:after]} <= {1.0}
    assert throttles[after].factor == 0.8


def test_a_peak_of_a_moment_is_no_reason() -> None:
    monitor = LoadMonitor()
    for at in range(0, 100, 10):
        update_over(monitor, range(at, at + 8), cpu=1.0)
        throttle = update(monitor, at + 9.0)
        assert throttle == Throttle()


def test_a_warning_ends_once_when_it_is_calm_again_for_a_while() -> None:
    monitor = LoadMonitor()
    update_over(monitor, range(20), cpu=0.95)
    throttles = update_over(monitor, range(20, 60))
    ended = [number for number, throttle in enumerate(throttles) if throttle.ended]
    assert ended == [10]
    assert throttles[10].ended[0].text == "the CPU is below 80% again"
    assert alarm_kinds(throttles[10]) == []


def test_between_the_thresholds_a_warning_stays_and_nothing_is_lowered_further() -> None:
    monitor = LoadMonitor()
    begun = update_over(monitor, range(12), cpu=0.95)[-1]
    between = update_over(monitor, range(12, 200), cpu=0.85)
    assert {tuple(alarm_kinds(throttle)) for throttle in between} == {(Pressure.CPU,)}
    assert {throttle.factor for throttle in between} == {begun.factor}


def test_values_around_a_threshold_do_not_flicker() -> None:
    monitor = LoadMonitor()
    update_over(monitor, range(20), memory=0.9)
    throttles = [update(monitor, float(at), memory=0.84 if at % 2 else 0.86) for at in range(20, 120)]
    assert not any(throttle.began or throttle.ended for throttle in throttles)


def test_the_factor_is_lowered_in_steps_down_to_a_floor() -> None:
    factors = [throttle.factor for throttle in update_over(LoadMonitor(), range(120), failed=0.5)]
    assert factors[:6] == pytest.approx([0.8, 0.8, 0.8, 0.8, 0.8, 0.64])
    assert factors[-1] == THRESHOLDS[Pressure.FAILURES].least
    assert factors == sorted(factors, reverse=True)


def test_when_it_is_over_the_factor_is_raised_step_by_step_to_all() -> None:
    monitor = LoadMonitor()
    update_over(monitor, range(60), memory=0.95)
    factors = [throttle.factor for throttle in update_over(monitor, range(60, 400))]
    assert factors == sorted(factors)
    assert factors[9] == THRESHOLDS[Pressure.MEMORY].least
    assert 0.2 < factors[60] < 1
    assert factors[-1] == 1


def test_failures_that_nothing_helps_against_do_not_hold_a_run_back_for_ever() -> None:
    """Seven calls in a hundred fail, however few there are; during an outage, all."""
    monitor = LoadMonitor()
    update_over(monitor, range(30), failed=1.0)
    assert update_over(monitor, range(30, 200), failed=0.07)[-1] == Throttle()


def test_nothing_is_raised_while_anything_is_strained() -> None:
    monitor = LoadMonitor()
    update_over(monitor, range(20), failed=0.5, memory=0.9)
    throttles = update_over(monitor, range(20, 100), memory=0.83)
    assert alarm_kinds(throttles[-1]) == [Pressure.MEMORY]
    assert throttles[-1].factor == throttles[0].factor


def test_no_simulation_is_started_while_memory_is_short() -> None:
    monitor = LoadMonitor()
    assert not update(monitor, 0.0, memory=0.86).may_start
    update_over(monitor, range(1, 10), memory=0.9)
    assert not update(monitor, 10.0, memory=0.83).may_start
    assert update_over(monitor, range(11, 30))[-1].may_start


def test_a_busy_cpu_does_not_forbid_to_start() -> None:
    assert all(throttle.may_start for throttle in update_over(LoadMonitor(), range(30), cpu=1.0, failed=0.5))


def test_warnings_say_what_is_wrong_and_what_to_do() -> None:
    throttle = update_over(LoadMonitor(), range(30), cpu=0.97, memory=0.91, failed=0.25)[-1]
    cpu, memory, failures = (each.text for each in throttle.alarms)
    assert "97% busy (more than 90% for 10 s)" in cpu
    assert "more cores" in cpu
    assert "91% full (more than 85%)" in memory
    assert "Run fewer simulations" in memory
    assert "25% of the calls" in failures
    assert "shoal doctor" in failures


def test_what_is_not_known_is_no_reason_to_do_less() -> None:
    monitor = LoadMonitor()
    update_over(monitor, range(20), cpu=1.0, memory=1.0, failed=1.0)
    throttles = update_over(monitor, range(20, 40), cpu=None, memory=None, failed=None)
    assert alarm_kinds(throttles[-1]) == []
    assert throttles[-1].may_start


def test_time_in_which_the_machine_slept_proves_nothing() -> None:
    monitor = LoadMonitor()
    update(monitor, 0.0, cpu=1.0)
    assert update(monitor, 3600.0, cpu=1.0) == Throttle()
    assert alarm_kinds(update(monitor, 3611.0, cpu=1.0)) == [Pressure.CPU]


def test_at_least_one_call_is_made() -> None:
    assert [Throttle(factor=factor).at_once(64) for factor in (1.0, 0.8, 0.1)] == [64, 51, 6]
    assert Throttle(factor=0.1).at_once(2) == 1


SHARES = st.none() | st.floats(0, 2)


@given(st.lists(st.tuples(st.floats(0, 60), SHARES, SHARES, SHARES), max_size=60))
def test_whatever_happens_the_factor_is_usable_and_news_add_up(steps: list[tuple[float, ...]]) -> None:
    monitor, at, on = LoadMonitor(), 0.0, set[Pressure]()
    for waited, cpu, memory, failed in steps:
        at += waited
        throttle = update(monitor, at, cpu=cpu, memory=memory, failed=failed)
        assert THRESHOLDS[Pressure.MEMORY].least <= throttle.factor <= 1
        on = (on | {each.kind for each in throttle.began}) - {each.kind for each in throttle.ended}
        assert on == set(alarm_kinds(throttle))


# the share of failures


def test_the_share_of_failures_is_that_of_the_last_half_minute() -> None:
    failures = Failures()
    for number in range(40):
        failures.add(number / 4, failed=number % 4 == 0)
    assert failures.share(10.0) == 0.25
    for number in range(40):
        failures.add(30 + number / 4, failed=False)
    assert failures.share(40.0) == pytest.approx(0.0, abs=0.02)
    assert failures.share(100.0) is None


def test_of_few_calls_no_share_is_told() -> None:
    failures = Failures()
    for _ in range(19):
        failures.add(1.0, failed=True)
    assert failures.share(1.0) is None
    failures.add(1.0, failed=True)
    assert failures.share(1.0) == 1
