"""What a machine has, as far as this process may use it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from shoal.machine.hardware import UNLIMITED, Cores, MemoryLimits, MemorySpace, inspect_disk, inspect_machine
from tests.machine.fake_machines import GIB, computer, docker_v1, docker_v2, meminfo, write_files


def test_a_machine_without_limits_has_all_that_is_there(tmp_path: Path) -> None:
    machine = inspect_machine(write_files(tmp_path, computer(cores=8)))
    assert machine.cores == Cores(8, tuple(range(8)), None)
    assert machine.cores.usable == 8
    assert machine.memory.tightest == MemorySpace("machine", 16 * GIB, 4 * GIB)
    assert (machine.files.soft, machine.files.hard) == (1024, 524288)
    assert machine.container is None


@pytest.mark.parametrize(
    ("cores", "usable"),
    [
        (Cores(8, (0, 1, 2), None), 3),
        (Cores(8, (0, 1, 2), 1.5), 1.5),
        (Cores(2, (0, 1), 4.0), 2),
        (Cores(4, None, None), 4),
        (Cores(None, None, 0.5), 0.5),
        (Cores(None, None, None), None),
    ],
)
def test_of_cores_that_are_there_allowed_and_paid_for_the_fewest_are_usable(cores: Cores, usable: float | None) -> None:
    assert cores.usable == usable


def test_cores_that_were_taken_away_do_not_count(tmp_path: Path) -> None:
    assert inspect_machine(write_files(tmp_path, computer(cores=16, allowed="0-2,8,10-11"))).cores.usable == 6


def test_the_memory_of_a_container_holds_where_it_is_less(tmp_path: Path) -> None:
    memory = inspect_machine(write_files(tmp_path, computer() | docker_v2())).memory
    assert memory.tightest == MemorySpace("container", 4 * GIB, GIB)
    assert memory.tightest.free == 3 * GIB
    assert memory.share == 0.25


def test_a_full_machine_holds_even_if_the_container_is_empty(tmp_path: Path) -> None:
    full = {"proc/meminfo": meminfo(16 * GIB, available=GIB)}
    memory = inspect_machine(write_files(tmp_path, computer() | docker_v2() | full)).memory
    assert memory.tightest == MemorySpace("machine", 16 * GIB, 15 * GIB)
    assert memory.share == 15 / 16


def test_a_limit_outside_a_container_is_called_what_it_is(tmp_path: Path) -> None:
    files = computer() | docker_v2()
    del files[".dockerenv"]
    group = inspect_machine(write_files(tmp_path, files)).memory.group
    assert group is not None
    assert group.whose == "control group"


def test_swap_is_told_but_is_no_memory(tmp_path: Path) -> None:
    memory = inspect_machine(write_files(tmp_path, computer() | {"proc/meminfo": meminfo(swap=2 * GIB)})).memory
    assert (memory.swap_total, memory.tightest and memory.tightest.total) == (2 * GIB, 16 * GIB)


def test_old_systems_that_do_not_say_what_is_available_say_what_is_free(tmp_path: Path) -> None:
    files = computer() | {"proc/meminfo": "MemTotal: 1048576 kB\nMemFree: 524288 kB"}
    assert inspect_machine(write_files(tmp_path, files)).memory.machine == MemorySpace("machine", GIB, GIB // 2)


@pytest.mark.parametrize(
    ("files", "maker"),
    [
        (docker_v1(), "Docker"),
        ({"run/.containerenv": ""}, "Podman"),
        ({"var/run/secrets/kubernetes.io/serviceaccount/token": "x", ".dockerenv": ""}, "Kubernetes"),
        ({"proc/self/cgroup": "0::/kubepods.slice/pod7.slice/docker-1.scope"}, "Kubernetes"),
        ({"proc/1/cgroup": "5:cpu:/lxc/web"}, "LXC"),
        ({"proc/self/cgroup": "0::/user.slice/user-1000.slice/session-2.scope"}, None),
    ],
)
def test_a_container_is_known_by_its_marks(tmp_path: Path, files: dict[str, object], maker: str | None) -> None:
    assert inspect_machine(write_files(tmp_path, files)).container == maker


def test_of_an_empty_system_everything_is_unknown(tmp_path: Path) -> None:
    machine = inspect_machine(tmp_path)
    assert machine.cores.usable is None
    assert machine.memory == MemoryLimits(None)
    assert (machine.memory.tightest, machine.memory.share) == (None, None)
    assert (machine.files.soft, machine.files.hard) == (None, None)


@pytest.mark.parametrize("nonsense", ["", "x", "5-2", "-1", "0-99999999999", "MemTotal: many kB", "Max open files"])
def test_nonsense_is_unknown_and_no_error(tmp_path: Path, nonsense: str) -> None:
    status = f"Cpus_allowed_list:\t{nonsense}"
    names = ["sys/devices/system/cpu/online", "proc/cpuinfo", "proc/meminfo", "proc/self/cgroup", "proc/self/mountinfo"]
    files = dict.fromkeys(names, nonsense) | {"proc/self/status": status, "proc/self/limits": nonsense}
    machine = inspect_machine(write_files(tmp_path, files))
    assert (machine.cores.usable, machine.memory.tightest) == (None, None)


def test_any_number_of_files_is_a_number(tmp_path: Path) -> None:
    files = {"proc/self/limits": "Max open files            unlimited            unlimited            files"}
    assert inspect_machine(write_files(tmp_path, files)).files.hard == UNLIMITED


def test_this_machine_has_cores_memory_and_files() -> None:
    machine = inspect_machine()
    assert machine.cores.usable
    assert machine.cores.logical == os.cpu_count()
    assert machine.memory.tightest
    assert machine.files.hard


# disk


def test_the_disk_is_that_on_which_a_folder_would_be_made(tmp_path: Path) -> None:
    found = inspect_disk(tmp_path / "runs" / "not" / "yet")
    assert found is not None
    assert found.path == tmp_path
    assert 0 < found.free <= found.total
    assert found.is_writable


def test_a_file_is_no_place_for_runs_but_its_folder_is(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    found = inspect_disk(tmp_path / "file" / "runs")
    assert found is not None
    assert found.path == tmp_path
