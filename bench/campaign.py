"""Kills runs at random moments and sees that nothing is lost.

    python -m bench.campaign [--kills 200] [--seed 1]

A run is started with the command line, killed with -9 at a random moment, looked at, resumed, killed again, until it
comes to its end. After every kill the database and the stream must agree; at the end the history must be the one of a
run that was never killed, and no reply may have been asked for that was in the journal.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.runs.harness import check_consistency

SCENARIO = {
    "topic": "the old bridge",
    "rounds": 12,
    "population": {"count": 40, "activity": 0.9, "active_hours": "0-23"},
    "time": {"daily_rhythm": False},
    "worlds": {"twitter": {"visibility": 2}, "reddit": None},
    "mind": {"latency": {"median_ms": 25, "sigma": 0.8}},
    "events": [
        {"post": "They say the old bridge will be closed for good.", "by": "most_followed"},
        {"broadcast": "The bridge stays open.", "round": 6},
    ],
}
#: A run is killed this often at most before it may come to its end.
_KILLS_PER_RUN = 8


@dataclass(slots=True)
class Tally:
    """What a campaign saw."""

    runs: int = 0
    kills: int = 0
    #: Kills that came before anything was on disk.
    too_early: int = 0


def campaign(folder: Path, kills: int, seed: int) -> Tally:
    """Kill that many times; raises AssertionError at the first thing that is wrong."""
    draws = random.Random(seed)
    scenario = folder / "scenario.json"
    scenario.write_text(json.dumps(SCENARIO))
    began = time.perf_counter()
    whole = _finish(["run", str(scenario), "--out", str(folder / "whole")])
    duration = time.perf_counter() - began
    tally = Tally()
    while tally.kills < kills:
        run = folder / f"run-{tally.runs}"
        _torture(run, scenario, min(_KILLS_PER_RUN, kills - tally.kills), duration, draws, tally)
        end = _finish(_next(run, scenario))
        assert end["digest"] == whole["digest"], f"{run}: another history"
        assert end["calls"] == whole["calls"], f"{run}: asked {end['calls']} times instead of {whole['calls']}"
        check_consistency(run, finished=True)
        tally.runs += 1
    return tally


def _torture(run: Path, scenario: Path, kills: int, duration: float, draws: random.Random, tally: Tally) -> None:
    for _ in range(kills):
        with _start(_next(run, scenario)) as process:
            try:
                process.wait(timeout=draws.uniform(0, duration))
                return
            except subprocess.TimeoutExpired:
                process.kill()
        tally.kills += 1
        if (run / "simulation_config.json").exists():
            check_consistency(run, finished=False)
        else:
            tally.too_early += 1


def _next(run: Path, scenario: Path) -> list[str]:
    started = (run / "simulation_config.json").exists()
    return ["resume", str(run)] if started else ["run", str(scenario), "--out", str(run)]


def _start(command: list[str]) -> subprocess.Popen[bytes]:
    shoal = Path(sys.executable).with_name("shoal")
    return subprocess.Popen([shoal, *command, "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def _finish(command: list[str]) -> dict[str, str | int]:
    with _start(command) as process:
        output, _ = process.communicate()
    assert process.returncode == 0, f"{command} ended with {process.returncode}"
    outcome: dict[str, str | int] = json.loads(output.splitlines()[-1])
    return outcome


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill runs at random moments and see that nothing is lost.")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="shoal-campaign-") as folder:
        tally = campaign(Path(folder), options.kills, options.seed)
    print(
        f"{tally.kills} kills over {tally.runs} runs ({tally.too_early} before anything was on disk), "
        f"{time.perf_counter() - began:.0f} s: same digest every time, nothing asked for twice, files consistent"
    )


if __name__ == "__main__":
    main()
