"""How busy a machine is."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from shoal.machine.sampling import Sampler
from tests.machine.fake_machines import GIB, computer, docker_v1, docker_v2, meminfo, write_files


class FakeClock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def ticks(**cores: tuple[int, int]) -> dict[str, object]:
    """Busy and idle ticks of each core; half of the idle ones wait for a disk."""
    lines = [f"{name} {busy} 0 0 {idle // 2} {idle - idle // 2} 0 0 0 77 77" for name, (busy, idle) in cores.items()]
    return {"proc/stat": "\n".join([*lines, "intr 1 2 3", "ctxt 5"])}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def test_cpu_is_what_the_cores_did_since_the_last_sample(tmp_path: Path, clock: FakeClock) -> None:
    root = write_files(tmp_path, computer(2) | ticks(cpu=(100, 100), cpu0=(50, 50), cpu1=(50, 50)))
    sampler = Sampler(root, clock)
    write_files(root, ticks(cpu=(250, 150), cpu0=(140, 60), cpu1=(110, 90)))
    assert sampler.take().cpu == pytest.approx(150 / 200)
    write_files(root, ticks(cpu=(250, 250), cpu0=(140, 110), cpu1=(110, 140)))
    assert sampler.take().cpu == 0


def test_only_the_cores_that_may_be_used_count(tmp_path: Path, clock: FakeClock) -> None:
    root = write_files(tmp_path, computer(2, allowed="1") | ticks(cpu=(2, 2), cpu0=(1, 1), cpu1=(1, 1)))
    sampler = Sampler(root, clock)
    write_files(root, ticks(cpu=(102, 102), cpu0=(1, 101), cpu1=(101, 1)))
    assert sampler.take().cpu == 1


@pytest.mark.parametrize(
    ("files", "used"),
    [
        (docker_v2(), {"sys/fs/cgroup/cpu.stat": "usage_usec 3400000"}),
        (docker_v1(), {"sys/fs/cgroup/cpu,cpuacct/cpuacct.usage": 5_000_000_000}),
    ],
    ids=["v2", "v1"],
)
def test_in_a_container_cpu_is_a_share_of_its_quota(
    tmp_path: Path, clock: FakeClock, files: dict[str, object], used: dict[str, object]
) -> None:
    root = write_files(tmp_path, computer(64) | files | ticks(cpu0=(0, 100)))
    sampler = Sampler(root, clock)
    clock.now += 2
    write_files(root, used | ticks(cpu0=(1, 200)))
    assert sampler.take().cpu == pytest.approx(0.8)


def test_a_machine_that_others_keep_busy_is_busy_whatever_the_quota(tmp_path: Path, clock: FakeClock) -> None:
    root = write_files(tmp_path, computer(1) | docker_v2() | ticks(cpu0=(3, 7)))
    sampler = Sampler(root, clock)
    clock.now += 1
    write_files(root, ticks(cpu0=(100, 10)))
    assert sampler.take().cpu == pytest.approx(0.97)


def test_memory_is_read_anew_each_time(tmp_path: Path, clock: FakeClock) -> None:
    root = write_files(tmp_path, computer() | docker_v2())
    sampler = Sampler(root, clock)
    assert sampler.take().memory == 0.25
    write_files(root, {"sys/fs/cgroup/memory.current": 2 * GIB + 3 * GIB})
    assert sampler.take().memory == 0.75
    write_files(root, {"proc/meminfo": meminfo(10 * GIB, GIB)})
    assert sampler.take().memory == pytest.approx(0.9)


def test_what_is_gone_is_unknown(tmp_path: Path, clock: FakeClock) -> None:
    root = write_files(tmp_path, computer(1) | docker_v2() | ticks(cpu0=(0, 0)))
    sampler = Sampler(root, clock)
    for name in ("proc/stat", "proc/meminfo", "sys/fs/cgroup/cpu.stat", "sys/fs/cgroup/memory.current"):
        (root / name).unlink()
    clock.now += 1
    sample = sampler.take()
    assert (sample.at, sample.cpu, sample.memory) == (101.0, None, None)


def test_two_samples_at_once_divide_nothing_by_nothing(tmp_path: Path, clock: FakeClock) -> None:
    sampler = Sampler(write_files(tmp_path, computer(1) | docker_v2() | ticks(cpu0=(5, 5))), clock)
    assert sampler.take().cpu is None


def test_a_sample_of_this_machine_is_cheap() -> None:
    sampler = Sampler()
    sampler.take()
    began = time.process_time()
    for _ in range(50):
        sampler.take()
    assert (time.process_time() - began) / 50 < 0.001
    assert sampler.take().memory
