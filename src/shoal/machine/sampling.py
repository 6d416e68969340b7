"""Measures how busy the machine is, cheaply enough for every second."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from shoal.machine.cgroups import parse_integer, read_if_there
from shoal.machine.hardware import ROOT, Cores, MemoryLimits, find_container, read_groups

#: The columns of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal. Guests are counted in user.
_COLUMNS = 8
_IDLE = slice(3, 5)
_MIN_SECONDS = 1e-3


@dataclass(frozen=True, slots=True)
class Sample:
    """How busy the machine is, in shares of 1. Unknown values are None, and so is the CPU of a first sample."""

    #: Seconds, on a clock that does not go back.
    at: float
    #: Of the usable cores, or of the quota, whichever is busier.
    cpu: float | None = None
    #: Of the machine's memory, or of the container's, whichever is fuller.
    memory: float | None = None


class Sampler:
    """Takes samples, each of the time since the one before. Limits are read once, as they hardly change."""

    def __init__(self, root: Path = ROOT, clock: Callable[[], float] = time.monotonic) -> None:
        self._root = root
        self._clock = clock
        self._groups = read_groups(root)
        self._is_container = find_container(root) is not None
        self._cores = {f"cpu{number}" for number in Cores.read(root, None).allowed or ()} or {"cpu"}
        self._before = self._count()

    def take(self) -> Sample:
        (then, group_then, busy_then, ticks_then), self._before = self._before, self._count()
        now, group, busy, ticks = self._before
        shares = []
        if self._groups.cpu is not None and group is not None and group_then is not None and now - then > _MIN_SECONDS:
            shares.append(max(group - group_then, 0.0) / ((now - then) * self._groups.cpu.cores))
        if ticks_then and ticks > ticks_then:
            shares.append(min(max((busy - busy_then) / (ticks - ticks_then), 0.0), 1.0))
        memory = MemoryLimits.read(self._root, self._groups.memory, self._is_container)
        return Sample(now, max(shares, default=None), memory.share)

    def _count(self) -> tuple[float, float | None, int, int]:
        """Return the time, the CPU seconds of the control group, and the ticks of the usable cores: busy, and all."""
        busy, total = 0, 0
        for line in read_if_there(self._root / "proc/stat").splitlines():
            name, *words = line.split()[: _COLUMNS + 1] or [""]
            if name in self._cores:
                ticks = [parse_integer(word) or 0 for word in words]
                total += sum(ticks)
                busy += sum(ticks) - sum(ticks[_IDLE])
        group = self._groups.cpu
        return self._clock(), None if group is None else group.read_seconds(), busy, total
