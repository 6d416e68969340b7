"""A person who takes the turns of some agents; a mind takes those of all the others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar

from shoal.agents.wrappers import Remembering
from shoal.types import Decision, Mind, Observation

#: Asks a person for one turn.
AskPerson = Callable[[Observation], Awaitable[Decision]]


class HumanMind(Mind):
    """Asks a person, who takes all the time they need. What they decide is journaled, and never asked for twice."""

    outside: ClassVar[bool] = True

    def __init__(self, answer: AskPerson) -> None:
        self._answer = answer

    def deadline(self, agent: int, seconds: float) -> float | None:
        return None

    async def decide(self, observation: Observation) -> Decision:
        return await self._answer(observation)

    def explain(self, observation: Observation) -> Mapping[str, Any]:
        return {"played_by": "a person"}


class PlayedMind(Mind):
    """Some agents are played, the others are as they are.

    Nobody looks into the head of a person: a played agent's opinion stays what it was declared to be, or changed to.
    """

    outside: ClassVar[bool] = True

    def __init__(self, default: Mind, human: HumanMind, agents: Collection[int]) -> None:
        self._default = default
        self._human = human
        self._played = frozenset(agents)

    def asks(self, agent: int) -> bool:
        return self._mind(agent).asks(agent)

    def journals(self, agent: int) -> bool:
        return self._mind(agent).journals(agent)

    def deadline(self, agent: int, seconds: float) -> float | None:
        return self._mind(agent).deadline(agent, seconds)

    def request(self, observation: Observation) -> object:
        return self._mind(observation.agent).request(observation)

    async def settle(self, observation: Observation) -> None:
        await self._mind(observation.agent).settle(observation)

    def decide(self, observation: Observation) -> Decision | Awaitable[Decision]:
        return self._mind(observation.agent).decide(observation)

    def absorb(self, observation: Observation, decision: Decision) -> None:
        self._mind(observation.agent).absorb(observation, decision)

    def change(self, agent: int, traits: Mapping[str, Any]) -> None:
        self._default.change(agent, traits)

    def opinions(self) -> Sequence[float]:
        return self._default.opinions()

    def explain(self, observation: Observation) -> Mapping[str, Any]:
        return self._mind(observation.agent).explain(observation)

    async def close(self) -> None:
        await self._default.close()

    def memory(self, agent: int) -> object:
        mind = self._mind(agent)
        return mind.memory(agent) if isinstance(mind, Remembering) else None

    def _mind(self, agent: int) -> Mind:
        return self._human if agent in self._played else self._default
