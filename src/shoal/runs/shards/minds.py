"""The minds of a world as its engine sees them, while shards hold what they know."""

from __future__ import annotations

from asyncio import Future
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np

from shoal.engine import Decider, DecisionLimits, Seats
from shoal.journal import Journal
from shoal.runs.shards.messages import (
    ReportOrder,
    RoundEvents,
    RoundReport,
    ShardPlace,
    TraitChange,
    TurnOrder,
    TurnResults,
    TurnTaken,
)
from shoal.types import Decision, Event, Mind, MindMode, Notice, Observation


class Shards(Protocol):
    """The shards of a run, as minds use them."""

    def send(self, agent: int, message: object) -> None:
        """Send a message to the shard of an agent."""
        ...

    def send_to_all(self, message: object) -> None: ...

    def expect_decision(self, observation: Observation) -> Future[Decision]:
        """Return what will hold the decision of an agent that was ordered to decide."""
        ...

    async def end_round(self, end: ReportOrder) -> Sequence[tuple[ShardPlace, RoundReport]]:
        """Let all shards report on a round."""
        ...


class ShardedMind(Mind):
    """Passes everything on to the shards, and keeps what they last said their agents think.

    A change of an agent goes to all shards, as a mind may let it count with others. Messages arrive in the order in
    which they were sent, so it comes before the same decisions as in one process.
    """

    outside: ClassVar[bool] = True

    def __init__(self, inner: Mind, world: str, shards: Shards) -> None:
        """Take the mind of the world as it is before anything has happened."""
        super().__init__()
        self._inner = inner
        self._world = world
        self._shards = shards
        self._opinions = np.asarray(inner.opinions(), np.float64)
        self._beliefs = {claim: np.asarray(each, np.float64) for claim, each in inner.beliefs().items()}

    def mode(self, agent: int) -> MindMode:
        return self._inner.mode(agent) if self._inner.outside else MindMode.PURE

    def deadline(self, agent: int, seconds: float) -> float | None:
        return self._inner.deadline(agent, seconds)

    def decide(self, observation: Observation) -> Future[Decision]:
        self._shards.send(observation.agent, TurnOrder(observation))
        return self._shards.expect_decision(observation)

    def absorb(self, observation: Observation, decision: Decision) -> None:
        """Let the agent remember a turn that was not decided in its shard."""
        self._shards.send(observation.agent, TurnTaken(observation, decision))

    @property
    def learns(self) -> bool:
        return self._inner.learns

    def learn(self, round: int, happened: Sequence[Event | Notice]) -> None:
        self._shards.send_to_all(RoundEvents(self._world, round, happened))

    def take_results(self, round: int, agent: int, events: Sequence[Event]) -> None:
        if self._inner.outside:
            self._shards.send(agent, TurnResults(self._world, round, agent, events))

    def change(self, agent: int, traits: Mapping[str, Any]) -> None:
        self._shards.send_to_all(TraitChange(self._world, agent, traits))

    def opinions(self) -> Sequence[float]:
        opinions: list[float] = self._opinions.tolist()
        return opinions

    def beliefs(self) -> Mapping[str, Sequence[float]]:
        return {claim: each.tolist() for claim, each in self._beliefs.items()}

    async def end_round(self, round: int) -> Sequence[RoundReport]:
        """Let the shards find out what agents think after a round; return what they report."""
        reports = await self._shards.end_round(ReportOrder(self._world, round))
        for place, report in reports:
            if report.opinions is not None:
                self._opinions[place.agents] = report.opinions
            for claim, values in report.beliefs.items():
                self._beliefs[claim][place.agents] = values
        return [report for _, report in reports]


class ShardedDecider(Decider):
    """Has all decisions made in shards, which journal them and remember them."""

    def __init__(self, mind: ShardedMind, journal: Journal, limits: DecisionLimits, seats: Seats | None = None) -> None:
        super().__init__(mind, journal, limits, seats)
        self._sharded = mind

    def asks(self, observation: Observation) -> bool:
        return True

    def start(self, observation: Observation) -> Future[Decision]:
        """Send the turn of an agent without a seat at once: a task for each takes longer than the message."""
        if self.find_seat(observation) is not None:
            return super().start(observation)
        if self._changes:
            self.make_changes(observation)
        return self._sharded.decide(observation)

    async def ask(self, observation: Observation) -> Decision:
        """Ask the person in the agent's seat here, and its own mind in its shard, which remembers either."""
        self.make_changes(observation)
        decision = await self.ask_person(observation)
        if decision is None:
            return await self._sharded.decide(observation)
        self._sharded.absorb(observation, decision)
        return decision

    async def measure(self, round: int) -> None:
        for report in await self._sharded.end_round(round):
            self.calls += report.calls
            self.add_timings(report.timings)
