"""One simulation over two shards against one process, where building prompts takes most of the time.

python -m bench.shards DIRECTORY SCENARIO_AS_JSON BASE_URL SHARDS    runs it and prints what it took, as one JSON object
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from asyncio import Event
from pathlib import Path
from typing import Any

from bench.bars import Bar
from bench.rehearsed import MODEL, rehearsing
from shoal.event_loop import run_async
from shoal.runs.config import LimitSettings
from shoal.runs.operations import create_run
from shoal.runs.progress import RunProgress
from shoal.runs.resources import RunResources
from shoal.runs.worker import work_on_run
from shoal.scenario.loading import validate

_PEOPLE, _ROUNDS, _POSTERS = 400, 30, 20
#: Rounds at the start in which nobody remembers much yet.
_WARM_UP = 10
_TRIES = 3
_IDLE = {"thought": "I only look on.", "actions": [{"action": "DO_NOTHING"}]}


def shards(folder: Path) -> list[Bar]:
    """The same replies come from the cache, so that neither a server nor a network takes part in what is measured."""
    seconds: dict[int, list[float]] = {1: [], 2: []}
    digests, cpu = set(), 0.0
    with rehearsing(says=_IDLE, latency_seconds=0.0) as server:
        _probe(folder, "fill", server.base_url, 1)
        for number in range(_TRIES):
            for count, measured in seconds.items():
                found = _probe(folder, f"{count}-{number}", server.base_url, count)
                measured.append(found["seconds"])
                digests.add(found["digest"])
                cpu = found["cpu"] if count == 1 else cpu
    if len(digests) != 1:
        raise AssertionError("shards made another history")
    told = f"one process: {min(seconds[1]):.1f} s, {cpu * 1e6:.0f} us of CPU a turn"
    ratio = min(seconds[1]) / min(seconds[2])
    return [Bar("2 shards against one process, bound by building prompts", ratio, "x", 1.7, True, told)]


def _make_scenario() -> dict[str, Any]:
    """Few write, all read much, and prompts hold memories and what is known of those in sight."""
    posters = [{"name": f"Poster {n}", "activity": 0.0} for n in range(_POSTERS)]
    return {
        "topic": "the old bridge",
        "rounds": _ROUNDS,
        "time": {"daily_rhythm": False},
        "population": [{"count": _PEOPLE, "activity": 1.0, "active_hours": "0-23"}, *posters],
        "worlds": {"twitter": {"feed": {"recommended": 50}}},
        "events": [
            {
                "post": f"Report {n} of day {round}: the old bridge, and what it costs.",
                "by": f"Poster {n}",
                "round": round,
            }
            for round in range(1, _ROUNDS)
            for n in range(_POSTERS)
        ],
        "mind": {
            "kind": "language",
            "model": MODEL,
            "observation_tokens": 20_000,
            "memory": {"consolidate_every": 0, "recent_tokens": 1000, "recalled_tokens": 1000, "graph_tokens": 800},
        },
    }


def _probe(folder: Path, name: str, base_url: str, count: int) -> dict[str, Any]:
    command = [
        sys.executable,
        "-m",
        "bench.shards",
        str(folder / name),
        json.dumps(_make_scenario()),
        base_url,
        str(count),
    ]
    found: dict[str, Any] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    return found


def main(path: Path, scenario: dict[str, Any], base_url: str, count: int) -> dict[str, Any]:
    run = create_run(validate(scenario), path, LimitSettings(shards=count))
    times: dict[int, tuple[float, float]] = {}
    progress = RunProgress.of(
        run, lambda record: times.update({record.round: (time.perf_counter(), time.process_time())})
    )
    resources = RunResources(environ={"OPENAI_BASE_URL": base_url}, cache=path.parent / "replies.db")
    outcome = run_async(work_on_run(run, Event(), progress, resources))
    (began, cpu_before), (ended, cpu) = times[_WARM_UP], times[_ROUNDS]
    turns = _PEOPLE * (_ROUNDS - _WARM_UP)
    return {"seconds": ended - began, "cpu": (cpu - cpu_before) / turns, "digest": outcome.digest}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3], int(sys.argv[4]))))
