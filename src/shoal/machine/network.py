"""The network interface through which calls leave this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from shoal.machine.cgroups import parse_integer, read_if_there

#: Destination of the route that all other addresses take.
_EVERYWHERE = "00000000"


@dataclass(frozen=True, slots=True)
class Network:
    """The interface of the default route. What lies behind it may be slower, and cannot be read."""

    interface: str
    #: Bits per second; None where the interface does not say, as in most containers and on wireless ones.
    speed: int | None = None

    @classmethod
    def read(cls, root: Path) -> Network | None:
        for line in read_if_there(root / "proc/net/route").splitlines()[1:]:
            fields = line.split()
            if len(fields) > 1 and fields[1] == _EVERYWHERE:
                megabits = parse_integer(read_if_there(root / "sys/class/net" / fields[0] / "speed").strip())
                return cls(fields[0], megabits * 1_000_000 if megabits is not None and megabits > 0 else None)
        return None
