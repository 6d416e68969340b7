"""The process of a shard: holds its agents' minds, builds their prompts, makes their calls.

It ends when the connection to the head does, however that comes. What it knows is in the journal, so another process
can take its place.
"""

from __future__ import annotations

import asyncio
import gc
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from shoal.engine import Decider
from shoal.errors import HeadLost
from shoal.event_loop import run_async
from shoal.journal import Journal, JournalLine
from shoal.models import CallSize, Usage
from shoal.runs.directory import RunDirectory, parse_injected_events
from shoal.runs.resources import ModelSession, open_models_if_needed
from shoal.runs.shards.messages import (
    END_SECONDS,
    CallReport,
    EndOfWaiting,
    FundsRelease,
    FundsReply,
    FundsRequest,
    JournalLines,
    LinesReceipt,
    MessageStream,
    PackedError,
    ReportOrder,
    RoundEvents,
    RoundReport,
    ShardDismissal,
    ShardFailure,
    ShardOrder,
    ShardReady,
    TraitChange,
    TurnDecision,
    TurnOrder,
    TurnResults,
    TurnTaken,
)
from shoal.runs.worker.state_writer import open_log
from shoal.scenario import Simulation, Sources, build
from shoal.types import Decision, Observation

#: How often a shard says how many calls it makes and what they cost.
REPORT_SECONDS = 0.25


def main(handle: int) -> int:
    """Become a shard, at this end of a pair of sockets. What it prints goes into the run's log."""
    # The head says when to end. It gets the same signals, as they go to its group.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with_head, args=(os.dup(handle),), daemon=True).start()
    run_async(_serve(socket.socket(fileno=handle)))
    return 0


def _end_with_head(handle: int) -> None:
    """End this process some time after the head, also while a mind of the user's own blocks the event loop."""
    connection = select.poll()
    connection.register(handle, 0)
    connection.poll()
    time.sleep(END_SECONDS)
    os._exit(1)


async def _serve(connection: socket.socket) -> None:
    stream = MessageStream(*await asyncio.open_unix_connection(sock=connection))
    for order in await stream.read():
        try:
            await ShardWorker(order, stream).work()
        except Exception as error:
            stream.send(ShardFailure(PackedError.pack(error)))
        finally:
            stream.close()


class HeadFunds:
    """The budget of the run, which the head keeps for all shards."""

    def __init__(self, stream: MessageStream, report_calls: Callable[[], None]) -> None:
        self._stream = stream
        self._report_calls = report_calls
        self._numbers = count()
        self._requests: dict[int, tuple[CallSize, asyncio.Future[int]]] = {}

    async def reserve(self, size: CallSize) -> int:
        number = next(self._numbers)
        granted: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._requests[number] = size, granted
        self._stream.send(FundsRequest(number, size))
        return await granted

    def settle(self, reply: FundsReply) -> None:
        """Take note of the head's reply. Whatever asked for it may have been cancelled."""
        size, granted = self._requests.pop(reply.number)
        if reply.error is not None and not granted.done():
            granted.set_exception(reply.error.unpack())
        elif reply.error is None and granted.done():
            self.release(reply.number, size, None)
        elif reply.error is None:
            granted.set_result(reply.number)

    def release(self, reserved: int, size: CallSize, usage: Usage | None) -> None:
        self._report_calls()
        self._stream.send(FundsRelease(reserved, size, usage))


class ShardWorker:
    """What a shard holds, and how it does what the head says."""

    def __init__(self, order: ShardOrder, stream: MessageStream) -> None:
        self._order = order
        self._place = order.place
        self._stream = stream
        self._simulation: Simulation
        self._models: ModelSession | None = None
        self._deciders: dict[str, Decider] = {}
        self._funds = HeadFunds(stream, self._report_calls)
        self._receipts: dict[int, asyncio.Future[None]] = {}
        self._numbers = count()
        self._tasks: set[asyncio.Task[None]] = set()
        #: How long to wait for calls on their way, once the shard is to end.
        self._dismissal: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    async def work(self) -> None:
        """Build the minds, then do what the head says until it says no more."""
        sys.path += [place for place in self._order.path if place not in sys.path]
        run = RunDirectory.open(Path(self._order.directory))
        async with AsyncExitStack() as stack:
            stack.enter_context(open_log(run))
            # Receipts come in until everything is closed.
            reading = asyncio.create_task(self._read())
            stack.callback(reading.cancel)
            await self._open(run, stack)
            stack.push_async_callback(self._end_tasks)
            self._stream.send(ShardReady())
            gc.collect()
            gc.disable()
            beside: set[asyncio.Task[None]] = {asyncio.create_task(self._report_regularly())}
            if self._models is not None:
                beside.add(asyncio.create_task(self._models.model.availability.wait_for_end()))
            self._tasks |= beside
            waiting: list[asyncio.Future[Any]] = [self._dismissal, reading, *beside]
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in (reading, *beside):
                if task.done():
                    task.result()

    async def _open(self, run: RunDirectory, stack: AsyncExitStack) -> None:
        journal = await stack.enter_async_context(
            Journal.open_part(run.journal, run.config.shoal_version, self._keep_lines, self._is_wanted)
        )
        latest, resources = run.scenario, replace(self._order.resources, funds=self._funds)
        if latest.max_workers is not None:
            resources = replace(resources, ceiling=self._place.share(latest.max_workers))
        self._models = await stack.enter_async_context(open_models_if_needed(latest, journal, resources))
        if self._models is not None:
            # What is in the journal is counted by the head.
            self._models.model.spending.take()
            self._models.model.availability.watch(lambda pause: self._report_calls())
        sources = Sources(model=self._models and self._models.model)
        injected = parse_injected_events(journal.events)
        simulation = self._simulation = build(run.scenario_versions, injected, sources)
        simulation.limits.slots = asyncio.Semaphore(max(self._place.share(latest.workers), 1))
        for world, mind in simulation.minds.items():
            stack.push_async_callback(mind.close)
            self._deciders[world] = Decider(mind, journal, simulation.limits)

    def _is_wanted(self, line: JournalLine) -> bool:
        """Return whether a line of the journal is about the shard's own agents, or an event."""
        agent = line.key.split("/", 3)[2]
        return line.event is not None or (agent.isdecimal() and self._place.has(int(agent)))

    async def _keep_lines(self, text: bytes) -> None:
        number = next(self._numbers)
        receipt = self._receipts[number] = asyncio.get_running_loop().create_future()
        self._stream.send(JournalLines(number, text))
        await receipt

    async def _read(self) -> None:
        while messages := await self._stream.read():
            for message in messages:
                self._receive(message)
            # Questions are sent before more is read.
            await asyncio.sleep(0)
        for receipt in self._receipts.values():
            if not receipt.done():
                receipt.set_exception(HeadLost("the worker of the run is gone"))
        self._dismiss(0.0)

    def _receive(self, message: object) -> None:
        match message:
            case TurnOrder(observation):
                self._decide(observation)
            case LinesReceipt(number, error):
                receipt = self._receipts.pop(number)
                if error is None:
                    receipt.set_result(None)
                else:
                    receipt.set_exception(error.unpack())
            case TurnResults(world, round, agent, events):
                self._simulation.minds[world].take_results(round, agent, events)
            case TurnTaken(observation, decision):
                self._simulation.minds[observation.world].absorb(observation, decision)
            case TraitChange(world, agent, traits):
                self._simulation.minds[world].change(agent, traits)
            case RoundEvents(world, round, happened):
                self._simulation.minds[world].learn(round, happened)
            case ReportOrder():
                self._start(self._report_round(message))
            case FundsReply():
                self._funds.settle(message)
            case EndOfWaiting() if self._models is not None:
                self._models.model.availability.end_pauses()
            case ShardDismissal(seconds):
                self._dismiss(seconds)

    def _dismiss(self, drain_seconds: float) -> None:
        if not self._dismissal.done():
            self._dismissal.set_result(drain_seconds)

    def _decide(self, observation: Observation) -> None:
        decider = self._deciders[observation.world]
        if decider.outside and decider.asks(observation):
            self._start(self._ask(decider, observation))
        else:
            decision = decider.decide_now(observation)
            self._stream.send(TurnDecision(observation.world, observation.round, observation.agent, decision))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask(self, decider: Decider, observation: Observation) -> None:
        decision: Decision | PackedError
        try:
            decision = await decider.ask(observation)
        except Exception as error:
            decision = PackedError.pack(error)
        self._stream.send(TurnDecision(observation.world, observation.round, observation.agent, decision))

    async def _report_round(self, end: ReportOrder) -> None:
        decider, mind = self._deciders[end.world], self._simulation.minds[end.world]
        error = None
        try:
            await decider.measure(end.round)
        except Exception as failed:
            error = PackedError.pack(failed)
        self._report_calls()
        calls, decider.calls = decider.calls, 0
        prefixes = self._simulation.prefixes.get(end.world)
        opinions, own = mind.opinions(), self._place.agents
        self._stream.send(
            RoundReport(
                world=end.world,
                round=end.round,
                opinions=np.asarray(opinions[own]) if len(opinions) else None,
                beliefs={claim: np.asarray(beliefs[own]) for claim, beliefs in mind.beliefs().items()},
                timings=decider.take_timings(),
                calls=calls,
                prefixes=None if prefixes is None else prefixes.total,
                error=error,
            )
        )
        gc.collect(0)

    def _report_calls(self) -> None:
        if self._models is not None:
            stack, limits = self._models
            self._stream.send(CallReport(limits.own_calls, stack.spending.take(), stack.availability.pause))

    async def _report_regularly(self) -> None:
        while True:
            self._report_calls()
            await asyncio.sleep(REPORT_SECONDS)

    async def _end_tasks(self) -> None:
        """Wait for calls on their way, where the head says so, and cancel what is left."""
        tasks = [*self._tasks]
        if self._dismissal.done() and tasks:
            await asyncio.wait(tasks, timeout=self._dismissal.result() or 0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._report_calls()
