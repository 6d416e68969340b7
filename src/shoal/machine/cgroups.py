"""The control groups that this process is in, and their limits: version 1, version 2, and both at once.

A limit may stand at any level between the process and the root of what can be seen, and each level counts everything
below it, so the one that leaves the least holds. A file that is missing or makes no sense is taken for no limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

#: "No limit" in version 1 is the largest number that fits, rounded down to pages; no machine has an exbibyte.
ENDLESS_BYTES = 1 << 60

_ESCAPED = re.compile(r"\\([0-7]{3})")


class CgroupLevel(NamedTuple):
    """One of the groups that contain the process."""

    path: Path
    version: int
    #: Its path relative to where its hierarchy is mounted.
    inside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MemoryGroup:
    """The group that leaves the least memory."""

    level: CgroupLevel
    limit: int

    def read_used(self) -> int | None:
        """Return the memory in use, without file caches, which the system can drop; None if it is unknown."""
        in_use, droppable = (
            ("memory.current", "inactive_file")
            if self.level.version == 2
            else ("memory.usage_in_bytes", "total_inactive_file")
        )
        used = read_number(self.level.path / in_use)
        return None if used is None else max(used - (_read_stat(self.level, droppable) or 0), 0)


@dataclass(frozen=True, slots=True)
class CpuGroup:
    """The group with the lowest quota, in cores."""

    cores: float
    #: The group that counts its CPU time; in version 1 it may be in another hierarchy.
    counted: CgroupLevel

    def read_seconds(self) -> float | None:
        """Return the CPU time that the group has used since it was made."""
        if self.counted.version == 2:
            used, per_second = _read_stat(self.counted, "usage_usec", "cpu.stat"), 1e6
        else:
            used, per_second = read_number(self.counted.path / "cpuacct.usage"), 1e9
        return None if used is None else used / per_second


@dataclass(frozen=True, slots=True)
class Groups:
    """The control groups that limit this process."""

    #: `v1`, `v2`, `hybrid`, or None if no control groups can be seen.
    version: str | None
    cpu: CpuGroup | None
    memory: MemoryGroup | None


def read_cgroups(root: Path, most_bytes: int = ENDLESS_BYTES) -> Groups:
    """Return the limits of the process whose /proc/self is under `root`; `most_bytes` or more is no limit."""
    mounts = _read_mounts(root)
    versions = {mount.version for mount in mounts}
    #: The group of this process by controller; that of version 2 has an empty name.
    homes: dict[str, str] = {}
    for line in read_if_there(root / "proc/self/cgroup").splitlines():
        controllers, colon, home = line.partition(":")[2].partition(":")
        if colon:
            homes.update(dict.fromkeys(controllers.split(","), home))
    quotas = []
    for level in _find_levels(mounts, homes, "cpu"):
        if cores := _read_quota(level):
            apart = (mount for mount in mounts if mount.version == level.version == 1 and mount.holds("cpuacct"))
            counted = next((mount.level(level.inside) for mount in apart), level)
            quotas.append(CpuGroup(cores, counted))
    limits = [
        MemoryGroup(level, limit)
        for level in _find_levels(mounts, homes, "memory")
        if (limit := _read_memory_limit(level)) and limit < most_bytes
    ]
    return Groups(
        "hybrid" if len(versions) > 1 else next((f"v{version}" for version in versions), None),
        min(quotas, key=lambda group: group.cores, default=None),
        min(limits, key=lambda group: (max(group.limit - (group.read_used() or 0), 0), group.limit), default=None),
    )


# Where they are


@dataclass(frozen=True, slots=True)
class _Mount:
    """A hierarchy, and where it can be seen."""

    point: Path
    #: The part of the hierarchy that is mounted: in a container often only its own group.
    top: str
    version: int
    controllers: frozenset[str]

    def holds(self, controller: str) -> bool:
        return self.version == 2 or controller in self.controllers

    def level(self, inside: tuple[str, ...]) -> CgroupLevel:
        return CgroupLevel(self.point.joinpath(*inside), self.version, inside)


def _read_mounts(root: Path) -> list[_Mount]:
    found = []
    for line in read_if_there(root / "proc/self/mountinfo").splitlines():
        before, dash, after = line.partition(" - ")
        places, kinds = before.split(" "), after.split(" ")
        if dash and len(places) >= 5 and kinds[0] in ("cgroup", "cgroup2"):
            top, point = (_ESCAPED.sub(lambda found: chr(int(found[1], 8)), text) for text in places[3:5])
            version = 2 if kinds[0] == "cgroup2" else 1
            found.append(_Mount(root / point.lstrip("/"), top, version, frozenset(kinds[-1].split(","))))
    if found:
        return found
    # Systems without mountinfo have them in the usual places.
    base = root / "sys/fs/cgroup"
    if (base / "cgroup.controllers").exists():
        return [_Mount(base, "/", 2, frozenset())]
    usual = {"cpu": ("cpu", "cpu,cpuacct"), "cpuacct": ("cpuacct", "cpu,cpuacct"), "memory": ("memory",)}
    return [
        _Mount(base / name, "/", 1, frozenset([controller]))
        for controller, names in usual.items()
        for name in names
        if (base / name).is_dir()
    ]


def _find_levels(mounts: list[_Mount], homes: dict[str, str], controller: str) -> Iterator[CgroupLevel]:
    """Yield the groups of the process and all visible ones above them, innermost first."""
    for mount in mounts:
        if mount.holds(controller):
            home = homes.get("" if mount.version == 2 else controller, "/")
            inside, top = (tuple(part for part in path.split("/") if part) for path in (home, mount.top))
            # Where the two names do not belong together, only the mounted group itself is known.
            belongs = ".." not in inside and inside[: len(top)] == top
            inside = inside[len(top) :] if belongs else ()
            yield from (mount.level(inside[:depth]) for depth in range(len(inside), -1, -1))


# Their limits


def _read_quota(level: CgroupLevel) -> float | None:
    if level.version == 2:
        words = read_if_there(level.path / "cpu.max").split()
        quota, period = map(parse_integer, words) if len(words) == 2 else (None, None)
    else:
        quota, period = read_number(level.path / "cpu.cfs_quota_us"), read_number(level.path / "cpu.cfs_period_us")
    return quota / period if quota and period and quota > 0 and period > 0 else None


def _read_memory_limit(level: CgroupLevel) -> int | None:
    if level.version == 2:
        # Above memory.high a group is slowed down until it hardly moves: that is a limit too.
        limits = [read_number(level.path / name) for name in ("memory.max", "memory.high")]
    else:
        # The second has limits of groups above that cannot be seen from a container.
        limits = [read_number(level.path / "memory.limit_in_bytes"), _read_stat(level, "hierarchical_memory_limit")]
    return min((limit for limit in limits if limit is not None and 0 < limit < ENDLESS_BYTES), default=None)


# Files that hold numbers


def read_if_there(path: Path) -> str:
    """Return the content of a file; nothing if it cannot be read."""
    try:
        return path.read_text()
    except (OSError, ValueError):
        return ""


def read_number(path: Path) -> int | None:
    """Return the number in a file; None if there is none."""
    return parse_integer(read_if_there(path))


def parse_integer(text: str) -> int | None:
    """Parse a whole number; None for anything else, such as `max`."""
    try:
        return int(text)
    except ValueError:
        return None


def _read_stat(level: CgroupLevel, name: str, file: str = "memory.stat") -> int | None:
    """Return the number after a name in a file that has a name and a number on each line."""
    for line in read_if_there(level.path / file).splitlines():
        if line.startswith(f"{name} "):
            return parse_integer(line[len(name) :])
    return None
