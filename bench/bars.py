"""The bars of the project and how each is measured."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Repetitions of which the best counts, where a measurement takes milliseconds.
_TRIES = 15


@dataclass(frozen=True, slots=True)
class Bar:
    """One promise about speed, and whether it holds."""

    name: str
    value: float
    unit: str
    bar: float
    #: Whether the value must be at least or at most the bar.
    at_least: bool
    #: What the value was measured against, in the same run.
    baseline: str

    @property
    def holds(self) -> bool:
        return self.value >= self.bar if self.at_least else self.value <= self.bar


def everyone_active(people: int, rounds: int, **more: Any) -> dict[str, Any]:
    """The scenario of most bars: a twitter world in which everybody acts in every round."""
    return {
        "topic": "the old bridge",
        "rounds": rounds,
        "population": {"count": people, "activity": 1.0, "active_hours": "0-23"},
        "follows": {"graph": "scale-free", "mean_degree": 20},
        "time": {"daily_rhythm": False},
        "worlds": ["twitter"],
        "events": [{"post": "They say the old bridge will be closed for good.", "by": "most_followed"}],
        **more,
    }


def probe(folder: Path, scenario: dict[str, Any], verb: str = "run") -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.probe", str(folder), json.dumps(scenario), verb]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def cost(measured: dict[str, Any], first: int, last: int) -> float:
    """CPU time per agent-step, median over some rounds, in millionths of the task that was timed beside them."""
    rounds = [r for r in measured["rounds"] if first <= r["round"] <= last and r["steps"]]
    return float(statistics.median(r["cpu"] / r["task"] / r["steps"] for r in rounds)) * 1e6


def microseconds(measured: dict[str, Any], first: int, last: int) -> float:
    """CPU time per agent-step, as it was."""
    rounds = [r for r in measured["rounds"] if first <= r["round"] <= last and r["steps"]]
    return float(statistics.median(r["cpu"] / r["steps"] for r in rounds)) * 1e6


def throughput(folder: Path) -> list[Bar]:
    """10,000 agents, everything committed; and the same history replayed."""
    scenario = everyone_active(10_000, 12)
    original = probe(folder / "run", scenario)
    again = probe(folder / "run", scenario, "replay")
    steps = sum(r["steps"] for r in original["rounds"])
    wall = sum(r["wall"] for r in original["rounds"] if r["steps"])
    replayed = sum(r["wall"] for r in again["rounds"] if r["steps"])
    if again["digest"] != original["digest"] or again["calls"]:
        raise AssertionError("the replay is not the same history")
    committed = "10,000 agents, all active, SQLite and JSONL committed, one process"
    return [
        Bar("agent-steps per second", steps / wall, "/s", 8_000, True, committed),
        Bar("replay against the original run", wall / replayed, "x", 1.0, True, f"original run: {wall:.2f} s"),
    ]


def scaling(folder: Path) -> list[Bar]:
    """An agent-step among 100,000 agents against one among 1,000: as active as people are by default, and fully."""
    return [_scaled(folder / "usual", 0.4, "40 % active", 1.3), _scaled(folder / "all", 1.0, "all active", 1.2)]


def _scaled(folder: Path, activity: float, told: str, most: float) -> Bar:
    """Small runs before and after the large one, so that a machine that turns slow in between does not decide."""
    folder.mkdir()
    probes = {}
    for name, people in (("before", 1_000), ("large", 100_000), ("after", 1_000)):
        population = {"count": people, "activity": activity, "active_hours": "0-23"}
        probes[name] = probe(folder / name, everyone_active(people, 14, population=population))
    small = (cost(probes["before"], 8, 14) + cost(probes["after"], 8, 14)) / 2
    ratio = cost(probes["large"], 8, 14) / small
    name = f"agent-step at 100,000 agents against 1,000, {told}"
    return Bar(name, ratio, "x", most, False, f"{microseconds(probes['before'], 8, 14):.0f} us at 1,000 agents")


def ageing(folder: Path) -> list[Bar]:
    """A late round against an early one."""
    measured = probe(folder / "run", everyone_active(2_000, 205))
    ratio = cost(measured, 192, 204) / cost(measured, 6, 14)
    told = f"{microseconds(measured, 6, 14):.0f} us per step at round 10"
    return [Bar("round 200 against round 10", ratio, "x", 1.3, False, told)]


def million(folder: Path) -> list[Bar]:
    """A world of a million people."""
    population = {"count": 1_000_000, "activity": 0.01, "active_hours": "0-23"}
    measured = probe(folder / "run", everyone_active(1_000_000, 10, population=population))
    seconds = measured["create_seconds"] + measured["run_seconds"]
    active = sum(r["steps"] for r in measured["rounds"])
    told = f"20 million follows, {active:.0f} agent-steps in 10 rounds, {seconds:.0f} s in all"
    return [Bar("1,000,000 agents, peak memory", measured["peak_mib"] / 1024, "GiB", 4.0, False, told)]


def million_steps(folder: Path) -> list[Bar]:
    """A step among a million people against one among ten thousand, and what a million take when many are active."""
    probes = {}
    for name, people in (("before", 10_000), ("large", 1_000_000), ("after", 10_000)):
        population = {"count": people, "activity": 0.1, "active_hours": "0-23"}
        probes[name] = probe(folder / name, everyone_active(people, 10, population=population))
    small = (cost(probes["before"], 4, 10) + cost(probes["after"], 4, 10)) / 2
    active = sum(r["steps"] for r in probes["large"]["rounds"])
    memory, told = probes["large"]["peak_mib"] / 1024, f"10 % active, {active:.0f} agent-steps in 10 rounds"
    ratio, base = cost(probes["large"], 4, 10) / small, f"{microseconds(probes['before'], 4, 10):.0f} us at 10,000"
    return [
        Bar("1,000,000 agents, 10 % active, peak memory", memory, "GiB", 6.0, False, told),
        Bar("agent-step at 1,000,000 agents against 10,000, 10 % active", ratio, "x", 1.5, False, base),
    ]


def starting(folder: Path) -> list[Bar]:
    """What a user waits for before anything happens."""
    shoal = str(Path(sys.executable).with_name("shoal"))
    bare = _best([sys.executable, "-c", "pass"])
    told = f"python -c pass: {bare * 1000:.0f} ms"
    return [
        Bar("shoal --help", (_best([shoal, "--help"]) - bare) * 1000, "ms", 150, False, told),
        Bar("import shoal", (_best([sys.executable, "-c", "import shoal"]) - bare) * 1000, "ms", 100, False, told),
    ]


def _best(command: Sequence[str]) -> float:
    def once() -> float:
        began = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        return time.perf_counter() - began

    return min(once() for _ in range(_TRIES))


def visibility(folder: Path) -> list[Bar]:
    """Rounds in flight against lockstep, with decisions that take a while."""
    seconds = {k: _slow_minds(folder / f"visibility-{k}", k) for k in (1, 4, 8)}
    told = f"lockstep: {seconds[1]:.1f} s; median decision 60 ms, sigma 0.8"
    return [
        Bar(f"visibility {k} against lockstep", seconds[1] / seconds[k], "x", least, True, told)
        for k, least in ((4, 2.4), (8, 3.3))
    ]


def _slow_minds(folder: Path, rounds_in_flight: int) -> float:
    mind = {"latency": {"median_ms": 60, "sigma": 0.8}}
    worlds = {"twitter": {"visibility": rounds_in_flight}}
    scenario = everyone_active(100, 50, mind=mind, worlds=worlds, max_workers=1000)
    return float(sum(r["wall"] for r in probe(folder, scenario)["rounds"]))


#: Yields bars as they are measured, in a folder that is then removed.
Measurement = Callable[[Path], Iterable[Bar]]
ALL: Sequence[Measurement] = (starting, throughput, scaling, ageing, visibility, million, million_steps)


def measure(wanted: Sequence[Measurement]) -> Iterator[Bar]:
    """Measure everything asked for, one after another, each in a folder of its own."""
    for measurement in wanted:
        with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
            yield from measurement(Path(folder))
