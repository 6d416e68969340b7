"""Bars of commands and of the server: interviews, pages, many viewers, and a server that is killed."""

from __future__ import annotations

import asyncio
import json
import os
import re
import resource
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from bench.bars import Bar
from bench.storm import storm_run
from shoal.errors import ServerRefused
from shoal.rehearsal.server import start as start_rehearsal
from shoal.rehearsal.settings import RehearsalSettings
from shoal.runs.commands import CommandType, call_worker
from shoal.runs.directory import RunDirectory
from shoal.runs.launchers import LocalLauncher, find_worker, start_run, stop_run
from shoal.runs.operations import create_run
from shoal.runs.reports.pages import PageReader
from shoal.runs.worker import work_on_run
from shoal.scenario.loading import validate
from shoal.server import Client

_BUSY = {
    "topic": "the old bridge",
    "rounds": 100_000,
    "population": [{"count": 100, "activity": 1.0, "active_hours": "0-23"}],
    "time": {"daily_rhythm": False},
    "worlds": ["twitter"],
}
_QUIET = {**_BUSY, "population": [{"count": 5}], "mind": {"kind": "heuristic", "latency": {"median_ms": 500}}}


def interviews(folder: Path) -> list[Bar]:
    """Interviews by a busy run of 100 language agents, through a model that answers at once."""
    took = asyncio.run(_interview(folder / "run", 300))
    told = "100 agents ask a model that takes 0.5 s; that of the interviews takes no time"
    return [
        Bar("interview during a busy run, p50", 1000 * statistics.median(took), "ms", 20, False, told),
        Bar("interview during a busy run, p99", 1000 * sorted(took)[int(len(took) * 0.99)], "ms", 100, False, told),
    ]


async def _interview(folder: Path, count: int) -> list[float]:
    slow, instant = RehearsalSettings(latency_seconds=0.5, latency_sigma=0.5), RehearsalSettings()
    async with start_rehearsal(slow) as agents, start_rehearsal(instant) as answers:
        run = create_run(validate({**_BUSY, "mind": {"kind": "language", "model": "openai/agents"}}), folder)
        addresses = {"OPENAI_BASE_URL": agents.base_url, "VLLM_BASE_URL": answers.base_url}
        launcher = LocalLauncher({**os.environ, **addresses, "XDG_CACHE_HOME": str(folder.parent)}, idle_seconds=5)
        await start_run(run, launcher)
        while run.read_state().current_round < 3:  # noqa: ASYNC110  # another process works on it
            await asyncio.sleep(0.05)
        took = []
        for number in range(count + 10):
            args = {"agent_id": number % 100, "prompt": f"What do you think, {number}?", "model": "vllm/answers"}
            since = time.perf_counter()
            await call_worker(run, launcher, CommandType.INTERVIEW, args, 60)
            took.append(time.perf_counter() - since)
        await stop_run(run)
        return took[10:]


def pages(folder: Path) -> list[Bar]:
    """A page of a run of a million actions against one of a thousand."""
    times = {}
    for actions in (1_000, 1_000_000):
        run = _write_long_run(folder / str(actions), actions)
        times[actions] = min(_time(lambda run=run: PageReader(run).read(limit=100)) for _ in range(30))  # type: ignore[misc]
    ratio = times[1_000_000] / times[1_000]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    told = f"{1000 * times[1_000]:.2f} ms at 1,000 actions; {memory:.0f} MB resident"
    return [Bar("page of 1,000,000 actions against 1,000", ratio, "x", 2.0, False, told)]


def _write_long_run(folder: Path, actions: int) -> RunDirectory:
    """A run of so many actions, of which only the stream is written."""
    run = create_run(validate({**_BUSY, "mind": {"kind": "heuristic"}}), folder)
    (folder / "twitter").mkdir()
    line = (
        b'{"round":%d,"agent_id":%d,"agent_name":"Ada Novak","action_type":"CREATE_POST","action_args":{"content":'
        b'"They say that the old bridge will be closed for good, and nobody was asked."},"success":true,"result":null,'
        b'"timestamp":"2026-03-01T00:00:00+00:00","id":"twitter-%d-%d-0"}\n'
    )
    with (folder / "twitter" / "actions.jsonl").open("wb") as stream:
        for first in range(0, actions, 100):
            rounds = first // 100
            stream.write(b"".join(line % (rounds, agent, rounds, agent) for agent in range(100)))
    return run


def _time(work: Callable[[], object]) -> float:
    since = time.perf_counter()
    work()
    return time.perf_counter() - since


@contextmanager
def _serve(folder: Path, port: int = 0) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [str(Path(sys.executable).with_name("shoal")), "serve", "--runs", str(folder), "--port", str(port)]
    command += ["--max-simulations", "1000"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert server.stdout is not None
    try:
        yield server, server.stdout.readline().split()[-1]
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


def viewers(folder: Path, simulations: int = 200, streams: int = 500) -> list[Bar]:
    """Many simulations and many event streams at once, on this machine."""
    folder = folder / "runs"
    with _serve(folder) as (_, url):
        client = Client(url)
        runs = [client.create({**_QUIET, "seed": seed}).simulation_id for seed in range(simulations)]
        try:
            for run in runs:
                client.start(run)
            found = asyncio.run(_watch(url, folder, runs, streams, 20.0))
        finally:
            for run in runs:
                if (worker := find_worker(RunDirectory(folder / run))) is not None:
                    os.killpg(worker.pid, signal.SIGKILL)
    told = f"{simulations} simulations, {streams} streams, {found['events']:,} events, 20 s"
    return [
        Bar("run-status with 200 simulations and 500 streams, p99", found["p99"], "ms", 250, False, told),
        Bar("events lost by 500 streams", float(found["lost"]), "", 0, False, told),
        Bar("event from commit to client, p50", found["delay"], "ms", 100, False, told),
    ]


async def _watch(url: str, folder: Path, runs: list[str], streams: int, seconds: float) -> dict[str, Any]:
    """Follow runs with many streams, ask for their states meanwhile, and compare what came with what is on disk."""
    host, port = url.removeprefix("http://").split(":")
    #: For each stream, round and digest of the rounds that it told of, and when it did.
    seen: list[list[tuple[int, str, float]]] = [[] for _ in range(streams)]
    took: list[float] = []

    async def follow(number: int) -> None:
        reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 24)
        path = f"/api/simulation/{runs[number % len(runs)]}/events"
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        try:
            async for line in reader:
                if line.startswith(b"data: ") and b'"event_type":"round_end"' in line:
                    told = json.loads(line[6:])
                    seen[number].append((told["round"], told["digest"], time.time()))
        finally:
            writer.close()

    async def ask() -> None:
        reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 24)
        for number in range(1_000_000):
            since = time.perf_counter()
            path = f"/api/simulation/{runs[number % len(runs)]}/run-status"
            writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if b"content-length" in line.lower())
            await reader.readexactly(length)
            took.append(time.perf_counter() - since)
            await asyncio.sleep(0.02)

    tasks = [asyncio.create_task(follow(number)) for number in range(streams)] + [asyncio.create_task(ask())]
    await asyncio.sleep(seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    lost, delays = 0, list[float]()
    for number, told in enumerate(seen):
        run = folder / runs[number % len(runs)]
        committed = [
            line for line in map(json.loads, _whole_lines(run / "twitter" / "actions.jsonl")) if "digest" in line
        ]
        measured = {
            line["round"]: datetime.fromisoformat(line["at"])
            for line in map(json.loads, _whole_lines(run / "metrics.jsonl"))
        }
        expected = [(line["round"], line["digest"]) for line in committed[: len(told)]]
        lost += sum(mine != (round, digest) for mine, (round, digest, _) in zip(expected, told, strict=False))
        # Rounds before the stream was opened were sent at once.
        live = [(round, at) for round, _, at in told if round in measured][len(told) // 2 :]
        delays += [at - measured[round].timestamp() for round, at in live]
    return {
        "p99": 1000 * sorted(took)[int(len(took) * 0.99)],
        "asked": len(took),
        "events": sum(map(len, seen)),
        "lost": lost + sum(not told for told in seen),
        "delay": 1000 * statistics.median(delays),
    }


def _whole_lines(path: Path) -> list[bytes]:
    return path.read_bytes().split(b"\n")[:-1]


def killed_server(folder: Path, times: int = 50) -> list[Bar]:
    """A server that is killed again and again, while clients follow its runs."""
    folder, port = folder / "runs", _find_port()
    runs, seen, failures = list[str](), dict[str, list[str]](), list[str]()

    def follow(url: str, run: str) -> None:
        try:
            client = Client(url)
            for event in client.events(run):
                if event.kind == "action":
                    seen[run].append(event.data["id"])
        except ServerRefused as error:
            failures.append(str(error))

    threads = []
    with _serve(folder, port) as (_, url):
        client = Client(url)
        for seed in range(4):
            mind = {"kind": "heuristic", "latency": {"median_ms": 100}}
            scenario = {**_BUSY, "population": [{"count": 10}], "rounds": 600, "seed": seed, "mind": mind}
            run = client.create(scenario).simulation_id
            client.start(run)
            runs.append(run)
            seen[run] = []
            threads.append(threading.Thread(target=follow, args=(url, run)))
        workers = {run: find_worker(RunDirectory(folder / run)) for run in runs}
        for thread in threads:
            thread.start()
        time.sleep(0.5)
    for _ in range(times - 1):
        with _serve(folder, port):
            time.sleep(1)
    with _serve(folder, port):
        for thread in threads:
            thread.join()
    for failure in failures:
        print(failure, file=sys.stderr)
    wrong = len(failures)
    for run in runs:
        directory, worker = RunDirectory(folder / run), workers[run]
        written = [event.id for event in directory.open_stream("twitter").read_actions()]
        wrong += written != seen[run] or worker is None or directory.read_state().runner_status != "completed"
    told = f"4 runs, 4 streams, {sum(map(len, seen.values())):,} actions"
    return [Bar(f"runs and streams harmed by {times} killed servers", float(wrong), "", 0, False, told)]


def _find_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


def storm(folder: Path, commands: int = 1_000) -> list[Bar]:
    """A thousand starts, stops and restarts of one run, forty at a time."""
    run = create_run(validate({**_BUSY, "population": [{"count": 5}]}), folder / "run")
    since = time.perf_counter()
    launcher = LocalLauncher(os.environ, idle_seconds=0)
    restarts = asyncio.run(storm_run(run.path, launcher, callers=40, commands=commands, weights=(10, 10, 1)))
    seconds = time.perf_counter() - since
    archives = len(list((run.path / "archive").iterdir()))
    told = f"{restarts} restarts, {seconds:.0f} s"
    stuck = run.read_status() != "stopped"
    return [
        Bar(
            f"archives lost or states stuck by {commands} commands",
            abs(archives - restarts) + stuck,
            "",
            0,
            False,
            told,
        )
    ]


_SCHEMATHESIS = """
[parameters]
"path.simulation_id" = "finished"

[checks]
not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", "503", "504"]

# Whether a scenario, an event, a question or a world suits a run is more than a schema can say.
[[operations]]
include-path-regex = "create|inject|interview|start|actions|posts|comments|detail"
checks.positive_data_acceptance.enabled = false
"""


def openapi(folder: Path) -> list[Bar]:
    """The OpenAPI document against the server, in all phases of schemathesis, which gets an environment of its own."""
    tools = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(tools)], check=True)
    install = [str(tools / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", "schemathesis>=4,<5"]
    subprocess.run(install, check=True)
    run = create_run(validate({**_BUSY, "population": [{"count": 12}], "rounds": 6}), folder / "runs" / "finished")
    asyncio.run(work_on_run(run, asyncio.Event()))
    (folder / "schemathesis.toml").write_text(_SCHEMATHESIS)
    with _serve(folder / "runs") as (_, url):
        command = [str(tools / "bin" / "st"), "run", f"{url}/api/openapi.json", "--max-examples", "30", "--no-color"]
        # A stream of events has no end.
        command += ["--exclude-path-regex", "events", "--request-timeout", "60", "--seed", "15"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    found = re.search(r"(\d+) failures?", done.stdout)
    cases = re.search(r"(\d+) generated", done.stdout)
    told = f"{cases[1] if cases else 'no'} cases"
    failures = float(found[1]) if found else float(done.returncode)
    if failures:
        print(done.stdout, file=sys.stderr)
    return [Bar("failures found by schemathesis", failures, "", 0, False, told)]


ALL = (interviews, pages, viewers, killed_server, storm, openapi)
