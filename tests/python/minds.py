"""Minds and a world of one's own, to be named in tests."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Awaitable, Mapping
from typing import Any, ClassVar, cast

from shoal.types import Action, Decision, Mind, Observation
from shoal.worlds.base import BaseWorld, Needs, Rejected, ViewObservation
from shoal.worlds.room.observations import RoomObservation

#: Long beside what a busy machine and a slow disk add to it.
DELAY_SECONDS = 0.1
LONG_SECONDS = 60.0
#: Longer than what counts as blocking.
BLOCKED_SECONDS = 0.5
#: Beside a running loop another thread hears of the interrupt, and on a busy machine that takes a while.
HEARD_SECONDS = 2.0


class Slow(Mind):
    """Takes the same time for every decision, as somebody far away would."""

    outside = True

    async def decide(self, observation: Observation) -> Decision:
        await asyncio.sleep(DELAY_SECONDS)
        return Decision((Action("TALK", {"content": "Well."}),))


class Noted(Slow):
    """Writes down in which rounds it was asked."""

    rounds: ClassVar[set[int]] = set()

    async def decide(self, observation: Observation) -> Decision:
        self.rounds.add(observation.round)
        return await super().decide(observation)


class Troubled(Mind):
    """Ada fails, Ben never answers, the others are well."""

    outside = True

    async def decide(self, observation: Observation) -> Decision:
        if observation.name == "Ada":
            raise ValueError("out of ideas")
        if observation.name == "Ben":
            await asyncio.sleep(LONG_SECONDS)
        return Decision((Action("TALK", {"content": "All is well."}),))


class Counting(Mind):
    """Says how many remarks it has heard in this turn, and remembers who decided."""

    asked: ClassVar[list[str]] = []

    async def decide(self, observation: Observation) -> Decision:
        self.asked.append(f"{observation.name} {observation.round}")
        heard = len(cast(RoomObservation, observation).stimuli)
        return Decision((Action("TALK", {"content": f"I heard {heard}."}),))


class Interrupted(Mind):
    """Lets somebody press Ctrl-C in the third round, once."""

    outside = True
    pressed: ClassVar[bool] = False

    async def decide(self, observation: Observation) -> Decision:
        if observation.round == 3 and not Interrupted.pressed:
            Interrupted.pressed = True
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(HEARD_SECONDS)
        return Decision((Action("TALK", {"content": "Still here."}),))


class Ladder(BaseWorld):
    """Everybody climbs; the first at the top ends it."""

    actions: ClassVar[Mapping[str, Needs]] = {"CLIMB": {"steps": int}}

    def __init__(self, name: str, given: Any, settings: Any) -> None:
        super().__init__(name, given, settings)
        self.steps = [0 for _ in self.people]

    @property
    def over(self) -> bool:
        return bool(max(self.steps) >= self.settings["top"])

    def view(self, round: int, agent: int) -> dict[str, Any]:
        return {"step": self.steps[agent]}

    def act(self, round: int, agent: int, action: Action) -> None:
        if action.args["steps"] > 1:
            raise Rejected("one step at a time")
        self.steps[agent] += action.args["steps"]


class Climber(Mind):
    """Climbs a step at a time; one who is told to hurry tries two."""

    def decide(self, observation: Observation) -> Decision:
        seen = cast(ViewObservation, observation)
        return Decision((Action("CLIMB", {"steps": 2 if seen.announcements else 1}),))


class Hung(Mind):
    """Waits in a thread for what never comes."""

    async def decide(self, observation: Observation) -> Decision:
        await asyncio.to_thread(threading.Event().wait)
        return Decision()


class Blocking(Mind):
    """Waits without letting others go on meanwhile."""

    async def decide(self, observation: Observation) -> Decision:
        await asyncio.sleep(0)
        time.sleep(BLOCKED_SECONDS)  # noqa: ASYNC251  # this is the mistake
        return Decision((Action("TALK", {"content": "Well."}),))


class Forgetful(Mind):
    """Returns a coroutine without saying that it must be awaited."""

    def decide(self, observation: Observation) -> Awaitable[Decision]:
        return self.answer()

    async def answer(self) -> Decision:
        return Decision()
