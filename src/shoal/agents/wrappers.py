"""A mind that takes its time, so that a run behaves as if something outside had been asked."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping, Sequence
from math import cos, exp, log, pi, sqrt
from typing import Any, ClassVar, Protocol, runtime_checkable

from shoal.agents.settings import Latency
from shoal.seeds import Draws, derive
from shoal.types import Decision, Mind, Observation


@runtime_checkable
class Remembering(Protocol):
    """A mind that can say what an agent remembers."""

    def memory(self, agent: int) -> object: ...


class DelayedMind(Mind):
    """Any mind, with decisions that take a lognormal time and are journaled."""

    outside: ClassVar[bool] = True

    def __init__(self, inner: Mind, latency: Latency, seed: int) -> None:
        self.inner = inner
        self._latency = latency
        self._seed = seed

    def request(self, observation: Observation) -> object:
        return [self.inner.request(observation), _memory(self.inner, observation.agent)]

    async def decide(self, observation: Observation) -> Decision:
        await asyncio.sleep(self.seconds(observation))
        decision = self.inner.decide(observation)
        return await decision if inspect.isawaitable(decision) else decision

    def absorb(self, observation: Observation, decision: Decision) -> None:
        self.inner.absorb(observation, decision)

    def change(self, agent: int, traits: Mapping[str, Any]) -> None:
        self.inner.change(agent, traits)

    def opinions(self) -> Sequence[float]:
        return self.inner.opinions()

    def explain(self, observation: Observation) -> Mapping[str, Any]:
        return self.inner.explain(observation)

    async def close(self) -> None:
        await self.inner.close()

    def seconds(self, observation: Observation) -> float:
        """How long this decision takes."""
        draws = Draws(derive(self._seed, observation.world, observation.round, observation.agent, "latency"))
        spread = self._latency.sigma * _normal(draws)
        return self._latency.median_ms / 1000 * exp(spread)


def _memory(mind: Mind, agent: int) -> object:
    return mind.memory(agent) if isinstance(mind, Remembering) else None


def _normal(draws: Draws) -> float:
    # 1 - u lies in (0, 1], where the logarithm is finite.
    return sqrt(-2.0 * log(1.0 - draws.random())) * cos(2.0 * pi * draws.random())
