"""Advances one world round by round: observe, decide, apply, commit.

With visibility k, agents in round r see the world as of round r - k, so up to k rounds are in flight. Rounds begin and
finish in order; only the waiting overlaps. An agent's own decisions stay in order too: each waits for the agent's
decision before it, and sees those of its actions that other agents cannot see yet.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import chain
from math import nan
from typing import Any, TypeVar

import msgspec
import numpy as np

from shoal.engine.context import Contexts
from shoal.engine.decisions import Decider
from shoal.engine.interventions import FAILURE, INTERVENTION, STOP, Schedule
from shoal.engine.metrics import Step
from shoal.engine.population import TOPIC, StateRecorder
from shoal.engine.record import Ledger, RoundBuffer, RoundRecord, chain_digest
from shoal.engine.seats import GIVE_BACK, SEAT, SeatTerms
from shoal.errors import Stopped
from shoal.seeds import derive, hashes
from shoal.types import Decision, Event, Happening, Notice, Observation, WorldProtocol, Writes

#: How long a stopped run waits for decisions under way, so that they are journaled.
STOP_GRACE_SECONDS = 5.0

#: Agents handled together, so that their observations and actions are still in the CPU's cache when they are used.
_CHUNK_AGENTS = 1024
#: Agents that observe together before they ask outside. Their questions are sent before others observe.
_ASKED_AT_ONCE = 128

#: Kinds of happenings that the engine handles itself.
POST, CHANGE, CONTEXT = "post", "change", "context"

Pending = asyncio.Future[Decision]


class Gate:
    """Lets engines open their next rounds, unless it is held. Rounds that are open are finished all the same."""

    def __init__(self) -> None:
        self._holders = 0
        self._free = asyncio.Event()
        self._free.set()

    def hold(self) -> None:
        """Let no engine open a round, until as many have released the gate as hold it."""
        self._holders += 1
        self._free.clear()

    def release(self) -> None:
        self._holders -= 1
        if not self._holders:
            self._free.set()

    async def wait(self, stopping: asyncio.Task[bool]) -> None:
        """Wait until the gate is free, or until the run is asked to stop."""
        while not self._free.is_set() and not stopping.done():
            free = asyncio.create_task(self._free.wait())
            await asyncio.wait({free, stopping}, return_when=asyncio.FIRST_COMPLETED)
            free.cancel()


D = TypeVar("D", Decision, Pending)


@dataclass(frozen=True, slots=True)
class TurnCount:
    """How far the rounds are that were begun and are not committed yet."""

    rounds: int = 0
    turns: int = 0
    #: How many of the turns are decided.
    decided: int = 0

    @property
    def progress(self) -> float:
        """In rounds."""
        return self.rounds * self.decided / self.turns if self.turns else 0.0


@dataclass(slots=True)
class _OpenRound:
    """A round whose decisions are being made."""

    round: int
    groups: Sequence[Sequence[int]]
    #: Decisions of the first group. Later groups see what the first one did, so they are asked when it is done.
    decisions: Sequence[Decision | Pending]
    #: What happened before the agents observed, and posts that are still to be made.
    happened: Sequence[Event | Notice] = ()
    posts: Sequence[Happening] = ()


class Engine:
    """Advances one world with its mind, and commits its rounds to a ledger."""

    def __init__(
        self,
        world: WorldProtocol,
        decider: Decider,
        ledger: Ledger,
        seed: int,
        schedule: Schedule | None = None,
        recorder: StateRecorder | None = None,
    ) -> None:
        self._world = world
        self._decider = decider
        self._ledger = ledger
        self._seed = seed
        self._schedule = schedule or Schedule()
        #: Keeps the state of the population after each round; None where it is not wanted.
        self._recorder = recorder
        self._schedule.facts.set_opinions(self._list_opinions, self._list_beliefs)
        self._contexts = Contexts()
        #: The round in which an intervention ends the world, and whether it was committed.
        self._ending: int | None = None
        self._ended = False
        self._digest = ""
        #: Agent -> its decisions in rounds that it does not see yet.
        self._unseen: dict[int, deque[tuple[int, Decision | Pending]]] = {}
        #: Decisions that are asked for, and what they are about.
        self._asked: dict[Pending, Observation] = {}
        self._calls = 0
        #: Turns of the rounds in flight, and how many of them are decided.
        self._turns = self._decided = 0
        #: The first round that was not committed yet, and the first that was not opened yet.
        self._first_open = 0
        self._next = 0
        self._since = time.perf_counter()

    def count_turns(self) -> TurnCount:
        """Count the turns in flight. May be called from another thread."""
        return TurnCount(max(self._next - self._first_open, 1), self._turns, self._decided)

    @property
    def next_round(self) -> int:
        """The first round that was not begun yet."""
        return self._next

    async def run(self, rounds: int, stop: asyncio.Event, gate: Gate | None = None) -> str:
        """Advance to the last round and return the digest of the history; called again, go on from there."""
        async with aclosing(self.steps(rounds, stop, gate)) as steps:
            async for _ in steps:
                await asyncio.sleep(0)
        return self._digest

    async def steps(self, rounds: int, stop: asyncio.Event, gate: Gate | None = None) -> AsyncGenerator[int, None]:
        """Advance one round at a time, to keep pace with another engine; yields each round once it has begun."""
        stopping = asyncio.create_task(stop.wait())
        self._since = time.perf_counter()
        try:
            in_flight: deque[_OpenRound] = deque()
            for round in range(self._next, rounds + 1):
                if in_flight and (len(in_flight) == self._world.visibility or round == 1):
                    await self._finish(in_flight.popleft(), stopping)
                if round > 0 and (self._over or self._ending is not None):
                    break
                if gate is not None:
                    held_at = time.perf_counter()
                    await gate.wait(stopping)
                    # A pause is not the time that a round took.
                    self._since += time.perf_counter() - held_at
                self._next = round + 1
                in_flight.append(await self._open(round, stopping))
                if round > 0:
                    yield round
            while in_flight and not self._over:
                await self._finish(in_flight.popleft(), stopping)
        finally:
            # Cancel what is still being asked. Whatever has come in is in the journal.
            asked: list[asyncio.Future[Any]] = [stopping, *self._asked]
            for each in asked:
                each.cancel()
            await asyncio.gather(*asked, return_exceptions=True)

    @property
    def _over(self) -> bool:
        return self._ended or self._world.over

    async def _find_due(self, round: int, stopping: asyncio.Task[bool]) -> Sequence[Happening]:
        """Find what is due. A stopped run does not wait for what an intervention asks; what was answered is kept."""
        if not self._schedule.asks:
            return self._schedule.due(round)
        finding = asyncio.create_task(self._schedule.find_due(round, self._decider.caller, self._digest))
        await asyncio.wait({finding, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not finding.done():
            finding.cancel()
            await asyncio.gather(finding, return_exceptions=True)
            raise Stopped("stopped while an intervention was decided upon")
        return finding.result()

    async def _open(self, round: int, stopping: asyncio.Task[bool]) -> _OpenRound:
        """Carry out what is due before the agents observe, and let the first group decide."""
        happenings, happened = await self._find_due(round, stopping), list[Event | Notice]()
        for happening in happenings:
            if happening.kind in (INTERVENTION, FAILURE, STOP, CONTEXT, SEAT, GIVE_BACK):
                if happening.kind == STOP:
                    self._ending = round
                elif happening.kind == CONTEXT:
                    self._contexts.change(round, happening.to, happening.args["texts"])
                elif happening.kind in (SEAT, GIVE_BACK):
                    terms = msgspec.convert(happening.args, SeatTerms) if happening.kind == SEAT else None
                    for agent in happening.to:
                        self._decider.change_seat(self._world.name, round, agent, terms)
                happened.append(happening.notice(round, self._world.timestamp(round)))
            elif happening.kind != POST:
                if happening.kind == CHANGE:
                    self._decider.change(round, happening.to, happening.args)
                happened += self._world.happen(round, happening)
        posts = [happening for happening in happenings if happening.kind == POST]
        groups: list[list[int]] = []
        for group in () if round == 0 or self._ending == round else self._world.turns(round):
            # The order in which turns are applied is drawn, so it does not depend on which decision came first.
            key, agents = derive(self._seed, self._world.name, round, "order"), np.asarray(group, np.int64)
            groups.append(agents[np.argsort(hashes(key, agents), kind="stable")].tolist())
        self._turns += sum(map(len, groups))
        return _OpenRound(round, groups, await self._decide(round, groups[0]) if groups else (), happened, posts)

    async def _finish(self, opened: _OpenRound, stopping: asyncio.Task[bool]) -> None:
        """Wait for the round's decisions, apply them group by group, and commit."""
        round, apply = opened.round, self._world.apply
        buffer = RoundBuffer(keeps_all=self._schedule.watches or self._decider.learns)
        buffer.add(opened.happened)
        settled = await self._gather(opened.decisions, stopping)
        self._world.begin(round)
        for post in opened.posts:
            buffer.add(self._world.happen(round, post))
        for n, group in enumerate(opened.groups):
            if n:
                settled = await self._gather(await self._decide(round, group), stopping)
            for first in range(0, len(group), _CHUNK_AGENTS):
                agents = group[first : first + _CHUNK_AGENTS]
                turns = zip(agents, settled[first : first + _CHUNK_AGENTS], strict=True)
                results = [apply(round, agent, decision) for agent, decision in turns]
                buffer.add([*chain.from_iterable(results)])
                if self._decider.outside:
                    for agent, events in zip(agents, results, strict=True):
                        self._decider.report(round, agent, events)
            buffer.add_failures(decision.failure for decision in settled if decision.failure is not None)
        if stopping.done() and round > 0:
            raise Stopped("stopped before this round was committed")
        if self._decider.learns:
            self._decider.learn(round, buffer.happened)
        if self._decider.outside:
            await self._measure(round, stopping)
        self._commit(opened, buffer)

    async def _measure(self, round: int, stopping: asyncio.Task[bool]) -> None:
        """Let the mind find out what agents think. A stopped run does not wait for it; what was answered is kept."""
        measuring = asyncio.create_task(self._decider.measure(round))
        await asyncio.wait({measuring, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not measuring.done():
            measuring.cancel()
            await asyncio.gather(measuring, return_exceptions=True)
            raise Stopped("stopped while agents were asked what they think")
        await measuring

    async def _decide(self, round: int, agents: Sequence[int]) -> Sequence[Decision | Pending]:
        """Let agents decide in this order, those that ask outside while others are still to observe."""
        asks, decisions = self._decider.asks, list[Decision | Pending]()
        together = _ASKED_AT_ONCE if self._decider.outside else _CHUNK_AGENTS
        for first in range(0, len(agents), together):
            seen = self._world.observe(round, agents[first : first + together])
            observations = self._contexts.add_to(seen)
            if not self._decider.outside:
                decisions += map(self._decide_now, observations)
                self._decided += len(observations)
                continue
            for observation in observations:
                is_asked = asks(observation)
                decisions.append(self._ask(observation) if is_asked else self._decide_now(observation))
                self._decided += not is_asked
            await asyncio.sleep(0)
        return decisions

    def _decide_now(self, observation: Observation) -> Decision:
        if self._world.visibility == 1:
            return self._decider.decide_now(observation)
        past = [decision for decision in self._own_past(observation) if isinstance(decision, Decision)]
        return self._remember(observation, self._decider.decide_now(_add_pending(observation, past)))

    def _ask(self, observation: Observation) -> Pending:
        """Ask, once the agent's earlier decisions are made."""
        past = self._own_past(observation)
        made = [decision for decision in past if isinstance(decision, Decision)]

        async def ask_in_turn() -> Decision:
            decided = [decision if isinstance(decision, Decision) else await decision for decision in past]
            return await self._decider.ask(_add_pending(observation, decided))

        if len(made) == len(past):
            asked = self._decider.start(_add_pending(observation, made))
        else:
            asked = asyncio.create_task(ask_in_turn())
        self._asked[asked] = observation
        asked.add_done_callback(self._forget)
        return self._remember(observation, asked)

    def _forget(self, asked: Pending) -> None:
        """Retrieve the exception too: of many that fail at once, as when a budget ends, only the first is raised."""
        self._asked.pop(asked, None)
        self._decided += 1
        if not asked.cancelled():
            asked.exception()

    def _own_past(self, observation: Observation) -> list[Decision | Pending]:
        """Return the agent's decisions in rounds that its observation does not show yet."""
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

    async def _gather(self, decisions: Sequence[Decision | Pending], stopping: asyncio.Task[bool]) -> list[Decision]:
        """Wait for all decisions. A stopped run waits a little for those under way."""
        waiting = [decision for decision in decisions if not isinstance(decision, Decision)]
        may_wait = self._decider.may_wait
        if waiting:
            everything = asyncio.create_task(asyncio.wait(waiting, return_when=asyncio.FIRST_EXCEPTION))
            await asyncio.wait({everything, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not everything.done():
                everything.cancel()
                under_way = ((decision, self._asked.get(decision)) for decision in waiting)
                if limited := [one for one, seen in under_way if seen is not None and not may_wait(seen)]:
                    await asyncio.wait(limited, timeout=STOP_GRACE_SECONDS, return_when=asyncio.FIRST_EXCEPTION)
                raise Stopped("stopped while decisions were under way")
            for decision in waiting:
                if decision.done():
                    # Raises, if this is the one that failed.
                    decision.result()
        return [decision if isinstance(decision, Decision) else decision.result() for decision in decisions]

    def _commit(self, opened: _OpenRound, buffer: RoundBuffer) -> None:
        round, lines = opened.round, buffer.lines()
        self._digest = chain_digest(self._digest, lines)
        self._ended = self._ending == round
        turns = sum(map(len, opened.groups))
        self._turns, self._decided, self._first_open = self._turns - turns, self._decided - turns, round + 1
        hours = self._world.hours(round)
        self._schedule.add_round(round, hours, buffer.happened, buffer.failures)
        if self._schedule.watches:
            self._schedule.facts.set_figures(self._world.figures())
        calls, self._calls = self._decider.calls - self._calls, self._decider.calls
        writes, tally, step = self._world.writes(), buffer.tally(turns, calls), None
        if self._decider.timed:
            # The time since the round before was committed.
            before, self._since = self._since, time.perf_counter()
            mode = "sequential" if len(opened.groups) > 1 else "parallel" if opened.groups else "idle"
            step = Step(mode, self._since - before, *self._decider.take_timings())
        self._ledger.commit(
            RoundRecord(
                world=self._world.name,
                round=round,
                lines=lines,
                writes=writes,
                state=self._record_state(round, tally.kinds),
                digest=self._digest,
                hours=hours,
                tally=tally,
                last=self._over,
                step=step,
            )
        )

    def _record_state(self, round: int, kinds: Mapping[str, int]) -> Writes:
        if self._recorder is None:
            return {}
        topic = self._decider.opinions()
        opinions = {**({TOPIC: topic} if len(topic) else {}), **self._decider.beliefs()}
        if absent := self._world.absent:
            opinions = {
                about: [nan if agent in absent else opinion for agent, opinion in enumerate(each)]
                for about, each in opinions.items()
            }
        return self._recorder.record(round, opinions, kinds, self._world.figures(), len(absent))

    def _list_opinions(self) -> Sequence[float]:
        return self._select_present(self._decider.opinions())

    def _list_beliefs(self) -> Mapping[str, Sequence[float]]:
        return {claim: self._select_present(each) for claim, each in self._decider.beliefs().items()}

    def _select_present(self, values: Sequence[float]) -> Sequence[float]:
        """Return the values of the people who are there."""
        absent = self._world.absent
        return values if not absent else [value for agent, value in enumerate(values) if agent not in absent]


def _add_pending(observation: Observation, own_past: Sequence[Decision]) -> Observation:
    pending = tuple(action for decision in own_past for action in decision.actions)
    return msgspec.structs.replace(observation, pending=pending) if pending else observation
