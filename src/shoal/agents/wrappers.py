"""Minds around other minds: the base that forwards everything, and a mind that adds latency."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Collection, Mapping, Sequence
from math import exp
from typing import Any, ClassVar, Protocol, runtime_checkable

from shoal.agents.settings import Latency
from shoal.seeds import Draws, derive
from shoal.types import Decision, Event, Mind, MindMode, Notice, Observation


@runtime_checkable
class Remembering(Protocol):
    """A mind that can say what an agent remembers."""

    def memory(self, agent: int) -> object: ...


class WrapperMind(Mind):
    """Forwards every method and attribute of `Mind` to another mind. A subclass overrides only what it changes.

    `outside` is set, so that `mode` is called for each agent: the mind inside decides.
    """

    outside: ClassVar[bool] = True

    def __init__(self, inner: Mind) -> None:
        # A subclass of Mind need not call its constructor.
        super().__init__(getattr(inner, "given", None), getattr(inner, "settings", None))
        self.inner = inner

    def mind_of(self, agent: int) -> Mind:
        """Return the mind that takes this agent's turns."""
        return self.inner

    def mode(self, agent: int) -> MindMode:
        return self.mind_of(agent).mode(agent)

    def deadline(self, agent: int, seconds: float) -> float | None:
        return self.mind_of(agent).deadline(agent, seconds)

    def request(self, observation: Observation) -> object:
        return self.mind_of(observation.agent).request(observation)

    def decide(self, observation: Observation) -> Decision | Awaitable[Decision]:
        return self.mind_of(observation.agent).decide(observation)

    async def prepare(self, observation: Observation) -> None:
        await self.mind_of(observation.agent).prepare(observation)

    def absorb(self, observation: Observation, decision: Decision) -> None:
        self.mind_of(observation.agent).absorb(observation, decision)

    @property
    def learns(self) -> bool:
        return self.inner.learns

    def learn(self, round: int, happened: Sequence[Event | Notice]) -> None:
        self.inner.learn(round, happened)

    def take_results(self, round: int, agent: int, events: Sequence[Event]) -> None:
        self.mind_of(agent).take_results(round, agent, events)

    def change(self, agent: int, traits: Mapping[str, Any]) -> None:
        self.inner.change(agent, traits)

    def opinions(self) -> Sequence[float]:
        return self.inner.opinions()

    async def measure(self, round: int) -> None:
        await self.inner.measure(round)

    def beliefs(self) -> Mapping[str, Sequence[float]]:
        return self.inner.beliefs()

    def explain(self, observation: Observation) -> Mapping[str, Any]:
        return self.mind_of(observation.agent).explain(observation)

    async def close(self) -> None:
        await self.inner.close()

    def memory(self, agent: int) -> object:
        """Return what the agent remembers, or None where the mind inside cannot say."""
        mind = self.mind_of(agent)
        return mind.memory(agent) if isinstance(mind, Remembering) else None


class SplitMind(WrapperMind):
    """Lets another mind take the turns of some agents, and the mind inside those of all others."""

    def __init__(self, inner: Mind, other: Mind, agents: Collection[int]) -> None:
        super().__init__(inner)
        self._other = other
        self._agents = frozenset(agents)

    def mind_of(self, agent: int) -> Mind:
        return self._other if agent in self._agents else self.inner


def unwrap(mind: Mind, agent: int) -> Mind:
    """Return the mind that takes this agent's turns, without any wrappers around it."""
    while isinstance(mind, WrapperMind):
        mind = mind.mind_of(agent)
    return mind


class DelayedMind(WrapperMind):
    """Delays each decision by a lognormal time and has it journaled, as if a model had been asked."""

    def __init__(self, inner: Mind, latency: Latency, seed: int) -> None:
        super().__init__(inner)
        self._latency = latency
        self._seed = seed

    def mode(self, agent: int) -> MindMode:
        inner = super().mode(agent)
        return MindMode.EXTERNAL if inner is MindMode.PURE else inner

    def request(self, observation: Observation) -> object:
        return [super().request(observation), self.memory(observation.agent)]

    async def decide(self, observation: Observation) -> Decision:
        await asyncio.sleep(self.seconds(observation))
        decision = super().decide(observation)
        return await decision if isinstance(decision, Awaitable) else decision

    def seconds(self, observation: Observation) -> float:
        """Draw how long this decision takes."""
        draws = Draws(derive(self._seed, observation.world, observation.round, observation.agent, "latency"))
        return self._latency.median_ms / 1000 * exp(self._latency.sigma * draws.normal())
