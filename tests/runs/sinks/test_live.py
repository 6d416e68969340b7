"""Copying a run while it goes on: beside it, past its end, and past everything that goes wrong."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shoal.runs import RunDirectory, create_run
from shoal.runs.sinks import SinkFollower, open_sink
from shoal.runs.sinks.live import SinkPatience, follow_run
from shoal.runs.state import SINKS_LOCK, SinkStatus, Status
from shoal.scenario import validate
from shoal.unix import read_lock
from tests.runs.harness import go_on, start
from tests.sinks.places import PASSWORD, SinkPlace, make_place
from tests.sinks.zep_server import KEY

SCENARIO: dict[str, Any] = {
    "name": "town",
    "topic": "the old bridge",
    "population": [{"count": 30, "activity": 0.9}],
    "rounds": 12,
    "seed": 3,
    "worlds": ["twitter", "reddit"],
}
HASTY = SinkPatience(flush_seconds=1.0, hang_seconds=0.2)


def declare(*kinds: str, **places: SinkPlace) -> dict[str, Any]:
    """The scenario with sinks, at the servers of the places that are given."""
    sinks: list[Any] = []
    for kind in kinds:
        place = places.get(kind)
        server = None if place is None else place.bolt or place.zep
        sinks.append(kind if server is None else {"kind": kind, "address": server.address})
    return {**SCENARIO, "sinks": sinks}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A run that nobody has copied."""
    path = tmp_path_factory.mktemp("done") / "run"
    start(SCENARIO, path)
    return RunDirectory.open(path)


def declare_run(scenario: dict[str, Any], path: Path) -> RunDirectory:
    """Make a run without a worker, whose streams a test writes."""
    run = create_run(validate(scenario), path)
    for world in run.worlds:
        (run.path / world).mkdir(exist_ok=True)
    return run


def write_streams(done: RunDirectory, run: RunDirectory, share: float = 1.0) -> None:
    """Write the first part of what another run committed, which may end within a line."""
    for world in done.worlds:
        content = (done.path / world / "actions.jsonl").read_bytes()
        (run.path / world / "actions.jsonl").write_bytes(content[: int(len(content) * share)])


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZEP_API_KEY", KEY)
    monkeypatch.setenv("NEO4J_PASSWORD", PASSWORD)


def copy_once(run: RunDirectory, folder: Path) -> SinkPlace:
    """Copy a whole run in a single pass, under the name `whole`."""
    place = SinkPlace("graph", folder)
    sink = place.open("whole")
    SinkFollower(run, sink).catch_up()
    sink.close()
    return place


def test_a_run_is_copied_to_all_its_sinks_while_it_goes_on_and_to_its_end(
    tmp_path: Path, keys: None, done: RunDirectory
) -> None:
    with make_place("neo4j", tmp_path) as bolt, make_place("zep", tmp_path) as zep:
        run = declare_run(declare("graph", "neo4j", "zep", neo4j=bolt, zep=zep), tmp_path / "run")
        failed: list[bool] = []
        with run.lock():
            # As long as a worker holds the lock, the run goes on.
            following = threading.Thread(
                target=lambda: failed.append(follow_run(run, dict(os.environ), threading.Event()))
            )
            following.start()
            write_streams(done, run, 0.5)
            pause(lambda: all(sink.episodes for sink in run.observe_state().sinks.values()))
            write_streams(done, run)
        following.join(60)
        assert failed == [False]
        assert {sink.status for sink in run.observe_state().sinks.values()} == {SinkStatus.COMPLETE}
        whole = copy_once(done, tmp_path)
        assert bolt.bolt is not None
        (name,) = {node.values["run"] for node in bolt.bolt.graph.nodes}
        assert sorted(bolt.list_texts(name)) == sorted(whole.list_texts("whole")) == sorted(zep.list_texts(name))
        assert bolt.list_facts(name) == whole.list_facts("whole")


def pause(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_worker_starts_what_copies_and_does_not_wait_for_it(tmp_path: Path) -> None:
    start(declare("graph"), tmp_path / "run")
    run = RunDirectory.open(tmp_path / "run")
    pause(lambda: run.observe_state().sinks.get("graph", None) is not None)
    pause(lambda: run.observe_state().sinks["graph"].status is SinkStatus.COMPLETE)
    assert run.observe_state().sinks["graph"].episodes > 50


def test_a_sink_that_is_not_there_does_not_keep_the_run_from_completing(tmp_path: Path) -> None:
    scenario = {**SCENARIO, "sinks": [{"kind": "neo4j", "address": "bolt://127.0.0.1:9"}]}
    run = create_run(validate(scenario), tmp_path / "run")
    go_on(run)
    try:
        pause(lambda: bool(sinks := run.observe_state().sinks) and sinks["neo4j"].status is SinkStatus.FAILED)
        assert run.observe_state().runner_status is Status.COMPLETED
    finally:
        os.kill(int(str(read_lock(run.file(SINKS_LOCK)))), signal.SIGKILL)


def test_what_is_wrong_with_a_sink_is_reported(tmp_path: Path, done: RunDirectory) -> None:
    run = declare_run(
        {**SCENARIO, "sinks": ["graph", {"kind": "neo4j", "address": "bolt://127.0.0.1:9"}, "zep"]}, tmp_path / "run"
    )
    write_streams(done, run)
    assert follow_run(run, {}, threading.Event(), SinkPatience(flush_seconds=6.0))
    sinks = run.observe_state().sinks
    assert sinks["graph"].status is SinkStatus.COMPLETE
    assert sinks["neo4j"].status is SinkStatus.FAILED
    assert "127.0.0.1" in str(sinks["neo4j"].error)
    assert sinks["zep"].error == "Zep needs a key: set ZEP_API_KEY"


def test_a_sink_that_hangs_is_reported_and_holds_up_no_other(tmp_path: Path, keys: None, done: RunDirectory) -> None:
    with make_place("neo4j", tmp_path) as bolt:
        assert bolt.bolt is not None
        bolt.bolt.hangs.set()
        run = declare_run(declare("neo4j", "graph", neo4j=bolt), tmp_path / "run")
        write_streams(done, run)
        assert follow_run(run, dict(os.environ), threading.Event(), HASTY)
        sinks = run.observe_state().sinks
        assert sinks["graph"].status is SinkStatus.COMPLETE
        assert sinks["neo4j"].status is SinkStatus.HANGS
        assert str(sinks["neo4j"].error).startswith("it has not answered for")


def test_a_sink_that_comes_back_gets_everything_once(tmp_path: Path, keys: None, done: RunDirectory) -> None:
    with make_place("zep", tmp_path) as zep:
        assert zep.zep is not None
        zep.zep.refusals = [503, 429]
        zep.zep.loses_answers = {2}
        run = declare_run(declare("zep", zep=zep), tmp_path / "run")
        write_streams(done, run)
        assert not follow_run(run, dict(os.environ), threading.Event())
        assert run.observe_state().sinks["zep"].retries >= 3
        (name,) = {each["source_description"].split()[1] for each in zep.zep.episodes}
        assert sorted(zep.list_texts(name)) == sorted(copy_once(done, tmp_path).list_texts("whole"))


def test_nobody_copies_is_told_from_everything_is_copied(tmp_path: Path) -> None:
    run = declare_run(declare("graph"), tmp_path / "run")
    with run.lock():
        process = start_process(run)
        pause(lambda: "graph" in run.observe_state().sinks)
        assert run.observe_state().sinks["graph"].status is SinkStatus.FOLLOWS
        process.kill()
        process.wait()
        assert run.observe_state().sinks["graph"].status is SinkStatus.LEFT


def test_killed_at_random_moments_it_loses_and_repeats_nothing(tmp_path: Path, done: RunDirectory) -> None:
    run = declare_run(declare("graph"), tmp_path / "copied")
    draw, share = random.Random(5), 0.0
    with run.lock():
        for _ in range(6):
            process = start_process(run)
            for _ in range(4):
                share = min(share + draw.random() / 12, 1.0)
                write_streams(done, run, share)
                time.sleep(draw.random() * 0.25)
            process.send_signal(signal.SIGKILL)
            process.wait()
        write_streams(done, run)
    assert not follow_run(run, {}, threading.Event())
    whole, copied = copy_once(done, tmp_path), SinkPlace("graph", run.path)
    assert copied.list_facts("graph") == whole.list_facts("whole")
    assert sorted(copied.list_texts("graph")) == sorted(whole.list_texts("whole"))


def start_process(run: RunDirectory) -> subprocess.Popen[bytes]:
    code = "import sys; from shoal.runs.sinks.live import main; sys.exit(main(sys.argv[1]))"
    return subprocess.Popen([sys.executable, "-c", code, str(run.path)])


def test_keys_come_from_the_environment_alone(tmp_path: Path) -> None:
    run = declare_run({**SCENARIO, "sinks": [{"kind": "zep", "key_variable": "MINE"}]}, tmp_path / "run")
    with make_place("zep", tmp_path) as zep:
        assert zep.zep is not None
        environ = {"MINE": KEY, "ZEP_API_URL": zep.zep.address}
        open_sink(run, run.scenario.sinks[0], environ).close()
    assert KEY not in (run.path / "simulation_config.json").read_text()
    assert not any(KEY in path.read_text() for path in run.path.glob("*.json"))
