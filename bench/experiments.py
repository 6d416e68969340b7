"""Bars of experiments: a full server, agents at once, what the experiment layer costs, kills, and memory.

python -m bench.experiments runs DIRECTORY SCENARIO_AS_JSON FIRST_SEED COUNT    runs one after another, and their time
python -m bench.experiments memory DIRECTORY STUDY                              an experiment whose workers do nothing
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

from bench.bars import Bar
from bench.rehearsed import MODEL, Server, rehearsing
from shoal.event_loop import run_async
from shoal.experiments import BatchSettings, ExperimentRun, load_experiment
from shoal.runs.directory import RunDirectory
from shoal.runs.launchers import WorkerMode, WorkerProcess, find_worker
from shoal.runs.operations import create_run
from shoal.runs.worker import work_on_run
from shoal.scenario.loading import load, validate

#: Everybody is asked once in each round.
_HALL: dict[str, Any] = {
    "population": [{"count": 10}],
    "worlds": {"hall": {"kind": "room", "turns": "parallel"}},
    "mind": {"kind": "language", "model": MODEL},
}
_LOOK_SECONDS = 0.02
_NEVER = 2**22 + 1
#: The number of `PR_SET_CHILD_SUBREAPER` on Linux.
_SET_CHILD_SUBREAPER = 36


def _write_study(path: Path, scenario: dict[str, Any], tiers: Mapping[str, int], seeds: int) -> int:
    """Write an experiment with so many arms in each tier, and return how many simulations it has."""
    declared = [
        {"name": tier, "arms": {f"arm{number}": {"topic": f"{tier} {number}"} for number in range(arms)}}
        for tier, arms in tiers.items()
    ]
    path.write_text(yaml.safe_dump({**scenario, "experiment": {"seeds": seeds, "tiers": declared}}))
    return sum(tiers.values()) * seeds


@contextmanager
def _experimenting(
    folder: Path, *options: str, server: Server | None = None, group: bool = False
) -> Iterator[subprocess.Popen[bytes]]:
    """The command on the study in a folder, with limits and replies of its own."""
    own = {name: str(folder / name.lower()) for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME")}
    environ = {**os.environ, **own, "SHOAL_SLOTS": str(folder / "slots.sock"), **(server.environ if server else {})}
    command = [str(Path(sys.executable).with_name("shoal")), "experiment", str(folder / "study.yaml")]
    command += ["--out", str(folder / "results"), "--quiet", *options]
    with subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, start_new_session=group) as process:
        yield process


def _run_experiment(folder: Path, *options: str, server: Server | None = None) -> float:
    """Run the study in a folder to its end, and return how long the command took."""
    began = time.perf_counter()
    with _experimenting(folder, *options, server=server) as process:
        if process.wait():
            raise AssertionError(f"the experiment ended with {process.returncode}")
    return time.perf_counter() - began


def experiment_full_server(folder: Path, latency_seconds: float = 0.4) -> list[Bar]:
    """64 simulations of 200 calls each on a server that takes 64 at a time, which nobody has told us."""
    cap = 64
    runs = _write_study(folder / "study.yaml", {**_HALL, "rounds": 20}, {"one": 4, "two": 4}, seeds=8)
    with rehearsing(cap=cap, latency_seconds=latency_seconds) as server:
        seconds, stats = _run_experiment(folder, "--max-simulations", "16", server=server), server.stats()
    assert stats["answers"] >= runs * 200, f"only {stats['answers']} answers"
    oracle = stats["answers"] * latency_seconds / cap
    told = f"{runs} simulations, {stats['answers']:,} answers, {stats['refusals']} refused, oracle {oracle:.1f} s"
    return [Bar("64 simulations on a server with cap 64: time / oracle", seconds / oracle, "x", 1.12, False, told)]


def experiment_at_once(folder: Path) -> list[Bar]:
    """Agents that act at once over tiers, arms, seeds and processes, counted at the server."""
    at_once = 6
    tiers = dict.fromkeys(("a", "b", "c", "d", "e"), 2)
    runs = _write_study(folder / "study.yaml", {**_HALL, "rounds": 4}, tiers, seeds=3)
    options = ("--parallel", str(at_once), "--max-simulations", "5")
    seen: list[int] = []
    with rehearsing(latency_seconds=0.3) as server, _experimenting(folder, *options, server=server) as process:
        while process.poll() is None:
            made = sum(1 for _ in (folder / "results").glob("*/*/*/simulation_config.json"))
            stats = server.stats()
            # Until the last simulation starts there is always work for everybody.
            if stats["requests"] and made < runs:
                seen.append(stats["in_flight"])
            time.sleep(_LOOK_SECONDS)
        stats = server.stats()
    assert process.returncode == 0
    told = f"5 tiers, 2 arms, 3 seeds, 5 simulations side by side; {stats['answers']:,} answers, {len(seen)} looks"
    return [
        Bar("agents acting at once with --parallel 6, at most", stats["in_flight_peak"], "", at_once, False, told),
        Bar("agents acting at once, mean of 6 while work remains", sum(seen) / len(seen), "", 5.7, True, told),
    ]


def experiment_overhead(folder: Path) -> list[Bar]:
    """Short runs in an experiment with two processes, against the same runs one after another in two processes."""
    # Workers outlive the fork server that has started them, and are children of this process then.
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1)
    return [
        *_overhead(_make_folder(folder / "short"), 100, 24, 200),
        *_overhead(_make_folder(folder / "long"), 500, 48, 80),
    ]


def _overhead(folder: Path, people: int, rounds: int, count: int) -> list[Bar]:
    scenario = {"population": [{"count": people}], "rounds": rounds, "worlds": ["twitter"]}
    (folder / "alone").mkdir()
    runs = _write_study(folder / "study.yaml", scenario, {"one": 2, "two": 2}, seeds=count // 4)
    half, start = str(runs // 2), [sys.executable, "-m", "bench.experiments", "runs", str(folder / "alone")]
    commands = [[*start, json.dumps(scenario), first, half] for first in ("0", half)]
    alone = [subprocess.Popen(command, stdout=subprocess.PIPE) for command in commands]
    took, needed = zip(*[json.loads(process.communicate()[0]) for process in alone], strict=True)
    before = _read_cpu()
    seconds = _run_experiment(folder, "--max-simulations", "2")
    cpu = _read_cpu() - before
    of = f"{runs} runs of {people} people, {rounds} rounds"
    load = f"load {os.getloadavg()[0]:.1f}"
    wall = f"{1000 * sum(took) / runs:.0f} ms a run; alone {max(took):.1f} s, experiment {seconds:.1f} s; {load}"
    spent = f"{1000 * sum(needed) / runs:.0f} ms a run alone, {1000 * cpu / runs:.0f} ms with all processes; {load}"
    return [
        Bar(f"overhead of an experiment over {of}", 100 * (seconds / max(took) - 1), "%", 15, False, wall),
        Bar(f"CPU time of an experiment over {of}", 100 * (cpu / sum(needed) - 1), "%", 15, False, spent),
    ]


def _read_cpu() -> float:
    """Return the CPU time of all processes that this one has started, once they have ended."""
    with suppress(ChildProcessError):
        while True:
            os.wait()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _run_alone(folder: Path, scenario: dict[str, Any], first: int, count: int) -> tuple[float, float]:
    # As in workers, what is alive now needs not be looked at.
    gc.freeze()
    began, used = time.perf_counter(), time.process_time()
    for seed in range(first, first + count):
        run = create_run(validate({**scenario, "seed": seed, "topic": f"one {seed}"}), folder / str(seed))
        run_async(work_on_run(run, asyncio.Event()))
    return time.perf_counter() - began, time.process_time() - used


# Kills


def experiment_kills(folder: Path, kills: int = 50) -> list[Bar]:
    """An experiment that is killed at random moments: alone, with its group, or with all of its workers."""
    at_once, draws = 8, random.Random(16)
    scenario = {**_HALL, "population": [{"count": 6}], "rounds": 10}
    killed = repeated = differing = studies = paid_twice = in_flight = 0
    reference = _make_folder(folder / "reference")
    runs = _write_study(reference / "study.yaml", scenario, {"one": 3, "two": 3}, seeds=4)
    options = ("--parallel", str(at_once), "--max-simulations", "4")
    with rehearsing(latency_seconds=0.1) as server:
        _run_experiment(reference, *options, server=server)
        expected = _read_report(reference / "results")
        assert len(expected) >= runs
        while killed < kills:
            server.reset()
            studies += 1
            study = _make_folder(folder / str(studies))
            shutil.copy(reference / "study.yaml", study)
            finished: dict[str, tuple[int, ...]] = {}
            while killed < kills:
                with _experimenting(study, *options, server=server, group=True) as process:
                    try:
                        process.wait(draws.uniform(0.5, 4.0))
                    except subprocess.TimeoutExpired:
                        killed += 1
                        in_flight += _kill(process.pid, study / "results", killed % 3, server)
                finished |= {run: _measure_run(study / "results" / run) for run in _list_ended(study / "results")}
                if process.returncode == 0:
                    break
            _run_experiment(study, *options, server=server)
            repeated += sum(before != _measure_run(study / "results" / run) for run, before in finished.items())
            found = _read_report(study / "results")
            differing += sum(found.get(key) != value for key, value in expected.items()) + len(found.keys() - expected)
            paid_twice += server.stats()["repeated"]
    told = f"{killed} kills of {studies} experiments of {runs} runs"
    return [
        Bar(f"finished runs repeated after {kills} kills", float(repeated), "", 0, False, told),
        Bar(
            f"report numbers that differ after {kills} kills",
            float(differing),
            "",
            0,
            False,
            f"{told}, {len(expected)} each",
        ),
        Bar(
            f"calls paid twice after {kills} kills",
            float(paid_twice),
            "",
            in_flight,
            False,
            "those in flight at the kills",
        ),
    ]


def _make_folder(folder: Path) -> Path:
    folder.mkdir(mode=0o700)
    return folder


def _kill(pid: int, folder: Path, how: int, server: Server) -> int:
    """Kill the command alone, with its group, or with everything it has started; return how many calls that cut off."""
    if how == 0:
        os.kill(pid, signal.SIGKILL)
        return 0
    if how == 1:
        os.killpg(pid, signal.SIGKILL)
        return 0
    # Workers lead sessions of their own, so that only somebody who looks for them can kill them.
    os.kill(pid, signal.SIGSTOP)
    cut_off = int(server.stats()["in_flight"])
    for lock in folder.glob("*/*/*/worker.lock"):
        if (worker := find_worker(RunDirectory(lock.parent))) is not None:
            os.killpg(worker.pid, signal.SIGKILL)
    os.killpg(pid, signal.SIGKILL)
    return cut_off


def _list_ended(folder: Path) -> list[str]:
    """List the runs whose result is recorded."""
    path = folder / "runs.jsonl"
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [json.loads(line)["id"] for line in lines]


def _measure_run(run: Path) -> tuple[int, ...]:
    """Return what changes when a run is worked on again."""
    return tuple((run / name).stat().st_mtime_ns for name in ("journal.jsonl", "simulation.log", "run_state.json"))


#: What may differ between equal experiments: times, moments, commands with paths, and notes on the load of the machine.
_FREE = ("seconds", "run", "command", "replay", "at", "updated_at", "hours", "notes")


def _read_report(folder: Path) -> dict[str, Any]:
    """Read every number of the results and of the reports, by its place."""
    found: dict[str, Any] = {}
    for line in (folder / "results.jsonl").read_text().splitlines():
        result = json.loads(line)
        found |= dict(_flatten(f"{result['tier']}/{result['arm']}/{result['seed']}", result))
    for path in sorted(folder.rglob("report.json")):
        found |= dict(_flatten(str(path.relative_to(folder)), json.loads(path.read_text())))
    return found


def _flatten(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, each in value.items():
            if not any(word in str(key).split("_") or word == key for word in _FREE):
                yield from _flatten(f"{place}.{key}", each)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _flatten(f"{place}.{number}", each)
    else:
        yield place, value


# Memory


def experiment_memory(folder: Path, runs: int = 10_000) -> list[Bar]:
    """An experiment of 10,000 runs, whose workers only put down what a run has written."""
    arms = runs // 1_000
    scenario = {"population": [{"count": 8}], "rounds": 3, "worlds": ["twitter"]}
    assert _write_study(folder / "study.yaml", scenario, {"one": arms}, seeds=1_000) == runs
    command = [sys.executable, "-m", "bench.experiments", "memory", str(folder), str(folder / "study.yaml")]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    found = json.loads(done.stdout)
    assert found["results"] == runs
    told = (
        f"checked in {found['check_seconds']:.0f} s, {found['seconds']:.0f} s in all; {found['before']:.0f} MB at first"
    )
    return [Bar("memory of an experiment of 10,000 runs", found["peak"], "MB", 300, False, told)]


class _PuttingLauncher:
    """Puts down what a finished run has written, and starts no process."""

    def __init__(self, finished: RunDirectory) -> None:
        self._finished = finished

    async def start(self, run: RunDirectory, mode: WorkerMode = WorkerMode.WORK) -> WorkerProcess:
        for path in self._finished.path.iterdir():
            if path.is_dir():
                shutil.copytree(path, run.path / path.name, dirs_exist_ok=True)
            elif path.name not in ("simulation_config.json", "limits.json", "worker.lock", "control.lock"):
                shutil.copy(path, run.path / path.name)
        return WorkerProcess(run, _NEVER)


def _measure_memory(folder: Path, study: Path) -> dict[str, float]:
    run = create_run(load(study), folder / "finished")
    run_async(work_on_run(run, asyncio.Event()))
    before, began = _read_peak(), time.perf_counter()
    work = ExperimentRun(load_experiment(study), folder / "results", BatchSettings(max_simulations=2))
    checked = time.perf_counter() - began
    results = run_async(work.run(_PuttingLauncher(run), asyncio.Event()))
    return {
        "results": len(results),
        "peak": _read_peak(),
        "before": before,
        "check_seconds": checked,
        "seconds": time.perf_counter() - began,
    }


def _read_peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


ALL = (experiment_overhead, experiment_at_once, experiment_full_server, experiment_kills, experiment_memory)


if __name__ == "__main__":
    if sys.argv[1] == "runs":
        print(json.dumps(_run_alone(Path(sys.argv[2]), json.loads(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))))
    else:
        print(json.dumps(_measure_memory(Path(sys.argv[2]), Path(sys.argv[3]))))
