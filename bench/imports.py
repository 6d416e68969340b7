"""The bar for bringing people: a large CSV, from the file to everybody drawn.

python -m bench.imports SCENARIO_AS_JSON    prints what it took, as one JSON object
"""

from __future__ import annotations

import csv
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.bars import Bar
from shoal.scenario.loading import validate
from shoal.scenario.sampling.sampler import sample

_PEOPLE = 100_000
_TRIES = 3
_HEADER = ("name", "username", "age", "gender", "country", "profession", "interests", "persona")


def importing(folder: Path) -> list[Bar]:
    """100,000 people from a CSV of eight columns, each try in a process of its own; the best of three counts."""
    path = folder / "people.csv"
    _write(path)
    scenario = json.dumps({"topic": "the old bridge", "population": {"file": str(path)}})
    command = [sys.executable, "-m", "bench.imports", scenario]
    tries = [json.loads(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(_TRIES)]
    seconds = min(each["seconds"] for each in tries)
    again = min(each["again_seconds"] for each in tries)
    told = f"{path.stat().st_size / 1e6:.0f} MB in {seconds:.2f} s; the same file once more: {again:.2f} s"
    peak = max(each["peak_mib"] for each in tries) / 1024
    return [
        Bar("import of 100,000 people from CSV, per second", _PEOPLE / seconds, "/s", 20_000, True, told),
        Bar("import of 100,000 people from CSV, peak memory", peak, "GiB", 1.0, False, told),
    ]


def _write(path: Path) -> None:
    genders, countries = ("female", "male", "other"), ("Norway", "Chad", "Peru", "Japan")
    jobs, interests = ("nurse", "cook", "pilot", "teacher"), ("music", "chess", "films", "rain", "trains")
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(_HEADER)
        for n in range(_PEOPLE):
            likes = ";".join(interests[(n + step) % 5] for step in range(1 + n % 3))
            text = f"Person {n} has lived beside the bridge for {n % 60} years, and says so to whoever asks. " * 2
            rows.writerow(
                [f"Person {n}", f"user{n}", 18 + n % 70, genders[n % 3], countries[n % 4], jobs[n % 4], likes, text]
            )


def main(scenario: dict[str, Any]) -> dict[str, float]:
    began = time.perf_counter()
    people = sample(validate(scenario))
    done = time.perf_counter()
    assert len(people) == _PEOPLE
    validate(scenario)
    return {
        "seconds": done - began,
        "again_seconds": time.perf_counter() - done,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
