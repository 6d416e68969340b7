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

from shoal.engine.record import Record
from shoal.runs.directory import RunDirectory
from shoal.runs.verbs import create
from shoal.runs.worker import replay, work
from shoal.scenario.files import validate


class Meter:
    """CPU and wall time of every round. CPU time is what comparisons use: other work on the machine does not count."""

    def __init__(self) -> None:
        self.rounds: list[dict[str, float]] = []
        self._cpu = time.process_time()
        self._wall = time.perf_counter()

    def watch(self, record: Record) -> None:
        cpu, wall = time.process_time(), time.perf_counter()
        measured = {
            "round": record.round,
            "steps": record.tally.acting,
            "cpu": cpu - self._cpu,
            "wall": wall - self._wall,
        }
        self.rounds.append(measured)
        self._cpu, self._wall = cpu, wall


def main(path: Path, scenario: dict[str, Any], verb: str) -> dict[str, Any]:
    began = time.perf_counter()
    directory = RunDirectory(path) if verb == "replay" else create(validate(scenario), path)
    created = time.perf_counter()
    meter = Meter()
    do = replay if verb == "replay" else work
    outcome = asyncio.run(do(directory, asyncio.Event(), meter.watch))
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
