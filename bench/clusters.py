"""Bars of clusters: simulations on the nodes of a local Ray cluster against the local launcher, and a lost node."""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ray
import yaml
from ray.cluster_utils import Cluster

from bench.bars import Bar
from bench.rehearsed import MODEL, Server, rehearsing
from shoal.event_loop import run_async
from shoal.experiments import BatchSettings, ExperimentRun, RunResult, load_experiment
from shoal.runs import LimitSettings
from shoal.runs.launchers import Launcher, open_launcher
from shoal.slots import BrokerLocation, fetch_snapshot

#: Ray takes the usual loopback address for another one of this machine.
_HOST = "127.0.0.2"
_OBJECT_STORE_BYTES = 80 << 20
_CAP = 64
#: Ray keeps as many idle processes on a node as it has CPUs, so that they need not be started anew.
_NODES, _CPUS, _AT_ONCE = 3, 4, 12
_LATENCY_SECONDS = 0.5
#: A node is killed once so many calls were answered.
_ANSWERED = 200
_LOOK_SECONDS = 0.05


@contextmanager
def _clustering() -> Iterator[Any]:
    """A cluster whose nodes have four CPUs each, as Ray counts them, beside a head that works on nothing."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        # Ray writes the address of the cluster into a folder that only its own commands make.
        os.environ["RAY_TMPDIR"] = folder
        Path(folder, "ray").mkdir()
        common = {"object_store_memory": _OBJECT_STORE_BYTES, "node_ip_address": _HOST}
        head = {"num_cpus": 0, "include_dashboard": False, "temp_dir": folder, **common}
        cluster: Any = Cluster(initialize_head=True, head_node_args=head)
        for _ in range(_NODES):
            cluster.add_node(num_cpus=_CPUS, **common)
        ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
        try:
            yield cluster
        finally:
            ray.shutdown()
            cluster.shutdown()


def _make_study(folder: Path, simulations: int, rounds: int) -> ExperimentRun:
    """Make an experiment in which everybody is asked once in each round."""
    folder.mkdir(parents=True, exist_ok=True)
    study = {
        "name": "study",
        "population": [{"count": 10}],
        "rounds": rounds,
        "worlds": {"hall": {"kind": "room", "turns": "parallel"}},
        "mind": {"kind": "language", "model": MODEL},
        "experiment": {"seeds": simulations, "tiers": [{"name": "one", "arms": {"all": {}}}]},
    }
    (folder / "study.yaml").write_text(yaml.safe_dump(study))
    settings = BatchSettings(_AT_ONCE, LimitSettings(parallel=_CAP))
    return ExperimentRun(load_experiment(folder / "study.yaml"), folder / "results", settings)


async def _with_launcher(folder: Path, on: str, server: Server, work: Callable[[Launcher], Awaitable[float]]) -> float:
    """Work with a launcher that has started as many workers as it needs before."""
    own = {name: str(folder / name.lower()) for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME")}
    environ = {**os.environ, **own, "SHOAL_SLOTS": str(folder / "slots.sock"), **server.environ}
    async with open_launcher(on, environ) as launcher:
        await _make_study(folder / "before", _AT_ONCE, 1).run(launcher, asyncio.Event())
        server.reset()
        return await work(launcher)


def _read_digests(results: list[RunResult]) -> list[tuple[str, str]]:
    failures = [str(result.error) for result in results if result.status != "completed"]
    assert not failures, failures
    return [(result.id, result.digest) for result in results]


def ray_many(folder: Path, simulations: int = 64) -> list[Bar]:
    """64 simulations on three nodes against the local launcher, with at most 64 calls at once."""
    found: dict[str, list[tuple[str, str]]] = {}

    def measure(on: str, server: Server) -> float:
        (own := folder / on).mkdir(0o700)

        async def work(launcher: Launcher) -> float:
            began = time.perf_counter()
            found[on] = _read_digests(await _make_study(own / "many", simulations, 4).run(launcher, asyncio.Event()))
            return time.perf_counter() - began

        return run_async(_with_launcher(own, on, server, work))

    with rehearsing(latency_seconds=_LATENCY_SECONDS) as server:
        local = measure("local", server)
        with _clustering():
            remote = measure("ray", server)
            stats = server.stats()
    assert found["local"] == found["ray"]
    told = f"local launcher: {local:.1f} s, with {stats['in_flight_peak']} of {_CAP} calls at once on the nodes"
    return [Bar("64 simulations on 3 Ray nodes", remote / local, "x", 1.15, False, told)]


def ray_kill(folder: Path, simulations: int = 12) -> list[Bar]:
    """A node killed in the middle of an experiment: what is paid for again, and whether histories are the same."""
    with rehearsing(latency_seconds=_LATENCY_SECONDS) as server:
        (own := folder / "local").mkdir(0o700)

        async def work_here(launcher: Launcher) -> float:
            results = await _make_study(own / "many", simulations, 6).run(launcher, asyncio.Event())
            wanted.extend(_read_digests(results))
            return 0.0

        wanted: list[tuple[str, str]] = []
        run_async(_with_launcher(own, "local", server, work_here))
        (there := folder / "ray").mkdir(0o700)
        with _clustering() as cluster:
            node = cluster.list_all_nodes()[-1]
            found: dict[str, int] = {}

            async def work_there(launcher: Launcher) -> float:
                work = _make_study(there / "many", simulations, 6)
                working = asyncio.create_task(work.run(launcher, asyncio.Event()))
                while server.stats()["answers"] < _ANSWERED:  # noqa: ASYNC110  # other processes ask
                    await asyncio.sleep(_LOOK_SECONDS)
                found["in flight"] = server.stats()["in_flight"]
                cluster.remove_node(node, allow_graceful=False)
                results = await working
                snapshot = fetch_snapshot(BrokerLocation(there / "slots.sock", there))
                assert snapshot is not None
                found["held"] = sum(pool.held for pool in snapshot.pools)
                return sum(a != b for a, b in zip(_read_digests(results), wanted, strict=True))

            different = run_async(_with_launcher(there, "ray", server, work_there))
            stats = server.stats()
    told = f"{stats['answers']} calls, {found['in flight']} in flight when the node was killed"
    return [
        Bar("calls paid again after a killed node", stats["repeated"], "", found["in flight"], False, told),
        Bar("histories that a killed node changed", different, "", 0, False, told),
        Bar("slots lost with a killed node", found["held"], "", 0, False, told),
    ]


ALL = (ray_many, ray_kill)
