"""Gets decisions out of minds: concurrently, each with a deadline, and each asked for only once."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Coroutine, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import msgspec

from shoal.engine.blocking import BLOCKING_SECONDS, BusyTime, MeasuredAwaitable
from shoal.engine.functions import FunctionCaller
from shoal.engine.metrics import DecisionTimings, Latencies
from shoal.engine.seats import SeatAnswer, Seats, SeatTerms
from shoal.errors import ShoalError
from shoal.journal import OUTCOME, SEAT, Journal, JournalKey, JournalLine, digest
from shoal.text import make_storable
from shoal.types import Action, Decision, Event, Mind, MindMode, Notice, Observation
from shoal.unix import read_core_wait

_encode = msgspec.json.Encoder().encode

#: What the log says of a mind that blocks.
BLOCKED = (
    "deciding for %s in round %d kept everybody else waiting for %.1f s: it waits without `await`, or computes for "
    "long. Await what it waits for, or run it with `await asyncio.to_thread(...)`, so that people decide side by side."
)


class DecisionLimits:
    """How many decisions run at once in all worlds that share the limits, how long one may take, and whether to time.

    `timed` turns on the measurement of latencies.
    """

    def __init__(self, max_workers: int = 64, deadline_seconds: float = 300.0, timed: bool = True) -> None:
        self.deadline_seconds = deadline_seconds
        self.timed = timed
        self.slots = asyncio.Semaphore(max_workers)
        #: How long minds have kept the event loop busy, in all worlds.
        self.busy = BusyTime()
        #: Where exceptions in minds are written down, and that they block.
        self.log: logging.Logger | None = None


class Decider:
    """Asks one world's mind for decisions, and journals those that come from outside."""

    def __init__(self, mind: Mind, journal: Journal, limits: DecisionLimits, seats: Seats | None = None) -> None:
        self._mind = mind
        self._journal = journal
        #: The agents whose turns a person takes, in all worlds of the run; None where nobody does, as in a plan.
        self._seats = seats
        #: Calls functions of the user's own in interventions.
        self.caller = FunctionCaller(journal, limits.deadline_seconds, limits.log)
        self._deadline_seconds = limits.deadline_seconds
        self._slots = limits.slots
        self._busy = limits.busy
        self._log = limits.log
        #: What is in the log already: where exceptions were raised, and that minds block.
        self._logged: set[object] = set()
        self.timed = limits.timed
        self._abandoned: set[asyncio.Task[Decision]] = set()
        #: Changes of agents by interventions: first round, agents (empty: all) and traits, in the order of rounds.
        self._changes: list[tuple[int, frozenset[int], Mapping[str, Any]]] = []
        #: Agent -> how many of the changes were made to it.
        self._changes_made: dict[int, int] = {}
        self._latencies = Latencies()
        self._seconds = 0.0
        self._blocked = 0
        #: What this thread had waited for a core when the timings began, or after the last decision that took long.
        self._core_wait = read_core_wait() if limits.timed else 0.0
        self.calls = 0

    @property
    def outside(self) -> bool:
        """Whether any agent's decisions may come from outside."""
        return self._mind.outside or (self._seats is not None and self._seats.has_any)

    def asks(self, observation: Observation) -> bool:
        """Return whether the agent's decision comes from outside."""
        return self.find_seat(observation) is not None or self._mode(observation.agent) is not MindMode.PURE

    def may_wait(self, observation: Observation) -> bool:
        """Return whether the agent may take any time to decide, as a person may."""
        is_seated = self._seats is not None and self._seats.is_waiting(observation)
        return is_seated or self._has_no_deadline(observation.agent)

    def _has_no_deadline(self, agent: int) -> bool:
        has_deadline = self._mind.deadline(agent, self._deadline_seconds) is not None
        return not has_deadline and self._mode(agent) is not MindMode.SELF_JOURNALING

    def _mode(self, agent: int) -> MindMode:
        return self._mind.mode(agent) if self._mind.outside else MindMode.PURE

    def find_seat(self, observation: Observation) -> SeatTerms | None:
        """Return the terms on which a person takes this turn; None where its own mind does."""
        if self._seats is None:
            return None
        return self._seats.find(observation.world, observation.round, observation.agent)

    def opinions(self) -> Sequence[float]:
        return self._mind.opinions()

    async def measure(self, round: int) -> None:
        await self._mind.measure(round)

    def beliefs(self) -> Mapping[str, Sequence[float]]:
        return self._mind.beliefs()

    def change(self, round: int, agents: Iterable[int], traits: Mapping[str, Any]) -> None:
        """Schedule a change of agents before their first decision from this round on; an empty list means all agents.

        Rounds come in order.
        """
        self._changes.append((round, frozenset(agents), traits))

    def change_seat(self, world: str, round: int, agent: int, terms: SeatTerms | None) -> None:
        """Let a person take the agent's turns from a round on, or its own mind again."""
        if self._seats is not None:
            self._seats.change(world, round, agent, terms)

    def report(self, round: int, agent: int, events: Sequence[Event]) -> None:
        """Tell a mind that asks outside the results of an agent's turn."""
        if self._mind.outside:
            self._mind.take_results(round, agent, events)

    @property
    def learns(self) -> bool:
        """Whether the mind wants to know what happened in each round."""
        return self._mind.learns

    def learn(self, round: int, happened: Sequence[Event | Notice]) -> None:
        """Tell the mind what happened in a round."""
        self._mind.learn(round, happened)

    def take_timings(self) -> DecisionTimings:
        """Return how long the decisions since the last call took, and start anew."""
        found = DecisionTimings(self._seconds, self._latencies, self._blocked)
        self._seconds, self._latencies, self._blocked = 0.0, Latencies(), 0
        self._core_wait = read_core_wait()
        return found

    def decide_now(self, observation: Observation) -> Decision:
        """Get the decision of a mind that needs nothing from outside."""
        if self._changes:
            self.make_changes(observation)
        decision = self._compute(observation)
        self._mind.absorb(observation, decision)
        return decision

    def _compute(self, observation: Observation) -> Decision:
        """Let a mind decide that asks nobody, and measure how long it takes."""
        began = time.perf_counter() if self.timed else 0.0
        try:
            decision = _check_decision(self._mind.decide(observation))
        except Exception as error:
            decision = self._note_failure(error, observation)
        if self.timed:
            self._add_time(seconds := time.perf_counter() - began)
            if seconds > BLOCKING_SECONDS:
                self._note_blocking(observation, seconds)
        return decision

    def start(self, observation: Observation) -> asyncio.Future[Decision]:
        """Begin to get a decision from outside, which comes in its time."""
        return asyncio.create_task(self.ask(observation))

    async def ask(self, observation: Observation) -> Decision:
        """Get a decision from outside, of a person or a mind: from the journal, or else recorded in it."""
        if self._changes:
            self.make_changes(observation)
        decision = await self.ask_person(observation)
        if decision is None:
            match self._mode(observation.agent):
                case MindMode.SELF_JOURNALING:
                    decision = await self._ask_self_journaling(observation)
                case MindMode.EXTERNAL:
                    decision = await self._ask_external(observation)
                case MindMode.PURE:
                    decision = self._compute(observation)
        self._mind.absorb(observation, decision)
        return decision

    async def ask_person(self, observation: Observation) -> Decision | None:
        """Let the person in the agent's seat decide, and journal the answer; None where its own mind is to decide."""
        terms = self.find_seat(observation)
        if self._seats is None or terms is None:
            return None
        key, request = JournalKey.of_turn(observation, SEAT), digest(observation)
        line = self._journal.lookup(key, lambda: request)
        if line is None:
            began = time.perf_counter()
            answer = await self._seats.ask(observation, terms)
            reply, ms = msgspec.to_builtins(answer), round((time.perf_counter() - began) * 1000)
            line = JournalLine(key, request, reply=reply, ms=ms)
            await self._journal.record(line)
        decided = msgspec.convert(line.reply, SeatAnswer).actions
        return None if decided is None else Decision(decided)

    async def _ask_external(self, observation: Observation) -> Decision:
        """Journal the whole decision."""
        key, request = JournalKey.of_turn(observation), self._request(observation)
        line = self._journal.lookup(key, lambda: request)
        if line is not None:
            return _read_decision(line)
        # An agent without a deadline, such as a person, keeps no other agent from deciding.
        async with nullcontext() if self._has_no_deadline(observation.agent) else self._slots:
            began, busy = time.perf_counter(), BusyTime(self._busy)
            self.calls += 1
            decision = await self._decide_within_deadline(observation, busy)
            seconds = time.perf_counter() - began
            if self.timed:
                # While others kept the loop busy, this one was not deciding.
                self._add_time(max(seconds - busy.of_others, 0.0))
            if busy.longest_seconds > BLOCKING_SECONDS:
                self._note_blocking(observation, busy.longest_seconds)
            line = _write_decision(key, request, decision, seconds)
            await self._journal.record(line)
        # What was journaled counts, so that a replay sees the same.
        return _read_decision(line)

    async def _ask_self_journaling(self, observation: Observation) -> Decision:
        """Let the mind decide from journaled replies, and journal only a turn that failed: it may not fail again.

        The model's own limit says how many are asked at once, so no slot is taken here.
        """
        await self._mind.prepare(observation)
        key = JournalKey.of_turn(observation, OUTCOME)
        line = self._journal.find(key, lambda: self._request(observation))
        if line is not None:
            return _read_decision(line)
        is_repeated = self._journal.holds(JournalKey.of_turn(observation))
        began = time.perf_counter()
        decision = await self._decide_within_deadline(observation)
        seconds = time.perf_counter() - began
        if self.timed and not is_repeated:
            self._add_time(seconds)
        if decision.failure is not None and not self._journal.is_sealed:
            await self._journal.record(_write_decision(key, self._request(observation), decision, seconds))
        return decision

    def _request(self, observation: Observation) -> str:
        return digest(self._mind.request(observation))

    def make_changes(self, observation: Observation) -> None:
        """Make the changes of an agent that come before this decision of it."""
        agent, made = observation.agent, self._changes_made.get(observation.agent, 0)
        while made < len(self._changes) and self._changes[made][0] <= observation.round:
            _, concerned, traits = self._changes[made]
            if agent in concerned or not concerned:
                self._mind.change(agent, traits)
            made += 1
        self._changes_made[agent] = made

    def add_timings(self, timings: DecisionTimings) -> None:
        """Count decisions that were made elsewhere."""
        self._seconds += timings.seconds
        self._latencies.merge(timings.latencies)
        self._blocked += timings.blocked

    def _add_time(self, seconds: float) -> None:
        self._seconds += seconds
        self._latencies.add(seconds)

    async def _decide_within_deadline(self, observation: Observation, busy: BusyTime | None = None) -> Decision:
        """Cancel a decision that misses its deadline, without waiting for it: it may ignore the cancellation."""
        deadline_seconds = self._mind.deadline(observation.agent, self._deadline_seconds)
        if deadline_seconds is None:
            return await self._attempt(observation, busy)
        task = asyncio.create_task(self._attempt(observation, busy))
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

    async def _attempt(self, observation: Observation, busy: BusyTime | None) -> Decision:
        """Let the mind decide, and measure how long it keeps the loop busy, except for minds of our own."""
        began = time.perf_counter()
        try:
            decision = self._mind.decide(observation)
            if busy is not None:
                busy.add(time.perf_counter() - began)
            if isinstance(decision, Awaitable):
                decision = await (decision if busy is None else MeasuredAwaitable(decision, busy))
            return _check_decision(decision)
        except ShoalError:
            raise
        except Exception as error:
            return self._note_failure(error, observation)

    def _note_failure(self, error: Exception, observation: Observation) -> Decision:
        """Turn an exception into a decision. The first one from each line of code is logged with its traceback."""
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        place = (type(error), trace and trace.tb_frame.f_code, trace and trace.tb_lineno)
        if self._log is not None and place not in self._logged:
            self._logged.add(place)
            self._log.warning("the mind of %s failed in round %d", observation.name, observation.round, exc_info=error)
        return Decision.failed(error)

    def _note_blocking(self, observation: Observation, seconds: float) -> None:
        """Count a decision that kept all others waiting, and log the first.

        On a busy machine the time may have gone into waiting for a core, which is nothing the mind can mend.
        """
        before, self._core_wait = self._core_wait, read_core_wait()
        if seconds - (self._core_wait - before) <= BLOCKING_SECONDS:
            return
        self._blocked += 1
        if self._log is not None and BLOCKED not in self._logged:
            self._logged.add(BLOCKED)
            self._log.warning(BLOCKED, observation.name, observation.round, seconds)


def _check_decision(decision: object) -> Decision:
    """Replace what can neither be journaled nor written to the stream by a failure."""
    if isinstance(decision, Coroutine):
        decision.close()
        return Decision.unusable("the mind returned a coroutine; set `outside = True`, so that it is awaited")
    if not isinstance(decision, Decision):
        return Decision.unusable(f"the mind returned {type(decision).__name__}, not a Decision")
    try:
        _encode(decision)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        return Decision.unusable(f"the decision cannot be written as JSON: {error}")
    for action in decision.actions:
        for name, value in action.args.items():
            # Texts were just encoded. A number that is none is not even equal to itself.
            if type(value) is not str and make_storable(value) != value:
                return Decision.unusable(f"{action.kind}: {name} is, or holds, a number that cannot be stored")
    return decision


def _write_decision(key: JournalKey, request: str, decision: Decision, seconds: float) -> JournalLine:
    ms = round(seconds * 1000)
    if decision.failure is not None:
        return JournalLine(key, request, outcome=decision.failure, reason=decision.reason, ms=ms)
    return JournalLine(key, request, reply=msgspec.to_builtins(decision.actions), ms=ms)


def _read_decision(line: JournalLine) -> Decision:
    if line.outcome is not None:
        return Decision(failure=line.outcome, reason=line.reason)
    return Decision(msgspec.convert(line.reply, tuple[Action, ...]))
