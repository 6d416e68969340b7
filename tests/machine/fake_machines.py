"""Machines that are folders: what /proc and /sys say on systems of all kinds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

GIB = 1 << 30
#: What version 1 says where there is no limit.
ENDLESS = 9223372036854771712


def write_files(root: Path, files: Mapping[str, object]) -> Path:
    """A folder with these files in it."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{content}\n")
    return root


def mounts(*lines: str) -> str:
    """What a process sees mounted: a disk, and these."""
    return "\n".join(["22 1 253:1 / / rw,relatime - ext4 /dev/vda1 rw", *lines])


def v2(point: str = "/sys/fs/cgroup", top: str = "/") -> str:
    return f"30 23 0:26 {top} {point} rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate"


def v1(controllers: str, top: str = "/", point: str | None = None) -> str:
    return f"31 23 0:27 {top} {point or '/sys/fs/cgroup/' + controllers} rw - cgroup cgroup rw,{controllers}"


def meminfo(total: int = 16 * GIB, available: int = 12 * GIB, swap: int = 0) -> str:
    return (
        f"MemTotal:       {total // 1024} kB\nMemFree:        1024 kB\nMemAvailable:   {available // 1024} kB\n"
        f"SwapTotal:      {swap // 1024} kB\nSwapFree:       {swap // 1024} kB\nHugePages_Total:       0"
    )


def computer(cores: int = 8, allowed: str | None = None) -> dict[str, object]:
    """A machine without any limits."""
    return {
        "sys/devices/system/cpu/online": f"0-{cores - 1}",
        "proc/self/status": f"Name:\tpython\nCpus_allowed:\tff\nCpus_allowed_list:\t{allowed or f'0-{cores - 1}'}",
        "proc/self/limits": "Limit  Soft Limit  Hard Limit  Units\nMax open files            1024    524288    files",
        "proc/meminfo": meminfo(),
    }


def docker_v2(cpu: str = "150000 100000", memory: object = 4 * GIB) -> dict[str, object]:
    """In a container that sees only its own group."""
    return {
        ".dockerenv": "",
        "proc/self/cgroup": "0::/",
        "proc/self/mountinfo": mounts(v2()),
        "sys/fs/cgroup/cpu.max": cpu,
        "sys/fs/cgroup/cpu.stat": "usage_usec 1000000\nuser_usec 900000\nsystem_usec 100000",
        "sys/fs/cgroup/memory.max": memory,
        "sys/fs/cgroup/memory.current": 3 * GIB,
        "sys/fs/cgroup/memory.stat": f"anon {GIB}\nfile {2 * GIB}\ninactive_file {2 * GIB}\nactive_file 0",
    }


def docker_v1() -> dict[str, object]:
    """In a container without a name space of its own: names as the host has them, files as the container has them."""
    home, cpu, memory = "/docker/4f2a", "sys/fs/cgroup/cpu,cpuacct", "sys/fs/cgroup/memory"
    return {
        ".dockerenv": "",
        "proc/self/cgroup": f"4:memory:{home}\n3:cpu,cpuacct:{home}\n1:name=systemd:{home}",
        "proc/self/mountinfo": mounts(v1("cpu,cpuacct", home), v1("memory", home)),
        f"{cpu}/cpu.cfs_quota_us": 250000,
        f"{cpu}/cpu.cfs_period_us": 100000,
        f"{cpu}/cpuacct.usage": 1_000_000_000,
        f"{memory}/memory.limit_in_bytes": 2 * GIB,
        f"{memory}/memory.usage_in_bytes": GIB,
        f"{memory}/memory.stat": f"cache {GIB}\ntotal_inactive_file {GIB // 2}\nhierarchical_memory_limit {2 * GIB}",
    }
