"""The control groups that this process is in, and what they allow: version 1, version 2, and both at once.

A limit may stand at any level between the process and the root of what can be seen, and each level counts everything
below it: the one that leaves the least is the one that holds. A file that is missing or makes no sense is a limit that
nobody knows of.
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
    """One group among those that hold the process."""

    path: Path
    version: int
    #: The way to it from where its hierarchy is mounted.
    inside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MemoryGroup:
    """The group that leaves the least memory."""

    level: CgroupLevel
    limit: int
    #: Without what the system keeps of files and can drop; None: unknown.
    used: int | None

    @property
    def left(self) -> int:
        return max(self.limit - (self.used or 0), 0)


@dataclass(frozen=True, slots=True)
class CpuGroup:
    """The group with the lowest quota, in cores."""

    level: CgroupLevel
    cores: float
    #: Where the time is counted that it has used; version 1 may do so elsewhere.
    counted: CgroupLevel


@dataclass(frozen=True, slots=True)
class Groups:
    """What binds this process."""

    #: `v1`, `v2`, `hybrid`, or None where there are no control groups to be seen.
    version: str | None
    cpu: CpuGroup | None
    memory: MemoryGroup | None


def read_cgroups(root: Path, most_bytes: int = ENDLESS_BYTES) -> Groups:
    """What binds the process whose /proc/self is under `root`; a limit of `most_bytes` or more binds nobody."""
    mounts, homes = _mounts(root), _homes(root)
    quotas = [
        CpuGroup(level, cores, _counted(mounts, level))
        for level in _levels(mounts, homes, "cpu")
        if (cores := _quota(level))
    ]
    limits = [
        MemoryGroup(level, limit, used_bytes(level))
        for level in _levels(mounts, homes, "memory")
        if (limit := _memory_limit(level)) and limit < most_bytes
    ]
    return Groups(
        _version(mounts),
        min(quotas, key=lambda group: group.cores, default=None),
        min(limits, key=lambda group: (group.left, group.limit), default=None),
    )


# Where they are


@dataclass(frozen=True, slots=True)
class _Mount:
    """A hierarchy, and where it can be seen."""

    point: Path
    #: What of the hierarchy is seen there: in a container often only its own part.
    top: str
    version: int
    controllers: frozenset[str]

    def holds(self, controller: str) -> bool:
        return self.version == 2 or controller in self.controllers

    def at(self, inside: tuple[str, ...]) -> CgroupLevel:
        return CgroupLevel(self.point.joinpath(*inside), self.version, inside)


def _levels(mounts: list[_Mount], homes: dict[str, str], controller: str) -> Iterator[CgroupLevel]:
    """The groups of the process and all above them that can be seen, innermost first."""
    for mount in mounts:
        if mount.holds(controller):
            home = homes.get("" if mount.version == 2 else controller, "/")
            inside = _relative(home, mount.top)
            yield from (mount.at(inside[:depth]) for depth in range(len(inside), -1, -1))


def _relative(home: str, top: str) -> tuple[str, ...]:
    """The way from what is mounted to the group; none where the two names do not belong together."""
    parts, above = (tuple(part for part in path.split("/") if part) for path in (home, top))
    if ".." in parts or parts[: len(above)] != above:
        return ()
    return parts[len(above) :]


def _counted(mounts: list[_Mount], level: CgroupLevel) -> CgroupLevel:
    apart = (mount for mount in mounts if mount.version == level.version == 1 and mount.holds("cpuacct"))
    return next((mount.at(level.inside) for mount in apart), level)


def _mounts(root: Path) -> list[_Mount]:
    text = read(root / "proc/self/mountinfo")
    found = [mount for line in (text or "").splitlines() if (mount := _mount(root, line))]
    return found or _usual_mounts(root)


def _mount(root: Path, line: str) -> _Mount | None:
    before, dash, after = line.partition(" - ")
    places, kinds = before.split(" "), after.split(" ")
    if not dash or len(places) < 5 or kinds[0] not in ("cgroup", "cgroup2"):
        return None
    version = 2 if kinds[0] == "cgroup2" else 1
    top, point = (_ESCAPED.sub(lambda found: chr(int(found[1], 8)), text) for text in places[3:5])
    return _Mount(root / point.lstrip("/"), top, version, frozenset(kinds[-1].split(",")))


def _usual_mounts(root: Path) -> list[_Mount]:
    """Where they usually are, for systems that do not say."""
    base = root / "sys/fs/cgroup"
    if (base / "cgroup.controllers").exists():
        return [_Mount(base, "/", 2, frozenset())]
    shared = {"cpu": ("cpu", "cpu,cpuacct"), "cpuacct": ("cpuacct", "cpu,cpuacct"), "memory": ("memory",)}
    return [
        _Mount(base / name, "/", 1, frozenset([controller]))
        for controller, names in shared.items()
        for name in names
        if (base / name).is_dir()
    ]


def _homes(root: Path) -> dict[str, str]:
    """The group of this process by controller; that of version 2 has no name."""
    found = {}
    for line in (read(root / "proc/self/cgroup") or "").splitlines():
        _, _, named = line.partition(":")
        controllers, colon, home = named.partition(":")
        if colon:
            found.update(dict.fromkeys(controllers.split(","), home))
    return found


def _version(mounts: list[_Mount]) -> str | None:
    versions = {mount.version for mount in mounts}
    if versions == {1, 2}:
        return "hybrid"
    return f"v{versions.pop()}" if versions else None


# What they allow


def _quota(level: CgroupLevel) -> float | None:
    if level.version == 2:
        words = (read(level.path / "cpu.max") or "").split()
        quota, period = (number(words[0]), number(words[1])) if len(words) == 2 else (None, None)
    else:
        quota, period = number_in(level.path / "cpu.cfs_quota_us"), number_in(level.path / "cpu.cfs_period_us")
    return quota / period if quota and period and quota > 0 and period > 0 else None


def _memory_limit(level: CgroupLevel) -> int | None:
    if level.version == 2:
        # Above memory.high a group is slowed down until it is hardly alive: that is a limit too.
        told = [number_in(level.path / name) for name in ("memory.max", "memory.high")]
    else:
        # The second holds limits of groups above that cannot be seen from a container.
        told = [number_in(level.path / "memory.limit_in_bytes"), stat(level.path, "hierarchical_memory_limit")]
    real = [limit for limit in told if limit is not None and 0 < limit < ENDLESS_BYTES]
    return min(real, default=None)


def used_bytes(level: CgroupLevel) -> int | None:
    """Memory in use that cannot simply be dropped."""
    name = "memory.current" if level.version == 2 else "memory.usage_in_bytes"
    used = number_in(level.path / name)
    if used is None:
        return None
    droppable = stat(level.path, "inactive_file" if level.version == 2 else "total_inactive_file")
    return max(used - (droppable or 0), 0)


def cpu_seconds(level: CgroupLevel) -> float | None:
    """CPU time that a group has used since it was made."""
    if level.version == 2:
        used = stat(level.path, "usage_usec", "cpu.stat")
        return None if used is None else used / 1e6
    used = number_in(level.path / "cpuacct.usage")
    return None if used is None else used / 1e9


# Files that hold numbers


def read(path: Path) -> str | None:
    """What a file says; None where it cannot be read."""
    try:
        return path.read_text()
    except (OSError, ValueError):
        return None


def number_in(path: Path) -> int | None:
    text = read(path)
    return None if text is None else number(text)


def number(text: str) -> int | None:
    """A whole number; None for anything else, such as `max`."""
    try:
        return int(text)
    except ValueError:
        return None


def stat(folder: Path, name: str, file: str = "memory.stat") -> int | None:
    """One line of a file that has a name and a number on each."""
    for line in (read(folder / file) or "").splitlines():
        if line.startswith(f"{name} "):
            return number(line[len(name) :])
    return None
