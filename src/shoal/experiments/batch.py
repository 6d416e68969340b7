"""A batch: one scenario and a table, a simulation for each row, as many side by side as the machine bears.

Nothing about a batch is kept in memory alone. A simulation is a run in `runs/ID`, and its result is a line of
`results.jsonl` once it has ended. So the same call after a kill finds what is finished, waits for workers that are
still alive, and continues the others from their journals.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from shoal.errors import RunLocked, RunRefused, Stopped
from shoal.experiments.batch_rows import BatchRow
from shoal.experiments.pacing import DailyWindow, SimulationLimit
from shoal.formats import ExportTable, choose_writer
from shoal.machine import Pressure, Throttle, inspect_machine, watch_machine
from shoal.runs import (
    CONFIG,
    RUNS,
    LimitSettings,
    RunDirectory,
    RunOutcome,
    RunResources,
    Status,
    check_models,
    open_or_create_run,
    read_outcome,
    storage_errors,
)
from shoal.runs.launchers import Launcher, find_worker, start_run
from shoal.runs.reports import read_outcomes
from shoal.scenario import Scenario
from shoal.text import format_count
from shoal.unix import read_lock, try_lock, write_lock

RESULTS = "results.jsonl"
RESULTS_CSV = "results.csv"
LOCK = "batch.lock"
#: A simulation that fails is started once more, with its journal.
_ATTEMPTS = 2
_LONGEST_LOOK_SECONDS = 30.0
#: What failed calls mean is for the runs that made them.
_HEEDED = (Pressure.CPU, Pressure.MEMORY)


class BatchResult(msgspec.Struct, frozen=True):
    """How one simulation ended: a line of `results.jsonl`."""

    id: str
    #: `completed`, `failed`, or `stopped`: by its budget, or because a server did not answer.
    status: Status
    error: str | None
    #: Dollars; None where a model's price is not known.
    cost: float | None
    calls: int
    rounds: int
    actions: int
    #: Figures of the population at the end; with several worlds, each begins with the name of its world.
    metrics: dict[str, float]
    #: The run directory.
    run: str
    #: Identifies the history.
    digest: str
    #: Identifies the scenario of the row.
    scenario_digest: str
    input_tokens: int = 0
    output_tokens: int = 0
    #: How long its rounds took.
    seconds: float = 0.0
    #: Replies that other runs had paid for: its cost would be higher without them.
    cached_calls: int = 0


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """How a batch runs. Nothing of it changes what happens in a simulation."""

    #: Simulations side by side, at most.
    max_simulations: int
    #: What each of them may use; `parallel` holds for all together.
    limits: LimitSettings = field(default_factory=LimitSettings)
    window: DailyWindow | None = None
    #: Whether simulations that were recorded as failed are tried again.
    retry_failed: bool = False


@dataclass(slots=True)
class BatchProgress:
    """How far a batch is, for views."""

    total: int
    results: dict[str, BatchResult] = field(default_factory=dict)
    running: dict[str, RunDirectory] = field(default_factory=dict)
    #: Simulations that may run side by side now.
    at_once: int = 0
    #: Results that an earlier call had recorded.
    known: int = 0
    #: What the user should know, the latest last.
    notes: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    #: Receives every result and note.
    watch: Callable[[BatchResult | str], object] = lambda _: None

    def add_result(self, result: BatchResult) -> None:
        self.results[result.id] = result
        self.watch(result)

    def add_note(self, note: str) -> None:
        self.notes.append(note)
        self.watch(note)

    def list_results(self) -> list[BatchResult]:
        """Return the results so far, also for a thread that draws them while others are added."""
        return list(self.results.values())

    def list_running(self) -> list[str]:
        """Name what runs, without what has ended and is being judged."""
        return [name for name in list(self.running) if name not in self.results]

    def count(self, status: Status) -> int:
        return sum(result.status is status for result in self.list_results())

    @property
    def cost(self) -> float | None:
        """Dollars so far; None where a price is not known."""
        costs = [result.cost for result in self.list_results()]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    def seconds_left(self, now: float) -> float | None:
        """Estimate the time left from the results of this call; None while there are none."""
        done = len(self.results) - self.known
        return (now - self.began) / done * (self.total - len(self.results)) if done else None


class Batch:
    """A batch in its folder. `run` works through all rows that have no result yet."""

    def __init__(self, scenario: Scenario, rows: Sequence[BatchRow], folder: Path, settings: BatchSettings) -> None:
        self.folder = folder
        self.progress = BatchProgress(len(rows))
        self._scenario = scenario
        self._rows = list(rows)
        self._settings = settings
        self._limit = SimulationLimit(settings.max_simulations, int(inspect_machine().cores.usable or 1))
        self._queue: deque[BatchRow] = deque()
        #: Runs of rows in the queue that are made already.
        self._made: dict[str, RunDirectory] = {}
        #: Set when a simulation has ended, or when the load of the machine has changed.
        self._changed = asyncio.Event()

    @property
    def results_file(self) -> Path:
        return self.folder / RESULTS

    @property
    def runs_folder(self) -> Path:
        return self.folder / RUNS.name

    def describe(self) -> dict[str, Any]:
        """Return how far the batch is, in plain values."""
        progress = self.progress
        statuses = (Status.COMPLETED, Status.FAILED, Status.STOPPED)
        return {
            "batch": str(self.folder),
            "simulations": progress.total,
            **{status.value: progress.count(status) for status in statuses},
            "left": progress.total - len(progress.results),
            "cost": progress.cost,
            "results": str(self.results_file),
            "notes": progress.notes,
        }

    def list_open_rows(self) -> list[BatchRow]:
        """Return the rows that have no final result yet; RunRefused where a row was run with other values."""
        known = self._read_results(self._rows)
        return [row for row in self._rows if row.id not in known]

    def check_models(self, resources: RunResources) -> None:
        """Refuse rows whose models cannot be asked, such as for want of a key, before anything runs."""
        checked: set[str] = set()
        for row in self.list_open_rows():
            scenario = row.apply_to(self._scenario)
            if (models := repr((scenario.mind, scenario.worlds))) not in checked:
                checked.add(models)
                check_models(scenario, resources)

    async def run(
        self, launcher: Launcher, stop: asyncio.Event, now: Callable[[], datetime] = datetime.now
    ) -> list[BatchResult]:
        """Run all rows that have no result yet, and return the results of all; `Stopped` where it was asked to."""
        with self.lock():
            return await self.work(launcher, stop, now)

    async def work(
        self, launcher: Launcher, stop: asyncio.Event, now: Callable[[], datetime] = datetime.now
    ) -> list[BatchResult]:
        """Do the same for a caller who holds the lock."""
        known = self._read_results(self._rows)
        self.progress.results, self.progress.known = known, len(known)
        self.progress.at_once = self._limit.now
        self._queue.extend(row for row in self._rows if row.id not in known)
        self._forget_results({row.id for row in self._queue})
        await self.begin()
        watching = asyncio.create_task(watch_machine(self._heed, lambda at: None, kinds=_HEEDED))
        try:
            while self._queue and await self._wait_for_hours(stop, now):
                await self._work_for_hours(launcher, stop, now)
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
        self._write_csv()
        if self._queue:
            raise Stopped(f"stopped with {format_count(len(self._queue), 'simulation')} left; nothing is lost")
        return [self.progress.results[row.id] for row in self._rows if row.id in self.progress.results]

    # Working

    async def _wait_for_hours(self, stop: asyncio.Event, now: Callable[[], datetime]) -> bool:
        """Wait until simulations may run, and return whether they still are to."""
        window = self._settings.window
        if window is not None and not window.is_open(now()):
            self.progress.add_note(f"waiting until {window.opens:%H:%M}")
            await _wait_while(window, False, stop, now)
        return not stop.is_set()

    async def _work_for_hours(self, launcher: Launcher, stop: asyncio.Event, now: Callable[[], datetime]) -> None:
        """Work until all rows are done, or the hours are over, or the batch is asked to stop."""
        window, halt = self._settings.window, asyncio.Event()

        async def announce_halt() -> None:
            await (stop.wait() if window is None else _wait_while(window, True, stop, now))
            halt.set()

        announcing = asyncio.create_task(announce_halt())
        try:
            async with asyncio.TaskGroup() as group:
                while (row := await self._find_room(halt)) is not None:
                    run = self._made.pop(row.id, None) or self._make_run(row)
                    self.limit_run(row, run)
                    self.progress.running[row.id] = run
                    group.create_task(self._simulate(row, run, launcher, halt))
        except BaseExceptionGroup as errors:
            # The first one ended the others.
            raise errors.exceptions[0] from None
        finally:
            announcing.cancel()

    async def _find_room(self, halt: asyncio.Event) -> BatchRow | None:
        """Wait until another simulation may start, and return its row; None where none is to start any more."""
        running = self.progress.running
        while not halt.is_set():
            if self._limit.has_room(len(running)) and (row := self.choose_row()) is not None:
                return row
            if not running:
                break
            self._changed.clear()
            # First the simulations start that have been chosen.
            await asyncio.sleep(0)
            following = self._queue[0] if self._queue else None
            if following is not None and following.id not in self._made and self.will_start(following):
                self._made[following.id] = self._make_run(following)
            await self._changed.wait()
        return None

    def _make_run(self, row: BatchRow) -> RunDirectory:
        return open_or_create_run(row.apply_to(self._scenario), self._find_folder(row), self._settings.limits)

    def _heed(self, throttle: Throttle) -> None:
        for note in self._limit.heed(throttle):
            self.progress.add_note(note)
        self.progress.at_once = self._limit.now
        self._changed.set()

    async def _simulate(self, row: BatchRow, run: RunDirectory, launcher: Launcher, halt: asyncio.Event) -> None:
        """Work on one run to its end, with a second attempt where it fails, and record how it ended."""
        try:
            for _ in range(_ATTEMPTS):
                outcome, error = await _work_once(run, launcher, halt)
                if outcome.status is not Status.COMPLETED and (halt.is_set() or self.goes_on(row, run, outcome)):
                    self._queue.appendleft(row)
                    return
                if note := self._limit.add(outcome.status is Status.FAILED):
                    self.progress.at_once = self._limit.now
                    self.progress.add_note(note)
                if outcome.status is not Status.FAILED:
                    break
            await self.conclude(self._record(row, run, outcome, error))
        finally:
            del self.progress.running[row.id]
            self._changed.set()

    # What an experiment adds

    async def begin(self) -> None:
        """Prepare to work, with the results of earlier calls at hand."""

    def choose_row(self) -> BatchRow | None:
        """Take the row to start next out of the queue; None where none can start before another simulation ends."""
        return self._queue.popleft() if self._queue else None

    def will_start(self, row: BatchRow) -> bool:
        """Return whether a row in the queue starts whatever comes of others, so that its run can be made before."""
        return True

    def limit_run(self, row: BatchRow, run: RunDirectory) -> None:
        """Set what a run may use before it is worked on."""
        run.keep_limits(self._settings.limits)

    def refuse_changed(self, row: BatchRow) -> RunRefused:
        """Say that a simulation was run with other values before."""
        return RunRefused(
            f"{self.folder} holds a simulation {row.id} with other values.\n"
            "Give changed rows another id, or choose another folder with --out."
        )

    def goes_on(self, row: BatchRow, run: RunDirectory, outcome: RunOutcome) -> bool:
        """Return whether a run that did not complete is to go on later, and has no result yet."""
        return False

    async def conclude(self, result: BatchResult) -> None:
        """Do what belongs to the end of a simulation, which counts as running until then."""

    def add_rows(self, rows: Sequence[BatchRow]) -> None:
        """Take in more rows, also while others run."""
        known = self._read_results(rows)
        self._rows += rows
        self.progress.results |= known
        self.progress.known += len(known)
        self._queue.extend(row for row in rows if row.id not in known)
        self.progress.total = len(self._rows)
        self._changed.set()

    # The folder

    def _find_folder(self, row: BatchRow) -> Path:
        return self.runs_folder / row.id

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Be the only one who works on this batch. The lock ends with the process, however that ends."""
        path = self.folder / LOCK
        if self.folder.exists() and not self.folder.is_dir():
            raise RunRefused(f"{self.folder} is a file; choose a folder with --out")
        with storage_errors(path):
            self.folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if not try_lock(handle):
                raise RunLocked(
                    f"{self.folder} is being worked on by process {read_lock(path)} already.\n"
                    "Wait until it ends, or choose another folder with --out."
                )
            write_lock(handle, str(os.getpid()))
            yield
        finally:
            os.close(handle)

    def _read_results(self, rows: Sequence[BatchRow]) -> dict[str, BatchResult]:
        """Read the results of rows that stay as they are; RunRefused where a row was run with other values."""
        known = {result.id: result for result in _read_lines(self.results_file)}
        tried_again = (Status.STOPPED, *([Status.FAILED] if self._settings.retry_failed else []))
        kept = {}
        for row in rows:
            result = known.get(row.id)
            if result is not None and result.scenario_digest != row.scenario_digest:
                raise self.refuse_changed(row)
            if result is not None and result.status not in tried_again:
                kept[row.id] = result
            elif result is None and (self._find_folder(row) / CONFIG).exists():
                # Under way when the batch was killed. It must be of this scenario, too.
                open_or_create_run(row.apply_to(self._scenario), self._find_folder(row))
        return kept

    def _forget_results(self, ids: Collection[str]) -> None:
        """Leave out results that are made anew, and what a kill cut off. Those of rows that were removed stay."""
        path = self.results_file
        beside = path.with_name(f".{path.name}")
        kept = (result for result in _read_lines(path) if result.id not in ids)
        with storage_errors(path):
            beside.write_bytes(b"".join(msgspec.json.encode(result) + b"\n" for result in kept))
            beside.replace(path)

    def _record(self, row: BatchRow, run: RunDirectory, outcome: RunOutcome, error: str | None) -> BatchResult:
        state = run.read_state()
        spent = state.spending or {}
        result = BatchResult(
            id=row.id,
            status=outcome.status,
            error=error,
            cost=outcome.cost,
            calls=outcome.calls,
            rounds=outcome.rounds,
            actions=outcome.actions,
            metrics=_read_metrics(run),
            run=outcome.run,
            digest=outcome.digest,
            scenario_digest=row.scenario_digest,
            input_tokens=spent.get("input", 0),
            output_tokens=spent.get("output", 0),
            seconds=state.metrics.parallel_seconds + state.metrics.sequential_seconds,
            cached_calls=spent.get("cache_hits", 0),
        )
        path = self.results_file
        with storage_errors(path), path.open("ab", buffering=0) as file:
            file.write(msgspec.json.encode(result) + b"\n")
        self.progress.add_result(result)
        return result

    def _write_csv(self) -> None:
        """Write all results in the order of the rows, with a column for each metric."""
        results = [self.progress.results[row.id] for row in self._rows if row.id in self.progress.results]
        metrics = tuple(dict.fromkeys(name for result in results for name in result.metrics))
        fields = ("id", "status", "error", "cost", "calls", "rounds", "actions")
        rows = (
            [*(getattr(result, name) for name in fields), *map(result.metrics.get, metrics), result.run]
            for result in results
        )
        path = self.folder / RESULTS_CSV
        beside = path.with_name(f".{RESULTS_CSV}")
        with storage_errors(path):
            choose_writer("csv")(ExportTable("results", (*fields, *metrics, "run"), rows), beside)
            beside.replace(path)


async def _wait_while(window: DailyWindow, is_open: bool, stop: asyncio.Event, now: Callable[[], datetime]) -> None:
    """Wait while the window is open, or while it is not, but no longer than until the batch is asked to stop.

    Timers stand still while a machine sleeps, and clocks are set: so it looks again and again.
    """
    while not stop.is_set() and window.is_open(now()) == is_open:
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), min(window.seconds_until_change(now()), _LONGEST_LOOK_SECONDS))


async def _work_once(run: RunDirectory, launcher: Launcher, halt: asyncio.Event) -> tuple[RunOutcome, str | None]:
    """Let a worker work on a run, be it one that outlived an earlier batch, and return how far it came, and why."""
    state = run.read_state()
    if not state.is_over(run.scenario.rounds):
        worker = find_worker(run) if state.runner_status.is_working else None
        try:
            worker = worker or await start_run(run, launcher)
        except RunRefused as error:
            return replace(read_outcome(run), status=Status.FAILED), str(error)
        ended, halted = asyncio.create_task(worker.wait()), asyncio.create_task(halt.wait())
        try:
            await asyncio.wait((ended, halted), return_when=asyncio.FIRST_COMPLETED)
        finally:
            halted.cancel()
            if not ended.done():
                ended.cancel()
                await worker.stop()
    outcome = read_outcome(run)
    if outcome.status is Status.COMPLETED:
        return outcome, None
    return outcome, run.observe_state().error or run.read_last_words()


def _read_lines(path: Path) -> Iterator[BatchResult]:
    """Read the whole lines of the results. What a kill or a full disk cut off is left out."""
    if path.exists():
        decoder = msgspec.json.Decoder(BatchResult)
        for line in path.read_bytes().split(b"\n"):
            with suppress(msgspec.DecodeError):
                yield decoder.decode(line)


def _read_metrics(run: RunDirectory) -> dict[str, float]:
    """Read the figures of the population at the end."""
    prefixes = {world: f"{world}." if len(run.worlds) > 1 else "" for world in run.worlds}
    return {
        f"{prefix}{figure.name}" + (f"({figure.about})" if figure.about else ""): figure.last
        for world, prefix in prefixes.items()
        for figure in read_outcomes(run, world)
    }
