"""One run of a script: begun by the first call of `run`, continued by later ones, with progress and interrupts."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import threading
import warnings
import weakref
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from shoal.engine import RoundRecord
from shoal.errors import RunRefused, ScenarioInvalid, ShoalError, Stopped
from shoal.event_loop import new_event_loop, run_async
from shoal.runs import (
    LOG,
    LimitSettings,
    RunDirectory,
    RunExtension,
    RunProgress,
    RunResources,
    RunSession,
    check_extension,
    open_or_create_run,
    plan_extension,
)
from shoal.scenario import Scenario
from shoal.text import hide_controls

T = TypeVar("T")

#: Takes the event that asks it to stop, and raises `Stopped` when it has.
Work = Callable[[asyncio.Event], Coroutine[Any, Any, T]]


def wait_for(work: Work[T], runner: asyncio.Runner | None = None) -> T:
    """Do the work in an event loop and wait for its end. An interrupt (Ctrl-C) asks it to stop and waits on.

    Where this thread runs a loop already, as in a notebook, the work gets another thread. With `runner`, several
    pieces of work share one loop.
    """
    # Interrupts are handled here, so the loop of a runner needs no handler.
    run = run_async if runner is None else runner.get_loop().run_until_complete
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
            if not _is_in_loop():
                return run(main())
            with ThreadPoolExecutor(1, "shoal") as pool:
                return pool.submit(lambda: run(main())).result()
        except ShoalError as error:
            # It says what to do. Where in Shoal it was found would hide that from a person at a notebook.
            raise error.with_traceback(None) from None


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


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
def show_progress(title: str, progress: RunProgress, console: Console | None) -> Iterator[None]:
    """Show a bar for each world, if there is a console that is a terminal or a notebook."""
    if console is None or not _can_show(console):
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
    line = LiveBars(progress, hide_controls(title), *columns, console=console)

    def note_failures(record: RoundRecord) -> None:
        failed = record.tally.errors + record.tally.timeouts
        line.update(line.bars[record.world], note=f"{failed} failed in round {record.round}" if failed else "")

    with line:
        progress.watch(note_failures)
        try:
            yield
        finally:
            progress.unwatch(note_failures)


class LiveBars(Progress):
    """Bars that read how far the worlds are whenever they are drawn, so that they move within a round."""

    def __init__(self, progress: RunProgress, title: str, *columns: ProgressColumn, console: Console) -> None:
        self._progress = progress
        self.bars: dict[str, TaskID] = {}
        super().__init__(*columns, console=console, transient=True)
        worlds = progress.worlds.values()
        for world in worlds:
            shown = escape(title if len(worlds) == 1 else f"{title}: {world.name}")
            self.bars[world.name] = self.add_task(shown, total=world.rounds, note="")

    def get_renderables(self) -> Iterable[RenderableType]:
        for name, bar in self.bars.items():
            world = self._progress.worlds[name]
            self.update(bar, completed=world.position, total=world.rounds)
        return super().get_renderables()


def _can_show(console: Console) -> bool:
    # A notebook can only show a moving line with the help of ipywidgets.
    if console.is_jupyter:
        return find_spec("ipywidgets") is not None
    return console.is_terminal and not console.is_dumb_terminal


class Session:
    """A run that the first declared scenario begins, and later ones continue.

    Its worker and event loop are kept from one call to the next, so that engines can go on. Between calls the run is
    free for others. A session that is forgotten closes them when it is collected, or at exit.
    """

    def __init__(self, out: Path | None = None, limits: LimitSettings | None = None) -> None:
        self._out = out
        self._limits = limits
        self._console = Console(stderr=True)
        self._worker: RunSession | None = None
        self._runner: asyncio.Runner | None = None
        #: How the run goes on, where the last declared scenario extends it.
        self._extension: RunExtension | None = None
        self._directory: RunDirectory | None = None
        self._first: Scenario | None = None
        #: The number of scenarios declared so far.
        self._declared = 0
        #: The last round that was run.
        self.rounds = 0
        self._has_warned = False

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
        """Whether the history came to its own end: it has no more rounds."""
        if self._worker is not None:
            return self._worker.state.has_ended
        return self._directory is not None and self._directory.read_state().has_ended

    def take_over(self, directory: RunDirectory) -> None:
        """Work on a run that was declared elsewhere."""
        self._directory, self._declared = directory, len(directory.scenario_versions.versions())

    def declare(self, scenario: Scenario) -> None:
        """Begin the run, or extend it. Where an earlier script declared the same in this directory, nothing is done."""
        if self._directory is None:
            self._directory, self._first = open_or_create_run(scenario, self._out, self._limits), scenario
        else:
            assert self._first is not None
            known = len(self._first.population)
            if scenario.population[:known] != self._first.population:
                raise ScenarioInvalid(
                    [
                        "the people have changed since the run began; change them in the run with "
                        "world.change(person, stance=0.5), or make a new World"
                    ]
                )
            versions = self._directory.scenario_versions
            # The run keeps its own copies of files of people.
            people = (*versions.first.population, *scenario.population[known:])
            # The same object where nobody joined, so that it need not be compared person by person.
            people = versions.latest.population if people == versions.latest.population else people
            lasting = {"population": people, "follows": versions.first.follows}
            scenario = scenario.model_copy(update=lasting)
            if later := versions.changes[self._declared - 1 :]:
                check_extension(self._directory, later[0][1], scenario)
            else:
                self._extension = plan_extension(self._directory, scenario, self._worker)
        self._declared += 1

    def work(self, title: str, quiet: bool, again: str) -> None:
        """Work on the run up to the last declared round. `again` is the call that goes on after an interrupt."""
        if self._extension is None and self._is_known():
            return
        if self._worker is None:
            self._worker = RunSession(self.directory, resources=find_resources(self._limits))
            self._runner = asyncio.Runner(loop_factory=new_event_loop)
            self._finalizer = weakref.finalize(self, _close_in_thread, self._runner, self._worker)
        worker = self._worker
        try:
            wait_for(lambda stop: self._advance(worker, stop, title, quiet), self._runner)
        except BaseException as error:
            # The next call begins with fresh resources, such as a key that was missing in the environment. What could
            # not be written down, because another worker had the run, was not declared.
            self.close()
            self._declared = min(self._declared, len(self.directory.scenario_versions.versions()))
            # A clean stop is the interrupt that asked for it. What stops a run by itself, such as a budget, stays.
            if type(error) is not Stopped:
                raise
            how = f"Go on with {again}, or with `{self.directory.resume_command}`."
            raise KeyboardInterrupt(f"stopped after round {self.rounds}; nothing is lost. {how}") from None

    async def work_async(self, title: str, quiet: bool) -> None:
        """Do the same in the caller's event loop, which no later call can share."""
        if not self._is_known():
            self.close()
            worker = RunSession(self.directory, resources=find_resources(self._limits))
            try:
                await self._advance(worker, asyncio.Event(), title, quiet)
            finally:
                await worker.close()

    async def _advance(self, worker: RunSession, stop: asyncio.Event, title: str, quiet: bool) -> None:
        """Carry out an extension and advance to the last round, showing how far it is."""
        extension, self._extension = self._extension, None
        await worker.claim()
        try:
            if extension is not None:
                worker.extend(extension)
            with show_progress(title, worker.progress, None if quiet else self._console):
                await worker.advance(stop)
        finally:
            worker.release()
            self.rounds = worker.progress.last_round
        if worker.state.metrics.blocked and not self._has_warned:
            self._has_warned = True
            log = self.directory.file(LOG)
            warnings.warn(f"{worker.state.metrics.blocked} decisions blocked the others; see {log}", stacklevel=2)

    def close(self) -> None:
        """Give up the worker that is kept for the next call."""
        if self._worker is not None:
            self._finalizer()
            self._worker = None

    def _is_known(self) -> bool:
        """Return whether an earlier script has carried out what was declared and went on; its rounds count then."""
        later = self.directory.scenario_versions.changes[self._declared - 1 :]
        if later:
            self.rounds = later[0][0] - 1
        return bool(later)


def _close_in_thread(runner: asyncio.Runner, worker: RunSession) -> None:
    """Close a worker and its loop. The thread that collects garbage may be running another loop."""

    def close() -> None:
        with runner:
            runner.run(worker.close())

    thread = threading.Thread(target=close)
    thread.start()
    thread.join()


def find_resources(limits: LimitSettings | None = None) -> RunResources:
    """Return what runs of this user may use, within these limits."""
    return replace(RunResources.of_user(os.environ), limits=limits or LimitSettings())


def finish_run(directory: RunDirectory, title: str, quiet: bool, limits: LimitSettings) -> None:
    """Work on a run to its end."""
    session = Session(limits=limits)
    session.take_over(directory)
    try:
        session.work(title, quiet, f"shoal.open({str(directory.path)!r}).resume()")
    finally:
        session.close()


def slug(name: str, usual: str = "world") -> str:
    """Turn a name into one for files and folders: small letters, digits and hyphens."""
    found = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40].strip("-")
    return found if found[:1].isalpha() else f"{usual}-{found}".strip("-")[:40]
