"""Agents that are played by a person, beside agents with a mind."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar

from shoal.agents.wrappers import SplitMind
from shoal.types import Decision, Mind, Observation

#: Asks a person for one turn.
AskPerson = Callable[[Observation], Awaitable[Decision]]


class HumanMind(Mind):
    """Asks a person, without a deadline. The decisions are journaled and never asked for twice."""

    outside: ClassVar[bool] = True

    def __init__(self, answer: AskPerson) -> None:
        super().__init__()
        self._answer = answer

    def deadline(self, agent: int, seconds: float) -> float | None:
        return None

    async def decide(self, observation: Observation) -> Decision:
        return await self._answer(observation)

    def explain(self, observation: Observation) -> Mapping[str, Any]:
        return {"played_by": "a person"}


class PlayedMind(SplitMind):
    """Lets a person take the turns of some agents, and the mind inside those of all others.

    The opinion of a played agent stays as declared or as an intervention set it, since it cannot be measured.
    """
