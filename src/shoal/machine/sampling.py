"""How busy the machine is now, cheaply enough to ask every second."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from shoal.machine.cgroups import MemoryGroup, cpu_seconds, number, read, used_bytes
from shoal.machine.cgroups import read_cgroups as look_at_groups
from shoal.machine.hardware import (
    ROOT,
    UNLIMITED,
    MemoryLimits,
    container_of,
    group_room,
    inspect_machine,
    machine_room,
    meminfo,
    own_bytes,
)

#: Of the columns in /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal. What guests use is in user.
_COLUMNS = 8
_IDLE = (3, 4)
_MIN_SECONDS = 1e-3


@dataclass(frozen=True, slots=True)
class Sample:
    """How busy everything is; shares of 1. What is not known is None, and so are all rates of a first sample."""

    #: Seconds, on a clock that does not go back.
    at: float
    #: Of the cores that may be used, or of the quota, whichever is busier.
    cpu: float | None = None
    #: Of the machine's memory, or of the container's, whichever is fuller.
    memory: float | None = None
    #: Of one core: what this process takes by itself.
    own_cpu: float | None = None
    own_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class _Counts:
    at: float
    own: float
    group: float | None
    #: Ticks of the cores that may be used: busy, and all.
    machine: tuple[int, int] | None


class Sampler:
    """Takes samples; each tells of the time since the one before. Limits are looked up once, as they hardly change."""

    def __init__(
        self,
        root: Path = ROOT,
        clock: Callable[[], float] = time.monotonic,
        own_clock: Callable[[], float] = time.process_time,
    ) -> None:
        self._root = root
        self._clock = clock
        self._own_clock = own_clock
        self._groups = look_at_groups(root, meminfo(root).get("MemTotal") or UNLIMITED)
        self._is_container = container_of(root) is not None
        allowed = inspect_machine(root).cores.allowed
        self._names = {f"cpu{number}" for number in allowed or ()} or {"cpu"}
        self._before = self._counts()

    def take(self) -> Sample:
        before, self._before = self._before, self._counts()
        now = self._before
        seconds = now.at - before.at
        return Sample(
            at=now.at,
            cpu=_fullest(self._of_quota(before, now, seconds), _busy(before.machine, now.machine)),
            memory=self._memory().share,
            own_cpu=max(now.own - before.own, 0.0) / seconds if seconds > _MIN_SECONDS else None,
            own_bytes=own_bytes(self._root),
        )

    def _counts(self) -> _Counts:
        group = self._groups.cpu
        used = None if group is None else cpu_seconds(group.counted)
        return _Counts(self._clock(), self._own_clock(), used, self._ticks())

    def _ticks(self) -> tuple[int, int] | None:
        busy, total = 0, 0
        for line in (read(self._root / "proc/stat") or "").splitlines():
            name, *words = line.split()[: _COLUMNS + 1] or [""]
            if name in self._names:
                ticks = [number(word) or 0 for word in words]
                total += sum(ticks)
                busy += sum(ticks) - sum(ticks[column] for column in _IDLE if column < len(ticks))
        return (busy, total) if total else None

    def _of_quota(self, before: _Counts, now: _Counts, seconds: float) -> float | None:
        group = self._groups.cpu
        if group is None or before.group is None or now.group is None or seconds <= _MIN_SECONDS:
            return None
        return max(now.group - before.group, 0.0) / (seconds * group.cores)

    def _memory(self) -> MemoryLimits:
        group = self._groups.memory
        if group is not None:
            group = MemoryGroup(group.level, group.limit, used_bytes(group.level))
        return MemoryLimits(machine_room(meminfo(self._root)), group_room(group, self._is_container))


def _busy(before: tuple[int, int] | None, now: tuple[int, int] | None) -> float | None:
    if before is None or now is None or now[1] <= before[1]:
        return None
    return min(max((now[0] - before[0]) / (now[1] - before[1]), 0.0), 1.0)


def _fullest(*shares: float | None) -> float | None:
    return max((share for share in shares if share is not None), default=None)
