"""How many simulations at once this machine takes, found by running them: whole ones, each in a process of its own.

For scenarios that ask nobody, where a simulation is as fast as a core, and waiting for answers is not what takes time.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import resource
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from math import inf
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path
from statistics import median, quantiles

from shoal.engine.record import RoundRecord
from shoal.errors import RunRefused, ShoalError, Stopped
from shoal.machine.hardware import inspect_machine
from shoal.runs.operations import create_run
from shoal.runs.tuning.calls import TIME_USED, Gauge
from shoal.runs.tuning.knee import MeasuredLevel, is_found, next_level
from shoal.runs.worker import work_on_run
from shoal.scenario.scenario import Scenario

#: How long each level is measured, once all of its processes have begun.
WINDOW_SECONDS = 3.0
BEGIN_SECONDS = 120.0
#: In a short time a level is measured for less long, so that there is time for so many.
LEVELS = 8
#: Of the memory that is free, so much may be used.
MEMORY_SHARE = 0.85
UP_TO = 64
_KIB_PER_MB = 1024
_BYTES_PER_MB = 1 << 20


@dataclass(slots=True)
class _Done:
    """What one process did."""

    steps: int = 0
    runs: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    memory_mb: float = 0.0
    #: How long each round took.
    rounds: list[float] = field(default_factory=list)
    failure: str | None = None

    @property
    def rate(self) -> float:
        return self.steps / self.seconds if self.seconds else 0.0


async def measure_simulations(
    scenario: Scenario,
    folder: Path,
    gauge: Gauge,
    up_to: int = UP_TO,
    seconds: float = 180.0,
    window_seconds: float | None = None,
) -> str:
    """Measure level after level; why it ended, in words. Runs are made below the folder, and taken away again."""
    window_seconds = window_seconds or min(WINDOW_SECONDS, seconds / LEVELS)
    scenario, until = scenario.model_copy(update={"play": ()}), time.monotonic() + seconds
    room = inspect_machine().memory.tightest
    free_mb = inf if room is None else room.free / _BYTES_PER_MB
    while (at_once := next_level(gauge.levels, up_to)) is not None:
        if (needed_mb := _memory_of(gauge.levels, at_once)) > MEMORY_SHARE * free_mb:
            return f"{at_once} would need {needed_mb:,.0f} MB of memory, and {free_mb:,.0f} MB are free"
        if time.monotonic() + window_seconds > until:
            return TIME_USED
        gauge.begin(at_once, at_once)
        done = await _level(scenario, folder, at_once, window_seconds)
        if at_once == 1 and done[0].failure is not None:
            raise RunRefused(f"{scenario.name} cannot be run: {done[0].failure}")
        gauge.add(_summed(at_once, done, cores()))
    return "" if is_found(gauge.levels) else f"--up-to is {up_to}"


def cores() -> float:
    """How many this process may use."""
    return inspect_machine().cores.usable or 1


def _memory_of(levels: list[MeasuredLevel], at_once: int) -> float:
    """What so many will need, judged by the last level."""
    last = levels[-1] if levels else None
    return 0.0 if last is None or last.memory_mb is None else last.memory_mb / last.at_once * at_once


async def _level(scenario: Scenario, folder: Path, at_once: int, window_seconds: float) -> list[_Done]:
    with (
        tempfile.TemporaryDirectory(prefix=".runs-", dir=folder) as below,
        _started((scenario, window_seconds), Path(below), at_once) as ends,
    ):
        return list(await asyncio.gather(*(asyncio.to_thread(_received, end) for end in ends)))


@contextmanager
def _started(task: tuple[Scenario, float], folder: Path, at_once: int) -> Iterator[list[Connection]]:
    """Processes that run the scenario, and where to hear from them; whatever happens, none is left behind."""
    context = multiprocessing.get_context("spawn")
    gate, ends, processes = context.Barrier(at_once), [], []
    try:
        for number in range(at_once):
            ours, theirs = context.Pipe(duplex=False)
            args = (*task, folder / str(number), gate, theirs)
            processes.append(context.Process(target=_process, args=args, daemon=True))
            processes[-1].start()
            # Only with our copy closed is the end of the process the end of what can be heard.
            theirs.close()
            ends.append(ours)
        yield ends
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.join()


def _received(end: Connection) -> _Done:
    try:
        done = end.recv()
    except EOFError:
        return _Done(runs=1, failure="killed")
    assert isinstance(done, _Done)
    return done


def _summed(at_once: int, done: list[_Done], cores: float) -> MeasuredLevel:
    took = [seconds for each in done for seconds in each.rounds] or [0.0]
    window = max((each.seconds for each in done if each.seconds), default=1.0)
    return MeasuredLevel(
        at_once=at_once,
        tried=sum(each.runs for each in done),
        failures=dict(sorted(Counter(each.failure for each in done if each.failure is not None).items())),
        per_second=sum(each.rate for each in done),
        p50=median(took),
        p95=quantiles(took, n=20, method="inclusive")[-1] if len(took) > 1 else took[0],
        seconds=window,
        cpu=sum(each.cpu_seconds for each in done) / window / cores,
        memory_mb=sum(each.memory_mb for each in done),
    )


# In a process of its own


def _process(scenario: Scenario, window_seconds: float, folder: Path, gate: Barrier, end: Connection) -> None:
    # Ctrl-C reaches everybody at the terminal; who started this ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    folder.mkdir()
    gate.wait(BEGIN_SECONDS)
    end.send(asyncio.run(_Simulating(scenario, window_seconds, folder).run()))


class _Simulating:
    """Runs the scenario again and again, with other draws each time, until the window is over."""

    def __init__(self, scenario: Scenario, window_seconds: float, folder: Path) -> None:
        self._scenario = scenario
        self._window_seconds = window_seconds
        self._folder = folder
        self._stop = asyncio.Event()
        self._began = time.monotonic()
        self._last: dict[str, float] = {}
        self._done = _Done()

    async def run(self) -> _Done:
        done, before = self._done, time.process_time()
        for number in count():
            if self._stop.is_set() or done.failure is not None:
                break
            await self._simulate(number)
        done.cpu_seconds = time.process_time() - before
        done.memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _KIB_PER_MB
        return done

    async def _simulate(self, number: int) -> None:
        self._done.runs += 1
        self._last = {}
        scenario = self._scenario.model_copy(update={"seed": self._scenario.seed + number})
        try:
            await work_on_run(create_run(scenario, self._folder / str(number)), self._stop, self._watch)
        except Stopped:
            pass
        except ShoalError as error:
            self._done.failure = str(error).partition("\n")[0]
        except Exception as error:
            # It is told where somebody reads it, and not by each process for itself.
            self._done.failure = f"{type(error).__name__}: {error}"

    def _watch(self, record: RoundRecord) -> None:
        now = time.monotonic()
        self._done.steps += record.tally.acting
        self._done.seconds = now - self._began
        if record.world in self._last:
            self._done.rounds.append(now - self._last[record.world])
        self._last[record.world] = now
        if self._done.seconds > self._window_seconds and self._done.steps:
            self._stop.set()
