"""Workers on a Ray cluster of several nodes: the same histories and limits, whatever is lost meanwhile.

All tests share one cluster on the loopback address. A node that a test kills is one that it has added.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import ray
from ray.cluster_utils import Cluster

from shoal.runs.commands import CommandType, call_worker
from shoal.runs.launchers import Launcher, find_worker, start_run, stop_run
from shoal.runs.launchers.ray import RayLauncher
from shoal.runs.operations import create_run
from shoal.runs.state import Status
from shoal.scenario.loading import validate
from tests.runs.harness import check_consistency, read_lines
from tests.runs.harness import start as run_here

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
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    with TemporaryDirectory(prefix="ray-") as folder:
        head = {
            "num_cpus": 0,
            "object_store_memory": OBJECT_STORE_BYTES,
            "node_ip_address": HOST,
            "include_dashboard": False,
            "temp_dir": folder,
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
