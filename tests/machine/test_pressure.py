"""When a run does less at once, and when it does more again."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.machine.pressure import THRESHOLDS, Failures, LoadMonitor, Pressure, Throttle
from shoal.machine.sampling import Sample

CALM = {"cpu": 0.5, "memory": 0.5, "failed": 0.01}


def told(strain: LoadMonitor, at: float, **shares: float | None) -> Throttle:
    given = {**CALM, **shares}
    return strain.update(Sample(at, given["cpu"], given["memory"]), given["failed"])


def over(strain: LoadMonitor, seconds: Iterable[int], **shares: float | None) -> list[Throttle]:
    """A sample for each second."""
    return [told(strain, float(at), **shares) for at in seconds]


def kinds(verdict: Throttle) -> list[Pressure]:
    return [each.kind for each in verdict.strained]


def test_the_thresholds_are_those_of_the_guide() -> None:
    assert {kind: threshold.above for kind, threshold in THRESHOLDS.items()} == {
        Pressure.CPU: 0.90,
        Pressure.MEMORY: 0.85,
        Pressure.FAILURES: 0.10,
    }


def test_a_calm_run_is_left_alone() -> None:
    assert set(over(LoadMonitor(), range(100))) == {Throttle()}


@pytest.mark.parametrize("shares", [{"cpu": 0.9}, {"memory": 0.85}, {"failed": 0.1}])
def test_exactly_at_a_threshold_nothing_is_wrong(shares: dict[str, float]) -> None:
    assert set(over(LoadMonitor(), range(100), **shares)) == {Throttle()}


@pytest.mark.parametrize(
    ("shares", "kind", "after"),
    [
        ({"cpu": 0.95}, Pressure.CPU, 10),
        ({"memory": 0.9}, Pressure.MEMORY, 2),
        ({"failed": 0.2}, Pressure.FAILURES, 0),
    ],
)
def test_a_warning_begins_once_when_it_has_lasted(shares: dict[str, float], kind: Pressure, after: int) -> None:
    verdicts = over(LoadMonitor(), range(30), **shares)
    assert [number for number, verdict in enumerate(verdicts) if verdict.began] == [after]
    assert [each.kind for each in verdicts[after].began] == [kind]
    assert kinds(verdicts[-1]) == [kind]
    assert {verdict.factor for verdict in verdicts[:after]} <= {1.0}
    assert verdicts[after].factor == 0.8


def test_a_peak_of_a_moment_is_no_reason() -> None:
    strain = LoadMonitor()
    for at in range(0, 100, 10):
        over(strain, range(at, at + 8), cpu=1.0)
        verdict = told(strain, at + 9.0)
        assert verdict == Throttle()


def test_a_warning_ends_once_when_it_is_calm_again_for_a_while() -> None:
    strain = LoadMonitor()
    over(strain, range(20), cpu=0.95)
    verdicts = over(strain, range(20, 60))
    ended = [number for number, verdict in enumerate(verdicts) if verdict.ended]
    assert ended == [10]
    assert verdicts[10].ended[0].text == "the CPU is below 80% again"
    assert kinds(verdicts[10]) == []


def test_between_the_thresholds_a_warning_stays_and_nothing_is_lowered_further() -> None:
    strain = LoadMonitor()
    begun = over(strain, range(12), cpu=0.95)[-1]
    between = over(strain, range(12, 200), cpu=0.85)
    assert {tuple(kinds(verdict)) for verdict in between} == {(Pressure.CPU,)}
    assert {verdict.factor for verdict in between} == {begun.factor}


def test_values_around_a_threshold_do_not_flicker() -> None:
    strain = LoadMonitor()
    over(strain, range(20), memory=0.9)
    verdicts = [told(strain, float(at), memory=0.84 if at % 2 else 0.86) for at in range(20, 120)]
    assert not any(verdict.began or verdict.ended for verdict in verdicts)


def test_the_factor_is_lowered_in_steps_down_to_a_floor() -> None:
    factors = [verdict.factor for verdict in over(LoadMonitor(), range(120), failed=0.5)]
    assert factors[:6] == pytest.approx([0.8, 0.8, 0.8, 0.8, 0.8, 0.64])
    assert factors[-1] == THRESHOLDS[Pressure.FAILURES].least
    assert factors == sorted(factors, reverse=True)


def test_when_it_is_over_the_factor_is_raised_step_by_step_to_all() -> None:
    strain = LoadMonitor()
    over(strain, range(60), memory=0.95)
    factors = [verdict.factor for verdict in over(strain, range(60, 400))]
    assert factors == sorted(factors)
    assert factors[9] == THRESHOLDS[Pressure.MEMORY].least
    assert 0.2 < factors[60] < 1
    assert factors[-1] == 1


def test_failures_that_nothing_helps_against_do_not_hold_a_run_back_for_ever() -> None:
    """Seven calls in a hundred fail, however few there are; during an outage, all."""
    strain = LoadMonitor()
    over(strain, range(30), failed=1.0)
    assert over(strain, range(30, 200), failed=0.07)[-1] == Throttle()


def test_nothing_is_raised_while_anything_is_strained() -> None:
    strain = LoadMonitor()
    over(strain, range(20), failed=0.5, memory=0.9)
    verdicts = over(strain, range(20, 100), memory=0.83)
    assert kinds(verdicts[-1]) == [Pressure.MEMORY]
    assert verdicts[-1].factor == verdicts[0].factor


def test_no_simulation_is_started_while_memory_is_short() -> None:
    strain = LoadMonitor()
    assert not told(strain, 0.0, memory=0.86).may_start
    over(strain, range(1, 10), memory=0.9)
    assert not told(strain, 10.0, memory=0.83).may_start
    assert over(strain, range(11, 30))[-1].may_start


def test_a_busy_cpu_does_not_forbid_to_start() -> None:
    assert all(verdict.may_start for verdict in over(LoadMonitor(), range(30), cpu=1.0, failed=0.5))


def test_warnings_say_what_is_wrong_and_what_to_do() -> None:
    verdict = over(LoadMonitor(), range(30), cpu=0.97, memory=0.91, failed=0.25)[-1]
    cpu, memory, failures = (each.text for each in verdict.strained)
    assert "97% busy (more than 90% for 10 s)" in cpu
    assert "more cores" in cpu
    assert "91% full (more than 85%)" in memory
    assert "Run fewer simulations" in memory
    assert "25% of the calls" in failures
    assert "shoal doctor" in failures


def test_what_is_not_known_is_no_reason_to_do_less() -> None:
    strain = LoadMonitor()
    over(strain, range(20), cpu=1.0, memory=1.0, failed=1.0)
    verdicts = over(strain, range(20, 40), cpu=None, memory=None, failed=None)
    assert kinds(verdicts[-1]) == []
    assert verdicts[-1].may_start


def test_time_in_which_the_machine_slept_proves_nothing() -> None:
    strain = LoadMonitor()
    told(strain, 0.0, cpu=1.0)
    assert told(strain, 3600.0, cpu=1.0) == Throttle()
    assert kinds(told(strain, 3611.0, cpu=1.0)) == [Pressure.CPU]


def test_at_least_one_call_is_made() -> None:
    assert [Throttle(factor=factor).at_once(64) for factor in (1.0, 0.8, 0.1)] == [64, 51, 6]
    assert Throttle(factor=0.1).at_once(2) == 1


SHARES = st.none() | st.floats(0, 2)


@given(st.lists(st.tuples(st.floats(0, 60), SHARES, SHARES, SHARES), max_size=60))
def test_whatever_happens_the_factor_is_usable_and_news_add_up(steps: list[tuple[float, ...]]) -> None:
    strain, at, on = LoadMonitor(), 0.0, set[Pressure]()
    for waited, cpu, memory, failed in steps:
        at += waited
        verdict = told(strain, at, cpu=cpu, memory=memory, failed=failed)
        assert THRESHOLDS[Pressure.MEMORY].least <= verdict.factor <= 1
        on = (on | {each.kind for each in verdict.began}) - {each.kind for each in verdict.ended}
        assert on == set(kinds(verdict))


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
