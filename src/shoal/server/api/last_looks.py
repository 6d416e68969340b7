"""When pages of other origins hear that a run is over.

MiroFish's run page asks for the actions every three seconds, and never again once it hears that the run is over. So it
hears of the end after it has asked for the last actions.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from shoal.runs import RunState, Status

_MAX_RUNS = 1_000


class LastLooks:
    """Remembers when pages started each run, and when they last asked for its actions."""

    def __init__(self, patience_seconds: float, now: Callable[[], float] = time.time) -> None:
        #: How long after its end a run is still shown as running to a page that does not ask for actions.
        self._patience_seconds = patience_seconds
        self._now = now
        #: Id of a run -> when a page started it, and when one asked for its actions. The oldest is forgotten first.
        self._times: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def note_start(self, run: str) -> None:
        self._note(run, self._now(), 0.0)

    def note_look(self, run: str) -> None:
        """Note that a page asks for the actions, before they are read."""
        self._note(run, self._times.get(run, (0.0, 0.0))[0], self._now())

    def _note(self, run: str, started: float, looked: float) -> None:
        self._times[run] = started, looked
        self._times.move_to_end(run)
        if len(self._times) > _MAX_RUNS:
            self._times.popitem(last=False)

    def hold_end(self, run: str, state: RunState) -> None:
        """Show a run as running that has ended after the last look of a page."""
        ended = state.completed_seconds
        if state.runner_status is Status.RUNNING and all(world.completed for world in state.worlds.values()):
            ended = self._now()
        if ended is None or state.runner_status not in (Status.RUNNING, Status.COMPLETED):
            return
        started, looked = self._times.get(run, (0.0, 0.0))
        if looked < ended and self._now() - max(started, ended) < self._patience_seconds:
            state.runner_status, state.completed_at = Status.RUNNING, None
            for world in state.worlds.values():
                world.running, world.completed = True, False
