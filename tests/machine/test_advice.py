"""How many at once, why, and what would allow more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shoal.machine.advice import Advice, Bound, Need, ServerProfile, advise, format_bytes
from shoal.machine.hardware import Cores, Disk, Files, Machine, MemoryLimits, MemorySpace
from shoal.rate_limits import RateLimit, RateLimits

GIB = 1 << 30
LARGE = Machine(
    Cores(16, tuple(range(16))), MemoryLimits(MemorySpace("machine", 64 * GIB, 8 * GIB)), Files(1024, 524288)
)
ROOMY = Disk(Path("/data"), 500 * GIB, 400 * GIB, 10_000_000, is_writable=True)
OFFLINE, ASKING = Need(asks=False), Need()


def in_container(limit: int, used: int, **more: Any) -> Machine:
    memory = MemoryLimits(LARGE.memory.machine, MemorySpace("container", limit, used))
    return replace(LARGE, memory=memory, container="Docker", **more)


def first(advice: Advice) -> tuple[str, int]:
    return advice.simulations[0].what, advice.simulations[0].count


def test_offline_runs_take_a_core_each() -> None:
    advice = advise(LARGE, ROOMY, OFFLINE)
    assert first(advice) == ("cores", 16)
    assert advice.calls == ()
    assert advice.problems == advice.warnings == ()


def test_runs_that_wait_for_models_share_cores() -> None:
    assert advise(LARGE, ROOMY, Need(people=64)).simulations[0].count > 10 * 16


def test_cores_bound_calls_a_second_and_so_slow_calls_allow_more_at_once() -> None:
    def calls(seconds: float) -> int:
        found = advise(LARGE, ROOMY, ASKING, ServerProfile(seconds))
        return next(bound.count for bound in found.calls if bound.what == "cores")

    assert calls(1.0) == pytest.approx(16 * 0.8 / 0.0006, abs=1)
    assert calls(10.0) == pytest.approx(10 * calls(1.0), rel=0.001)


def test_one_run_is_spread_over_processes_where_calls_come_faster_than_one_can_prepare_them() -> None:
    def spread(seconds: float, need: Need = ASKING, machine: Machine = LARGE) -> Bound:
        found = advise(machine, ROOMY, need, ServerProfile(seconds)).shards
        assert found is not None
        return found

    assert (spread(1.5).what, spread(1.5).count) == ("one process", 1)
    assert spread(0.2).count == 3
    assert "300% of what one process can prepare" in spread(0.2).reason
    assert spread(0.2, machine=replace(LARGE, cores=Cores(2, (0, 1)))).count == 2
    assert spread(0.0001, Need(people=5)).count == 5
    assert advise(LARGE, ROOMY, OFFLINE).shards is None


def test_memory_of_the_container_binds_and_the_reason_says_so() -> None:
    advice = advise(in_container(2 * GIB, GIB), ROOMY, OFFLINE)
    what, count = first(advice)
    assert (what, count) == ("memory", round(0.7 * GIB) // OFFLINE.memory_bytes)
    assert "1.0 GiB free of the container's 2.0 GiB" in advice.simulations[0].reason
    assert "a run of this size takes up to 95 MB" in advice.simulations[0].reason
    assert advice.changes[0] == "raise the memory limit of the container, now 2.0 GiB"


def test_larger_runs_need_more() -> None:
    needs = [Need(people=people, asks=asks) for asks in (False, True) for people in (100, 1_000, 10_000)]
    sizes = [need.memory_bytes for need in needs]
    assert sizes[:3] == sorted(sizes[:3])
    assert sizes[3:] == sorted(sizes[3:])
    assert all(asking > offline for offline, asking in zip(sizes[:3], sizes[3:], strict=True))


@pytest.mark.parametrize(
    ("need", "measured_mib"),
    [
        (Need(100, 24, asks=False), 64),
        (Need(1_000, 24, asks=False), 79),
        (Need(10_000, 8, asks=False), 140),
        (Need(100, 24, max_workers=64), 90),
        (Need(100, 150, max_workers=64), 158),
        (Need(1_000, 8, max_workers=64), 115),
        (Need(1_000, 8), 158),
        (Need(5_000, 4, max_workers=64), 192),
        (Need(5_000, 4, max_workers=5_000), 413),
    ],
)
def test_what_a_run_is_said_to_take_is_what_was_measured_or_somewhat_more(need: Need, measured_mib: int) -> None:
    assert measured_mib <= need.memory_bytes / (1 << 20) <= 1.5 * measured_mib


@pytest.mark.parametrize(
    ("machine", "words"),
    [
        (in_container(60 * GIB, 0, cores=Cores(16, tuple(range(16)), 1.5)), "docker run --cpus"),
        (replace(LARGE, cores=Cores(16, None, 0.5), container="Kubernetes"), "resources.limits.cpu"),
        (replace(LARGE, cores=Cores(16, (0, 1))), "more than 2 of the 16 cores (taskset"),
        (LARGE, "a machine with more than 16 cores"),
    ],
)
def test_whoever_has_too_few_cores_is_told_what_takes_them_away(machine: Machine, words: str) -> None:
    assert words in advise(machine, ROOMY, OFFLINE).changes[0]


def test_half_a_core_is_warned_of_and_still_runs_one() -> None:
    advice = advise(replace(LARGE, cores=Cores(4, None, 0.5)), ROOMY, OFFLINE)
    assert first(advice) == ("cores", 1)
    assert "0.5 of one core" in advice.warnings[0]


def test_open_files_bound_calls_where_even_the_hard_limit_is_low() -> None:
    few = replace(LARGE, files=Files(256, 256), cores=Cores(1, (0,)))
    alone = advise(few, ROOMY, Need(people=10_000, max_workers=5_000), ServerProfile(seconds_per_call=2.0))
    assert (alone.calls[0].what, alone.calls[0].count) == ("open files", 192)
    assert "ulimit" in alone.changes[0]


def test_a_low_soft_limit_is_no_matter_as_it_is_raised() -> None:
    advice = advise(replace(LARGE, files=Files(64, 524288)), ROOMY, ASKING)
    assert advice.problems == ()
    assert all("ulimit" not in change for change in advice.changes)


def test_a_published_rate_times_what_a_call_takes_is_how_many_fit() -> None:
    published = RateLimits(requests=RateLimit(600.0), tokens=RateLimit(10_000_000.0))
    advice = advise(LARGE, ROOMY, ASKING, ServerProfile(3.0, allowance=published))
    assert (advice.calls[0].what, advice.calls[0].count) == ("requests a minute", 30)
    assert advice.simulations[0].what == "endpoint"
    assert advice.simulations[0].count == 1
    assert advice.changes[0].startswith("ask the provider for a higher limit")


def test_tokens_bind_where_prompts_are_long() -> None:
    published = RateLimits(tokens=RateLimit(200_000.0))
    advice = advise(LARGE, ROOMY, ASKING, ServerProfile(1.5, tokens_per_call=10_000, allowance=published))
    assert (advice.calls[0].what, advice.calls[0].count) == ("tokens a minute", 1)
    assert "shorten prompts" in advice.changes[0]


def test_what_was_learned_before_binds_too() -> None:
    advice = advise(LARGE, ROOMY, Need(max_workers=16), ServerProfile(at_once=40))
    assert (advice.calls[0].what, advice.calls[0].count) == ("learned", 40)
    assert first(advice) == ("endpoint", 3)


def test_a_machine_that_bears_more_than_a_run_asks_for_says_so() -> None:
    assert "leave max_workers (64) out" in advise(LARGE, ROOMY, Need(max_workers=64)).changes[-1]
    for need in (ASKING, Need(people=50, max_workers=64)):
        assert not any("max_workers" in change for change in advise(LARGE, ROOMY, need).changes)


def test_a_server_on_the_same_machine_is_warned_of() -> None:
    assert "on this machine" in advise(LARGE, ROOMY, ASKING, ServerProfile(is_here=True)).warnings[0]


@pytest.mark.parametrize(
    ("machine", "disk", "need", "words"),
    [
        (LARGE, replace(ROOMY, free=10_000_000), OFFLINE, "the disk is full: 10 MB free at /data"),
        (LARGE, replace(ROOMY, free=GIB), Need(100_000, 240), "one run may write"),
        (LARGE, replace(ROOMY, free_files=3), OFFLINE, "only 3 more files"),
        (LARGE, replace(ROOMY, is_writable=False), OFFLINE, "/data cannot be written to"),
        (replace(LARGE, files=Files(32, 32)), ROOMY, ASKING, "may open only 32 files"),
        (in_container(GIB, GIB - 1000), ROOMY, OFFLINE, "one run of this size may take 95 MB"),
    ],
)
def test_what_would_make_a_run_fail_is_a_problem_and_to_be_changed_first(
    machine: Machine, disk: Disk, need: Need, words: str
) -> None:
    advice = advise(machine, disk, need)
    assert any(words in problem for problem in advice.problems)
    assert advice.changes[0] == advice.problems[0]


def test_what_is_nearly_full_is_warned_of() -> None:
    advice = advise(in_container(10 * GIB, 9 * GIB), replace(ROOMY, free=20 * GIB), OFFLINE)
    assert "memory of the container is 90% full" in advice.warnings[0]
    assert "the disk at /data is 96% full" in advice.warnings[1]
    assert advice.problems == ()


def test_of_a_machine_of_which_nothing_is_known_nothing_is_said() -> None:
    unknown = Machine(Cores(None), MemoryLimits(None), Files(None, None))
    advice = advise(unknown, None, ASKING)
    assert (advice.simulations, advice.calls, advice.problems) == ((), (), ())


def test_something_is_always_allowed() -> None:
    tiny = Machine(Cores(1, (0,), 0.01), MemoryLimits(MemorySpace("container", GIB, GIB)), Files(70, 70))
    advice = advise(tiny, replace(ROOMY, free=0), ASKING, ServerProfile(allowance=RateLimits(requests=RateLimit(1.0))))
    assert {bound.count for bound in advice.simulations} == {1}
    assert min(bound.count for bound in advice.calls) == 1


def test_bytes_are_read_at_a_glance() -> None:
    assert [format_bytes(count) for count in (50_000, 150_000_000, 4 * GIB)] == ["50 kB", "150 MB", "4.0 GiB"]
