"""One run, worked on from its directory: every verb that runs something ends here."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from io import FileIO
from typing import TYPE_CHECKING, Any

import msgspec

import shoal
from shoal.agents.language.prefix_stats import PrefixMeter, total_share
from shoal.engine.decisions import Decider
from shoal.engine.engine import Engine
from shoal.engine.metrics import Step
from shoal.engine.record import Ledger, RoundRecord
from shoal.errors import ShoalError, Stopped, StorageFailed
from shoal.journal import Journal, digest
from shoal.runs.config import Config
from shoal.runs.directory import LOG, METRICS, RunDirectory, injected_events
from shoal.runs.files import storage_errors
from shoal.runs.resources import RunResources, language_models
from shoal.runs.state import RunState, Status, wall_clock
from shoal.runs.store import Store
from shoal.scenario.build import Simulation, Sources, build
from shoal.types import Mind

if TYPE_CHECKING:
    from shoal.runs.model_session import ModelSession

#: How often the state is written while rounds go by; readers need no more.
_STATE_SECONDS = 0.5
_HEARTBEAT_SECONDS = 2.0

#: Told of every round, in the order in which rounds are committed.
Watch = Callable[[RoundRecord], None]

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How a run ended."""

    run: str
    status: Status
    digest: str
    rounds: int
    actions: int
    calls: int
    #: Dollars; None where a model's price is not known.
    cost: float | None
    errors: int
    timeouts: int


async def work_on_run(
    directory: RunDirectory, stop: asyncio.Event, watch: Watch, outside: RunResources | None = None
) -> RunOutcome:
    """Run the directory's run to its end, from wherever it is. Repeating this is harmless.

    Everything is done again from round 0: replies come from the journal, rounds that were committed are compared and
    not written again, and what is missing is added.
    """
    with directory.lock(), _log_to(directory) as log:
        config = directory.config
        state, history = directory.state(), directory.scenario_versions
        if directory.is_over():
            return outcome_from(directory, state)
        state.plan(history)
        reporter = _Reporter(directory, state, log, timed=history.versions()[-1].metrics)
        with reporter:
            await _work(directory, config, reporter, stop, watch, outside or RunResources())
        return outcome_from(directory, state)


async def _work(
    directory: RunDirectory,
    config: Config,
    reporter: _Reporter,
    stop: asyncio.Event,
    watch: Watch,
    outside: RunResources,
) -> None:
    latest = directory.scenario
    async with (
        Journal.open(directory.journal, config.shoal_version) as journal,
        language_models(latest, journal, replace(outside, name=directory.path.name)) as language,
    ):
        reporter.state.begin_again(journal.calls)
        reporter.watch_language(language)
        simulation = build_from(directory, journal, Sources(outside.answer, language and language.model))
        reporter.prefixes = simulation.prefixes
        with _stores(directory, simulation, config.shoal_version) as stores, manual_gc() as collect:
            ledgers = _observed(stores, reporter.take_in, watch, collect)
            rounds = dict.fromkeys(simulation.worlds, simulation.rounds)
            engines = {name: build_engine(simulation, name, journal, ledgers[name]) for name in rounds}
            async with reporter.beating(), _minds(simulation):
                await advance_worlds(engines, rounds, stop)
            for name, store in stores.items():
                store.finish(reporter.state.worlds[name].actions_count)


def build_from(directory: RunDirectory, journal: Journal, sources: Sources | None = None) -> Simulation:
    """The whole simulation of a run, as its directory declares it."""
    return build(directory.scenario_versions, injected_events(journal.events), sources)


@asynccontextmanager
async def _minds(simulation: Simulation) -> AsyncIterator[None]:
    """Minds may have something under way that nobody waits for any more."""
    try:
        yield
    finally:
        for mind in simulation.minds.values():
            await mind.close()


def build_engine(
    simulation: Simulation,
    world: str,
    journal: Journal,
    ledger: Ledger,
    mind: Mind | None = None,
) -> Engine:
    decider = Decider(mind or simulation.minds[world], journal, simulation.limits)
    return Engine(simulation.worlds[world], decider, ledger, simulation.seed, simulation.schedules[world])


async def advance_worlds(engines: Mapping[str, Engine], rounds: Mapping[str, int], stop: asyncio.Event) -> None:
    """All worlds side by side. The first error ends them all."""
    try:
        async with asyncio.TaskGroup() as group:
            for name, engine in engines.items():
                group.create_task(engine.run(rounds[name], stop))
    except BaseExceptionGroup as errors:
        raise _first(errors) from None


def _first(errors: BaseException) -> BaseException:
    """Of errors at once, one that is not merely being stopped because of the others."""
    while isinstance(errors, BaseExceptionGroup):
        failures = [error for error in errors.exceptions if not isinstance(error, Stopped)]
        errors = (failures or errors.exceptions)[0]
    return errors


@contextmanager
def _stores(directory: RunDirectory, simulation: Simulation, written_by: str) -> Iterator[dict[str, Store]]:
    """A store for each world, open as long as they are worked on. A stream says what was planned first."""
    planned = directory.config.scenario_versions(directory.path).versions()[-1].rounds
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(Store(directory.path, world, planned, len(simulation.people), written_by))
            for name, world in simulation.worlds.items()
        }


@dataclass(frozen=True, slots=True)
class ObservedLedger:
    """Commits rounds to a ledger and reports each of them."""

    ledger: Ledger
    told: tuple[Watch, ...]

    def commit(self, record: RoundRecord) -> None:
        self.ledger.commit(record)
        for tell in self.told:
            tell(record)


def _observed(ledgers: Mapping[str, Ledger], *told: Watch) -> dict[str, Ledger]:
    return {name: ObservedLedger(ledger, told) for name, ledger in ledgers.items()}


class _Reporter:
    """Keeps the run's state, metrics and log up to date, and writes how it ended."""

    def __init__(self, directory: RunDirectory, state: RunState, log: logging.Logger, timed: bool) -> None:
        self.state = state
        self._directory = directory
        self._log = log
        self._written = 0.0
        #: What language models cost so far, and what limits them, where any are asked.
        self._language: ModelSession | None = None
        #: World -> how much of its prompts repeats earlier ones.
        self.prefixes: Mapping[str, PrefixMeter] = {}
        self._metrics: FileIO | None = None
        if timed:
            with storage_errors(directory.file(METRICS)):
                self._metrics = directory.file(METRICS).open("ab", buffering=0)

    def __enter__(self) -> None:
        self.state.process_pid = os.getpid()
        self.state.become(Status.RUNNING)
        self._write()
        self._log.info("running with Shoal %s, process %d", shoal.__version__, os.getpid())

    def watch_language(self, language: ModelSession | None) -> None:
        """Keep count where earlier sessions left off; what one that was killed did not write down any more is lost."""
        if language is not None and self.state.spending is not None:
            language.model.spending.add_earlier(self.state.spending)
        self._language = language

    @asynccontextmanager
    async def beating(self) -> AsyncIterator[None]:
        """Show that the worker is alive, also in rounds that take long."""
        beat = asyncio.create_task(self._beat())
        try:
            yield
        finally:
            beat.cancel()

    async def _beat(self) -> None:
        """A state that cannot be written is no reason to stop; a round that cannot be committed is."""
        while True:
            await asyncio.sleep(_HEARTBEAT_SECONDS)
            with suppress(StorageFailed):
                self._write()

    def take_in(self, record: RoundRecord) -> None:
        self.state.take_in(record)
        if record.step is not None and self._metrics is not None:
            with storage_errors(self._directory.file(METRICS)):
                self._metrics.write(_encode(self._measured(record, record.step)) + b"\n")
        if time.monotonic() - self._written > _STATE_SECONDS:
            self._write()

    def _measured(self, record: RoundRecord, step: Step) -> dict[str, Any]:
        found = _measured(record, step)
        if record.world in self.prefixes:
            found["prefixes"] = self.prefixes[record.world].total.as_dict()
        if self._language is not None:
            found["limits"] = self._language.limits.as_dict()
        return found

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """A run whose end cannot be written goes on saying `running` with nobody at work, and is resumable as well."""
        if self._metrics is not None:
            self._metrics.close()
        self.state.process_pid = None
        self.state.become(_ended(error), None if error is None else str(error))
        with suppress(StorageFailed):
            self._write()
        self._log.info("%s%s", self.state.runner_status, f": {error}" if error else "", exc_info=_surprising(error))

    def _write(self) -> None:
        self._written = time.monotonic()
        self.state.updated_at = wall_clock()
        if self._language is not None:
            self.state.spend(self._language.model.spending.as_dict())
            self.state.limits = self._language.limits.as_dict()
        if self.prefixes:
            self.state.prefixes = total_share(each.total for each in self.prefixes.values()).as_dict()
        self._directory.write_state(self.state)


def _ended(error: BaseException | None) -> Status:
    if error is None:
        return Status.COMPLETED
    return Status.STOPPED if isinstance(error, Stopped | asyncio.CancelledError) else Status.FAILED


def _surprising(error: BaseException | None) -> BaseException | None:
    """An error that nobody foresaw; its traceback goes to the log."""
    return None if isinstance(error, ShoalError | asyncio.CancelledError | None) else error


def _measured(record: RoundRecord, step: Step) -> dict[str, Any]:
    """What may differ between equal runs."""
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
        "latency_ms": step.latencies.milliseconds(),
        "at": wall_clock(),
    }


def outcome_of(directory: RunDirectory) -> RunOutcome:
    """How far a run has come, as its directory says it."""
    return replace(outcome_from(directory, directory.state()), status=directory.status())


def outcome_from(directory: RunDirectory, state: RunState) -> RunOutcome:
    worlds = sorted((name, world.digest) for name, world in state.worlds.items())
    return RunOutcome(
        run=str(directory.path),
        status=state.runner_status,
        digest=digest(worlds),
        rounds=state.current_round,
        actions=state.actions_count,
        calls=state.calls,
        cost=state.cost,
        errors=state.errors,
        timeouts=state.timeouts,
    )


@contextmanager
def _log_to(directory: RunDirectory) -> Iterator[logging.Logger]:
    """The run's own log, which goes with the worker. What models have to say belongs there too, and not on a screen."""
    path = directory.file(LOG)
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
    """A run makes millions of objects and hardly any cycles, and what stays after a round stays for long.

    So instead of going through everything again and again, garbage is looked for once per round, among what is new.
    """
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield _collect_young
    finally:
        if was_on:
            gc.enable()


def _collect_young(record: RoundRecord) -> None:
    gc.collect(0)
