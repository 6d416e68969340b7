"""Getting decisions out of minds: side by side, each with a deadline, each asked for only once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import msgspec

from shoal.engine.metrics import Latencies
from shoal.errors import ShoalError
from shoal.journal import OUTCOME, Journal, JournalKey, JournalLine, digest
from shoal.types import Action, Decision, Mind, Observation

_encode = msgspec.json.Encoder().encode


class DecisionLimits:
    """How many decisions at once, over all worlds that share these limits; how long one may take; whether to time."""

    def __init__(self, max_workers: int = 64, deadline_seconds: float = 300.0, timed: bool = True) -> None:
        self.deadline_seconds = deadline_seconds
        self.timed = timed
        self.slots = asyncio.Semaphore(max_workers)


class Decider:
    """Asks one world's mind."""

    def __init__(self, mind: Mind, journal: Journal, limits: DecisionLimits) -> None:
        self._mind = mind
        self._journal = journal
        self._deadline_seconds = limits.deadline_seconds
        self._slots = limits.slots
        self.timed = limits.timed
        self._abandoned: set[asyncio.Task[Decision]] = set()
        #: What changed about whom (empty: about everybody) from which round on, and how much of it each agent has seen.
        self._changes: list[tuple[int, frozenset[int], Mapping[str, Any]]] = []
        self._changed: dict[int, int] = {}
        self._latencies = Latencies()
        self._seconds = 0.0
        self.calls = 0

    @property
    def outside(self) -> bool:
        return self._mind.outside

    def asks(self, agent: int) -> bool:
        return self._mind.asks(agent)

    def waits(self, agent: int) -> bool:
        """Whether this agent may take all the time it likes, as a person does."""
        patient = self._mind.deadline(agent, self._deadline_seconds) is None
        return patient and not self._mind.journals(agent)

    def opinions(self) -> Sequence[float]:
        return self._mind.opinions()

    def change(self, round: int, agents: Iterable[int], traits: Mapping[str, Any]) -> None:
        """Change something about agents, before their first decision from this round on; empty: about everybody.

        Rounds come in order.
        """
        self._changes.append((round, frozenset(agents), traits))

    def measured(self) -> tuple[float, Latencies]:
        """Time that decisions took since this was last asked, summed, and each."""
        found = self._seconds, self._latencies
        self._seconds, self._latencies = 0.0, Latencies()
        return found

    def at_once(self, observation: Observation) -> Decision:
        """The decision of a mind that needs nothing from outside."""
        if self._changes:
            self._make_changes(observation)
        began = time.perf_counter() if self.timed else 0.0
        try:
            decision = _checked(self._mind.decide(observation))
        except Exception as error:
            decision = Decision.failed(error)
        if self.timed:
            self._time(time.perf_counter() - began)
        return self._absorbed(observation, decision)

    async def ask(self, observation: Observation) -> Decision:
        """The decision of a mind that asks outside: from the journal if it is there, and else into it."""
        if self._changes:
            self._make_changes(observation)
        if self._mind.journals(observation.agent):
            return self._absorbed(observation, await self._let_ask(observation))
        key, request = JournalKey.of_turn(observation), self._request(observation)
        line = self._journal.lookup(key, lambda: request)
        if line is None:
            line = await self._ask_now(key, request, observation)
        return self._absorbed(observation, _decision(line))

    async def _let_ask(self, observation: Observation) -> Decision:
        """The decision of a mind that journals what it asks: the same replies make it the same again.

        A turn that came to nothing is journaled here, because what went wrong may not go wrong again. How many are
        asked at once is then the business of whoever answers, so no worker is taken.
        """
        await self._mind.settle(observation)
        key = JournalKey.of_turn(observation, OUTCOME)
        known = self._journal.find(key, lambda: self._request(observation))
        if known is not None:
            return _decision(known)
        is_repeated = self._journal.holds(JournalKey.of_turn(observation))
        began = time.perf_counter()
        decision = await self._within_deadline(observation)
        seconds = time.perf_counter() - began
        if self.timed and not is_repeated:
            self._time(seconds)
        if decision.failure is not None and not self._journal.is_sealed:
            await self._journal.record(_line(key, self._request(observation), decision, round(seconds * 1000)))
        return decision

    def _request(self, observation: Observation) -> str:
        return digest(self._mind.request(observation))

    def _make_changes(self, observation: Observation) -> None:
        agent, made = observation.agent, self._changed.get(observation.agent, 0)
        while made < len(self._changes) and self._changes[made][0] <= observation.round:
            _, concerned, traits = self._changes[made]
            if agent in concerned or not concerned:
                self._mind.change(agent, traits)
            made += 1
        self._changed[agent] = made

    def _time(self, seconds: float) -> None:
        self._seconds += seconds
        self._latencies.add(seconds)

    def _absorbed(self, observation: Observation, decision: Decision) -> Decision:
        self._mind.absorb(observation, decision)
        return decision

    async def _ask_now(self, key: JournalKey, request: str, observation: Observation) -> JournalLine:
        # A person who thinks keeps nobody else from thinking.
        async with nullcontext() if self.waits(observation.agent) else self._slots:
            began = time.perf_counter()
            self.calls += 1
            decision = await self._within_deadline(observation)
            seconds = time.perf_counter() - began
            if self.timed:
                self._time(seconds)
            line = _line(key, request, decision, round(seconds * 1000))
            await self._journal.record(line)
        return line

    async def _within_deadline(self, observation: Observation) -> Decision:
        """A decision that misses its deadline is cancelled but not waited for: it may not heed being cancelled."""
        deadline_seconds = self._mind.deadline(observation.agent, self._deadline_seconds)
        if deadline_seconds is None:
            return await self._attempt(observation)
        task = asyncio.create_task(self._attempt(observation))
        try:
            done, _ = await asyncio.wait({task}, timeout=deadline_seconds)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if done:
            return task.result()
        self._abandoned.add(task)
        task.add_done_callback(self._abandoned.discard)
        task.cancel()
        return Decision.timed_out(deadline_seconds)

    async def _attempt(self, observation: Observation) -> Decision:
        try:
            decision = self._mind.decide(observation)
            return _checked(await decision if isinstance(decision, Awaitable) else decision)
        except ShoalError:
            raise
        except Exception as error:
            return Decision.failed(error)


def _checked(decision: object) -> Decision:
    """What can neither be journaled nor shown in the stream is of no use."""
    if not isinstance(decision, Decision):
        return Decision.unusable(f"the mind returned {type(decision).__name__}, not a Decision")
    try:
        _encode(decision)
    except (TypeError, ValueError) as error:
        return Decision.unusable(f"the decision cannot be written as JSON: {error}")
    return decision


def _line(key: JournalKey, request: str, decision: Decision, ms: int) -> JournalLine:
    if decision.failure is not None:
        return JournalLine(key, request, outcome=decision.failure, reason=decision.reason, ms=ms)
    return JournalLine(key, request, reply=msgspec.to_builtins(decision.actions), ms=ms)


def _decision(line: JournalLine) -> Decision:
    if line.outcome is not None:
        return Decision(failure=line.outcome, reason=line.reason)
    return Decision(msgspec.convert(line.reply, tuple[Action, ...]))
