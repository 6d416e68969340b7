"""Advances one world round by round: observe, decide, apply, commit.

With visibility k the picture of round r is that after round r - k, so up to k rounds are in flight. Rounds are begun
and finished in order; what overlaps is the waiting. An agent's own decisions stay in order too: each waits for the
agent's decision before it, and sees those of its own actions that nobody else can see yet.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar

import msgspec
import numpy as np

from shoal.engine.decisions import Decider
from shoal.engine.interventions import STOP, Schedule
from shoal.engine.metrics import Step
from shoal.engine.record import Ledger, RoundBuffer, RoundRecord, chain
from shoal.errors import Stopped
from shoal.seeds import derive, hashes
from shoal.types import Decision, Event, Happening, Notice, Observation, WorldProtocol

#: Decisions under way when a run is stopped have this long to come in and be journaled.
STOP_GRACE_SECONDS = 5.0

#: Agents handled together, so that what they see and do is still in the processor's cache when it is used.
_CHUNK = 1024

#: Happenings that the engine itself has a part in.
POST, CHANGE, INTERVENTION = "post", "change", "intervention"

Pending = asyncio.Task[Decision]
D = TypeVar("D", Decision, Pending)


@dataclass(slots=True)
class _OpenRound:
    """A round whose decisions are being made."""

    round: int
    groups: Sequence[Sequence[int]]
    #: Decisions of the first group; later groups see what the first one did, so they are asked when it is done.
    decisions: Sequence[Decision | Pending]
    #: What happened before anybody looked, and what is still to happen.
    told: Sequence[Event | Notice] = ()
    posts: Sequence[Happening] = ()


class Engine:
    """One world, its mind, and the place where its rounds are committed."""

    def __init__(
        self, world: WorldProtocol, deliberation: Decider, ledger: Ledger, seed: int, agenda: Schedule | None = None
    ) -> None:
        self._world = world
        self._deliberation = deliberation
        self._ledger = ledger
        self._seed = seed
        self._agenda = agenda or Schedule()
        self._agenda.facts.read_opinions(deliberation.opinions)
        #: The round that is the last one because an intervention says so, and whether it has come.
        self._ending: int | None = None
        self._ended = False
        self._digest = ""
        self._unseen: dict[int, deque[tuple[int, Decision | Pending]]] = {}
        self._tasks: set[Pending] = set()
        #: Those that may take as long as they like; nobody waits for them when the run is stopped.
        self._patient: set[Pending] = set()
        self._calls = 0
        #: The first round that was not opened yet.
        self._next = 0
        self._since = time.perf_counter()

    async def run(self, rounds: int, stop: asyncio.Event) -> str:
        """Advance to the last round and return the digest of the history; called again, go on from there."""
        async with aclosing(self.steps(rounds, stop)) as steps:
            async for _ in steps:
                await asyncio.sleep(0)
        return self._digest

    async def steps(self, rounds: int, stop: asyncio.Event) -> AsyncGenerator[int, None]:
        """The same one round at a time, for those who keep pace with another engine: each round once it is begun."""
        stopping = asyncio.create_task(stop.wait())
        self._since = time.perf_counter()
        try:
            in_flight: deque[_OpenRound] = deque()
            for round in range(self._next, rounds + 1):
                if in_flight and (len(in_flight) == self._world.visibility or round == 1):
                    await self._finish(in_flight.popleft(), stopping)
                if round > 0 and (self._over or self._ending is not None):
                    break
                in_flight.append(self._open(round))
                self._next = round + 1
                if round > 0:
                    yield round
            while in_flight and not self._over:
                await self._finish(in_flight.popleft(), stopping)
        finally:
            await self._abandon(stopping)

    @property
    def _over(self) -> bool:
        return self._ended or self._world.over

    async def _abandon(self, stopping: asyncio.Task[bool]) -> None:
        """Cancel what is still being asked; what has come in is in the journal."""
        tasks = [stopping, *self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _open(self, round: int) -> _OpenRound:
        happenings = self._agenda.due(round)
        told = [event for happening in happenings if happening.kind != POST for event in self._let(round, happening)]
        posts = [happening for happening in happenings if happening.kind == POST]
        nobody = round == 0 or self._ending == round
        groups = [] if nobody else [self._in_seeded_order(round, group) for group in self._world.turns(round)]
        return _OpenRound(round, groups, self._decide(round, groups[0]) if groups else (), told, posts)

    def _let(self, round: int, happening: Happening) -> Sequence[Event | Notice]:
        """Let something happen that no agent decided on, before anybody looks."""
        if happening.kind in (INTERVENTION, STOP):
            if happening.kind == STOP:
                self._ending = round
            return [happening.notice(round, self._world.timestamp(round))]
        if happening.kind == CHANGE:
            self._deliberation.change(round, happening.to, happening.args)
        return self._world.happen(round, happening)

    def _in_seeded_order(self, round: int, agents: Sequence[int]) -> Sequence[int]:
        """The order in which turns are applied: drawn, so it does not depend on who was first to decide."""
        key = derive(self._seed, self._world.name, round, "order")
        everyone = np.asarray(agents, np.int64)
        ordered: list[int] = everyone[np.argsort(hashes(key, everyone), kind="stable")].tolist()
        return ordered

    async def _finish(self, opened: _OpenRound, stopping: asyncio.Task[bool]) -> None:
        """Wait for the round's decisions, apply them group by group, and commit."""
        round, decisions = opened.round, opened.decisions
        tape = RoundBuffer(self._agenda.watches)
        tape.add(opened.told)
        settled = await self._settle(decisions, stopping)
        self._world.begin(round)
        for post in opened.posts:
            tape.add(self._world.happen(round, post))
        for n, group in enumerate(opened.groups):
            if n:
                settled = await self._settle(self._decide(round, group), stopping)
            self._apply(round, group, settled, tape)
        if stopping.done() and round > 0:
            raise Stopped("stopped before this round was committed")
        self._commit(opened, tape)

    def _decide(self, round: int, agents: Sequence[int]) -> Sequence[Decision | Pending]:
        make = self._make if self._deliberation.outside else self._decide_at_once
        return [
            make(observation)
            for first in range(0, len(agents), _CHUNK)
            for observation in self._world.observe(round, agents[first : first + _CHUNK])
        ]

    def _make(self, observation: Observation) -> Decision | Pending:
        asks = self._deliberation.asks(observation.agent)
        return self._ask(observation) if asks else self._decide_at_once(observation)

    def _decide_at_once(self, observation: Observation) -> Decision:
        if self._world.visibility == 1:
            return self._deliberation.decide_now(observation)
        past = [decision for decision in self._own_past(observation) if isinstance(decision, Decision)]
        return self._remember(observation, self._deliberation.decide_now(_knowing(observation, past)))

    def _ask(self, observation: Observation) -> Pending:
        task = asyncio.create_task(self._ask_in_turn(observation, self._own_past(observation)))
        self._tasks.add(task)
        task.add_done_callback(self._ended_asking)
        if self._deliberation.may_wait(observation.agent):
            self._patient.add(task)
            task.add_done_callback(self._patient.discard)
        return self._remember(observation, task)

    def _ended_asking(self, task: Pending) -> None:
        """Of many that fail at once, as when the budget is reached, only the first is waited for and raised."""
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()

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
                everything.cancel()
                if hurried := [decision for decision in waiting if decision not in self._patient]:
                    await asyncio.wait(hurried, timeout=STOP_GRACE_SECONDS, return_when=asyncio.FIRST_EXCEPTION)
                raise Stopped("stopped while decisions were under way")
            _raise_first(waiting)
        return [decision if isinstance(decision, Decision) else decision.result() for decision in decisions]

    def _apply(self, round: int, agents: Sequence[int], decisions: Sequence[Decision], tape: RoundBuffer) -> None:
        apply = self._world.apply
        for first in range(0, len(agents), _CHUNK):
            part = slice(first, first + _CHUNK)
            turns = zip(agents[part], decisions[part], strict=True)
            tape.add([event for agent, decision in turns for event in apply(round, agent, decision)])
        tape.failed(decision.failure for decision in decisions if decision.failure is not None)

    def _commit(self, opened: _OpenRound, tape: RoundBuffer) -> None:
        round, lines = opened.round, tape.lines()
        self._digest = chain(self._digest, lines)
        self._ended = self._ending == round
        hours = self._world.hours(round)
        self._agenda.take_in(round, hours, tape.events, tape.failures)
        calls, self._calls = self._deliberation.calls - self._calls, self._deliberation.calls
        self._ledger.commit(
            RoundRecord(
                world=self._world.name,
                round=round,
                lines=lines,
                writes=self._world.writes(),
                digest=self._digest,
                hours=hours,
                tally=tape.tally(sum(map(len, opened.groups)), calls),
                last=self._over,
                step=self._timed(opened.groups) if self._deliberation.timed else None,
            )
        )

    def _timed(self, groups: Sequence[Sequence[int]]) -> Step:
        """How long it took since the round before was committed."""
        before, self._since = self._since, time.perf_counter()
        mode = "sequential" if len(groups) > 1 else "parallel" if groups else "idle"
        return Step(mode, self._since - before, *self._deliberation.take_timings())


def _knowing(observation: Observation, own_past: Sequence[Decision]) -> Observation:
    pending = tuple(action for decision in own_past for action in decision.actions)
    return msgspec.structs.replace(observation, pending=pending) if pending else observation


def _raise_first(decisions: Sequence[Pending]) -> None:
    for decision in decisions:
        if decision.done():
            decision.result()
