"""One run of a script: begun by the first call of `run`, continued by later ones, with progress and interrupts."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import threading
import weakref
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from shoal.engine import RoundRecord
from shoal.errors import RunRefused, ScenarioInvalid, Stopped
from shoal.event_loop import new_event_loop, run_async
from shoal.journal import JournalLine
from shoal.runs import (
    CONFIG,
    Config,
    RunDirectory,
    RunProgress,
    RunResources,
    RunSession,
    Status,
    create_run,
    input_names,
    plan_extension,
    portable_scenario,
    work_on_run,
)
from shoal.scenario import Scenario
from shoal.types import Versioned

T = TypeVar("T")

#: Takes the event that asks it to stop, and raises `Stopped` when it has.
Work = Callable[[asyncio.Event], Coroutine[Any, Any, T]]


def wait_for(work: Work[T], runner: asyncio.Runner | None = None) -> T:
    """Do the work in an event loop and wait for its end. An interrupt (Ctrl-C) asks it to stop and waits on.

    Where this thread runs a loop already, as in a notebook, the work gets another thread. With `runner`, several
    pieces of work share one loop.
    """
    run = run_async if runner is None else runner.run
    started: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def main() -> T:
        stop = asyncio.Event()
        started.append((asyncio.get_running_loop(), stop))
        return await work(stop)

    def ask_to_stop() -> None:
        for loop, stop in started:
            loop.call_soon_threadsafe(stop.set)

    with _interrupts_to(ask_to_stop):
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return run(main())
        with ThreadPoolExecutor(1, "shoal") as pool:
            return pool.submit(lambda: run(main())).result()


@contextmanager
def _interrupts_to(ask_to_stop: Callable[[], object]) -> Iterator[None]:
    """Let the first interrupt ask to stop, and a second one have its usual effect. Only the main thread gets any."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is None:
        yield
        return

    def interrupt(number: int, _: FrameType | None) -> None:
        signal.signal(number, before)
        ask_to_stop()

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def show_progress(title: str, rounds: int, progress: RunProgress, quiet: bool = False) -> Iterator[None]:
    """Show a bar for each world on a terminal or in a notebook."""
    console = Console(stderr=True)
    # A notebook can only show a moving line with the help of ipywidgets.
    is_watched = (
        find_spec("ipywidgets") is not None
        if console.is_jupyter
        else console.is_terminal and not console.is_dumb_terminal
    )
    if quiet or not is_watched:
        yield
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("round"),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("[yellow]{task.fields[note]}"),
    )
    with Progress(*columns, console=console, transient=True) as line:
        worlds = progress.worlds.values()
        titles = {world.name: title if len(worlds) == 1 else f"{title}: {world.name}" for world in worlds}
        bars = {world.name: line.add_task(escape(titles[world.name]), total=rounds, note="") for world in worlds}

        def advance(record: RoundRecord) -> None:
            failed = record.tally.errors + record.tally.timeouts
            note = f"{failed} failed in round {record.round}" if failed else ""
            line.update(bars[record.world], completed=record.round, note=note)

        progress.watch(advance)
        try:
            yield
        finally:
            progress.unwatch(advance)


class LiveWorker:
    """The worker of a script's run with its event loop, kept from one call to the next so that engines can go on.

    Between calls the run is free for others. A worker that is forgotten is closed when it is collected, or at exit.
    """

    def __init__(self, directory: RunDirectory) -> None:
        self._runner = asyncio.Runner(loop_factory=new_event_loop)
        self._worker = RunSession(directory, resources=RunResources.of_user(os.environ))
        self._is_begun = False
        self.close = weakref.finalize(self, _close_worker, self._runner, self._worker)

    @property
    def rounds(self) -> int:
        return self._worker.progress.last_round

    def work(self, title: str, quiet: bool, extension: JournalLine | None) -> None:
        """Carry out an extension and advance to the last round."""
        wait_for(lambda stop: self._work(stop, title, quiet, extension), self._runner)

    async def _work(self, stop: asyncio.Event, title: str, quiet: bool, extension: JournalLine | None) -> None:
        if self._is_begun:
            await self._worker.reclaim()
        else:
            await self._worker.__aenter__()
            self._is_begun = True
        try:
            await advance(self._worker, stop, title, quiet, extension)
        finally:
            self._worker.release()


def _close_worker(runner: asyncio.Runner, worker: RunSession) -> None:
    """Close a worker from a thread: the one that collects garbage may be running another loop."""

    def close() -> None:
        with runner:
            runner.run(worker.close())

    thread = threading.Thread(target=close)
    thread.start()
    thread.join()


async def advance(
    worker: RunSession, stop: asyncio.Event, title: str, quiet: bool, extension: JournalLine | None
) -> None:
    """Carry out an extension and advance to the last round, showing how far it is."""
    if extension is not None:
        await worker.extend(extension)
    with show_progress(title, worker.run.scenario.rounds, worker.progress, quiet):
        await worker.advance(stop)


class Session:
    """A run that the first declared scenario begins, and later ones continue."""

    def __init__(self, out: Path | None = None) -> None:
        self._out = out
        self._live: LiveWorker | None = None
        #: How the run goes on, where the last declared scenario extends it.
        self._extension: JournalLine | None = None
        self._directory: RunDirectory | None = None
        self._first: Scenario | None = None
        #: The number of scenarios declared so far.
        self._declared = 0
        #: The last round that was run.
        self.rounds = 0

    @property
    def has_begun(self) -> bool:
        return self._directory is not None

    @property
    def directory(self) -> RunDirectory:
        if self._directory is None:
            raise RunRefused("nothing has been run yet; call run() first")
        return self._directory

    @property
    def is_over(self) -> bool:
        """Whether the history ended by itself, before the rounds that were planned."""
        if self._directory is None:
            return False
        state = self._directory.read_state()
        return state.runner_status is Status.COMPLETED and state.current_round < state.total_rounds

    def declare(self, scenario: Scenario) -> None:
        """Begin the run, or extend it. Where an earlier script declared the same in this directory, nothing is done."""
        if self._directory is None:
            self._directory = self._begin(scenario)
            self._first = scenario
        else:
            self._extend(self._directory, scenario)
        self._declared += 1

    def work(self, title: str, quiet: bool) -> None:
        """Work on the run up to the last declared round. The next call goes on where this one ends."""
        if self._is_known():
            return
        self._live = self._live or LiveWorker(self.directory)
        extension, self._extension = self._extension, None
        live = self._live
        try:
            live.work(title, quiet, extension)
        except BaseException:
            # The next call begins with fresh resources, such as a key that was missing in the environment. What could
            # not be written down, because another worker had the run, was not declared.
            self.close()
            self._declared = min(self._declared, len(self.directory.scenario_versions.versions()))
            raise
        finally:
            self.rounds = live.rounds

    async def work_async(self, title: str, quiet: bool) -> None:
        """Do the same in the caller's event loop, which no later call can share."""
        if self._is_known():
            return
        self.close()
        extension, self._extension = self._extension, None
        async with RunSession(self.directory, resources=RunResources.of_user(os.environ)) as worker:
            try:
                await advance(worker, asyncio.Event(), title, quiet, extension)
            finally:
                self.rounds = worker.progress.last_round

    def close(self) -> None:
        """Give up the worker that is kept for the next call."""
        if self._live is not None:
            self._live.close()
            self._live = None

    def _is_known(self) -> bool:
        """Whether an earlier script has carried out what was declared, and went on."""
        later = self.directory.scenario_versions.changes[self._declared - 1 :]
        if later:
            self.rounds = later[0][0] - 1
        return bool(later)

    def _begin(self, scenario: Scenario) -> RunDirectory:
        if self._out is not None and (self._out / CONFIG).exists():
            found = RunDirectory(self._out)
            asked = Config.of(self._out.name, Versioned(scenario), input_names(Versioned(scenario))).scenario
            _check_same(found, found.config.scenario, asked)
            return found
        return create_run(scenario, self._out)

    def _extend(self, directory: RunDirectory, scenario: Scenario) -> None:
        assert self._first is not None
        if scenario.population != self._first.population:
            raise ScenarioInvalid(
                [
                    "the people have changed since the run began; change them in the run with "
                    "world.change(person, stance=0.5), or make a new World"
                ]
            )
        history = directory.scenario_versions
        # The run keeps its own copies of files of people.
        lasting = {"population": history.first.population, "follows": history.first.follows}
        scenario = scenario.model_copy(update=lasting)
        later = history.changes[self._declared - 1 :]
        if later:
            known, asked = (portable_scenario(one, directory.path) for one in (later[0][1], scenario))
            _check_same(directory, known, asked)
        else:
            self._extension = plan_extension(directory, scenario)


def _check_same(directory: RunDirectory, known: dict[str, Any], asked: dict[str, Any]) -> None:
    different = [field for field, value in known.items() if asked.get(field) != value]
    if different:
        raise RunRefused(
            f"{directory.path} already holds a run of another scenario ({', '.join(different)} differ).\n"
            "Give `out` another directory, or leave it away to have a new one each time."
        )


def slug(name: str, usual: str = "world") -> str:
    """Turn a name into one for files and folders: small letters, digits and hyphens."""
    found = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40].strip("-")
    return found if found[:1].isalpha() else f"{usual}-{found}".strip("-")[:40]


def finish_session(session: Session, title: str, quiet: bool, again: str) -> None:
    """Work on what was declared. `again` is the call that goes on after an interrupt."""
    with _report_interrupt(session.directory, again):
        session.work(title, quiet)


def finish_run(directory: RunDirectory, title: str, quiet: bool, again: str) -> None:
    """Work on a run to its end. `again` is the call that goes on after an interrupt."""
    progress = RunProgress.of(directory)
    with (
        _report_interrupt(directory, again),
        show_progress(title, directory.scenario.rounds, progress, quiet),
    ):
        wait_for(lambda stop: work_on_run(directory, stop, progress, RunResources.of_user(os.environ)))


@contextmanager
def _report_interrupt(directory: RunDirectory, again: str) -> Iterator[None]:
    """Turn a clean stop into the KeyboardInterrupt that asked for it, with how to go on."""
    try:
        yield
    except Stopped:
        rounds = max(directory.read_last_rounds().values())
        raise KeyboardInterrupt(
            f"stopped after round {rounds}; nothing is lost. Go on with {again}, "
            f"or with `shoal resume {directory.path}`."
        ) from None
