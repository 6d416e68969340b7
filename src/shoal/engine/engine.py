"""Advances one world round by round: observe, decide, apply, commit.

With visibility k the picture of round r is that after round r - k, so up to k rounds are in flight. Rounds are begun
and finished in order; what overlaps is the waiting. An agent's own decisions stay in order too: each waits for the
agent's decision before it, and sees those of its own actions that nobody else can see yet.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec
import numpy as np

from shoal.engine.deliberation import Deliberation
from shoal.engine.record import Ledger, Record, Tape, chain
from shoal.errors import Stopped
from shoal.seeds import derive, hashes
from shoal.types import Decision, Observation, World

#: Decisions under way when a run is stopped have this long to come in and be journaled.
STOP_GRACE_SECONDS = 5.0

#: Agents handled together, so that what they see and do is still in the processor's cache when it is used.
_CHUNK = 1024

Pending = asyncio.Task[Decision]
D = TypeVar("D", Decision, Pending)


@dataclass(slots=True)
class _Open:
    """A round whose decisions are being made."""

    round: int
    groups: Sequence[Sequence[int]]
    #: Decisions of the first group; later groups see what the first one did, so they are asked when it is done.
    decisions: Sequence[Decision | Pending]


class Engine:
    """One world, its mind, and the place where its rounds are committed."""

    def __init__(self, world: World, deliberation: Deliberation, ledger: Ledger, seed: int) -> None:
        self._world = world
        self._deliberation = deliberation
        self._ledger = ledger
        self._seed = seed
        self._digest = ""
        self._unseen: dict[int, deque[tuple[int, Decision | Pending]]] = {}
        self._tasks: set[Pending] = set()
        self._mark = (0, time.perf_counter(), 0.0)

    async def run(self, rounds: int, stop: asyncio.Event) -> str:
        """Advance to the last round; returns the digest of the history."""
        stopping = asyncio.create_task(stop.wait())
        try:
            beginning = Tape()
            beginning.add(self._world.begin(0))
            self._commit(0, beginning, 0)
            in_flight: deque[_Open] = deque()
            for round in range(1, rounds + 1):
                if len(in_flight) == self._world.visibility:
                    await self._finish(in_flight.popleft(), stopping)
                in_flight.append(self._open(round))
                await asyncio.sleep(0)
            while in_flight:
                await self._finish(in_flight.popleft(), stopping)
            return self._digest
        finally:
            await self._abandon(stopping)

    async def _abandon(self, stopping: asyncio.Task[bool]) -> None:
        """Cancel what is still being asked; what has come in is in the journal."""
        tasks = [stopping, *self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _open(self, round: int) -> _Open:
        groups = [self._in_seeded_order(round, group) for group in self._world.turns(round)]
        return _Open(round, groups, self._decide(round, groups[0]) if groups else ())

    def _in_seeded_order(self, round: int, agents: Sequence[int]) -> Sequence[int]:
        """The order in which turns are applied: drawn, so it does not depend on who was first to decide."""
        key = derive(self._seed, self._world.name, round, "order")
        everyone = np.asarray(agents, np.int64)
        ordered: list[int] = everyone[np.argsort(hashes(key, everyone), kind="stable")].tolist()
        return ordered

    async def _finish(self, opened: _Open, stopping: asyncio.Task[bool]) -> None:
        """Wait for the round's decisions, apply them group by group, and commit."""
        round, decisions = opened.round, opened.decisions
        tape = Tape()
        for n, group in enumerate(opened.groups):
            if n:
                decisions = self._decide(round, group)
            settled = await self._settle(decisions, stopping)
            if n == 0:
                tape.add(self._world.begin(round))
            self._apply(round, group, settled, tape)
        if not opened.groups:
            tape.add(self._world.begin(round))
        if stopping.done():
            raise Stopped("stopped before this round was committed")
        self._commit(round, tape, sum(map(len, opened.groups)))

    def _decide(self, round: int, agents: Sequence[int]) -> Sequence[Decision | Pending]:
        make = self._ask if self._deliberation.outside else self._decide_at_once
        return [
            make(observation)
            for first in range(0, len(agents), _CHUNK)
            for observation in self._world.observe(round, agents[first : first + _CHUNK])
        ]

    def _decide_at_once(self, observation: Observation) -> Decision:
        if self._world.visibility == 1:
            return self._deliberation.at_once(observation)
        past = [decision for decision in self._own_past(observation) if isinstance(decision, Decision)]
        return self._remember(observation, self._deliberation.at_once(_knowing(observation, past)))

    def _ask(self, observation: Observation) -> Pending:
        task = asyncio.create_task(self._ask_in_turn(observation, self._own_past(observation)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return self._remember(observation, task)

    async def _ask_in_turn(self, observation: Observation, past: list[Decision | Pending]) -> Decision:
        """The agent's earlier decisions come first."""
        decided = [decision if isinstance(decision, Decision) else await decision for decision in past]
        return await self._deliberation.ask(_knowing(observation, decided))

    def _own_past(self, observation: Observation) -> list[Decision | Pending]:
        """What the agent decided in rounds that its observation does not show yet."""
        unseen = self._unseen.get(observation.agent)
        if not unseen:
            return []
        while unseen and unseen[0][0] <= observation.round - self._world.visibility:
            unseen.popleft()
        return [decision for _, decision in unseen]

    def _remember(self, observation: Observation, decision: D) -> D:
        if self._world.visibility > 1:
            self._unseen.setdefault(observation.agent, deque()).append((observation.round, decision))
        return decision

    async def _settle(self, decisions: Sequence[Decision | Pending], stopping: asyncio.Task[bool]) -> list[Decision]:
        """All decisions, once they are there. A run that is stopped waits a little for those under way."""
        waiting = [decision for decision in decisions if not isinstance(decision, Decision)]
        if waiting:
            everything = asyncio.create_task(asyncio.wait(waiting, return_when=asyncio.FIRST_EXCEPTION))
            await asyncio.wait({everything, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not everything.done():
                await asyncio.wait({everything}, timeout=STOP_GRACE_SECONDS)
                everything.cancel()
                raise Stopped("stopped while decisions were under way")
            _raise_first(waiting)
        return [decision if isinstance(decision, Decision) else decision.result() for decision in decisions]

    def _apply(self, round: int, agents: Sequence[int], decisions: Sequence[Decision], tape: Tape) -> None:
        apply = self._world.apply
        for first in range(0, len(agents), _CHUNK):
            part = slice(first, first + _CHUNK)
            turns = zip(agents[part], decisions[part], strict=True)
            tape.add([event for agent, decision in turns for event in apply(round, agent, decision)])
        tape.failed(decision.failure for decision in decisions if decision.failure is not None)

    def _commit(self, round: int, tape: Tape, acting: int) -> None:
        lines = tape.lines()
        self._digest = chain(self._digest, lines)
        tally = tape.tally(acting, *self._measured())
        hours = self._world.hours(round)
        self._ledger.commit(Record(self._world.name, round, lines, self._world.writes(), self._digest, hours, tally))

    def _measured(self) -> tuple[int, float, float]:
        """Calls made, seconds gone by and seconds spent deciding since this was last asked."""
        before = self._mark
        self._mark = (self._deliberation.calls, time.perf_counter(), self._deliberation.seconds)
        return (self._mark[0] - before[0], self._mark[1] - before[1], self._mark[2] - before[2])


def _knowing(observation: Observation, own_past: Sequence[Decision]) -> Observation:
    pending = tuple(action for decision in own_past for action in decision.actions)
    return msgspec.structs.replace(observation, pending=pending) if pending else observation


def _raise_first(decisions: Sequence[Pending]) -> None:
    for decision in decisions:
        if decision.done():
            decision.result()
