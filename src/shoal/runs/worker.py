"""Works on one run, from its directory to its end."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import time
from collections import deque
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from io import FileIO
from types import TracebackType
from typing import Any

import msgspec

import shoal
from shoal.agents.language import PrefixMeter, total_share
from shoal.engine import Decider, Engine, Gate, Ledger, RoundRecord, StateRecorder, Step
from shoal.errors import EveryTurnFailed, RunRefused, ScenarioInvalid, ShoalError, Stopped, StorageFailed
from shoal.journal import EVERY_WORLD, INJECT, Journal, JournalKey, JournalLine, add_line
from shoal.models import Availability, Pause
from shoal.models.local import ModelStore, find_table
from shoal.runs.directory import LOG, METRICS, RunDirectory, parse_injected_events
from shoal.runs.files import storage_errors
from shoal.runs.progress import RunProgress, Watch
from shoal.runs.reports.quality import QualityReader
from shoal.runs.resources import ModelSession, RunResources, open_models_if_needed
from shoal.runs.state import RunOutcome, RunState, Status, WaitState, wall_clock
from shoal.runs.store import Store, stream_path
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
from shoal.types import Mind, Versioned

#: The state is written at most this often while rounds go by, and at least this often while none does.
_STATE_SECONDS = 0.5
_HEARTBEAT_SECONDS = 2.0
#: The reason of a line that holds an event which was injected while the run went on.
LIVE = "live"

_encode = msgspec.json.Encoder().encode


async def work_on_run(
    run: RunDirectory, stop: asyncio.Event, progress: RunProgress | None = None, resources: RunResources | None = None
) -> RunOutcome:
    """Run a run to its end, from wherever it is. Repeating this is harmless.

    Everything is done again from round 0: replies come from the journal, rounds that were committed are compared and
    not written again, and what is missing is added.
    """
    async with RunSession(run, progress, resources) as session:
        return await session.advance(stop)


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
        self._writer: _StateWriter | None = None
        self._journal: Journal | None = None
        self._simulation: Simulation | None = None
        self._injected: Sequence[DeclaredEvent] = ()
        self._stores: dict[str, Store] = {}
        self._engines: dict[str, Engine] = {}
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
            # Not in a round that an earlier worker has committed, or has asked a model or a person about.
            asked = (line.round for line in journal if line.event is None and line.inherited is None)
            begun = (engine.next_round - 1 for engine in self._engines.values())
            at = 1 + max(*begun, *asked, *(world.known for world in self.progress.worlds.values()))
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
            self._writer = _StateWriter(self.run, state, self.progress, self._held.enter_context(_open_log(self.run)))
            self._held.callback(self._writer.close)
        state.plan(versions)
        state.quality, state.takes_commands = None, self.takes_commands
        with self._writer as writer:
            try:
                if not self._engines_can_go_on(versions):
                    await self._close_engines()
                    await self._open_engines(writer)
                writer.progress.plan(state.total_rounds)
                with manual_gc(), writer.beating():
                    rounds = dict.fromkeys(self._engines, state.total_rounds)
                    work = advance_worlds(self._engines, rounds, stop, self._gate)
                    await work_while_available(work, writer.progress.availability, stop)
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

    def _assess(self) -> dict[str, Any]:
        """Judge the whole run; EveryTurnFailed where nothing but failures happened in it."""
        quality = self._quality.assess()
        if loss := quality.find_total_loss():
            raise EveryTurnFailed(loss.of, loss.example)
        judged: dict[str, Any] = msgspec.json.decode(_encode(quality))
        return judged

    def _engines_can_go_on(self, versions: Versioned[Scenario]) -> bool:
        """Let the engines take over an extension; return whether they can."""
        if self._simulation is None or len(versions.changes) != self._changes + 1:
            return False
        self._changes += 1
        return extend_simulation(self._simulation, versions, self._injected)

    async def _open_engines(self, writer: _StateWriter) -> None:
        run, progress, stack = self.run, writer.progress, self._opened
        gc.collect()
        self._journal = await stack.enter_async_context(Journal.open(run.journal, run.config.shoal_version))
        # Limits hold for all sessions, until others are given.
        resources = replace(self._resources, limits=run.keep_limits(self._resources.limits))
        models = await stack.enter_async_context(open_models_if_needed(run.scenario, self._journal, resources))
        writer.count_from(self._journal, models)
        vectors = run.open_vectors(find_table(ModelStore.of_user(self._resources.environ)))
        sources = Sources(self._resources.answer, models and models.model, vectors.embed)
        self._injected = parse_injected_events(self._journal.events)
        simulation = self._simulation = build(run.scenario_versions, self._injected, sources)
        self._changes = len(run.scenario_versions.changes)
        writer.prefixes, simulation.limits.log = simulation.prefixes, writer.log
        # Minds may have something under way that no turn waits for any more.
        for mind in simulation.minds.values():
            stack.push_async_callback(mind.close)
        variables = find_variables(run.scenario)
        for name, world in simulation.worlds.items():
            # A stream says at its start how many people there were then.
            people, written_by = count_people(run.scenario_versions.first.population), run.config.shoal_version
            store = stack.enter_context(Store(run.path, world, self._plans, people, written_by))
            ledger = ObservedLedger(store, (progress.add_round, writer.add_round, collect_young))
            self._stores[name] = store
            recorder = StateRecorder(len(simulation.people), variables)
            engine = build_engine(simulation, name, self._journal, ledger, recorder=recorder)
            progress.follow_turns(name, engine.count_turns)
            self._engines[name] = engine

    async def _close_engines(self) -> None:
        opened, self._opened = self._opened, AsyncExitStack()
        self._journal, self._simulation, self._stores, self._engines = None, None, {}, {}
        await opened.aclose()


def build_from(run: RunDirectory, journal: Journal, sources: Sources | None = None) -> Simulation:
    """Build the whole simulation of a run, as its directory declares it."""
    return build(run.scenario_versions, parse_injected_events(journal.events), sources)


def build_engine(
    simulation: Simulation,
    world: str,
    journal: Journal,
    ledger: Ledger,
    mind: Mind | None = None,
    recorder: StateRecorder | None = None,
) -> Engine:
    """Build the engine of one world, with another mind than its own where one is given."""
    decider = Decider(mind or simulation.minds[world], journal, simulation.limits)
    return Engine(simulation.worlds[world], decider, ledger, simulation.seed, simulation.schedules[world], recorder)


async def advance_worlds(
    engines: Mapping[str, Engine], rounds: Mapping[str, int], stop: asyncio.Event, gate: Gate | None = None
) -> None:
    """Advance all worlds side by side. The first error ends them all."""
    try:
        async with asyncio.TaskGroup() as group:
            for name, engine in engines.items():
                group.create_task(engine.run(rounds[name], stop, gate))
    except BaseExceptionGroup as errors:
        # Of errors at once, raise one that is not merely another world being stopped.
        error: BaseException = errors
        while isinstance(error, BaseExceptionGroup):
            failures = [each for each in error.exceptions if not isinstance(each, Stopped)]
            error = (failures or error.exceptions)[0]
        raise error from None


async def work_while_available(
    work: Coroutine[Any, Any, None], availability: Availability | None, stop: asyncio.Event
) -> None:
    """Do the work until a model's server is given up, or until the run is asked to stop while it waits for one.

    Questions may be waiting for a slot then, or for their next attempt, and would hear of it late.
    """
    if availability is None:
        return await work
    working = asyncio.create_task(work)
    stopping, ending = asyncio.create_task(stop.wait()), asyncio.create_task(availability.wait_for_end())
    try:
        await asyncio.wait({working, stopping, ending}, return_when=asyncio.FIRST_COMPLETED)
        if stopping.done():
            availability.end_pauses()
            await asyncio.wait({working, ending}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            ending.result()
        return working.result()
    finally:
        for task in (working, stopping, ending):
            task.cancel()
        await asyncio.gather(working, stopping, ending, return_exceptions=True)


@dataclass(frozen=True, slots=True)
class ObservedLedger:
    """Commits rounds to a ledger and reports each of them."""

    ledger: Ledger
    watches: tuple[Watch, ...]

    def commit(self, record: RoundRecord) -> None:
        self.ledger.commit(record)
        for watch in self.watches:
            watch(record)


class _StateWriter:
    """Keeps the run's state, metrics and log up to date, and writes how each `advance` ended."""

    def __init__(self, run: RunDirectory, state: RunState, progress: RunProgress, log: logging.Logger) -> None:
        self.state = state
        self.progress = progress
        #: World -> how much of its prompts repeats earlier ones.
        self.prefixes: Mapping[str, PrefixMeter] = {}
        self._run = run
        self.log = log
        self._written_at = 0.0
        #: How the last `advance` ended, according to the log. Calls that just go on do not fill it.
        self._logged: Status | None = None
        self._metrics: FileIO | None = None
        self._is_held = False
        #: Calls of earlier workers; None until rounds are counted, and the state keeps what an earlier worker counted.
        self._calls_before: int | None = None
        self._journal: Journal | None = None
        progress.watch_pauses(self._show_pause)

    def __enter__(self) -> _StateWriter:
        if self._run.scenario.metrics and self._metrics is None:
            path = self._run.file(METRICS)
            with storage_errors(path):
                self._metrics = path.open("ab", buffering=0)
        self.state.process_pid = os.getpid()
        self.state.become(Status.RUNNING)
        if not self._written_at:
            # Engines that go on say so with their next round; a script that calls for one round after the other
            # would wait for the file system more than for its agents.
            self._write()
            self.log.info("running with Shoal %s, process %d", shoal.__version__, os.getpid())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write the end. Where that fails, the state still says `running` without a worker: the run is resumable."""
        status = Status.COMPLETED
        if error is not None:
            status = Status.STOPPED if isinstance(error, Stopped | asyncio.CancelledError) else Status.FAILED
        self.state.process_pid = self.state.waiting = None
        self.state.takes_commands = False
        self.state.become(status, None if error is None else str(error))
        with suppress(StorageFailed):
            self._write()
        if status is not self._logged:
            # The traceback of an error that is not one of ours is worth keeping.
            surprise = None if isinstance(error, ShoalError | asyncio.CancelledError | None) else error
            self.log.info("%s%s", status, f": {error}" if error else "", exc_info=surprise)
        self._logged = status

    def close(self) -> None:
        if self._metrics is not None:
            self._metrics.close()
            self._metrics = None

    def count_from(self, journal: Journal, models: ModelSession | None) -> None:
        """Begin to count rounds, from round 0 on."""
        self._calls_before, self._journal = journal.calls, journal
        self.progress.begin(self.state)
        if models is not None:
            # Spending goes on from where earlier workers left it. What a killed one had not written down is lost.
            if self.state.spending is not None:
                models.model.spending.add_earlier(self.state.spending)
            self.progress.open_models(models.model, models.limits)

    def _show_pause(self, pause: Pause | None) -> None:
        self.state.waiting = None if pause is None else WaitState.of(pause)
        self._show_waiting("" if pause is None else f"waiting: {pause.reason}")

    def show_hold(self, is_held: bool) -> None:
        """Show that a user has paused the run, or lets it go on."""
        self._is_held = is_held
        self._show_waiting("paused by a user" if is_held else "")

    def _show_waiting(self, why: str) -> None:
        status = Status.PAUSED if self._is_held or self.state.waiting is not None else Status.RUNNING
        if self.state.runner_status is not status:
            self.state.become(status)
            self.log.warning(why or "going on")
            with suppress(StorageFailed):
                self._write()

    @contextmanager
    def beating(self) -> Iterator[None]:
        """Show that the worker is alive, also in rounds that take long."""
        loop = asyncio.get_running_loop()

        def beat() -> None:
            # A state that cannot be written is no reason to stop; a round that cannot be committed is.
            with suppress(StorageFailed):
                self._write()
            timers.append(loop.call_later(_HEARTBEAT_SECONDS, beat))

        timers = deque([loop.call_later(_HEARTBEAT_SECONDS, beat)], maxlen=1)
        try:
            yield
        finally:
            timers[0].cancel()

    def add_round(self, record: RoundRecord) -> None:
        if record.step is not None and self._metrics is not None:
            measured = _measure(record, record.step)
            if record.world in self.prefixes:
                measured["prefixes"] = self.prefixes[record.world].total.as_dict()
            if self.progress.limits is not None:
                measured["limits"] = self.progress.limits.as_dict()
            with storage_errors(self._run.file(METRICS)):
                self._metrics.write(_encode(measured) + b"\n")
        if time.monotonic() - self._written_at > _STATE_SECONDS:
            self._write()

    def _write(self) -> None:
        self._written_at = time.monotonic()
        if self._calls_before is not None:
            self.progress.copy_to(self.state, self._calls_before)
        if self._journal is not None:
            self.state.journal = self._journal.mark
        if self.prefixes:
            self.state.prefixes = total_share(each.total for each in self.prefixes.values()).as_dict()
        self.state.updated_at = wall_clock()
        self._run.write_state(self.state)


def _measure(record: RoundRecord, step: Step) -> dict[str, Any]:
    """Return the figures of a round that may differ between equal runs."""
    tally = record.tally
    return {
        "world": record.world,
        "round": record.round,
        "acting": tally.acting,
        "actions": tally.actions,
        "calls": tally.calls,
        "errors": tally.errors,
        "timeouts": tally.timeouts,
        "mode": step.mode,
        "seconds": round(step.seconds, 6),
        "deciding_seconds": round(step.deciding_seconds, 6),
        "speedup": step.speedup and round(step.speedup, 3),
        "blocked": step.blocked,
        "latency_ms": step.latencies.milliseconds(),
        "at": wall_clock(),
    }


@contextmanager
def _open_log(run: RunDirectory) -> Iterator[logging.Logger]:
    """Open the run's own log. Messages of the model stack go there too, and not to the screen."""
    path = run.file(LOG)
    log, models = logging.getLogger(f"shoal.run.{path}"), logging.getLogger("shoal.models")
    log.setLevel(logging.INFO)
    with storage_errors(path):
        handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    for source in (log, models):
        source.propagate = False
        source.addHandler(handler)
    try:
        yield log
    finally:
        for source in (log, models):
            source.removeHandler(handler)
        models.propagate = True
        handler.close()


@contextmanager
def manual_gc() -> Iterator[Watch]:
    """Turn off automatic garbage collection; yields a collection of young objects, to be called once a round.

    A run makes millions of objects and hardly any cycles, and what survives a round lives long. Going through all of
    it again and again would be wasted.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield collect_young
    finally:
        if was_on:
            gc.enable()


def collect_young(record: RoundRecord) -> None:
    gc.collect(0)
