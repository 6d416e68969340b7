"""The cores, memory, open files and disk that this process may use.

Everything is read from /proc and /sys, which costs nothing and needs no package. What cannot be read is None: unknown.
"""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from shoal.machine.cgroups import ENDLESS_BYTES, Groups, MemoryGroup, parse_integer, read_cgroups, read_if_there

ROOT = Path("/")
#: Stands for any number of open files.
UNLIMITED = 1 << 60

#: Words in the name of a control group, and what makes groups of that name. Pods contain other containers: first.
_CONTAINERS_BY_GROUP = {
    "kubepods": "Kubernetes",
    "docker": "Docker",
    "libpod": "Podman",
    "containerd": "containerd",
    "lxc": "LXC",
}
#: Files that exist only in a container.
_CONTAINERS_BY_FILE = {
    "var/run/secrets/kubernetes.io": "Kubernetes",
    ".dockerenv": "Docker",
    "run/.containerenv": "Podman",
    "run/systemd/container": "systemd-nspawn",
}


@dataclass(frozen=True, slots=True)
class Cores:
    """The CPU cores of the machine, and how many of them this process may use."""

    logical: int | None
    #: The numbers of those that this process may run on; None: unknown.
    allowed: tuple[int, ...] | None = None
    #: CPU seconds per second that the control groups allow; None: no limit.
    quota: float | None = None

    @classmethod
    def read(cls, root: Path, quota: float | None) -> Cores:
        logical = len(_parse_ranges(read_if_there(root / "sys/devices/system/cpu/online")) or ())
        if not logical:
            logical = sum(line.startswith("processor") for line in read_if_there(root / "proc/cpuinfo").splitlines())
        # Covers affinities and sets of cores of the control group alike.
        status = read_if_there(root / "proc/self/status").splitlines()
        listed = (line.partition(":")[2] for line in status if line.startswith("Cpus_allowed_list:"))
        return cls(logical or (os.cpu_count() if root == ROOT else None), _parse_ranges(next(listed, "")), quota)

    @property
    def usable(self) -> float | None:
        known = (self.quota, self.logical, len(self.allowed) if self.allowed else None)
        return min((count for count in known if count is not None), default=None)


@dataclass(frozen=True, slots=True)
class MemorySpace:
    """A limited amount of memory: the machine's or a control group's."""

    #: `machine`, `container`, or `control group` where that is not a container's.
    whose: str
    total: int
    #: Without file caches, which the system can drop; None: unknown.
    used: int | None

    @property
    def free(self) -> int:
        """What is free; all of it if it is unknown what is used."""
        return max(self.total - (self.used or 0), 0)

    @property
    def share(self) -> float | None:
        return None if self.used is None else self.used / self.total

    def below(self, share: float) -> int:
        """Return what can be taken until this share is in use."""
        return max(round(self.total * share) - (self.used or 0), 0)


@dataclass(frozen=True, slots=True)
class MemoryLimits:
    """The memory of the machine, and of the control group that leaves least, if one has a limit."""

    machine: MemorySpace | None
    group: MemorySpace | None = None
    swap_total: int | None = None
    swap_free: int | None = None

    @classmethod
    def read(cls, root: Path, group: MemoryGroup | None, is_container: bool) -> MemoryLimits:
        found = read_meminfo(root)
        total, available = found.get("MemTotal"), found.get("MemAvailable", found.get("MemFree"))
        used = None if total is None or available is None else max(total - available, 0)
        if total is None and root == ROOT:
            # Systems without /proc say how much memory there is, and not how much of it is used.
            with suppress(ValueError, OSError):
                total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        whose = "container" if is_container else "control group"
        return cls(
            MemorySpace("machine", total, used) if total else None,
            None if group is None else MemorySpace(whose, group.limit, group.read_used()),
            found.get("SwapTotal"),
            found.get("SwapFree"),
        )

    @property
    def spaces(self) -> list[MemorySpace]:
        return [space for space in (self.machine, self.group) if space is not None]

    @property
    def tightest(self) -> MemorySpace | None:
        """Where memory runs out first."""
        return min(self.spaces, key=lambda space: space.free, default=None)

    @property
    def share(self) -> float | None:
        """The largest share in use."""
        return max((space.share for space in self.spaces if space.share is not None), default=None)


@dataclass(frozen=True, slots=True)
class Files:
    """How many files a process may open: now, and after asking for more, as Shoal does."""

    soft: int | None
    hard: int | None

    @classmethod
    def read(cls, root: Path) -> Files:
        for line in read_if_there(root / "proc/self/limits").splitlines():
            words = line.split()
            if line.startswith("Max open files") and len(words) >= 5:
                return cls(*(UNLIMITED if word == "unlimited" else parse_integer(word) for word in words[3:5]))
        if root != ROOT:
            return cls(None, None)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        return cls(*(UNLIMITED if limit == resource.RLIM_INFINITY else limit for limit in (soft, hard)))


@dataclass(frozen=True, slots=True)
class Disk:
    """The disk at a path."""

    path: Path
    total: int
    free: int
    #: Files that can still be made; None: as many as fit.
    free_files: int | None
    is_writable: bool


@dataclass(frozen=True, slots=True)
class Machine:
    """Everything that limits the work of this process."""

    cores: Cores
    memory: MemoryLimits
    files: Files
    #: The kind of container, such as `Docker`; None: not in a container.
    container: str | None = None
    #: `v1`, `v2` or `hybrid`; None: there are none.
    cgroups: str | None = None


def inspect_machine(root: Path = ROOT) -> Machine:
    """Read the machine from /proc and /sys under `root`."""
    container, groups = find_container(root), read_groups(root)
    return Machine(
        Cores.read(root, None if groups.cpu is None else groups.cpu.cores),
        MemoryLimits.read(root, groups.memory, container is not None),
        Files.read(root),
        container,
        groups.version,
    )


def read_groups(root: Path) -> Groups:
    """Return the control groups that limit this process to less than the machine has."""
    return read_cgroups(root, read_meminfo(root).get("MemTotal") or ENDLESS_BYTES)


def _parse_ranges(text: str) -> tuple[int, ...] | None:
    """Parse `0-2,5` into numbers; None for anything else."""
    found: list[int] = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        low, high = parse_integer(first), parse_integer(last or first)
        if low is None or high is None or not 0 <= low <= high < 1 << 20:
            return None
        found.extend(range(low, high + 1))
    return tuple(found)


def read_meminfo(root: Path) -> dict[str, int]:
    """Return the figures of /proc/meminfo in bytes."""
    found = {}
    for line in read_if_there(root / "proc/meminfo").splitlines():
        name, _, rest = line.partition(":")
        if (kibibytes := parse_integer(rest.removesuffix("kB"))) is not None:
            found[name] = kibibytes * 1024
    return found


def inspect_disk(path: Path) -> Disk | None:
    """Return the disk where `path` is or would be made; None if nothing is known of it."""
    whole = path.absolute()
    try:
        folder = next(place for place in (whole, *whole.parents) if place.is_dir())
        found = os.statvfs(folder)
    except (StopIteration, OSError):
        return None
    # Some file systems have no fixed number of files, and say 0.
    files = found.f_favail if found.f_files else None
    writable = os.access(folder, os.W_OK | os.X_OK) and not found.f_flag & os.ST_RDONLY
    return Disk(folder, found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize, files, writable)


def find_container(root: Path) -> str | None:
    """Return the kind of container that this process is in; None if there are no signs of one."""
    for mark, container in _CONTAINERS_BY_FILE.items():
        if (root / mark).exists():
            return container
    names = read_if_there(root / "proc/self/cgroup") + read_if_there(root / "proc/1/cgroup")
    return next((container for word, container in _CONTAINERS_BY_GROUP.items() if word in names), None)
