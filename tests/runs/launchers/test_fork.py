"""The fork server: what happens when it, its client or a worker is killed, and what a fork must not inherit."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from shoal.runs.directory import CONTROL_LOCK, RunDirectory, read_outcome
from shoal.runs.launchers import ForkLauncher, WorkerProcess, find_worker, start_run, stop_run
from shoal.runs.operations import create_run
from shoal.runs.state import Status
from shoal.scenario.loading import validate
from shoal.unix import wait_for_exit
from tests.runs.harness import check_consistency, start

LONG: dict[str, Any] = {"name": "long", "population": [{"count": 20}], "rounds": 100_000, "worlds": {"twitter": {}}}
SHORT: dict[str, Any] = {
    **LONG,
    "name": "short",
    "population": [{"count": 1, "activity": 1.0}],
    "worlds": {"room": {}},
    "rounds": 1,
}


@pytest.fixture
async def launcher(tmp_path: Path) -> AsyncIterator[ForkLauncher]:
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    environ = {**os.environ, "PYTHONPATH": path}
    with ForkLauncher(environ, idle_seconds=0) as launcher:
        yield launcher
    for lock in tmp_path.glob("*/worker.lock"):
        if (worker := find_worker(RunDirectory(lock.parent))) is not None:
            os.killpg(worker.pid, signal.SIGKILL)
            await wait_for_exit(worker.pid)


async def wait_for_round(run: RunDirectory) -> None:
    """Wait until another round is committed."""
    before = run.read_state().current_round
    async with asyncio.timeout(60):
        while run.read_state().current_round <= before:  # noqa: ASYNC110  # another process does it
            await asyncio.sleep(0.01)


def read_server(launcher: ForkLauncher) -> int:
    assert launcher.server_pid is not None
    return launcher.server_pid


async def test_workers_go_on_without_a_killed_fork_server_and_the_next_start_makes_another(
    tmp_path: Path, launcher: ForkLauncher
) -> None:
    first, second = (create_run(validate(LONG), tmp_path / name) for name in ("first", "second"))
    worker = await start_run(first, launcher)
    os.kill(server := read_server(launcher), signal.SIGKILL)
    await wait_for_round(first)
    await start_run(second, launcher)
    third = create_run(validate(LONG), tmp_path / "third")
    await start_run(third, launcher)
    assert read_server(launcher) != server
    await asyncio.gather(wait_for_round(first), wait_for_round(second), wait_for_round(third))
    assert (await worker.stop()).status is Status.STOPPED
    check_consistency(first.path, finished=False)


async def test_a_fork_server_that_is_killed_while_it_starts_a_worker_delays_it_only(
    tmp_path: Path, launcher: ForkLauncher
) -> None:
    run = create_run(validate(LONG), tmp_path / "run")
    starting = asyncio.create_task(start_run(run, launcher))
    while not run.file(CONTROL_LOCK).exists():  # noqa: ASYNC110  # the task goes on meanwhile
        await asyncio.sleep(0)
    os.kill(read_server(launcher), signal.SIGKILL)
    worker = await starting
    found = find_worker(run)
    assert found is not None
    assert found.pid == worker.pid


CLIENT = """
import asyncio, atexit, os, sys
from pathlib import Path
from shoal.runs.directory import CONTROL_LOCK, RunDirectory, read_outcome
from shoal.runs.launchers import ForkLauncher, start_run

sys.stdout.write("before ")
atexit.register(Path(sys.argv[2]).with_name("cleaned").touch)

def launch():
    return ForkLauncher(os.environ, idle_seconds=0)

async def main(launcher=None):
    with launcher or launch() as launcher:
        await start_run(RunDirectory.open(Path(sys.argv[2])), launcher)
        print(launcher.server_pid, flush=True)
        await asyncio.Event().wait()

if sys.argv[1] == "early":
    with launch() as launcher:
        asyncio.run(main(launcher))
else:
    asyncio.run(main())
"""


@pytest.mark.parametrize("moment", ["early", "late"])
async def test_a_fork_server_ends_with_its_client_and_the_worker_goes_on(
    tmp_path: Path, launcher: ForkLauncher, moment: str
) -> None:
    run = create_run(validate(LONG), tmp_path / "run")
    command = [sys.executable, "-c", CLIENT, moment, str(run.path)]
    client = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert client.stdout is not None
    before, number = (await client.stdout.readline()).split()
    assert before == b"before"
    server = int(number)
    # Before there is an event loop it is a fork of the client.
    assert (read_command(server) == read_command(client.pid)) is (moment == "early")
    client.kill()
    assert await client.stdout.read() == b""
    await client.wait()
    async with asyncio.timeout(60):
        await wait_for_exit(server)
    await wait_for_round(run)
    assert "running with Shoal" in run.file("simulation.log").read_text()
    worker = find_worker(run)
    assert worker is not None
    await stop_run(run)
    await wait_for_exit(worker.pid)
    # The handlers of the client are its own.
    assert not run.path.with_name("cleaned").exists()


def read_command(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


DRAWING = """
import atexit, numpy, os, random, sys, threading
from pathlib import Path
from shoal.types import Mind, Decision

class Drawing(Mind):
    def decide(self, observation):
        print("said by the mind")
        drawn = f"{random.random()} {numpy.random.random()}"
        atexit.register(Path("drawn").open("a").write, drawn + "\\n")
        return Decision([])
"""


async def test_workers_draw_different_numbers_and_end_as_processes_do(
    tmp_path: Path, launcher: ForkLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "drawing.py").write_text(DRAWING)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for seed in (1, 2):
        run = create_run(validate({**SHORT, "mind": {"kind": "drawing:Drawing"}}), tmp_path / str(seed))
        outcome = await (await start_run(run, launcher)).wait()
        assert outcome.status is Status.COMPLETED
        assert launcher.server_pid is not None, "it was not forked"
        assert "said by the mind" in run.file("simulation.log").read_text()
    (first, second) = (line.split() for line in (tmp_path / "drawn").read_text().splitlines())
    assert not set(first) & set(second)


# Workers that go on with another run

PLAIN: dict[str, Any] = {**LONG, "name": "plain", "rounds": 3}


async def run_plain(tmp_path: Path, launcher: ForkLauncher, seed: int) -> int:
    """Run a short scenario to its end, and return the process that did it."""
    run = create_run(validate({**PLAIN, "seed": seed}), tmp_path / f"plain-{seed}")
    worker = await start_run(run, launcher)
    assert (await worker.wait()).status is Status.COMPLETED
    assert not run.has_worker()
    return worker.pid


async def test_a_worker_goes_on_with_another_run_whose_history_is_that_of_a_new_process(
    tmp_path: Path, launcher: ForkLauncher
) -> None:
    pids = [await run_plain(tmp_path, launcher, seed) for seed in (1, 2, 3)]
    assert len(set(pids)) == 1
    for seed in (1, 2, 3):
        scenario = {**PLAIN, "seed": seed}
        alone = await asyncio.to_thread(start, scenario, tmp_path / f"alone-{seed}")
        assert read_outcome(RunDirectory.open(tmp_path / f"plain-{seed}")).digest == alone.digest
        assert "running with Shoal" in (tmp_path / f"plain-{seed}" / "simulation.log").read_text()


async def test_a_worker_that_goes_on_keeps_no_file_of_an_earlier_run_open(
    tmp_path: Path, launcher: ForkLauncher
) -> None:
    await run_plain(tmp_path, launcher, 1)
    pid = await run_plain(tmp_path, launcher, 2)
    opened = [path.readlink() for path in Path(f"/proc/{pid}/fd").iterdir()]
    held = {path for path in opened if tmp_path in path.parents}
    # Its output goes to the log until it has another run.
    assert held == {tmp_path / "plain-2" / "simulation.log"}


REMEMBERING = """
from shoal.types import Mind, Decision

seen = []

class Remembering(Mind):
    def decide(self, observation):
        seen.append(observation)
        print(f"decision {len(seen)}")
        return Decision([])
"""


async def test_what_a_module_of_the_user_remembers_does_not_pass_from_one_run_to_the_next(
    tmp_path: Path, launcher: ForkLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "remembering.py").write_text(REMEMBERING)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    pids = [await run_plain(tmp_path, launcher, 1)]
    for seed in (2, 3):
        run = create_run(validate({**SHORT, "mind": {"kind": "remembering:Remembering"}}), tmp_path / str(seed))
        worker = await start_run(run, launcher)
        assert (await worker.wait()).status is Status.COMPLETED
        pids.append(worker.pid)
        printed = run.file("simulation.log").read_text()
        assert "decision 1" in printed
        assert "decision 2" not in printed
    pids.append(await run_plain(tmp_path, launcher, 4))
    assert len(set(pids)) == 3
    assert pids[0] == pids[3]


async def test_a_killed_worker_costs_its_own_run_alone(tmp_path: Path, launcher: ForkLauncher) -> None:
    first = await run_plain(tmp_path, launcher, 1)
    run = create_run(validate(LONG), tmp_path / "long")
    worker = await start_run(run, launcher)
    assert worker.pid == first
    os.kill(worker.pid, signal.SIGKILL)
    assert (await worker.wait()).status is Status.FAILED
    second = await run_plain(tmp_path, launcher, 2)
    assert second != first
    # One that is killed between two runs costs none.
    os.kill(second, signal.SIGKILL)
    await wait_for_exit(second)
    assert await run_plain(tmp_path, launcher, 3) not in (first, second)


async def test_a_worker_that_was_asked_to_stop_ends_and_one_that_went_on_is_left_alone(
    tmp_path: Path, launcher: ForkLauncher
) -> None:
    await run_plain(tmp_path, launcher, 1)
    run = create_run(validate(LONG), tmp_path / "long")
    worker = await start_run(run, launcher)
    await wait_for_round(run)
    # Somebody who had found it at work on an earlier run, and is late.
    late = WorkerProcess(RunDirectory.open(tmp_path / "plain-1"), worker.pid, may_go_on=True)
    assert (await asyncio.wait_for(late.stop(0.1), 30)).status is Status.COMPLETED
    await wait_for_round(run)
    found = find_worker(run)
    assert found is not None
    assert (await found.stop()).status is Status.STOPPED
    await asyncio.wait_for(wait_for_exit(worker.pid), 30)


async def test_workers_that_wait_for_a_run_end_with_the_fork_server(tmp_path: Path, launcher: ForkLauncher) -> None:
    pid = await run_plain(tmp_path, launcher, 1)
    launcher.close()
    await asyncio.wait_for(wait_for_exit(pid), 30)
