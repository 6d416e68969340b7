"""Running a scenario from Python."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from shoal.engine.record import RoundRecord
from shoal.errors import RunRefused, ScenarioInvalid, Stopped
from shoal.event_loop import run_async
from shoal.python.results import Results
from shoal.runs import operations, worker
from shoal.runs.config import Config, input_names, portable_scenario
from shoal.runs.directory import CONFIG, RUNS, RunDirectory, claim_directory
from shoal.runs.resources import RunResources
from shoal.runs.state import Status
from shoal.runs.worker import Watch
from shoal.scenario.loading import load, validate
from shoal.scenario.scenario import Scenario
from shoal.types import Versioned

T = TypeVar("T")

#: Gets the event that asks it to stop; it raises `Stopped` when it has.
Work = Callable[[asyncio.Event], Coroutine[Any, Any, T]]


def wait_for(work: Work[T]) -> T:
    """Carry out the work to its end. An interrupt (Ctrl-C) asks it to stop, and is waited for."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run_async(_here(work))
    return _beside(work)


async def _here(work: Work[T]) -> T:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    with _interrupts_to(lambda: loop.call_soon_threadsafe(stop.set)):
        return await work(stop)


def _beside(work: Work[T]) -> T:
    """In a thread with a loop of its own: the loop of this thread is busy with whoever called us."""
    started: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def main() -> T:
        stop = asyncio.Event()
        started.append((asyncio.get_running_loop(), stop))
        return await work(stop)

    def ask_to_stop() -> None:
        for loop, stop in started:
            loop.call_soon_threadsafe(stop.set)

    with ThreadPoolExecutor(1, "shoal") as pool, _interrupts_to(ask_to_stop):
        return pool.submit(lambda: run_async(main())).result()


@contextmanager
def _interrupts_to(ask_to_stop: Callable[[], object]) -> Iterator[None]:
    """The first interrupt asks to stop, a second one has its usual effect. Only the main thread gets any."""
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
def show_progress_line(title: str, rounds: int, known: Mapping[str, int], quiet: bool = False) -> Iterator[Watch]:
    """Gives what is to be told of every round. `known`: worlds, and the rounds they have behind them already."""
    console = Console(stderr=True)
    if quiet or not _is_watched(console):
        yield _say_nothing
        return
    with _line(console) as line:
        bars = {world: line.add_task(_name(title, world, known), total=rounds, note="") for world in known}
        yield lambda record: _advance(line, bars[record.world], record)


def _is_watched(console: Console) -> bool:
    """A notebook can only show a moving line with the help of ipywidgets."""
    if console.is_jupyter:
        return find_spec("ipywidgets") is not None
    return console.is_terminal and not console.is_dumb_terminal


def _line(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("round"),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("[yellow]{task.fields[note]}"),
        console=console,
        transient=True,
    )


def _name(title: str, world: str, known: Mapping[str, int]) -> str:
    return escape(title if len(known) == 1 else f"{title}: {world}")


def _advance(line: Progress, bar: TaskID, record: RoundRecord) -> None:
    failed = record.tally.errors + record.tally.timeouts
    line.update(bar, completed=record.round, note=f"{failed} failed in round {record.round}" if failed else "")


def _say_nothing(record: RoundRecord) -> None:
    """Nobody is watching."""


class Session:
    """A run that is begun by the first version of a scenario, and goes on with later ones."""

    def __init__(self, out: Path | None = None) -> None:
        self._out = out
        self._directory: RunDirectory | None = None
        self._first: Scenario | None = None
        #: Versions that were asked for so far.
        self._asked = 0
        #: The last round of the versions that were asked for.
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
        """Whether the history has come to its end by itself, before the rounds that were planned."""
        if self._directory is None:
            return False
        state = self._directory.state()
        return state.runner_status is Status.COMPLETED and state.current_round < state.total_rounds

    def declare(self, scenario: Scenario) -> None:
        """What the run shall be from here on. It is made to go on, unless the same was asked for before."""
        if self._directory is None:
            self._directory = self._begun(scenario)
            self._first = scenario
        else:
            self._go_on(self._directory, scenario)
        self._asked += 1

    async def work(self, stop: asyncio.Event, title: str, quiet: bool) -> None:
        """Work on the run until what was declared has happened."""
        directory = self.directory
        later = directory.scenario_versions.changes[self._asked - 1 :]
        if later:
            self.rounds = later[0][0] - 1
            return
        known = directory.committed_rounds()
        total = directory.scenario.rounds
        try:
            with show_progress_line(title, total, known, quiet) as watch:
                await worker.work_on_run(directory, stop, watch, RunResources.of_user(os.environ))
        finally:
            self.rounds = max(directory.committed_rounds().values())

    def _begun(self, scenario: Scenario) -> RunDirectory:
        if self._out is not None and (self._out / CONFIG).exists():
            found = RunDirectory(self._out)
            asked = Config.of(self._out.name, Versioned(scenario), input_names(Versioned(scenario))).scenario
            _compare(found, found.config.scenario, asked)
            return found
        with claim_directory(self._out, RUNS, scenario.name) as path:
            return operations.create_run(scenario, path)

    def _go_on(self, directory: RunDirectory, scenario: Scenario) -> None:
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
        versions = history.versions()
        if self._asked < len(versions):
            known, asked = (portable_scenario(one, directory.path) for one in (versions[self._asked], scenario))
            _compare(directory, known, asked)
        else:
            operations.extend_run(directory, scenario)


def _compare(directory: RunDirectory, known: dict[str, Any], asked: dict[str, Any]) -> None:
    different = [field for field, value in known.items() if asked.get(field) != value]
    if different:
        raise RunRefused(
            f"{directory.path} already holds a run of another scenario ({', '.join(different)} differ).\n"
            "Give `out` another directory, or leave it away to have a new one each time."
        )


def slug(name: str, usual: str = "world") -> str:
    """A name as files and folders are called: small letters, digits and hyphens."""
    found = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40].strip("-")
    return found if found[:1].isalpha() else f"{usual}-{found}".strip("-")[:40]


def run(
    scenario: Scenario | Mapping[str, Any] | str | Path, out: str | Path | None = None, *, quiet: bool = False
) -> Results:
    """Run a scenario to its end: a `Scenario`, what its YAML would hold, or the path of a file.

    The run is kept in `out`, or in runs/NAME-N. Where `out` holds a run of the same scenario already, that is finished.
    """
    session = Session(None if out is None else Path(out))
    session.declare(_scenario(scenario))
    path = str(session.directory.path)
    return finish_run(session, f"running {path}", quiet, f"shoal.run(..., out={path!r})")


def finish_run(session: Session, title: str, quiet: bool, again: str) -> Results:
    """Work on what was declared. An interrupt stops it cleanly and says how to go on: with this call again."""

    def work(stop: asyncio.Event) -> Any:
        return session.work(stop, title, quiet)

    try:
        wait_for(work)
    except Stopped:
        path = session.directory.path
        raise KeyboardInterrupt(
            f"stopped after round {session.rounds}; nothing is lost. Go on with {again}, or with `shoal resume {path}`."
        ) from None
    return Results(session.directory)


def _scenario(scenario: Scenario | Mapping[str, Any] | str | Path) -> Scenario:
    if isinstance(scenario, Scenario):
        return scenario
    return validate(dict(scenario)) if isinstance(scenario, Mapping) else load(Path(scenario))
