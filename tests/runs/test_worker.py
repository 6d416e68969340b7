"""What a run promises: the same history every time, and nothing lost."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import (
    Diverged,
    JournalChanged,
    JournalCorrupt,
    JournalIncomplete,
    RunFromNewer,
    RunLocked,
    RunMissing,
    RunRefused,
    StorageFailed,
)
from shoal.runs.directory import RunDirectory, list_runs
from shoal.runs.operations import create_run
from shoal.runs.state import Status
from shoal.runs.worker import work_on_run
from shoal.scenario.loading import validate
from tests.runs.harness import check_consistency, go_on, list_asked, read_lines, repeat, start, stop_after

RUMOUR: dict[str, Any] = {
    "name": "rumour",
    "topic": "the old bridge",
    "rounds": 6,
    "population": {"count": 25, "activity": 1.0, "active_hours": "0-23"},
    "time": {"daily_rhythm": False},
    "worlds": ["twitter", "reddit"],
    "events": [
        {"post": "They say the old bridge will be closed for good.", "by": "most_followed"},
        {"broadcast": "The bridge stays open.", "round": 3},
    ],
}
#: The same, asking outside: every decision is journaled.
ASKING: dict[str, Any] = {**RUMOUR, "mind": {"latency": {"median_ms": 1, "sigma": 0.5}}}


def test_two_runs_of_one_scenario_are_the_same_to_the_byte(tmp_path: Path) -> None:
    one, two = start(RUMOUR, tmp_path / "one"), start(RUMOUR, tmp_path / "two")
    assert one.digest == two.digest
    for world in ("twitter", "reddit"):
        stream = f"{world}/actions.jsonl"
        assert (tmp_path / "one" / stream).read_bytes() == (tmp_path / "two" / stream).read_bytes()
        tables = [
            "\n".join(sqlite3.connect(tmp_path / run / f"{world}_simulation.db").iterdump()) for run in ("one", "two")
        ]
        assert tables[0] == tables[1]


def test_asking_outside_changes_nothing_in_the_history(tmp_path: Path) -> None:
    at_once, asking = start(RUMOUR, tmp_path / "one"), start(ASKING, tmp_path / "two")
    assert at_once.digest == asking.digest
    assert (at_once.calls, asking.calls) == (0, 25 * 6 * 2)


def test_the_directory_holds_what_the_contract_says(tmp_path: Path) -> None:
    start(RUMOUR, tmp_path / "run")
    names = {str(path.relative_to(tmp_path / "run")) for path in (tmp_path / "run").rglob("*") if path.is_file()}
    assert names == {
        "simulation_config.json",
        "journal.jsonl",
        "twitter_simulation.db",
        "reddit_simulation.db",
        "twitter/actions.jsonl",
        "reddit/actions.jsonl",
        "metrics.jsonl",
        "run_state.json",
        "env_status.json",
        "simulation.log",
        "worker.lock",
    }


def test_the_stream_tells_the_run_in_order(tmp_path: Path) -> None:
    start(RUMOUR, tmp_path / "run")
    lines = read_lines(tmp_path / "run/twitter/actions.jsonl")
    assert lines[0]["event_type"] == "simulation_start"
    assert lines[0]["agents_count"] == 25
    assert lines[-1]["event_type"] == "simulation_end"
    assert [line["round"] for line in lines if line.get("event_type") == "round_end"] == list(range(7))
    assert [line["content"] for line in lines if line.get("event_type") == "broadcast"] == ["The bridge stays open."]
    first_post = [line for line in lines if line.get("action_args", {}).get("content", "").startswith("They say")]
    assert len(first_post) == 1
    assert len({line["id"] for line in lines if "id" in line}) == sum("id" in line for line in lines)
    ends = {line["round"]: line for line in lines if line.get("event_type") == "round_end"}
    assert ends[3]["simulated_hours"] == 3.0
    assert all(line["timestamp"].endswith("+00:00") for line in lines)


def test_the_state_says_how_far_the_run_is(tmp_path: Path) -> None:
    outcome = start(RUMOUR, tmp_path / "run")
    state = json.loads((tmp_path / "run/run_state.json").read_text())
    assert state["runner_status"] == "completed"
    assert state["current_round"] == state["total_rounds"] == state["twitter_current_round"] == 6
    assert state["progress_percent"] == 100.0
    assert state["total_actions_count"] == outcome.actions
    assert state["twitter_actions_count"] + state["reddit_actions_count"] == outcome.actions
    assert state["twitter_simulated_hours"] == 6.0
    assert state["worlds"]["reddit"]["completed"] is True
    assert state["resumable"] is False
    assert state["process_pid"] is None


def test_a_stopped_run_goes_on_to_the_same_end(tmp_path: Path) -> None:
    whole = start(ASKING, tmp_path / "whole")
    directory = create_run(validate(ASKING), tmp_path / "stopped")
    stop_after(directory, 2)
    assert directory.read_status() is Status.STOPPED
    before = list_asked(directory.path)
    check_consistency(directory.path, finished=False)
    assert go_on(directory).digest == whole.digest
    assert before < list_asked(directory.path)
    check_consistency(directory.path, finished=True)


def test_resuming_a_completed_run_does_nothing_and_says_the_same(tmp_path: Path) -> None:
    outcome = start(ASKING, tmp_path / "run")
    before = (tmp_path / "run/journal.jsonl").read_bytes()
    assert go_on(RunDirectory(tmp_path / "run")) == outcome
    assert (tmp_path / "run/journal.jsonl").read_bytes() == before


def test_replay_gives_the_same_history_asks_nobody_and_writes_nothing(tmp_path: Path) -> None:
    outcome = start(ASKING, tmp_path / "run")
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    again = repeat(RunDirectory(tmp_path / "run"))
    assert (again.digest, again.actions, again.calls) == (outcome.digest, outcome.actions, 0)
    assert {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()} == before


def test_replay_covers_as_much_as_was_committed(tmp_path: Path) -> None:
    directory = create_run(validate(ASKING), tmp_path / "run")
    stop_after(directory, 3)
    assert repeat(directory).rounds >= 3


def test_replay_without_the_replies_says_so(tmp_path: Path) -> None:
    start(ASKING, tmp_path / "run")
    journal = tmp_path / "run/journal.jsonl"
    journal.write_bytes(b"\n".join(journal.read_bytes().split(b"\n")[:40]) + b"\n")
    with pytest.raises(JournalChanged, match="bytes of it are missing"):
        repeat(RunDirectory(tmp_path / "run"))
    # Runs of older versions do not say how long their journal was.
    state = tmp_path / "run/run_state.json"
    state.write_text(json.dumps({**json.loads(state.read_text()), "journal": None}))
    with pytest.raises(JournalIncomplete, match="no reply under"):
        repeat(RunDirectory(tmp_path / "run"))


def test_replay_notices_a_history_that_was_tampered_with(tmp_path: Path) -> None:
    start(RUMOUR, tmp_path / "run")
    with sqlite3.connect(tmp_path / "run/reddit_simulation.db") as database:
        database.execute("UPDATE shoal_round SET digest = 'something else' WHERE round = 4")
    database.close()
    with pytest.raises(Diverged, match="reddit, round 4"):
        repeat(RunDirectory(tmp_path / "run"))


@pytest.mark.parametrize("cut", [1, 200, 5000])
def test_a_stream_that_is_shorter_than_the_database_is_completed(tmp_path: Path, cut: int) -> None:
    whole = start(ASKING, tmp_path / "whole")
    directory = create_run(validate(ASKING), tmp_path / "run")
    stop_after(directory, 4)
    stream = directory.path / "twitter/actions.jsonl"
    os.truncate(stream, stream.stat().st_size - cut)
    assert go_on(directory).digest == whole.digest
    assert stream.read_bytes() == (tmp_path / "whole/twitter/actions.jsonl").read_bytes()
    check_consistency(directory.path, finished=True)


def test_lines_that_were_never_committed_are_cut(tmp_path: Path) -> None:
    whole = start(ASKING, tmp_path / "whole")
    directory = create_run(validate(ASKING), tmp_path / "run")
    stop_after(directory, 4)
    with (directory.path / "reddit/actions.jsonl").open("ab") as stream:
        stream.write(b'{"round": 5, "agent_id": 3, "torn')
    assert go_on(directory).digest == whole.digest
    check_consistency(directory.path, finished=True)


def test_a_second_worker_is_refused_while_the_first_is_alive(tmp_path: Path) -> None:
    directory = create_run(validate(RUMOUR), tmp_path / "run")
    with directory.lock():
        with pytest.raises(RunLocked, match=f"process {os.getpid()}"):
            go_on(directory)
        assert directory.has_worker()
    assert not directory.has_worker()
    go_on(directory)


def test_a_run_that_says_running_with_nobody_at_work_has_failed_and_can_be_resumed(tmp_path: Path) -> None:
    directory = create_run(validate(RUMOUR), tmp_path / "run")
    state = directory.read_state()
    state.become(Status.RUNNING)
    directory.write_state(state)
    assert directory.read_status() is Status.FAILED
    assert directory.read_status().resumable
    assert go_on(directory).status is Status.COMPLETED


def test_a_directory_from_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    start(RUMOUR, tmp_path / "run")
    config = tmp_path / "run/simulation_config.json"
    content = json.loads(config.read_text())
    config.write_text(json.dumps({**content, "format": 99, "shoal_version": "9.1.0", "scenario": "unheard of"}))
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    with pytest.raises(RunFromNewer, match=r"Shoal 9\.1\.0.*newer"):
        go_on(RunDirectory(tmp_path / "run"))
    assert {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()} == before


def test_a_directory_without_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunMissing, match="no run in"):
        go_on(RunDirectory(tmp_path))


def test_a_file_that_is_not_a_config_is_named(tmp_path: Path) -> None:
    (tmp_path / "simulation_config.json").write_text("{}")
    with pytest.raises(RunMissing, match="not written by Shoal"):
        go_on(RunDirectory(tmp_path))


def test_an_existing_run_is_never_overwritten(tmp_path: Path) -> None:
    start(RUMOUR, tmp_path / "run")
    with pytest.raises(RunRefused, match="shoal resume"):
        start(RUMOUR, tmp_path / "run")


def test_a_folder_with_other_things_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(RunRefused, match="not empty"):
        start(RUMOUR, tmp_path)


def test_a_creation_that_was_interrupted_can_be_repeated(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/journal.jsonl").write_bytes(b"")
    (tmp_path / "run/.simulation_config.json.4711").write_bytes(b'{"simulation_id": "r')
    start(RUMOUR, tmp_path / "run")


def test_a_corrupt_journal_line_stops_resume_and_loses_nothing(tmp_path: Path) -> None:
    whole = start(ASKING, tmp_path / "whole")
    directory = create_run(validate(ASKING), tmp_path / "run")
    stop_after(directory, 3)
    good = directory.journal.read_bytes()
    lines = good.split(b"\n")
    directory.journal.write_bytes(b"\n".join([*lines[:10], b"\x00" + lines[10][1:], *lines[11:]]))
    with pytest.raises(JournalCorrupt, match=r"journal\.jsonl:11"):
        go_on(directory)
    directory.journal.write_bytes(good)
    assert go_on(directory).digest == whole.digest


def test_a_database_that_is_not_one_is_a_clear_error(tmp_path: Path) -> None:
    directory = create_run(validate(RUMOUR), tmp_path / "run")
    (directory.path / "twitter_simulation.db").write_bytes(b"not a database at all, but long enough to look like one")
    with pytest.raises(StorageFailed, match=r"twitter_simulation\.db"):
        go_on(directory)


def test_runs_are_listed_oldest_first(tmp_path: Path) -> None:
    for name in ("b", "a"):
        create_run(validate(RUMOUR), tmp_path / name)
    (tmp_path / "other").mkdir()
    assert [run.path.name for run in list_runs(tmp_path)] == ["b", "a"]
    assert list_runs(tmp_path / "nowhere") == []


def test_a_shipped_directory_is_the_run(tmp_path: Path) -> None:
    """Another machine needs the files and nothing else."""
    outcome = start(ASKING, tmp_path / "here")
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    shutil.rmtree(tmp_path / "here")
    assert repeat(RunDirectory(tmp_path / "there")).digest == outcome.digest


def test_the_lock_is_one_that_other_programs_see(tmp_path: Path) -> None:
    directory = create_run(validate(RUMOUR), tmp_path / "run")
    with directory.lock(), (directory.path / "worker.lock").open() as lock, pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert asyncio.run(work_on_run(directory, asyncio.Event())).status is Status.COMPLETED
