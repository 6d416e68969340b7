"""Limits of control groups, on systems of all kinds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from shoal.machine.cgroups import read_cgroups
from tests.machine.fake_machines import ENDLESS, GIB, docker_v1, docker_v2, mounts, v1, v2, write_files


def limits(root: Path) -> tuple[str | None, float | None, int | None, int | None]:
    """Version, cores, memory and how much of it is used."""
    found = read_cgroups(root)
    cores = None if found.cpu is None else found.cpu.cores
    if found.memory is None:
        return found.version, cores, None, None
    return found.version, cores, found.memory.limit, found.memory.read_used()


def test_a_container_with_version_2_has_its_quota_and_its_memory(tmp_path: Path) -> None:
    assert limits(write_files(tmp_path, docker_v2())) == ("v2", 1.5, 4 * GIB, GIB)


def test_a_container_with_version_1_has_its_quota_and_its_memory(tmp_path: Path) -> None:
    assert limits(write_files(tmp_path, docker_v1())) == ("v1", 2.5, 2 * GIB, GIB // 2)


def test_what_says_that_there_is_no_limit_is_none(tmp_path: Path) -> None:
    assert limits(write_files(tmp_path / "2", docker_v2("max 100000", "max"))) == ("v2", None, None, None)
    endless = {
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": -1,
        "sys/fs/cgroup/memory/memory.limit_in_bytes": ENDLESS,
        "sys/fs/cgroup/memory/memory.stat": f"hierarchical_memory_limit {ENDLESS}",
    }
    assert limits(write_files(tmp_path / "1", docker_v1() | endless)) == ("v1", None, None, None)


def test_a_limit_of_more_than_the_machine_has_binds_nobody(tmp_path: Path) -> None:
    root = write_files(tmp_path, docker_v2())
    assert read_cgroups(root, most_bytes=4 * GIB).memory is None
    assert read_cgroups(root, most_bytes=5 * GIB).memory is not None


def pod(**levels: Mapping[str, object]) -> dict[str, object]:
    """A process three groups deep, as a kubelet makes them, seen from the host; by level, its files."""
    home = "kubepods.slice/pod7.slice/cri-1.scope"
    paths = {"top": "", "all": "kubepods.slice/", "pod": "kubepods.slice/pod7.slice/", "own": f"{home}/"}
    files: dict[str, object] = {"proc/self/cgroup": f"0::/{home}", "proc/self/mountinfo": mounts(v2())}
    for level, content in levels.items():
        files |= {f"sys/fs/cgroup/{paths[level]}{name}": value for name, value in content.items()}
    return files


def test_of_nested_quotas_the_lowest_holds_wherever_it_is(tmp_path: Path) -> None:
    files = pod(own={"cpu.max": "400000 100000"}, pod={"cpu.max": "50000 100000"}, all={"cpu.max": "max 100000"})
    assert limits(write_files(tmp_path, files))[1] == 0.5


def test_of_nested_memory_the_group_that_leaves_least_holds(tmp_path: Path) -> None:
    own = {"memory.max": 4 * GIB, "memory.current": GIB}
    full = {"memory.max": 8 * GIB, "memory.current": 7 * GIB}
    found = read_cgroups(write_files(tmp_path, pod(own=own, pod=full))).memory
    assert found is not None
    assert (found.limit, found.read_used(), found.level.path.name) == (8 * GIB, 7 * GIB, "pod7.slice")


def test_where_a_group_is_slowed_down_is_a_limit_too(tmp_path: Path) -> None:
    slow = {"memory.max": 4 * GIB, "memory.high": 3 * GIB, "memory.current": GIB}
    assert limits(write_files(tmp_path, pod(own=slow)))[2] == 3 * GIB


def test_a_slice_of_systemd_limits_a_session_of_a_user(tmp_path: Path) -> None:
    home = "user.slice/user-1000.slice/session-2.scope"
    files = {
        "proc/self/cgroup": f"0::/{home}",
        "proc/self/mountinfo": mounts(v2()),
        "sys/fs/cgroup/user.slice/user-1000.slice/cpu.max": "200000 100000",
        "sys/fs/cgroup/user.slice/user-1000.slice/memory.max": 6 * GIB,
    }
    assert limits(write_files(tmp_path, files)) == ("v2", 2.0, 6 * GIB, None)


def test_without_root_the_group_that_was_delegated_is_found(tmp_path: Path) -> None:
    home = "user.slice/user-1000.slice/user@1000.service/app.slice/libpod-9c.scope/container"
    files = {
        "run/.containerenv": "",
        "proc/self/cgroup": f"0::/{home}",
        "proc/self/mountinfo": mounts(v2(top=f"/{home}")),
        "sys/fs/cgroup/memory.max": GIB,
        "sys/fs/cgroup/memory.current": GIB // 4,
    }
    assert limits(write_files(tmp_path, files)) == ("v2", None, GIB, GIB // 4)


def test_in_a_hybrid_the_limits_are_those_of_version_1(tmp_path: Path) -> None:
    unified = {
        "proc/self/cgroup": "4:memory:/docker/4f2a\n3:cpu,cpuacct:/docker/4f2a\n0::/docker/4f2a",
        "proc/self/mountinfo": mounts(
            v1("cpu,cpuacct", "/docker/4f2a"), v1("memory", "/docker/4f2a"), v2("/sys/fs/cgroup/unified")
        ),
        "sys/fs/cgroup/unified/cgroup.controllers": "",
    }
    assert limits(write_files(tmp_path, docker_v1() | unified)) == ("hybrid", 2.5, 2 * GIB, GIB // 2)


def test_limits_above_what_a_container_can_see_are_believed(tmp_path: Path) -> None:
    files = docker_v1() | {
        "sys/fs/cgroup/memory/memory.limit_in_bytes": ENDLESS,
        "sys/fs/cgroup/memory/memory.stat": f"hierarchical_memory_limit {GIB}",
    }
    assert limits(write_files(tmp_path, files))[2] == GIB


@pytest.mark.parametrize("home", ["/../../elsewhere", "/another/container"])
def test_a_name_from_another_name_space_leads_to_what_is_mounted(tmp_path: Path, home: str) -> None:
    files = docker_v2() | {"proc/self/cgroup": f"0::{home}"}
    assert limits(write_files(tmp_path, files))[1:3] == (1.5, 4 * GIB)


def test_a_mount_with_a_space_in_its_path_is_found(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/",
        "proc/self/mountinfo": mounts(v2("/my\\040groups")),
        "my groups/memory.max": GIB,
    }
    assert limits(write_files(tmp_path, files))[2] == GIB


def test_without_a_list_of_mounts_the_usual_places_are_looked_at(tmp_path: Path) -> None:
    newer = docker_v2() | {"sys/fs/cgroup/cgroup.controllers": "cpu memory"}
    del newer["proc/self/mountinfo"]
    assert limits(write_files(tmp_path / "2", newer))[1:3] == (1.5, 4 * GIB)
    older = docker_v1() | {"proc/self/cgroup": "4:memory:/\n3:cpu,cpuacct:/"}
    del older["proc/self/mountinfo"]
    assert limits(write_files(tmp_path / "1", older))[1:3] == (2.5, 2 * GIB)


def test_the_time_that_a_group_used_is_found_where_it_is_counted(tmp_path: Path) -> None:
    apart = {
        "proc/self/cgroup": "3:cpuacct:/a\n2:cpu:/a",
        "proc/self/mountinfo": mounts(v1("cpu"), v1("cpuacct")),
        "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": 100000,
        "sys/fs/cgroup/cpu/a/cpu.cfs_period_us": 100000,
        "sys/fs/cgroup/cpuacct/a/cpuacct.usage": 3_500_000_000,
    }
    for name, files, seconds in (("2", docker_v2(), 1.0), ("1", docker_v1(), 1.0), ("apart", apart, 3.5)):
        group = read_cgroups(write_files(tmp_path / name, files)).cpu
        assert group is not None
        assert group.read_seconds() == seconds


def test_where_there_is_nothing_nothing_is_known(tmp_path: Path) -> None:
    assert limits(tmp_path) == (None, None, None, None)


@pytest.mark.parametrize("nonsense", ["", "max", "1 2 3", "many 100000", "-5 100000", "100000 0", "\x00", "9" * 5000])
def test_nonsense_in_a_file_is_no_limit(tmp_path: Path, nonsense: str) -> None:
    files = docker_v2(nonsense, nonsense) | {
        "sys/fs/cgroup/memory.stat": nonsense,
        "sys/fs/cgroup/memory.current": nonsense,
    }
    assert limits(write_files(tmp_path, files)) == ("v2", None, None, None)


def test_files_that_are_no_text_or_no_files_are_no_limit(tmp_path: Path) -> None:
    root = write_files(tmp_path, docker_v2())
    (root / "sys/fs/cgroup/cpu.max").write_bytes(b"\xff\xfe\x00")
    (root / "sys/fs/cgroup/memory.max").unlink()
    (root / "sys/fs/cgroup/memory.max").mkdir()
    assert limits(root)[1:3] == (None, None)


@pytest.mark.parametrize("line", ["", " - ", "a b - cgroup2", "30 23 0:26 / - cgroup2 cgroup2 rw", "no dash at all"])
def test_nonsense_among_the_mounts_is_passed_over(tmp_path: Path, line: str) -> None:
    files = docker_v2() | {"proc/self/mountinfo": mounts(line, v2()), "proc/self/cgroup": "nonsense\n0::/\n:"}
    assert limits(write_files(tmp_path, files))[1:3] == (1.5, 4 * GIB)
