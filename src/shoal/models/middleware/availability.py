"""Whether the servers of a run answer: the gates of all its models, and when the run gives up."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

from shoal.errors import ShoalError, Stopped
from shoal.models.costs import Spending
from shoal.models.middleware.attempts import ATTEMPT_SECONDS
from shoal.models.middleware.model_gate import ModelGate, Pause, Waits
from shoal.models.middleware.retrying import RealClock, RetryClock

#: How long a run waits for a server that does not answer, before it stops.
PATIENCE_SECONDS = 15 * 60.0
#: How often the gates look at the clock.
TICK_SECONDS = 0.25
#: A run that must stop waits this long for the answers that are on their way: they are paid for.
DRAIN_SECONDS = 5.0


class Availability:
    """The gates of all models of a run."""

    def __init__(
        self,
        spending: Spending,
        patience_seconds: float = PATIENCE_SECONDS,
        clock: RetryClock | None = None,
        attempt_seconds: float = ATTEMPT_SECONDS,
    ) -> None:
        self._clock = clock or RealClock()
        self._watches: list[Callable[[Pause | None], object]] = []
        self._spending = spending
        self._waits = Waits(patience_seconds, attempt_seconds)
        self._gates: dict[str, ModelGate] = {}
        #: What other processes of the run wait for, by their numbers.
        self._pauses_elsewhere: dict[int, Pause | None] = {}
        self._end_watches: list[Callable[[], object]] = []
        self._is_ending = False
        self._error: ShoalError | None = None
        self._has_ended = asyncio.Event()
        #: Whether nothing is awaited any more after the end, and when that is so at the latest.
        self._is_quiet = asyncio.Event()
        self._drained_at = math.inf

    def gate(self, model: str) -> ModelGate:
        if model not in self._gates:
            self._gates[model] = ModelGate(model, self._waits, self._spending, self._clock, self)
        return self._gates[model]

    @property
    def pause(self) -> Pause | None:
        """What the run waits for, the longest wait first; None while every server answers."""
        pauses = [*(gate.pause for gate in self._gates.values()), *self._pauses_elsewhere.values()]
        return min(filter(None, pauses), default=None, key=lambda pause: pause.began)

    def watch(self, watch: Callable[[Pause | None], object]) -> None:
        """Call this whenever a pause begins, changes or ends."""
        self._watches.append(watch)

    def show_elsewhere(self, process: int, pause: Pause | None) -> None:
        """Take note of what another process of the run waits for."""
        if self._pauses_elsewhere.get(process) != pause:
            self._pauses_elsewhere[process] = pause
            self.on_change()

    def watch_end(self, watch: Callable[[], object]) -> None:
        """Call this when nothing is waited for any more."""
        self._end_watches.append(watch)

    async def wait_for_end(self) -> None:
        """Wait until a server is given up, and raise why."""
        await self._has_ended.wait()
        await self.drain()
        assert self._error is not None
        raise self._error

    async def drain(self) -> None:
        """Wait for the answers that are on their way when a server is given up, but not long."""
        await self._is_quiet.wait()

    def on_end(self, error: ShoalError) -> None:
        self._error = self._error or error
        self._drained_at = min(self._drained_at, self._clock.now() + DRAIN_SECONDS)
        self._has_ended.set()
        self.on_quiet()

    def on_quiet(self) -> None:
        is_late = self._clock.now() >= self._drained_at
        if self._has_ended.is_set() and (is_late or not any(gate.attempts for gate in self._gates.values())):
            self._is_quiet.set()

    def on_change(self) -> None:
        for watch in self._watches:
            watch(self.pause)
        if self._is_ending:
            self.end_pauses()

    async def follow(self) -> None:
        """Look at the clock again and again."""
        while True:
            await self._clock.sleep(TICK_SECONDS)
            for gate in list(self._gates.values()):
                gate.tick()
            self.on_quiet()

    def end_pauses(self) -> None:
        """End the wait for servers that do not answer, and wait for none any more: the user asked to stop."""
        self._is_ending = True
        for watch in self._end_watches:
            watch()
        for gate in self._gates.values():
            if gate.pause is not None:
                gate.stop(Stopped(f"stopped while it waited for {gate.model}"))
