"""A server like llama.cpp in virtual time: so many slots, in which calls share the machine; the others wait in line."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from shoal.seeds import Draws, derive
from shoal.slots.leases import CallEnd, CallOutcome, Control

SERVICE_SECONDS = 0.5
PAUSE_SECONDS = 0.05


@dataclass(slots=True, eq=False)
class _Call:
    sent: Any
    at: float
    #: Seconds of work that are left, for a machine that does nothing else.
    left: float


class SharedRun(NamedTuple):
    seconds: float
    #: Seconds of work that all calls were, for a machine that does one after another.
    work: float
    #: The most calls in flight in each round.
    peaks: list[int]


class SharedServer:
    """Answers rounds of calls; `power` is how much work is done in a second with so many calls in work."""

    def __init__(self, slots: int, power: Callable[[int], float], sigma: float, seed: int) -> None:
        self._slots = slots
        self._power = power
        self._sigma = sigma
        self._draws = Draws(derive(seed, "work"))
        self._now = self._work = 0.0
        self._in_work: list[_Call] = []
        self._line: deque[_Call] = deque()

    def answer_rounds(self, control: Control, rounds: Sequence[int]) -> SharedRun:
        # As in a run, one call goes out alone before the others.
        peaks = [self._answer_round(control, calls) for calls in (1, *rounds)][1:]
        return SharedRun(self._now, self._work, peaks)

    def _answer_round(self, control: Control, calls: int) -> int:
        waiting, peak = calls, 0
        while waiting or self._in_work:
            wait = math.inf
            while waiting and (wait := control.wait(self._now, 1000, waiting)) == 0:
                self._send(control.begin(self._now, 1000))
                waiting -= 1
                wait = math.inf
            peak = max(peak, len(self._in_work) + len(self._line))
            self._go_on(control, wait)
        self._now += PAUSE_SECONDS
        return peak

    def _send(self, sent: Any) -> None:
        work = SERVICE_SECONDS * math.exp(self._sigma * self._draws.normal())
        self._work += work
        self._line.append(_Call(sent, self._now, work))
        self._fill()

    def _fill(self) -> None:
        while self._line and len(self._in_work) < self._slots:
            self._in_work.append(self._line.popleft())

    def _go_on(self, control: Control, wait: float) -> None:
        """Work until the next answer, or until the limit wants to be asked again."""
        speed = self._power(len(self._in_work)) / len(self._in_work)
        first = min(self._in_work, key=lambda call: call.left)
        seconds = min(first.left / speed, wait)
        self._now += seconds
        for call in self._in_work:
            call.left -= seconds * speed
        if seconds == wait:
            return
        self._in_work.remove(first)
        self._fill()
        control.end(self._now, first.sent, CallOutcome(CallEnd.OK, self._now - first.at, 1000))
