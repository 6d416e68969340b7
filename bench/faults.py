"""Lets language minds ask a server that fails in every way, kills them, and sees that nothing is lost or paid twice.

    python -m bench.faults [--kills 50] [--seed 1]

A run is started with the command line against a rehearsal server with errors, limits, hangs, useless answers and an
outage. It must complete, and say how often which of them happened. Then others are killed with -9 at random moments,
looked at, resumed and killed again, until they come to their end. What the server was made to answer beyond what is in
the journal must have been in flight at a kill; and the history must be the one of a run that was never killed and met
no fault, given the same replies.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from bench.rehearsed import MODEL, Server, rehearsing
from shoal.journal import JournalLine, read_journal
from shoal.runs.operations import create_run
from shoal.scenario.loading import load
from tests.runs.harness import check_consistency

#: What is the model's own doing, and so comes again when the same is asked again.
_FLAWS = {"malformed": 0.02, "truncated": 0.01}
_IN_FLIGHT = 64
#: A process that is killed sooner has not begun yet.
_SOONEST_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Case:
    """How many ask for how long, and what they meet."""

    people: int
    rounds: int
    #: For a turn, with everything that is tried; a hung call is cut at less than half of it.
    deadline_seconds: float
    server: dict[str, Any]
    flaws: dict[str, float] = field(default_factory=lambda: _FLAWS)

    @property
    def scenario(self) -> dict[str, Any]:
        return {
            "topic": "the old bridge",
            "rounds": self.rounds,
            "population": {"count": self.people, "activity": 1.0, "active_hours": "0-23"},
            "time": {"daily_rhythm": False},
            "worlds": {"twitter": {"visibility": 2}},
            "mind": {"kind": "language", "model": MODEL, "memory": {"consolidate_every": 4}},
            "max_workers": _IN_FLIGHT,
            "deadline_seconds": self.deadline_seconds,
            "events": [{"post": "They say the old bridge will be closed for good.", "by": "most_followed"}],
        }


FULL = Case(
    people=200,
    rounds=20,
    deadline_seconds=40,
    server={
        "latency_seconds": 0.3,
        "latency_sigma": 0.6,
        "errors": 0.05,
        "limits": 0.05,
        "hangs": 0.02,
        "outages": [[10, 20]],
    },
)


@dataclass(slots=True)
class Tally:
    """What a campaign saw."""

    runs: int = 0
    kills: int = 0
    #: Calls that were in flight at a kill, and so had to be made again; and those of them that were answered already.
    in_flight: int = 0
    paid_again: int = 0
    #: Calls that were answered, all in all.
    answered: int = 0
    #: Turns that came to nothing, by how.
    failed: Counter[str] = field(default_factory=Counter)


def campaign(folder: Path, case: Case, kills: int, seed: int) -> Tally:
    """Raises AssertionError at the first thing that is wrong."""
    draws, tally = random.Random(seed), Tally()
    scenario = folder / "scenario.json"
    scenario.write_text(json.dumps(case.scenario))
    with rehearsing(**case.server, **case.flaws) as faulty, rehearsing(**case.flaws) as sound:
        began = time.perf_counter()
        whole = _Trial(folder / "whole", scenario, faulty, tally)
        whole.finish()
        seconds = time.perf_counter() - began
        _check_told(whole.run, faulty.stats())
        _check_history(whole, sound)
        while tally.kills < kills:
            faulty.reset()
            trial = _Trial(folder / f"run-{tally.runs}", scenario, faulty, tally)
            while tally.kills < kills and trial.kill_after(draws.uniform(_SOONEST_SECONDS, seconds / 3)):
                tally.kills += 1
            trial.finish()
            _check_history(trial, sound)
    return tally


class _Trial:
    """One run that asks a server, and what of its answers is on disk."""

    def __init__(self, run: Path, scenario: Path, server: Server, tally: Tally) -> None:
        self.run = run
        self.scenario = scenario
        self._server = server
        self._tally = tally
        self._lines: list[JournalLine] = []
        self._answered = 0

    def kill_after(self, seconds: float) -> bool:
        """Start it, or go on with it, and kill it then; False if it came to its end before."""
        with _start(self._next(), self._server) as process:
            try:
                process.wait(timeout=seconds)
                assert process.returncode == 0, f"{self.run} ended with {process.returncode}"
                return False
            except subprocess.TimeoutExpired:
                abandoned = self._server.stats()["abandoned"]
                process.kill()
        if (self.run / "simulation_config.json").exists():
            check_consistency(self.run, finished=False)
            self._count_lost(abandoned)
        return True

    def _count_lost(self, abandoned_before: int) -> None:
        """What has to be asked again can only have been in flight: not answered any more, or on its way to the disk.

        An answer gives its slot back when it comes in, so as many others may be unanswered while it is being written.
        """
        unanswered = _quiet(self._server)["abandoned"] - abandoned_before
        answered = self._settle()
        for lost in (unanswered, answered):
            assert lost <= _IN_FLIGHT, f"{self.run}: {lost} calls are lost, more than can have been in flight"
        self._tally.in_flight += unanswered + answered
        self._tally.paid_again += answered

    def finish(self) -> None:
        _finish(self._next(), self._server)
        check_consistency(self.run, finished=True)
        unpaid = self._settle()
        assert not unpaid, f"{self.run}: {unpaid} answers were paid for and are not in the journal"
        self._tally.runs += 1
        self._tally.answered += self._answered
        self._tally.failed.update(_failed_turns(self._lines))

    def _next(self) -> list[str]:
        if not (self.run / "simulation_config.json").exists():
            return ["run", str(self.scenario), "--out", str(self.run), "--no-cache"]
        return ["resume", str(self.run), "--no-cache"]

    def _settle(self) -> int:
        """See that what was journaled before still is, and count the answers since then that are not."""
        stats = _quiet(self._server)
        lines = read_journal(self.run / "journal.jsonl")[0]
        assert lines[: len(self._lines)] == self._lines, f"{self.run}: a journaled reply is lost"
        journaled = sum(line.usage is not None for line in lines[len(self._lines) :])
        answered = sum(stats["answered"].values()) - self._answered
        self._lines, self._answered = lines, self._answered + answered
        return int(answered - journaled)


def _quiet(server: Server) -> dict[str, Any]:
    """What the server says when it has noticed that nobody is there any more."""
    while (stats := server.stats())["in_flight"]:
        pass
    return stats


def _check_told(run: Path, stats: dict[str, Any]) -> None:
    """The run says of each kind of failure how often it happened: as often as the server let it happen."""
    state = json.loads((run / "run_state.json").read_bytes())
    told, faults = Counter(state["spending"]["failures"]), Counter(stats["faults"])
    happened = {
        "transient": faults["error"] + faults["hang"],
        "rate": faults["limit"],
        "overload": faults["outage"],
        "cut off": faults["truncated"],
    }
    said = {
        "transient": told["transient"],
        "rate": told["request_rate"] + told["token_rate"] + told["limited"],
        "overload": told["overload"],
        "cut off": state["spending"]["cut_off"],
    }
    assert said == happened, f"{run} says {said}, but it was {happened}"
    failed = _failed_turns(read_journal(run / "journal.jsonl")[0])
    assert state["timeouts"] == failed["timeout"]
    assert state["errors"] == failed["error"] + failed["unusable"]


def _failed_turns(lines: list[JournalLine]) -> Counter[str]:
    return Counter(line.outcome for line in lines if line.outcome is not None and "/outcome/" in line.key)


def _check_history(trial: _Trial, sound: Server) -> None:
    """The same when replayed; and the same as that of a run that is told of the failures and asks for all the rest."""
    digest = _finish(["replay", str(trial.run)], sound)["digest"]
    again = create_run(load(trial.scenario), trial.run.with_name(f"{trial.run.name}-again"))
    failures = [line for line in read_journal(trial.run / "journal.jsonl")[0] if line.outcome is not None]
    again.journal.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in failures))
    whole = _finish(["resume", str(again.path), "--no-cache"], sound)
    assert whole["digest"] == digest, f"{trial.run}: another history"


def _start(command: list[str], server: Server) -> subprocess.Popen[bytes]:
    shoal = Path(sys.executable).with_name("shoal")
    environ = os.environ | server.environ
    return subprocess.Popen([shoal, *command, "--json"], env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def _finish(command: list[str], server: Server) -> dict[str, Any]:
    with _start(command, server) as process:
        output, errors = process.communicate()
    assert process.returncode == 0, f"{command} ended with {process.returncode}: {errors.decode()}"
    outcome: dict[str, Any] = json.loads(output.splitlines()[-1])
    return outcome


def main() -> None:
    parser = argparse.ArgumentParser(description="Let a run meet every fault, kill it, and see that nothing is lost.")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="shoal-faults-") as folder:
        tally = campaign(Path(folder), FULL, options.kills, options.seed)
    failed = ", ".join(f"{count} {how}" for how, count in sorted(tally.failed.items())) or "none"
    print(
        f"{tally.kills} kills over {tally.runs} runs, {time.perf_counter() - began:.0f} s: of {tally.answered} answers "
        f"{tally.paid_again} were paid for again; {tally.in_flight} calls were in flight when killed; turns that came "
        f"to nothing: {failed}; failures told as they happened, no journaled reply lost, the same history every time"
    )


if __name__ == "__main__":
    main()
