"""What this machine really has: cores, memory, open files and disk, as far as this process may use them.

Everything is read from /proc and /sys, which costs nothing and needs no package. What cannot be read is None: unknown.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shoal.machine.cgroups import Groups, MemoryGroup, number, read
from shoal.machine.cgroups import read_cgroups as look_at_groups

ROOT = Path("/")
#: As many open files as anybody wants.
UNLIMITED = 1 << 60

#: Words in the name of a control group, and what makes groups of that name. Pods contain what runs in them: first.
_MAKERS = {"kubepods": "Kubernetes", "docker": "Docker", "libpod": "Podman", "containerd": "containerd", "lxc": "LXC"}
#: Files that are there in a container only.
_MARKS = {
    "var/run/secrets/kubernetes.io": "Kubernetes",
    ".dockerenv": "Docker",
    "run/.containerenv": "Podman",
    "run/systemd/container": "systemd-nspawn",
}


@dataclass(frozen=True, slots=True)
class Cores:
    logical: int | None
    #: The numbers of those that this process may run on; None: unknown.
    allowed: tuple[int, ...] | None = None
    #: CPU time per time that the control groups allow; None: no limit.
    quota: float | None = None

    @property
    def usable(self) -> float | None:
        known: list[float] = [] if self.quota is None else [self.quota]
        known += [] if self.logical is None else [self.logical]
        known += [len(self.allowed)] if self.allowed else []
        return min(known, default=None)


@dataclass(frozen=True, slots=True)
class MemorySpace:
    """Memory of which somebody has a certain amount."""

    #: `machine`, `container`, or `control group` where that is not a container's.
    whose: str
    total: int
    #: Without what the system keeps of files and can drop; None: unknown.
    used: int | None

    @property
    def free(self) -> int:
        """At most: where nobody knows what is used, all of it."""
        return max(self.total - (self.used or 0), 0)

    @property
    def share(self) -> float | None:
        return None if self.used is None else self.used / self.total

    def below(self, share: float) -> int:
        """What can be taken until so much is in use."""
        return max(round(self.total * share) - (self.used or 0), 0)


@dataclass(frozen=True, slots=True)
class MemoryLimits:
    """The machine's, and the control group's that leaves least, if one has a limit."""

    machine: MemorySpace | None
    group: MemorySpace | None = None
    swap_total: int | None = None
    swap_free: int | None = None

    @property
    def rooms(self) -> list[MemorySpace]:
        return [room for room in (self.machine, self.group) if room is not None]

    @property
    def tightest(self) -> MemorySpace | None:
        """Where memory runs out first."""
        return min(self.rooms, key=lambda room: room.free, default=None)

    @property
    def share(self) -> float | None:
        """How much is in use, where it is most."""
        return max((room.share for room in self.rooms if room.share is not None), default=None)


@dataclass(frozen=True, slots=True)
class Files:
    """How many a process may have open: now, and if it asks for more, as Shoal does."""

    soft: int | None
    hard: int | None


@dataclass(frozen=True, slots=True)
class Disk:
    path: Path
    total: int
    free: int
    #: Files that can still be made; None: as many as fit.
    free_files: int | None
    is_writable: bool


@dataclass(frozen=True, slots=True)
class Machine:
    cores: Cores
    memory: MemoryLimits
    files: Files
    #: What keeps this container, such as `Docker`; None: it is none.
    container: str | None = None
    #: `v1`, `v2` or `hybrid`; None: there are none.
    cgroups: str | None = None


def inspect_machine(root: Path = ROOT) -> Machine:
    """The machine that /proc and /sys under `root` tell of."""
    container, told = container_of(root), meminfo(root)
    groups = look_at_groups(root, told.get("MemTotal") or UNLIMITED)
    cores = Cores(_logical(root), _allowed(root), None if groups.cpu is None else groups.cpu.cores)
    return Machine(cores, _memory(told, groups, container, root), _files(root), container, groups.version)


# Cores


def _logical(root: Path) -> int | None:
    online = _numbers(read(root / "sys/devices/system/cpu/online") or "")
    if online:
        return len(online)
    listed = [line for line in (read(root / "proc/cpuinfo") or "").splitlines() if line.startswith("processor")]
    return len(listed) or (os.cpu_count() if root == ROOT else None)


def _allowed(root: Path) -> tuple[int, ...] | None:
    """By whatever means cores were taken away: an affinity, or a set of cores of the control group."""
    for line in (read(root / "proc/self/status") or "").splitlines():
        if line.startswith("Cpus_allowed_list:"):
            return _numbers(line.partition(":")[2])
    return None


def _numbers(text: str) -> tuple[int, ...] | None:
    """`0-2,5` as numbers; None where it is nothing of the kind."""
    found: list[int] = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        low, high = number(first), number(last or first)
        if low is None or high is None or not 0 <= low <= high < 1 << 20:
            return None
        found.extend(range(low, high + 1))
    return tuple(found)


# Memory


def meminfo(root: Path) -> dict[str, int]:
    """What the system says about memory, in bytes."""
    found = {}
    for line in (read(root / "proc/meminfo") or "").splitlines():
        name, _, rest = line.partition(":")
        if (kibibytes := number(rest.removesuffix("kB"))) is not None:
            found[name] = kibibytes * 1024
    return found


def machine_room(told: dict[str, int]) -> MemorySpace | None:
    """All memory of the machine."""
    total, available = told.get("MemTotal"), told.get("MemAvailable", told.get("MemFree"))
    return MemorySpace("machine", total, None if available is None else max(total - available, 0)) if total else None


def group_room(group: MemoryGroup | None, is_container: bool) -> MemorySpace | None:
    whose = "container" if is_container else "control group"
    return None if group is None else MemorySpace(whose, group.limit, group.used)


def _memory(told: dict[str, int], groups: Groups, container: str | None, root: Path) -> MemoryLimits:
    machine = machine_room(told) or (_elsewhere() if root == ROOT else None)
    return MemoryLimits(
        machine, group_room(groups.memory, container is not None), told.get("SwapTotal"), told.get("SwapFree")
    )


def _elsewhere() -> MemorySpace | None:
    """On systems without /proc: how much there is, and nothing about what is used."""
    try:
        return MemorySpace("machine", os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), None)
    except (ValueError, OSError):
        return None


# Files and disk


def _files(root: Path) -> Files:
    for line in (read(root / "proc/self/limits") or "").splitlines():
        words = line.split()
        if line.startswith("Max open files") and len(words) >= 5:
            return Files(*(UNLIMITED if word == "unlimited" else number(word) for word in words[3:5]))
    if root != ROOT:
        return Files(None, None)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return Files(*(UNLIMITED if limit == resource.RLIM_INFINITY else limit for limit in (soft, hard)))


def disk(path: Path) -> Disk | None:
    """What is left where `path` is or would be made."""
    there = next((place for place in _and_above(path) if place.is_dir()), None)
    try:
        found = os.statvfs(there) if there else None
    except OSError:
        found = None
    if there is None or found is None:
        return None
    # Some file systems have no fixed number of files, and say 0.
    files = found.f_favail if found.f_files else None
    writable = os.access(there, os.W_OK | os.X_OK) and not found.f_flag & os.ST_RDONLY
    return Disk(there, found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize, files, writable)


def _and_above(path: Path) -> Iterator[Path]:
    whole = path.absolute()
    yield whole
    yield from whole.parents


# Containers


def container_of(root: Path) -> str | None:
    """What keeps this container; None: this is none, as far as one can see."""
    for mark, maker in _MARKS.items():
        if (root / mark).exists():
            return maker
    names = (read(root / "proc/self/cgroup") or "") + (read(root / "proc/1/cgroup") or "")
    return next((maker for word, maker in _MAKERS.items() if word in names), None)


def own_bytes(root: Path = ROOT) -> int | None:
    """Memory that this process has in use."""
    words = (read(root / "proc/self/statm") or "").split()
    pages = number(words[1]) if len(words) > 1 else None
    return None if pages is None else pages * os.sysconf("SC_PAGE_SIZE")
