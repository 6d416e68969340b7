"""Works on one run, from its directory to its end."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any

import msgspec

from shoal.engine import Decider, Engine, Gate, StateRecorder
from shoal.errors import EveryTurnFailed, RunRefused, ScenarioInvalid, ShardLost
from shoal.journal import EVERY_WORLD, INJECT, Journal, JournalKey, JournalLine, add_line
from shoal.models.local import ModelStore, find_table
from shoal.runs.directory import RunDirectory, parse_injected_events
from shoal.runs.progress import RunProgress
from shoal.runs.reports.quality import QualityReader
from shoal.runs.resources import RunResources, open_models_if_needed
from shoal.runs.shards import ShardPool, open_shards
from shoal.runs.sinks import start_following
from shoal.runs.state import RunOutcome, RunState
from shoal.runs.store import Store, stream_path
from shoal.runs.worker.engines import (
    ObservedLedger,
    advance_worlds,
    build_engine,
    collect_young,
    manual_gc,
    work_while_available,
)
from shoal.runs.worker.state_writer import StateWriter, open_log
from shoal.scenario import (
    DeclaredEvent,
    Scenario,
    Simulation,
    SkipEvent,
    Sources,
    build,
    count_people,
    extend_simulation,
    find_variables,
    parse_event,
    reschedule_events,
    validate_events,
)
from shoal.types import Versioned

#: The reason of a line that holds an event which was injected while the run went on.
LIVE = "live"
#: A run ends that loses this many shards in a row before it gets any further.
MOST_LOSSES = 3


async def work_on_run(
    run: RunDirectory, stop: asyncio.Event, progress: RunProgress | None = None, resources: RunResources | None = None
) -> RunOutcome:
    """Run a run to its end, from wherever it is. Repeating this is harmless.

    Everything is done again from round 0: replies come from the journal, rounds that were committed are compared and
    not written again, and what is missing is added.
    """
    async with RunSession(run, progress, resources) as session:
        return await session.advance(stop)


def find_asked(lines: Iterable[JournalLine]) -> Iterator[int]:
    """Yield the rounds about which this run has asked a model or a person."""
    return (line.round for line in lines if line.event is None and line.inherited is None)


@dataclass(frozen=True, slots=True)
class RunExtension:
    """How a run goes on after its last round: the scenario from then on, and the line of the journal that holds it."""

    line: JournalLine
    scenario: Scenario
    #: Whether the run only gets more rounds. Rounds that are committed then tell as much as the line, so a power cut
    #: may undo it.
    only_lengthens: bool = False


class RunSession:
    """The one worker on a run, from its lock to its release.

    `advance` may be called again after `extend`. Where the extension allows it, the engines go on from where they are;
    otherwise everything is done again from round 0. Both give the same history. Between two calls the lock can be given
    up with `release`, and taken back with `claim`.
    """

    def __init__(
        self, run: RunDirectory, progress: RunProgress | None = None, resources: RunResources | None = None
    ) -> None:
        self.run = run
        self.progress = progress or RunProgress.of(run)
        self._resources = replace(resources or RunResources(), name=run.path.name)
        #: The lock, the log as long as the session lasts, and journal, models and stores as long as the engines do.
        self._locked = ExitStack()
        self._held = ExitStack()
        self._opened = AsyncExitStack()
        self._writer: StateWriter | None = None
        self._journal: Journal | None = None
        self._simulation: Simulation | None = None
        self._injected: Sequence[DeclaredEvent] = ()
        self._stores: dict[str, Store] = {}
        self._engines: dict[str, Engine] = {}
        #: The processes that hold the minds; None where they are in this one.
        self._shards: ShardPool | None = None
        self._quality = QualityReader(run, find_table(ModelStore.of_user(self._resources.environ)))
        #: What streams say about the last round: see `RunDirectory.round_plans`.
        self._plans: dict[int, int] = {}
        self._gate = Gate()
        self._is_paused = False
        #: Whether commands to the session are answered.
        self.takes_commands = False
        #: How many changes of the scenario the engines know.
        self._changes = 0
        #: The files that only a worker changes, and how they were when the lock was released.
        self._files = [run.journal, *(stream_path(run.path, world) for world in run.worlds)]
        self._left: list[tuple[int, int]] | None = None

    @property
    def state(self) -> RunState:
        return self.run.read_state() if self._writer is None else self._writer.state

    async def __aenter__(self) -> RunSession:
        await self.claim()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close what is open, and release the lock where it is held."""
        with self._locked, self._held:
            await self._close_engines()

    def release(self) -> None:
        """Give up the lock and keep the engines, for a script that may or may not go on."""
        self._left = self._measure_files()
        self._locked.close()

    async def claim(self) -> None:
        """Take the lock, or take it back. Engines are given up where another worker has changed the run."""
        self._locked.enter_context(self.run.lock())
        if self._left is not None and self._measure_files() != self._left:
            await self._close_engines()
            self._held.close()
            self._writer, self.progress = None, RunProgress.of(self.run)

    def _measure_files(self) -> list[tuple[int, int]]:
        found = []
        for path in self._files:
            with suppress(FileNotFoundError):
                stat = path.stat()
                found.append((stat.st_size, stat.st_mtime_ns))
        return found

    @property
    def simulation(self) -> Simulation | None:
        """The people, worlds and minds at work; None before they are built."""
        return self._simulation

    @property
    def is_sharded(self) -> bool:
        """Whether the minds at work are in other processes."""
        return self._shards is not None

    def pause(self) -> None:
        """Begin no more rounds until `unpause`. Decisions under way are made, and the rounds in flight stay open."""
        self._set_pause(True)

    def unpause(self) -> None:
        self._set_pause(False)

    def _set_pause(self, is_paused: bool) -> None:
        if self._writer is None or not self._writer.state.runner_status.is_working:
            raise RunRefused(f"{self.run.path} is not running: it is {self.state.runner_status}")
        if is_paused != self._is_paused:
            self._is_paused = is_paused
            (self._gate.hold if is_paused else self._gate.release)()
            self._writer.show_hold(is_paused)

    async def inject(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Let an event happen in the next round that no world has begun, or in a later one; return the event.

        It comes from outside the function, so it is a line of the journal before any round sees it.
        """
        simulation, journal = self._simulation, self._journal
        if simulation is None or journal is None or not self._engines:
            raise RunRefused(f"{self.run.path} is not running; fork it to let something happen in its past")
        self._gate.hold()
        try:
            at = self.find_free_round()
            if at > self.run.scenario.rounds:
                raise RunRefused(f"{self.run.path} is in its last round; extend it, or fork it")
            (checked,) = validate_events([event], self.run.scenario, at)
            parsed = parse_event(checked)
            if isinstance(parsed, SkipEvent):
                raise ScenarioInvalid(["skip: time cannot be skipped in a run that goes on; fork it to skip time"])
            key = JournalKey(checked.get("world") or EVERY_WORLD, checked["round"], None, INJECT, len(journal.events))
            await journal.record(JournalLine(key, event=checked, reason=LIVE))
            self._injected = [*self._injected, parsed]
            reschedule_events(simulation, self.run.scenario_versions, self._injected, at - 1)
        finally:
            self._gate.release()
        return checked

    def find_free_round(self) -> int:
        """Return the first round that no world has begun and that no earlier worker has asked anybody about."""
        begun = (engine.next_round - 1 for engine in self._engines.values())
        known = (world.known for world in self.progress.worlds.values())
        return 1 + max(*begun, *known, *find_asked(self._journal or ()))

    def extend(self, extension: RunExtension) -> None:
        """Write an extension of the run into its journal; the next `advance` carries it out."""
        if extension.line.round != self.progress.last_round + 1:
            raise RunRefused(f"{self.run.path} was continued by another worker in the meantime; try again")
        if self._journal is not None:
            self._journal.add(extension.line, sync=not extension.only_lengthens)
        else:
            add_line(self.run.journal, extension.line)
        self.run.know_extension(extension.line, extension.scenario)

    async def advance(self, stop: asyncio.Event) -> RunOutcome:
        """Advance all worlds to the last planned round, each in its own pace."""
        versions, state = self.run.scenario_versions, self.state
        self._plans.update(self.run.round_plans)
        if state.is_over(versions.latest.rounds):
            # A state that was rebuilt, or written by an older version, has no verdict.
            state.quality = state.quality or self._assess()
            return RunOutcome.of(self.run.path, state)
        if self._writer is None:
            self._writer = StateWriter(self.run, state, self.progress, self._held.enter_context(open_log(self.run)))
            self._held.callback(self._writer.close)
        start_following(self.run, self._resources.environ)
        state.plan(versions)
        state.quality, state.takes_commands = None, self.takes_commands
        with self._writer as writer:
            try:
                if not self._engines_can_go_on(versions):
                    await self._close_engines()
                with manual_gc(), writer.beating():
                    await self._advance_engines(writer, stop)
                for name, store in self._stores.items():
                    store.finish(writer.progress.worlds[name].actions)
                state.quality = self._assess()
                if writer.progress.limits is not None:
                    # What was learned about limits is complete only once they are closed.
                    await self._close_engines()
            except BaseException:
                # Engines that were interrupted cannot go on. What they committed is on disk.
                await self._close_engines()
                raise
        return RunOutcome.of(self.run.path, state)

    async def _advance_engines(self, writer: StateWriter, stop: asyncio.Event) -> None:
        """Advance all worlds. Where a shard is lost, do everything again from the journal, with new shards.

        Repeating this is harmless, as a resume is. It ends where shards are lost again and again before the run gets
        any further.
        """
        losses, reached = 0, -1
        while True:
            try:
                if not self._engines:
                    await self._open_engines(writer)
                writer.progress.plan(writer.state.total_rounds)
                rounds = dict.fromkeys(self._engines, writer.state.total_rounds)
                work = advance_worlds(self._engines, rounds, stop, self._gate)
                return await work_while_available(work, writer.progress.availability, stop)
            except ShardLost as lost:
                before, reached = reached, self.progress.last_round
                losses = 1 if reached > before else losses + 1
                if losses == MOST_LOSSES or stop.is_set():
                    raise
                writer.log.warning("%s; its agents are built again from the journal", lost)
                await self._close_engines()

    def _assess(self) -> dict[str, Any]:
        """Judge the whole run; EveryTurnFailed where nothing but failures happened in it."""
        quality = self._quality.assess()
        if loss := quality.find_total_loss():
            raise EveryTurnFailed(loss.of, loss.example)
        judged: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(quality))
        return judged

    def _engines_can_go_on(self, versions: Versioned[Scenario]) -> bool:
        """Let the engines take over an extension; return whether they can."""
        if self._simulation is None or len(versions.changes) != self._changes + 1:
            return False
        self._changes += 1
        return extend_simulation(self._simulation, versions, self._injected)

    async def _open_engines(self, writer: StateWriter) -> None:
        run, progress, stack = self.run, writer.progress, self._opened
        gc.collect()
        copy = self._resources.copy
        keep_elsewhere = None if copy is None else copy.keep_lines
        opened = Journal.open(run.journal, run.config.shoal_version, keep_elsewhere)
        self._journal = await stack.enter_async_context(opened)
        if copy is not None:
            copy.slow_down(self._gate)
        # Limits hold for all sessions, until others are given.
        resources = replace(self._resources, limits=run.keep_limits(self._resources.limits))
        models = await stack.enter_async_context(open_models_if_needed(run.scenario, self._journal, resources))
        writer.count_from(self._journal, models)
        self._shards = await stack.enter_async_context(open_shards(run, resources, ShardPool(self._journal, models)))
        vectors = run.open_vectors(find_table(ModelStore.of_user(self._resources.environ)))
        sources = Sources(self._resources.answer, models and models.model, vectors.embed)
        self._injected = parse_injected_events(self._journal.events)
        simulation = self._simulation = build(run.scenario_versions, self._injected, sources)
        simulation.seats.is_attended, progress.seats = self.takes_commands, simulation.seats
        writer.follow_seats(simulation.seats, simulation.people.names)
        self._changes = len(run.scenario_versions.changes)
        writer.prefixes, simulation.limits.log = simulation.prefixes, writer.log
        # Minds may have something under way that no turn waits for any more.
        for mind in simulation.minds.values():
            stack.push_async_callback(mind.close)
        variables = find_variables(run.scenario)
        if self._shards is not None:
            await self._shards.wait_until_ready()
        for name, world in simulation.worlds.items():
            # A stream says at its start how many people there were then.
            people, written_by = count_people(run.scenario_versions.first.population), run.config.shoal_version
            open_store = Store if copy is None else copy.open_store
            store = stack.enter_context(open_store(run.path, world, self._plans, people, written_by))
            ledger = ObservedLedger(store, (progress.add_round, writer.add_round, collect_young))
            self._stores[name] = store
            recorder = StateRecorder(len(simulation.people), variables)
            if self._shards is None:
                decider = Decider(simulation.minds[name], self._journal, simulation.limits, simulation.seats)
            else:
                decider = self._shards.build_decider(simulation, name)
            engine = build_engine(simulation, name, decider, ledger, recorder)
            progress.follow_turns(name, engine.count_turns)
            self._engines[name] = engine

    async def _close_engines(self) -> None:
        opened, self._opened = self._opened, AsyncExitStack()
        self._journal, self._simulation, self._stores, self._engines = None, None, {}, {}
        self._shards = None
        await opened.aclose()
