"""Workers as processes: started, found by their lock, stopped with all of their group, and restarted."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from bench.storm import storm_run
from shoal.errors import RunLocked, RunRefused, WorkerLost
from shoal.runs.directory import RunDirectory
from shoal.runs.launchers import (
    ForkLauncher,
    Launcher,
    LocalLauncher,
    WorkerProcess,
    find_worker,
    restart_run,
    start_run,
    stop_run,
)
from shoal.runs.operations import create_run
from shoal.runs.state import SUCCESSORS, Status
from shoal.scenario.loading import validate
from shoal.unix import wait_for_exit
from tests.runs.harness import check_consistency, start

LONG = {"name": "long", "population": [{"count": 20}], "rounds": 100_000, "worlds": {"twitter": {}}, "seed": 3}
SHORT = {**LONG, "name": "short", "rounds": 5}


@contextmanager
def make_launcher(kind: str, environ: Mapping[str, str]) -> Iterator[Launcher]:
    if kind == "local":
        yield LocalLauncher(environ, idle_seconds=0)
    else:
        with ForkLauncher(environ, idle_seconds=0) as launcher:
            yield launcher


@pytest.fixture(params=["local", "fork"])
async def launcher(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Launcher]:
    """A launcher of each kind, whose workers do not outlive the test."""
    is_local = request.param == "local"
    yield LocalLauncher(os.environ, idle_seconds=0) if is_local else request.getfixturevalue("forks")
    for run in tmp_path.iterdir():
        if (run / "worker.lock").exists() and (worker := find_worker(RunDirectory(run))) is not None:
            os.killpg(worker.pid, signal.SIGKILL)
            await wait_for_exit(worker.pid)


async def wait_until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not is_so():  # noqa: ASYNC110  # another process does it
            await asyncio.sleep(0.01)


async def start_long(tmp_path: Path, launcher: Launcher) -> tuple[RunDirectory, WorkerProcess]:
    run = create_run(validate(LONG), tmp_path / "run")
    worker = await start_run(run, launcher)
    await wait_until(lambda: run.read_state().current_round > 0)
    return run, worker


async def test_a_launched_run_has_the_history_of_one_that_is_run_here(tmp_path: Path, launcher: Launcher) -> None:
    here = await asyncio.to_thread(start, SHORT, tmp_path / "here")
    run = create_run(validate(SHORT), tmp_path / "there")
    outcome = await (await start_run(run, launcher)).wait()
    assert (outcome.status, outcome.digest) == (Status.COMPLETED, here.digest)


async def test_a_worker_leads_a_session_of_its_own(tmp_path: Path, launcher: Launcher) -> None:
    _, worker = await start_long(tmp_path, launcher)
    assert os.getsid(worker.pid) == os.getpgid(worker.pid) == worker.pid != os.getsid(0)


async def test_another_launcher_finds_the_worker_by_its_lock_and_stops_it(tmp_path: Path, launcher: Launcher) -> None:
    _, worker = await start_long(tmp_path, launcher)
    again = RunDirectory.open(tmp_path / "run")
    found = find_worker(again)
    assert found is not None
    assert found.pid == worker.pid
    outcome = await stop_run(again)
    assert outcome.status is Status.STOPPED
    assert find_worker(again) is None


async def test_a_run_at_work_is_not_started_twice(tmp_path: Path, launcher: Launcher) -> None:
    run, worker = await start_long(tmp_path, launcher)
    with pytest.raises(RunLocked, match=f"process {worker.pid} already"):
        await start_run(run, launcher)


async def test_starting_a_stopped_run_continues_it(tmp_path: Path, launcher: Launcher) -> None:
    run, _ = await start_long(tmp_path, launcher)
    stopped = await stop_run(run)
    await start_run(run, launcher)
    await wait_until(lambda: run.read_state().current_round > stopped.rounds)
    await stop_run(run)
    check_consistency(run.path, finished=False)


async def test_a_killed_worker_is_seen_as_failed_with_the_end_of_its_log(tmp_path: Path, launcher: Launcher) -> None:
    run, worker = await start_long(tmp_path, launcher)
    os.kill(worker.pid, signal.SIGKILL)
    assert (await worker.wait()).status is Status.FAILED
    state = run.observe_state()
    assert state.runner_status is Status.FAILED
    assert "running with Shoal" in str(state.error)
    await start_run(run, launcher)
    assert run.read_status() is Status.RUNNING


async def test_a_worker_that_cannot_begin_says_why(tmp_path: Path, launcher: Launcher) -> None:
    run = create_run(validate(SHORT), tmp_path / "run")
    (run.path / "elsewhere").symlink_to(tmp_path)
    with pytest.raises(WorkerLost, match="Put the file itself there, or remove the link"):
        await start_run(run, launcher)
    assert run.read_status() is Status.IDLE


async def test_a_run_that_cannot_be_read_has_failed_and_says_why(tmp_path: Path, launcher: Launcher) -> None:
    run = create_run(validate(SHORT), tmp_path / "run")
    run.journal.write_text("this is no line of a journal\n")
    with suppress(WorkerLost):
        # It may be seen at work for a moment.
        await (await start_run(run, launcher)).wait()
    state = run.observe_state()
    assert (state.runner_status, "cannot be read" in str(state.error)) == (Status.FAILED, True)


async def test_stopping_what_does_not_run_is_refused(tmp_path: Path) -> None:
    run = create_run(validate(SHORT), tmp_path / "run")
    with pytest.raises(RunRefused, match="is not running: it is idle"):
        await stop_run(run)


STUBBORN = """
import os, signal, subprocess, sys, threading
from shoal.types import Mind, Decision

class Stubborn(Mind):
    def decide(self, observation):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen([sys.executable, "-c", "import signal, time; signal.pause()"])
        open(os.environ["STUBBORN"], "w").write(str(child.pid))
        threading.Event().wait()
"""


@pytest.mark.parametrize("kind", ["local", "fork"])
async def test_a_worker_that_does_not_stop_is_killed_with_its_children(tmp_path: Path, kind: str) -> None:
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    environ = {**os.environ, "PYTHONPATH": str(tmp_path), "STUBBORN": str(tmp_path / "child")}
    scenario = {**SHORT, "population": [{"count": 1, "activity": 1.0}], "mind": {"kind": "stubborn:Stubborn"}}
    sys.path.append(str(tmp_path))
    try:
        run = create_run(validate(scenario), tmp_path / "run")
    finally:
        sys.path.remove(str(tmp_path))
    with make_launcher(kind, environ) as launcher:
        worker = await start_run(run, launcher)
    await wait_until(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text() != "")
    assert (await stop_run(run, grace_seconds=0.2)).status is Status.STOPPED
    for pid in (worker.pid, int((tmp_path / "child").read_text())):
        await asyncio.wait_for(wait_for_exit(pid), 30)


async def test_restarting_archives_what_was_written_and_starts_over(tmp_path: Path, launcher: Launcher) -> None:
    run, first = await start_long(tmp_path, launcher)
    second = await restart_run(run, launcher)
    assert second.pid != first.pid
    stopped = await stop_run(run)
    archived = tmp_path / "run" / "archive" / "1"
    assert (archived / "journal.jsonl").exists()
    assert (archived / "twitter" / "actions.jsonl").stat().st_size > 0
    check_consistency(archived, finished=False)
    check_consistency(run.path, finished=False)
    assert stopped.rounds < 100_000


async def test_a_run_of_one_worker_survives_a_storm_of_commands(tmp_path: Path, launcher: Launcher) -> None:
    """Many callers at once start, stop and restart one run; afterwards there is one history, and every archive."""
    run = create_run(validate(LONG), tmp_path / "run")
    restarts = await storm_run(run.path, launcher, callers=6, commands=24, weights=(1, 1, 1))
    assert len(list((run.path / "archive").iterdir())) == restarts
    check_consistency(run.path, finished=False)


def test_every_status_knows_its_successors() -> None:
    assert set(SUCCESSORS) == set(Status)
    with pytest.raises(AssertionError, match="a run that is idle cannot become completed"):
        Status.IDLE.check_next(Status.COMPLETED)
