"""Measures how busy the machine is, cheaply enough for every second."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from shoal.machine.cgroups import MemoryGroup, parse_number, read_cgroups, read_cpu_seconds, read_text, read_used_bytes
from shoal.machine.hardware import (
    ROOT,
    UNLIMITED,
    MemoryLimits,
    find_container,
    inspect_machine,
    read_meminfo,
    read_own_bytes,
    to_group_memory,
    to_machine_memory,
)

#: The columns of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal. Guests are counted in user.
_COLUMNS = 8
_IDLE = (3, 4)
_MIN_SECONDS = 1e-3


@dataclass(frozen=True, slots=True)
class Sample:
    """How busy the machine is, in shares of 1. Unknown values are None, and so are all rates of a first sample."""

    #: Seconds, on a clock that does not go back.
    at: float
    #: Of the usable cores, or of the quota, whichever is busier.
    cpu: float | None = None
    #: Of the machine's memory, or of the container's, whichever is fuller.
    memory: float | None = None
    #: CPU use of this process, as a share of one core.
    own_cpu: float | None = None
    own_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class _Counts:
    """Counters that only grow."""

    at: float
    own: float
    group: float | None
    #: Ticks of the usable cores: busy, and all.
    machine: tuple[int, int] | None


class Sampler:
    """Takes samples, each of the time since the one before. Limits are read once, as they hardly change."""

    def __init__(
        self,
        root: Path = ROOT,
        clock: Callable[[], float] = time.monotonic,
        own_clock: Callable[[], float] = time.process_time,
    ) -> None:
        self._root = root
        self._clock = clock
        self._own_clock = own_clock
        self._groups = read_cgroups(root, read_meminfo(root).get("MemTotal") or UNLIMITED)
        self._is_container = find_container(root) is not None
        allowed = inspect_machine(root).cores.allowed
        self._cores = {f"cpu{number}" for number in allowed or ()} or {"cpu"}
        self._before = self._count()

    def take(self) -> Sample:
        before, now = self._before, self._count()
        self._before = now
        seconds, cpu, group = now.at - before.at, self._groups.cpu, self._groups.memory
        cpu_shares = []
        if cpu is not None and before.group is not None and now.group is not None and seconds > _MIN_SECONDS:
            cpu_shares.append(max(now.group - before.group, 0.0) / (seconds * cpu.cores))
        if before.machine is not None and now.machine is not None and now.machine[1] > before.machine[1]:
            busy = (now.machine[0] - before.machine[0]) / (now.machine[1] - before.machine[1])
            cpu_shares.append(min(max(busy, 0.0), 1.0))
        if group is not None:
            group = MemoryGroup(group.level, group.limit, read_used_bytes(group.level))
        memory = MemoryLimits(to_machine_memory(read_meminfo(self._root)), to_group_memory(group, self._is_container))
        return Sample(
            at=now.at,
            cpu=max(cpu_shares, default=None),
            memory=memory.share,
            own_cpu=max(now.own - before.own, 0.0) / seconds if seconds > _MIN_SECONDS else None,
            own_bytes=read_own_bytes(self._root),
        )

    def _count(self) -> _Counts:
        group, busy, total = self._groups.cpu, 0, 0
        for line in (read_text(self._root / "proc/stat") or "").splitlines():
            name, *words = line.split()[: _COLUMNS + 1] or [""]
            if name in self._cores:
                ticks = [parse_number(word) or 0 for word in words]
                total += sum(ticks)
                busy += sum(ticks) - sum(ticks[column] for column in _IDLE if column < len(ticks))
        used = None if group is None else read_cpu_seconds(group.counted)
        return _Counts(self._clock(), self._own_clock(), used, (busy, total) if total else None)
