"""Runs one scenario in a process of its own and prints what it cost, as one JSON object.

python -m bench.probe DIRECTORY SCENARIO_AS_JSON [run|replay]
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

from shoal.engine.record import RoundRecord
from shoal.runs.directory import RunDirectory
from shoal.runs.operations import create_run
from shoal.runs.progress import RunProgress
from shoal.runs.rerun.rerun import replay
from shoal.runs.worker import work_on_run
from shoal.scenario.loading import validate


class Meter:
    """CPU and wall time of every round, and beside it the CPU time of a task that is always the same.

    A shared machine is faster in one minute than in the next. Comparisons take the cost of a round in units of that
    task, timed right after it, so that they compare rounds and not minutes.
    """

    def __init__(self) -> None:
        self.rounds: list[dict[str, float]] = []
        self._task = {key * 7919 % 65_537: key for key in range(20_000)}
        self._start()

    def watch(self, record: RoundRecord) -> None:
        measured = {
            "round": record.round,
            "steps": record.tally.acting,
            "cpu": time.process_time() - self._cpu,
            "wall": time.perf_counter() - self._wall,
        }
        self._do_task()  # once for warming up, so that what the round left in the cache does not matter
        began = time.process_time()
        self._do_task()
        self.rounds.append({**measured, "task": time.process_time() - began})
        self._start()

    def _do_task(self) -> int:
        return sum(self._task[key] for key in sorted(self._task))

    def _start(self) -> None:
        self._cpu, self._wall = time.process_time(), time.perf_counter()


def main(path: Path, scenario: dict[str, Any], verb: str) -> dict[str, Any]:
    began = time.perf_counter()
    directory = RunDirectory(path) if verb == "replay" else create_run(validate(scenario), path)
    created = time.perf_counter()
    meter = Meter()
    do = replay if verb == "replay" else work_on_run
    outcome = asyncio.run(do(directory, asyncio.Event(), RunProgress.of(directory, meter.watch)))
    return {
        "create_seconds": created - began,
        "run_seconds": time.perf_counter() - created,
        "rounds": meter.rounds,
        "digest": outcome.digest,
        "calls": outcome.calls,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3])))
