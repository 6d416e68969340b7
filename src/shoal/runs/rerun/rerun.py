"""Runs a run again from its journal, compares each round with what was committed, and reports every turn.

Nothing is written, and no model is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from typing import Any

from shoal.agents import WrapperMind
from shoal.engine import Decider, Engine, RoundRecord
from shoal.errors import QueryFailed
from shoal.journal import Journal
from shoal.runs.directory import RunDirectory
from shoal.runs.progress import RunProgress, Watch
from shoal.runs.rerun.files import check_files
from shoal.runs.resources import build_replay_models
from shoal.runs.state import RunOutcome, Status
from shoal.runs.store import DigestCheck
from shoal.runs.stream import parse_line
from shoal.runs.worker import (
    ObservedLedger,
    advance_worlds,
    build_engine,
    build_from,
    manual_gc,
)
from shoal.scenario import Sources, count_people
from shoal.types import Decision, Event, Mind, MindMode, Notice, Observation


class TurnObserver:
    """Receives what happens in one world of a rerun. A subclass overrides the methods it needs."""

    def before(self, mind: Mind, observation: Observation) -> None:
        """Receive an observation just before the mind decides about it."""

    def after(self, observation: Observation, decision: Decision) -> None:
        """Receive the decision."""

    def results(self, round: int, agent: int, events: Sequence[Event]) -> None:
        """Receive the results of a turn."""

    def change(self, agent: int, traits: Mapping[str, Any]) -> None:
        """Receive traits of an agent that an intervention changed."""

    def commit(self, record: RoundRecord) -> None:
        """Receive a committed round."""


class ObservedMind(WrapperMind):
    """Wraps a mind and reports every turn to an observer."""

    def __init__(self, inner: Mind, observer: TurnObserver) -> None:
        super().__init__(inner)
        self._observer = observer

    async def prepare(self, observation: Observation) -> None:
        """Report the turn of an agent that journals its own calls: it decides again, from the same replies."""
        await super().prepare(observation)
        self._observer.before(self.inner, observation)

    def request(self, observation: Observation) -> object:
        """Report the turn of an agent whose decision is in the journal."""
        if self.mode(observation.agent) is not MindMode.SELF_JOURNALING:
            self._observer.before(self.inner, observation)
        return super().request(observation)

    def decide(self, observation: Observation) -> Decision | Awaitable[Decision]:
        """Report the turn of an agent that decides without the journal."""
        if self.mode(observation.agent) is not MindMode.SELF_JOURNALING:
            self._observer.before(self.inner, observation)
        return super().decide(observation)

    def absorb(self, observation: Observation, decision: Decision) -> None:
        super().absorb(observation, decision)
        self._observer.after(observation, decision)

    def take_results(self, round: int, agent: int, events: Sequence[Event]) -> None:
        super().take_results(round, agent, events)
        self._observer.results(round, agent, events)

    def change(self, agent: int, traits: Mapping[str, Any]) -> None:
        super().change(agent, traits)
        self._observer.change(agent, traits)


class Rerun:
    """A run that can be run again from its journal, world by world."""

    def __init__(self, directory: RunDirectory) -> None:
        written_by, scenario = directory.config.shoal_version, directory.scenario_versions.first
        # The journal is read after the digests: what a committed round rests on is in it, also while a worker goes on.
        self._ledgers = {name: DigestCheck(directory.path, name, written_by) for name in scenario.worlds}
        self.journal = Journal.sealed(directory.journal, written_by, directory.read_state().journal)
        model = build_replay_models(scenario, self.journal)
        sources = Sources(model=model, embed=directory.open_vectors().embed)
        self.simulation = build_from(directory, self.journal, sources)
        #: World -> the last round of it that was committed.
        self.rounds = {name: ledger.rounds for name, ledger in self._ledgers.items()}

    def engine(self, world: str, *watches: Watch, observer: TurnObserver | None = None) -> Engine:
        """Build the engine of one world. Its turns and rounds go to the observer, its rounds to every watch."""
        mind = self.simulation.minds[world]
        if observer is not None:
            mind, watches = ObservedMind(mind, observer), (observer.commit, *watches)
        ledger = ObservedLedger(self._ledgers[world], watches)
        decider = Decider(mind, self.journal, self.simulation.limits, self.simulation.seats)
        return build_engine(self.simulation, world, decider, ledger)

    async def observe(self, world: str, observer: TurnObserver, until: int) -> None:
        """Run one world again up to the end of a round, and report everything to the observer."""
        with manual_gc() as collect:
            await self.engine(world, collect, observer=observer).run(until, asyncio.Event())


def open_rerun(directory: RunDirectory) -> Rerun:
    """Open a run to run it again; QueryFailed where no round of it has been committed yet."""
    rounds = directory.read_last_rounds()
    if not any(rounds.values()) or not all(directory.file(f"{world}_simulation.db").exists() for world in rounds):
        raise QueryFailed(f"no round of {directory.path} has been committed yet; `shoal resume` it first")
    return Rerun(directory)


def check_round(rounds: Mapping[str, int], wanted: int | None) -> int:
    """Return the wanted round, or the last one; QueryFailed where the wanted round is not committed."""
    last = max(rounds.values())
    if wanted is not None and wanted > last:
        raise QueryFailed(f"round {wanted} has not been committed; there are rounds 0 to {last}")
    return last if wanted is None else wanted


async def replay(directory: RunDirectory, stop: asyncio.Event, progress: RunProgress | None = None) -> RunOutcome:
    """Run all worlds again, and compare every round with what was committed: digests, streams and tables.

    While a worker goes on with the run, only digests are compared, since its files change.
    """
    rerun, state = Rerun(directory), directory.make_state()
    progress = progress or RunProgress(state.total_rounds, dict.fromkeys(rerun.rounds, 0), directory.clock)
    state.become(Status.RUNNING)
    is_whole = directory.read_status() is Status.COMPLETED and directory.is_over()
    committed = () if directory.has_worker() else directory.list_begun_worlds()
    worlds = {name: rerun.simulation.worlds[name] for name in committed}
    plans, people = directory.round_plans, count_people(directory.scenario_versions.first.population)
    with manual_gc() as collect, check_files(directory.path, worlds, plans, people, is_whole) as checks:
        watches = {name: [checks[name].add_round] if name in checks else [] for name in rerun.rounds}
        engines = {name: rerun.engine(name, *watches[name], progress.add_round, collect) for name in rerun.rounds}
        for name, engine in engines.items():
            progress.follow_turns(name, engine.count_turns)
        await advance_worlds(engines, rerun.rounds, stop)
    progress.plan(state.total_rounds)
    progress.copy_to(state)
    is_whole = all(world.completed for world in state.worlds.values())
    state.become(Status.COMPLETED if is_whole else Status.STOPPED)
    # The history is the same, and so is the verdict about it.
    state.quality = directory.read_state().quality
    return RunOutcome.of(directory.path, state)


def parse_round(record: RoundRecord) -> Iterator[Event | Notice]:
    """Parse the lines of a round, in order."""
    for text in record.lines.splitlines():
        line = parse_line(text)
        assert isinstance(line, Event | Notice)
        yield line
