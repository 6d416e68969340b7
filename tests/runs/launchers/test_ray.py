"""Workers on a Ray cluster of several nodes: the same histories and limits, whatever is lost meanwhile.

All tests share one cluster on the loopback address. A node that a test kills is one that it has added.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import ray
from ray.cluster_utils import Cluster

from shoal.errors import RunRefused
from shoal.experiments import BatchSettings, ExperimentRun, RunResult, load_experiment
from shoal.rehearsal.server import start
from shoal.rehearsal.settings import RehearsalSettings
from shoal.runs import LimitSettings
from shoal.runs.commands import CommandType, call_worker
from shoal.runs.directory import RunDirectory
from shoal.runs.launchers import Launcher, find_worker, open_launcher, start_run, stop_run
from shoal.runs.launchers.ray import RayLauncher
from shoal.runs.operations import create_run
from shoal.runs.state import Status
from shoal.scenario.loading import validate
from tests.runs.harness import check_consistency, read_lines
from tests.runs.harness import start as run_here
from tests.slots.brokers import temporary_location

#: Ray takes the usual loopback address for another one of this machine.
HOST = "127.0.0.2"
OBJECT_STORE_BYTES = 80 << 20
LONG: dict[str, Any] = {
    "name": "long",
    "population": [{"count": 20}],
    "rounds": 100_000,
    "worlds": {"twitter": {}},
    "seed": 3,
}
SHORT = {**LONG, "name": "short", "rounds": 5}


def add_node(cluster: Cluster, cpus: float) -> Any:
    return cluster.add_node(num_cpus=cpus, object_store_memory=OBJECT_STORE_BYTES, node_ip_address=HOST)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A head that works on nothing, and one node."""
    with TemporaryDirectory(prefix="ray-") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        # Ray writes the address of the cluster into a folder that only its own commands make.
        patch.setenv("RAY_TMPDIR", folder)
        Path(folder, "ray").mkdir()
        head = {
            "num_cpus": 0,
            "object_store_memory": OBJECT_STORE_BYTES,
            "node_ip_address": HOST,
            "include_dashboard": False,
            "temp_dir": folder,
            # A node that answers late is given ten seconds each time, as usual; one that is gone is noticed at once.
            "_system_config": {"health_check_initial_delay_ms": 1000, "health_check_period_ms": 500},
        }
        # Parts of Ray have no types.
        cluster: Any = Cluster(initialize_head=True, head_node_args=head)
        add_node(cluster, 1)
        ray.init(address=cluster.address, log_to_driver=False)
        yield cluster
        ray.shutdown()
        cluster.shutdown()


@pytest.fixture
async def launcher(cluster: Cluster) -> AsyncIterator[Launcher]:
    async with RayLauncher(cluster.address, os.environ) as launcher:
        yield launcher


async def wait_until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not is_so():  # noqa: ASYNC110  # other processes do it
            await asyncio.sleep(0.02)


async def test_a_run_on_a_node_leaves_the_directory_of_a_local_one(tmp_path: Path, launcher: Launcher) -> None:
    here = await asyncio.to_thread(run_here, SHORT, tmp_path / "here")
    run = create_run(validate(SHORT), tmp_path / "there")
    outcome = await (await start_run(run, launcher)).wait()
    assert (outcome.status, outcome.digest) == (Status.COMPLETED, here.digest)
    check_consistency(run.path, finished=True)
    assert (run.path / "twitter/actions.jsonl").read_bytes() == (tmp_path / "here/twitter/actions.jsonl").read_bytes()
    assert len(read_lines(run.file("metrics.jsonl"))) == len(read_lines(tmp_path / "here/metrics.jsonl"))
    assert find_worker(run) is None


async def test_rounds_arrive_while_the_run_goes_on_and_it_can_be_stopped_and_started(
    tmp_path: Path, launcher: Launcher
) -> None:
    run = create_run(validate(LONG), tmp_path / "run")
    await start_run(run, launcher)
    await wait_until(lambda: run.read_last_rounds()["twitter"] > 3)
    assert run.read_status() is Status.RUNNING
    await call_worker(run, None, CommandType.PAUSE, {}, 30)
    await wait_until(lambda: run.read_status() is Status.PAUSED)
    await call_worker(run, None, CommandType.CONTINUE, {}, 30)
    stopped = await stop_run(run)
    assert stopped.status is Status.STOPPED
    check_consistency(run.path, finished=False)
    await start_run(run, launcher)
    await wait_until(lambda: run.read_last_rounds()["twitter"] > stopped.rounds)
    assert (await stop_run(run)).status is Status.STOPPED
    check_consistency(run.path, finished=False)


# A language model, limits, and what is lost

PARALLEL = 6
STUDY = """\
name: study
population: [{count: 6}]
rounds: 6
worlds: {hall: {kind: room, turns: parallel}}
mind: {kind: language, model: openai/rehearsal}
experiment:
  seeds: 2
  tiers: [{name: first, arms: {all: {topic: the bridge}}}, {name: second, arms: {all: {topic: the ferry}}}]
"""


def make_environ(folder: Path, socket: Path, url: str) -> dict[str, str]:
    own = {"SHOAL_SLOTS": str(socket), "XDG_STATE_HOME": str(folder), "XDG_CACHE_HOME": str(folder)}
    return {**os.environ, **own, "OPENAI_BASE_URL": url}


def make_study(folder: Path) -> ExperimentRun:
    folder.mkdir(exist_ok=True)
    study = folder / "study.yaml"
    study.write_text(STUDY)
    settings = BatchSettings(max_simulations=4, limits=LimitSettings(parallel=PARALLEL))
    return ExperimentRun(load_experiment(study), folder / "results", settings)


def digests(results: list[RunResult]) -> dict[str, str]:
    return {result.id: result.digest for result in results}


def find_running(results: Path) -> list[RunDirectory]:
    """Runs of a study that have done a round and go on."""
    runs = [RunDirectory.open(path.parent) for path in results.glob("**/run_state.json")]
    return [run for run in runs if run.read_status() is Status.RUNNING and max(run.read_last_rounds().values()) > 0]


async def test_a_killed_node_costs_only_the_calls_in_flight(tmp_path: Path, cluster: Cluster) -> None:
    with temporary_location() as place:
        async with start(RehearsalSettings(latency_seconds=0.02)) as server:
            environ = make_environ(tmp_path / "a", place.socket, server.base_url)
            async with open_launcher("local", environ) as forks:
                local = await make_study(tmp_path / "a").run(forks, asyncio.Event())
            wanted = server.stats.answered
        # Slow enough that both nodes are in the middle of a run when one of them is lost.
        async with start(RehearsalSettings(latency_seconds=0.5)) as server:
            environ = make_environ(tmp_path / "b", place.socket, server.base_url)
            node = add_node(cluster, 1)
            async with RayLauncher(cluster.address, environ) as launcher:
                working = asyncio.create_task(make_study(tmp_path / "b").run(launcher, asyncio.Event()))
                await wait_until(lambda: len(find_running(tmp_path / "b" / "results")) == 2)
                cluster.remove_node(node, allow_graceful=False)
                results = await working
            stats = server.stats
    assert digests(results) == digests(local)
    logs = [(tmp_path / "b" / "results" / result.id / "simulation.log").read_text() for result in results]
    assert any(log.count("running with Shoal") > 1 for log in logs), "no run was on the node that was lost"
    assert stats.in_flight_peak <= PARALLEL
    repaid = stats.answered.total() - len(stats.answered)
    assert stats.answered.keys() == wanted.keys()
    assert repaid <= PARALLEL
    for result in results:
        check_consistency(tmp_path / "b" / "results" / result.id, finished=True)


async def test_replies_of_earlier_runs_are_found_on_nodes_and_those_of_nodes_are_kept(
    tmp_path: Path, cluster: Cluster
) -> None:
    mind = {"kind": "language", "model": "openai/rehearsal"}
    people = [{"count": 3, "activity": 1.0, "active_hours": "0-23"}]
    scenario = validate({**SHORT, "population": people, "rounds": 2, "mind": mind})
    with temporary_location() as place:
        async with start(RehearsalSettings()) as server:
            environ = make_environ(tmp_path, place.socket, server.base_url)
            async with RayLauncher(cluster.address, environ) as launcher:
                first, second = (create_run(scenario, tmp_path / name) for name in ("first", "second"))
                before = await (await start_run(first, launcher)).wait()
                paid = server.stats.answers
                after = await (await start_run(second, launcher)).wait()
    assert (before.status, before.digest) == (Status.COMPLETED, after.digest)
    assert paid > 0
    assert server.stats.answers == paid
    assert (second.read_state().spending or {})["cache_hits"] > 0


async def test_stopping_one_launcher_leaves_the_runs_of_another_alone(tmp_path: Path, launcher: Launcher) -> None:
    run = create_run(validate(LONG), tmp_path / "run")
    worker = await start_run(run, launcher)
    async with RayLauncher("", os.environ) as other:
        queued = create_run(validate(LONG), tmp_path / "queued")
        waiting = await start_run(queued, other)
        await wait_until(lambda: queued.read_status() is Status.PAUSED)
        assert "waiting for a free place" in str(queued.read_state().waiting)
    outcome = await waiting.wait()
    assert outcome.status is Status.FAILED
    assert "ended" in str(queued.observe_state().error)
    await wait_until(lambda: run.read_last_rounds()["twitter"] > 3)
    assert (await worker.stop()).status is Status.STOPPED


async def test_a_killed_receiver_is_seen_as_failed_and_its_task_ends(tmp_path: Path, launcher: Launcher) -> None:
    run = create_run(validate(LONG), tmp_path / "run")
    worker = await start_run(run, launcher)
    await wait_until(lambda: run.read_last_rounds()["twitter"] > 1)
    os.kill(worker.pid, signal.SIGKILL)
    assert (await worker.wait()).status is Status.FAILED
    # There is room for one run only, so this one has to wait for the end of the first.
    again = await start_run(run, launcher)
    before = run.read_last_rounds()["twitter"]
    await wait_until(lambda: run.read_last_rounds()["twitter"] > before)
    await again.stop()
    check_consistency(run.path, finished=False)


async def test_a_run_that_cannot_be_worked_on_says_why(tmp_path: Path, launcher: Launcher) -> None:
    run = create_run(validate(SHORT), tmp_path / "run")
    run.journal.write_text("this is no line of a journal\n")
    outcome = await (await start_run(run, launcher)).wait()
    assert outcome.status is Status.FAILED
    assert "cannot be read" in str(run.observe_state().error)


DRIVER = """
import asyncio, os, sys
from pathlib import Path
from shoal.runs.directory import RunDirectory
from shoal.runs.launchers import open_launcher, start_run

async def main():
    async with open_launcher(f"ray://{sys.argv[1]}", os.environ) as launcher:
        worker = await start_run(RunDirectory.open(Path(sys.argv[2])), launcher)
        print(worker.pid, flush=True)
        await worker.wait()

asyncio.run(main())
"""


async def test_the_runs_of_a_killed_program_are_failed_and_go_on_with_the_next(
    tmp_path: Path, cluster: Cluster, launcher: Launcher
) -> None:
    run = create_run(validate(LONG), tmp_path / "run")
    command = [sys.executable, "-c", DRIVER, cluster.address, str(run.path)]
    driver = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    await wait_until(lambda: run.read_last_rounds()["twitter"] > 1)
    driver.kill()
    await driver.wait()
    await wait_until(lambda: find_worker(run) is None)
    state = run.observe_state()
    assert (state.runner_status, str(state.error)) == (
        Status.FAILED,
        "the program that had started it on the Ray cluster ended",
    )
    before = run.read_last_rounds()["twitter"]
    worker = await start_run(run, launcher)
    await wait_until(lambda: run.read_last_rounds()["twitter"] > before)
    assert (await worker.stop()).status is Status.STOPPED
    check_consistency(run.path, finished=False)


async def test_an_address_without_a_cluster_is_refused(cluster: Cluster) -> None:
    ray.shutdown()
    try:
        with pytest.raises(RunRefused, match=r"no Ray cluster answers at 127\.0\.0\.1:1"):
            async with open_launcher("ray://127.0.0.1:1", os.environ):
                pass
    finally:
        ray.init(address=cluster.address, log_to_driver=False)
