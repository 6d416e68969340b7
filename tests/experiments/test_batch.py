"""Batches on worker processes: results as they come, second attempts, stops and kills."""

from __future__ import annotations

import asyncio
import csv
import os
import signal
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shoal.errors import RunLocked, RunRefused, Stopped
from shoal.experiments.batch import Batch, BatchResult, BatchSettings
from shoal.experiments.batch_rows import read_rows
from shoal.experiments.pacing import DailyWindow
from shoal.runs import RunDirectory, Status
from shoal.runs.launchers import ForkLauncher, Launcher, find_worker
from shoal.scenario import validate
from shoal.unix import wait_for_exit
from tests.runs.harness import start

SHORT: dict[str, Any] = {"name": "short", "population": [{"count": 8}], "rounds": 3, "worlds": {"twitter": {}}}
LONG = {**SHORT, "name": "long", "rounds": 100_000}


@pytest.fixture
async def launcher(tmp_path: Path, forks: ForkLauncher) -> AsyncIterator[Launcher]:
    """A launcher whose workers do not outlive the test."""
    yield forks
    for lock in tmp_path.rglob("worker.lock"):
        if (worker := find_worker(RunDirectory(lock.parent))) is not None:
            os.killpg(worker.pid, signal.SIGKILL)
            await wait_for_exit(worker.pid)


def make_batch(
    folder: Path, rows: list[dict[str, Any]], scenario: dict[str, Any] | None = None, **settings: Any
) -> Batch:
    base = validate(scenario or SHORT)
    return Batch(base, read_rows(base, rows), folder / "batch", BatchSettings(**{"max_simulations": 2, **settings}))


def read_lines(batch: Batch) -> list[BatchResult]:
    lines = batch.results_file.read_bytes().splitlines()
    return [msgspec.json.decode(line, type=BatchResult) for line in lines]


async def wait_until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(100):
        while not is_so():  # noqa: ASYNC110  # another process does it
            await asyncio.sleep(0.01)


def is_at_work(batch: Batch, name: str) -> bool:
    run = batch.runs_folder / name
    return (run / "run_state.json").exists() and RunDirectory(run).read_state().current_round > 0


SEEDS = [{"id": f"s{seed}", "seed": seed} for seed in (1, 2, 3)]


async def test_each_row_has_the_history_of_a_run_with_its_values(tmp_path: Path, launcher: Launcher) -> None:
    batch = make_batch(tmp_path, SEEDS)
    results = await batch.run(launcher, asyncio.Event())
    alone = await asyncio.to_thread(start, {**SHORT, "seed": 2}, tmp_path / "alone")
    assert [(result.id, result.status, result.error) for result in results] == [
        (f"s{seed}", Status.COMPLETED, None) for seed in (1, 2, 3)
    ]
    assert results[1].digest == alone.digest
    assert results[1].metrics["activity"] >= 0
    assert sorted(read_lines(batch), key=lambda result: result.id) == results
    with (batch.folder / "results.csv").open() as file:
        table = list(csv.DictReader(file))
    assert [(row["id"], row["run"]) for row in table] == [(result.id, result.run) for result in results]
    assert float(table[0]["activity"]) == results[0].metrics["activity"]


async def test_the_same_call_again_starts_nothing_and_runs_rows_that_were_added(
    tmp_path: Path, launcher: Launcher
) -> None:
    first = await make_batch(tmp_path, SEEDS[:2]).run(launcher, asyncio.Event())
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.parent.name.startswith("s")}
    again = make_batch(tmp_path, SEEDS)
    assert [row.id for row in again.list_open_rows()] == ["s3"]
    results = await again.run(launcher, asyncio.Event())
    assert results[:2] == first
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert again.progress.known == 2
    await make_batch(tmp_path, SEEDS[:1]).run(launcher, asyncio.Event())
    assert {result.id for result in read_lines(again)} == {"s1", "s2", "s3"}


async def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path, launcher: Launcher) -> None:
    (tmp_path / "batch").write_text("")
    with pytest.raises(RunRefused, match="batch is a file; choose a folder with --out"):
        await make_batch(tmp_path, SEEDS).run(launcher, asyncio.Event())


async def test_a_row_with_other_values_than_before_is_refused(tmp_path: Path, launcher: Launcher) -> None:
    await make_batch(tmp_path, SEEDS[:1]).run(launcher, asyncio.Event())
    with pytest.raises(RunRefused, match="holds a simulation s1 with other values"):
        make_batch(tmp_path, [{"id": "s1", "seed": 9}]).list_open_rows()


async def test_a_stop_leaves_no_worker_and_the_next_call_goes_on(tmp_path: Path, launcher: Launcher) -> None:
    rows, stop = [{"id": "a", "rounds": 100_000}, {"id": "b", "rounds": 100_000}], asyncio.Event()
    batch = make_batch(tmp_path, rows)
    running = asyncio.create_task(batch.run(launcher, stop))
    await wait_until(lambda: is_at_work(batch, "a") and is_at_work(batch, "b"))
    with pytest.raises(RunLocked, match="is being worked on"):
        await make_batch(tmp_path, rows).run(launcher, asyncio.Event())
    stop.set()
    with pytest.raises(Stopped, match="2 simulations left"):
        await running
    runs = [RunDirectory(batch.runs_folder / name) for name in "ab"]
    assert [find_worker(run) for run in runs] == [None, None]
    assert read_lines(batch) == []
    assert [row.id for row in make_batch(tmp_path, rows).list_open_rows()] == ["a", "b"]


async def test_the_next_run_is_made_while_others_work_and_starts_after_them(tmp_path: Path, launcher: Launcher) -> None:
    batch, stop = make_batch(tmp_path, SEEDS, LONG, max_simulations=1), asyncio.Event()
    working = asyncio.create_task(batch.run(launcher, stop))
    second, third = (batch.runs_folder / name for name in ("s2", "s3"))
    await wait_until((second / "simulation_config.json").exists)
    assert (list(batch.progress.running), third.exists()) == (["s1"], False)
    stop.set()
    with pytest.raises(Stopped, match="3 simulations left"):
        await working
    assert not (second / "simulation.log").exists()


async def test_a_cancelled_batch_leaves_no_worker(tmp_path: Path, launcher: Launcher) -> None:
    batch = make_batch(tmp_path, [{"id": "a"}], LONG)
    running = asyncio.create_task(batch.run(launcher, asyncio.Event()))
    await wait_until(lambda: is_at_work(batch, "a"))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert find_worker(RunDirectory(batch.runs_folder / "a")) is None


async def test_a_killed_worker_is_started_again_and_a_second_kill_is_a_failure_beside_which_others_go_on(
    tmp_path: Path, launcher: Launcher
) -> None:
    batch = make_batch(tmp_path, [{"id": "long", "rounds": 100_000}, *SEEDS])
    running = asyncio.create_task(batch.run(launcher, asyncio.Event()))
    killed: list[int] = []
    for _ in range(2):
        run = RunDirectory(batch.runs_folder / "long")

        def has_new_worker(run: RunDirectory = run) -> bool:
            return is_at_work(batch, "long") and run.read_worker() not in (None, *killed)

        await wait_until(has_new_worker)
        pid = run.read_worker()
        assert pid is not None
        killed.append(pid)
        os.killpg(pid, signal.SIGKILL)
    long, *others = await running
    assert (long.id, long.status) == ("long", Status.FAILED)
    assert long.error is not None
    assert "killed" in long.error
    assert {result.status for result in others} == {Status.COMPLETED}
    assert [row.id for row in make_batch(tmp_path, [{"id": "long", "rounds": 100_000}]).list_open_rows()] == []
    again = make_batch(tmp_path, [{"id": "long", "rounds": 100_000}], retry_failed=True)
    assert [row.id for row in again.list_open_rows()] == ["long"]


async def test_outside_its_hours_a_batch_waits_and_starts_nothing(tmp_path: Path, launcher: Launcher) -> None:
    batch, stop = make_batch(tmp_path, SEEDS, window=DailyWindow.parse("22:00-06:00")), asyncio.Event()
    noon = datetime.fromisoformat("2026-03-02T12:00")
    running = asyncio.create_task(batch.run(launcher, stop, now=lambda: noon))
    await wait_until(lambda: bool(batch.progress.notes))
    stop.set()
    with pytest.raises(Stopped, match="3 simulations left"):
        await running
    assert batch.progress.notes == ["waiting until 22:00"]
    assert not batch.runs_folder.exists()


async def test_at_the_end_of_its_hours_a_batch_stops_its_simulations_and_later_goes_on(
    tmp_path: Path, launcher: Launcher
) -> None:
    batch, stop = make_batch(tmp_path, [{"id": "a"}], LONG, window=DailyWindow.parse("22:00-06:00")), asyncio.Event()
    run, clock = RunDirectory(batch.runs_folder / "a"), ["05:59:59.9"]
    workers: list[object] = []

    def watch(note: object) -> None:
        """The hours begin again as soon as the batch has said that it waits for them."""
        workers.append(find_worker(run))
        clock[0] = "22:00"

    def now() -> datetime:
        return datetime.fromisoformat(f"2026-03-02T{clock[0]}")

    batch.progress.watch = watch
    running = asyncio.create_task(batch.run(launcher, stop, now))
    await wait_until(lambda: is_at_work(batch, "a"))
    clock[0] = "21:59:59.9"
    await wait_until(lambda: bool(workers) and find_worker(run) is not None)
    assert (workers, batch.progress.notes) == ([None], ["waiting until 22:00"])
    stop.set()
    with pytest.raises(Stopped):
        await running


async def test_a_torn_line_of_the_results_is_made_anew(tmp_path: Path, launcher: Launcher) -> None:
    first = await make_batch(tmp_path, SEEDS[:2]).run(launcher, asyncio.Event())
    batch = make_batch(tmp_path, SEEDS[:2])
    content = batch.results_file.read_bytes()
    batch.results_file.write_bytes(content[:-20])
    assert await batch.run(launcher, asyncio.Event()) == first
    assert sorted(read_lines(batch), key=lambda result: result.id) == first
