"""The networks that pages looked at lately, so that the next look reads only what is new."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from shoal.runs import RunDirectory
from shoal.runs.network import NetworkHistory

_MAX_KEPT = 12
#: How many actions the first and each further look at a long network reads, so that a page waits only a moment.
_FIRST_ACTIONS, _MORE_ACTIONS = 3_000, 40_000


class NetworkShelf:
    """Keeps the networks of a few worlds in memory. Each is forgotten when its run is started over."""

    def __init__(self) -> None:
        #: Run and world -> the number of the file that its database is, and the network.
        self._kept: OrderedDict[tuple[str, str], tuple[int, NetworkHistory]] = OrderedDict()
        self._lock = Lock()

    def read(self, run: RunDirectory, world: str | None, *, in_parts: bool = False) -> NetworkHistory:
        """Return the network of a world, or of the first one, as of the last committed round.

        `in_parts`: influence and paths may be known up to an earlier round, and up to a later one with each look.
        """
        name = run.worlds[0] if world is None else world
        database = run.file(f"{name}_simulation.db")
        stamp = database.stat().st_ino if database.exists() else 0
        key = run.path.name, name
        with self._lock:
            found_stamp, history = self._kept.pop(key, (0, None))
            if history is None or found_stamp != stamp:
                history = NetworkHistory(run, name)
            self._kept[key] = stamp, history
            while len(self._kept) > _MAX_KEPT:
                self._kept.popitem(last=False)
        most = _FIRST_ACTIONS if history.counted_until < 0 else _MORE_ACTIONS
        history.refresh(most if in_parts else None)
        return history
