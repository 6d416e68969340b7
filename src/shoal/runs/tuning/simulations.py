"""Measures how many simulations at once this machine takes, by running whole ones, each in a separate process.

This is for scenarios without language models, where a simulation is as fast as a core and waits for no answers.
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
from math import inf
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path

from shoal.engine import RoundRecord
from shoal.errors import RunRefused, ShoalError, Stopped
from shoal.event_loop import run_async
from shoal.machine import inspect_machine
from shoal.runs.operations import create_run
from shoal.runs.progress import RunProgress
from shoal.runs.tuning.knee import MeasuredLevel
from shoal.runs.tuning.levels import TIME_USED, Gauge, compute_percentiles, measure_levels
from shoal.runs.worker import work_on_run
from shoal.scenario import Scenario

#: How long each level is measured, once all of its processes have begun.
WINDOW_SECONDS = 3.0
BEGIN_SECONDS = 120.0
#: If time is short, levels are measured for less long, so that there is time for this many.
LEVELS = 8
#: The share of the free memory that may be used.
MEMORY_SHARE = 0.85
UP_TO = 64
_KIB_PER_MB = 1024
_BYTES_PER_MB = 1 << 20


@dataclass(slots=True)
class _ProcessResult:
    """What one process did."""

    steps: int = 0
    runs: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    memory_mb: float = 0.0
    #: How long each round took.
    rounds: list[float] = field(default_factory=list)
    failure: str | None = None


async def measure_simulations(
    scenario: Scenario,
    folder: Path,
    gauge: Gauge,
    up_to: int = UP_TO,
    seconds: float = 180.0,
    window_seconds: float | None = None,
) -> str:
    """Measure level after level and return why it ended. Runs are made below the folder, and removed again."""
    window = window_seconds or min(WINDOW_SECONDS, seconds / LEVELS)
    scenario, until = scenario.model_copy(update={"play": ()}), time.monotonic() + seconds
    space = inspect_machine().memory.tightest
    free_mb = inf if space is None else space.free / _BYTES_PER_MB

    async def measure_level(at_once: int) -> str | None:
        last = gauge.levels[-1] if gauge.levels else None
        needed_mb = 0.0 if last is None or last.memory_mb is None else last.memory_mb / last.at_once * at_once
        if needed_mb > MEMORY_SHARE * free_mb:
            return f"{at_once} would need {needed_mb:,.0f} MB of memory, and {free_mb:,.0f} MB are free"
        if time.monotonic() + window > until:
            return TIME_USED
        gauge.begin(at_once, at_once)
        with (
            tempfile.TemporaryDirectory(prefix=".runs-", dir=folder) as below,
            _start_processes((scenario, window), Path(below), at_once) as ends,
        ):
            results = await asyncio.gather(*(asyncio.to_thread(_receive, end) for end in ends))
        if at_once == 1 and results[0].failure is not None:
            raise RunRefused(f"{scenario.name} cannot be run: {results[0].failure}")
        seconds = max((each.seconds for each in results if each.seconds), default=1.0)
        p50, p95 = compute_percentiles([took for each in results for took in each.rounds])
        gauge.add(
            MeasuredLevel(
                at_once=at_once,
                tried=sum(each.runs for each in results),
                failures=dict(sorted(Counter(each.failure for each in results if each.failure is not None).items())),
                per_second=sum(each.steps / each.seconds for each in results if each.seconds),
                p50=p50,
                p95=p95,
                seconds=seconds,
                cpu=sum(each.cpu_seconds for each in results) / seconds / count_cores(),
                memory_mb=sum(each.memory_mb for each in results),
            )
        )
        return None

    return await measure_levels(gauge, up_to, measure_level)


def count_cores() -> float:
    """Return how many cores this process may use."""
    return inspect_machine().cores.usable or 1


@contextmanager
def _start_processes(task: tuple[Scenario, float], folder: Path, at_once: int) -> Iterator[list[Connection]]:
    """Start processes that run the scenario, and yield the ends of their pipes. All are gone afterwards."""
    context = multiprocessing.get_context("spawn")
    gate, ends, processes = context.Barrier(at_once), [], []
    try:
        for number in range(at_once):
            ours, theirs = context.Pipe(duplex=False)
            args = (*task, folder / str(number), gate, theirs)
            processes.append(context.Process(target=_run_process, args=args, daemon=True))
            processes[-1].start()
            # Only with our copy closed does the pipe end with the process.
            theirs.close()
            ends.append(ours)
        yield ends
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.join()


def _receive(end: Connection) -> _ProcessResult:
    try:
        result = end.recv()
    except EOFError:
        return _ProcessResult(runs=1, failure="killed")
    assert isinstance(result, _ProcessResult)
    return result


def _run_process(scenario: Scenario, window_seconds: float, folder: Path, gate: Barrier, end: Connection) -> None:
    """Run simulations in a separate process, and send what was done."""
    # Ctrl-C reaches all processes of the terminal; the one that started this one ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    folder.mkdir()
    gate.wait(BEGIN_SECONDS)
    end.send(run_async(_run_simulations(scenario, window_seconds, folder)))


async def _run_simulations(scenario: Scenario, window_seconds: float, folder: Path) -> _ProcessResult:
    """Run the scenario again and again, with other draws each time, until the window is over."""
    result, stop = _ProcessResult(), asyncio.Event()
    began, used_before = time.monotonic(), time.process_time()
    last: dict[str, float] = {}

    def watch(record: RoundRecord) -> None:
        now = time.monotonic()
        result.steps += record.tally.acting
        result.seconds = now - began
        if record.world in last:
            result.rounds.append(now - last[record.world])
        last[record.world] = now
        if result.seconds > window_seconds and result.steps:
            stop.set()

    while not stop.is_set() and result.failure is None:
        last.clear()
        result.runs += 1
        try:
            seeded = scenario.model_copy(update={"seed": scenario.seed + result.runs - 1})
            run = create_run(seeded, folder / str(result.runs))
            await work_on_run(run, stop, RunProgress.of(run, watch))
        except Stopped:
            break
        except ShoalError as error:
            result.failure = str(error).partition("\n")[0]
        except Exception as error:
            # Reported once by the process that started this one, not by each process.
            result.failure = f"{type(error).__name__}: {error}"
    result.cpu_seconds = time.process_time() - used_before
    result.memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _KIB_PER_MB
    return result
