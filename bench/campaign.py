"""Kills runs at random moments and sees that nothing is lost.

    python -m bench.campaign [--kills 200] [--seed 1]

A run is started with the command line, killed with -9 at a random moment, looked at, resumed, killed again, until it
comes to its end: on social platforms, in rooms, in conversations, and where it is made to go on. After every kill the
database and the stream must agree; at the end the history must be the one of a run that was never killed, also when it
is replayed, and no reply may have been asked for that was in the journal.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

from tests.runs.harness import check_consistency

_SLOW = {"latency": {"median_ms": 25, "sigma": 0.8}}
_TOPIC = "the old bridge"


@dataclass(frozen=True, slots=True)
class Case:
    """A scenario to be killed in, and how far it is made to go on, if at all."""

    scenario: dict[str, Any]
    further: int | None = None

    @property
    def rounds(self) -> int:
        rounds: int = self.further or self.scenario["rounds"]
        return rounds


CASES: Mapping[str, Case] = {
    "social": Case(
        {
            "topic": _TOPIC,
            "rounds": 12,
            "population": {"count": 40, "activity": 0.9, "active_hours": "0-23"},
            "time": {"daily_rhythm": False},
            "worlds": {"twitter": {"visibility": 2}, "reddit": None},
            "mind": _SLOW,
            "events": [
                {"post": "They say the old bridge will be closed for good.", "by": "most_followed"},
                {"broadcast": "The bridge stays open.", "round": 6},
                {"skip": "2 days", "round": 5},
            ],
            "interventions": [
                {"when": "total_actions > 100", "do": [{"mute": [0, 1], "rounds": 2}, {"change": {"stance": 1.0}}]},
                {"when": "round >= 3", "do": {"post": "A rule speaks."}, "times": 3, "pause": 1},
            ],
        }
    ),
    "rooms": Case(
        {
            "topic": _TOPIC,
            "rounds": 10,
            "population": {"count": 8},
            "worlds": {"square": {"kind": "room"}, "table": {"kind": "room", "turns": "sequential"}},
            "mind": {"latency": {"median_ms": 8, "sigma": 0.8}},
            "events": [{"hear": "A bell rings.", "round": 3}, {"skip": "3 hours", "round": 6}],
            "interventions": [{"when": 'total("TALK") > 6', "do": {"goal": "Listen more."}}],
        }
    ),
    "conversations": Case(
        {
            "topic": _TOPIC,
            "rounds": 30,
            "population": {"count": 16},
            "worlds": {"dialogue": {"turns": 8, "scenes": [{"setting": "a cafe"}, {"setting": "a train"}]}},
            "mind": _SLOW,
            "interventions": [{"when": 'total("SAY") > 40', "do": {"broadcast": "It is getting late."}}],
        }
    ),
    "continued": Case(
        {
            "topic": _TOPIC,
            "rounds": 5,
            "population": {"count": 20, "activity": 0.9, "active_hours": "0-23"},
            "time": {"daily_rhythm": False},
            "worlds": {"twitter": {"visibility": 3}, "room": None},
            "mind": _SLOW,
        },
        further=10,
    ),
}
#: A run is killed this often at most before it may come to its end.
_KILLS_PER_RUN = 5


@dataclass(slots=True)
class Tally:
    """What a campaign saw."""

    runs: int = 0
    kills: int = 0
    #: Kills that came before anything was on disk.
    too_early: int = 0


def campaign(folder: Path, kills: int, seed: int, cases: Mapping[str, Case] = CASES) -> Tally:
    """Kill that many times, in each case in turn; raises AssertionError at the first thing that is wrong."""
    draws = random.Random(seed)
    trials = {name: _prepare(folder / name, case) for name, case in cases.items()}
    tally = Tally()
    for name in cycle(trials):
        if tally.kills >= kills:
            return tally
        trial = trials[name]
        run = folder / name / f"run-{tally.runs}"
        _torture(run, trial, min(_KILLS_PER_RUN, kills - tally.kills), draws, tally)
        _check_end(run, trial)
        tally.runs += 1
    return tally


@dataclass(frozen=True, slots=True)
class _Trial:
    """A case on disk, and how it goes when nobody is killed."""

    scenario: Path
    further: int | None
    whole: dict[str, str | int]
    seconds: float

    def next(self, run: Path) -> list[str]:
        """How to start the run, or go on with it."""
        if not (run / "simulation_config.json").exists():
            return ["run", str(self.scenario), "--out", str(run)]
        return ["resume", str(run)] + (["--rounds", str(self.further)] if self.further else [])


def _prepare(folder: Path, case: Case) -> _Trial:
    folder.mkdir()
    scenario, unbroken = folder / "scenario.json", folder / "unbroken.json"
    scenario.write_text(json.dumps(case.scenario))
    unbroken.write_text(json.dumps(case.scenario | {"rounds": case.rounds}))
    began = time.perf_counter()
    whole = _finish(["run", str(unbroken), "--out", str(folder / "whole")])
    return _Trial(scenario, case.further, whole, time.perf_counter() - began)


def _check_end(run: Path, trial: _Trial) -> None:
    end = _finish(trial.next(run))
    while trial.further and end["rounds"] != trial.further:
        end = _finish(trial.next(run))
    whole = trial.whole
    assert end["digest"] == whole["digest"], f"{run}: another history"
    assert end["calls"] == whole["calls"], f"{run}: asked {end['calls']} times instead of {whole['calls']}"
    check_consistency(run, finished=True)
    assert _finish(["replay", str(run)])["digest"] == whole["digest"], f"{run}: another history when replayed"


def _torture(run: Path, trial: _Trial, kills: int, draws: random.Random, tally: Tally) -> None:
    for _ in range(kills):
        with _start(trial.next(run)) as process:
            try:
                process.wait(timeout=draws.uniform(0, trial.seconds))
                return
            except subprocess.TimeoutExpired:
                process.kill()
        tally.kills += 1
        if (run / "simulation_config.json").exists():
            check_consistency(run, finished=False)
        else:
            tally.too_early += 1


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
