"""What happens to a run directory from outside: a garbled state, and links to elsewhere."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shoal.errors import RunChanged, RunRefused
from shoal.runs.directory import RunDirectory, read_outcome
from shoal.runs.operations import create_run, extend_run, plan_resume
from shoal.runs.state import RunOutcome, Status
from shoal.runs.store import read_rounds
from shoal.scenario.loading import validate
from tests.cli.terminal import call
from tests.runs.harness import go_on, repeat, start, stop_after

SCENARIO: dict[str, Any] = {
    "topic": "the old bridge",
    "rounds": 5,
    "population": {"count": 12},
    "worlds": ["twitter", "room"],
    "time": {"daily_rhythm": False},
}
GARBLED = [b"", b"\0" * 300, b'{"simulation_id": "x", "wor', b"{}", b"[]", b"\xff\xfe", b'{"worlds": 7}']


@pytest.mark.parametrize("content", GARBLED)
def test_a_garbled_state_is_rebuilt_from_the_directory(content: bytes, tmp_path: Path) -> None:
    done = start(SCENARIO, tmp_path / "run")
    (tmp_path / "run/run_state.json").write_bytes(content)
    assert read_outcome(RunDirectory(tmp_path / "run")) == replace(done, quality=None)
    assert go_on(RunDirectory(tmp_path / "run")) == done


def test_the_state_of_a_stopped_run_is_rebuilt_and_it_goes_on(tmp_path: Path) -> None:
    whole = start(SCENARIO, tmp_path / "whole")
    directory = create_run(validate(SCENARIO), tmp_path / "run")
    stop_after(directory, 2)
    (tmp_path / "run/run_state.json").unlink()
    left = read_outcome(directory)
    assert (left.status, left.rounds) == (Status.STOPPED, max(directory.read_last_rounds().values()))
    assert _history(go_on(RunDirectory(tmp_path / "run"))) == _history(whole)


def test_a_run_that_was_extended_goes_on_though_its_state_is_lost(tmp_path: Path) -> None:
    start(SCENARIO, tmp_path / "run")
    directory = RunDirectory(tmp_path / "run")
    extension = plan_resume(directory, 8).extension
    assert extension is not None
    extend_run(directory, extension)
    (tmp_path / "run/run_state.json").write_bytes(b"")
    longer = start({**SCENARIO, "rounds": 8}, tmp_path / "longer")
    assert _history(go_on(RunDirectory(tmp_path / "run"))) == _history(longer)


def _history(outcome: RunOutcome) -> tuple[Status, str, int]:
    return outcome.status, outcome.digest, outcome.rounds


@pytest.mark.parametrize(
    "name",
    ["run_state.json", "journal.jsonl", "simulation.log", "worker.lock", "twitter/actions.jsonl", "room_simulation.db"],
)
def test_nobody_works_on_a_directory_with_a_symbolic_link(name: str, tmp_path: Path) -> None:
    start(SCENARIO, tmp_path / "run")
    target, link = tmp_path / "elsewhere", tmp_path / "run" / name
    link.rename(target)
    link.symlink_to(target)
    before = target.read_bytes()
    with pytest.raises(RunRefused, match=f"{name} is a symbolic link"):
        go_on(RunDirectory(tmp_path / "run"))
    with pytest.raises(RunRefused, match="is a symbolic link"):
        extend_run(RunDirectory(tmp_path / "run"), validate({**SCENARIO, "rounds": 9}))
    assert target.read_bytes() == before


def test_a_run_may_be_reached_through_a_link(tmp_path: Path) -> None:
    done = start(SCENARIO, tmp_path / "run")
    (tmp_path / "link").symlink_to(tmp_path / "run")
    assert go_on(RunDirectory(tmp_path / "link")).digest == done.digest
    state = msgspec.json.decode((tmp_path / "link/run_state.json").read_bytes())
    assert state["runner_status"] == "completed"


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "run"
    start(SCENARIO, path)
    return path


@pytest.fixture
def copied(whole_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole_run, tmp_path / "run"))


def test_a_run_that_was_not_changed_is_replayed(copied: Path) -> None:
    repeat(RunDirectory(copied))


@pytest.mark.parametrize(
    ("old", "new"),
    [(b'"success":true', b'"success":null'), (b'"round_end","round":3', b'"round_end","round":4'), (b"T", b"t")],
)
def test_a_changed_stream_is_noticed(old: bytes, new: bytes, copied: Path) -> None:
    stream = copied / "room/actions.jsonl"
    content = stream.read_bytes()
    assert old in content
    stream.write_bytes(content.replace(old, new, 1))
    with pytest.raises(RunChanged, match=r"room/actions.jsonl was changed.* in round \d"):
        repeat(RunDirectory(copied))


@pytest.mark.parametrize("bytes_more", [-1, -40, 30])
def test_a_stream_that_is_too_short_or_too_long_is_noticed(bytes_more: int, copied: Path) -> None:
    stream = copied / "room/actions.jsonl"
    content = stream.read_bytes()
    stream.write_bytes(content[:bytes_more] if bytes_more < 0 else content + b'{"a": 1}\n')
    with pytest.raises(RunChanged):
        repeat(RunDirectory(copied))


@pytest.mark.parametrize(
    ("sql", "where"),
    [
        ("UPDATE post SET content = 'x' WHERE rowid = (SELECT min(rowid) FROM post)", "table post, row 1"),
        ("UPDATE trace SET info = 'x' WHERE rowid = 5", "table trace, row 5"),
        ("DELETE FROM trace WHERE rowid = (SELECT max(rowid) FROM trace)", "table trace, row"),
        ("INSERT INTO user (user_id, name) VALUES (99, 'x')", "table user, row 13"),
        ("UPDATE shoal_round SET actions = 777 WHERE round = 2", "table shoal_round, row 3"),
        ("DROP TABLE follow", "table follow"),
    ],
)
def test_a_changed_table_is_noticed(sql: str, where: str, copied: Path) -> None:
    with closing(sqlite3.connect(copied / "twitter_simulation.db")) as database:
        database.execute(sql)
        database.commit()
    with pytest.raises(RunChanged, match=where):
        repeat(RunDirectory(copied))


def test_a_run_that_was_stopped_is_replayed_though_its_stream_lacks_a_round(tmp_path: Path) -> None:
    directory = create_run(validate(SCENARIO), tmp_path / "run")
    repeat(directory)
    stop_after(directory, 3)
    stream = tmp_path / "run/room/actions.jsonl"
    stream.write_bytes(stream.read_bytes()[:-100])
    repeat(directory)


def test_show_checks_on_request(copied: Path) -> None:
    assert call("show", str(copied), "--check").exit_code == 0
    stream = copied / "room/actions.jsonl"
    stream.write_bytes(stream.read_bytes().replace(b"T", b"t", 1))
    assert call("show", str(copied)).exit_code == 0
    changed = call("show", str(copied), "--check")
    assert changed.exit_code == 1
    assert "was changed" in changed.output


def _damage(lines: list[bytes], how: str) -> list[bytes]:
    return {
        "garbled": [*lines[:2], b"garbage", *lines[3:]],
        "not UTF-8": [*lines[:2], lines[2].replace(b'"key"', b'"\xff"'), *lines[3:]],
        "changed": [*lines[:2], lines[2].replace(b'"ms":', b'"ms":1'), *lines[3:]],
        "a line is missing": [*lines[:2], *lines[3:]],
        "cut": lines[:3],
        "added to": [*lines, lines[0]],
        "empty": [],
    }[how]


@pytest.mark.parametrize(
    "how", ["garbled", "not UTF-8", "changed", "a line is missing", "cut", "added to", "empty", "gone"]
)
def test_a_damaged_journal_is_noticed_by_show_and_by_replay(how: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    start({**SCENARIO, "mind": {"latency": {"median_ms": 1}}}, run)
    journal = run / "journal.jsonl"
    assert call("show", str(run)).exit_code == call("replay", str(run)).exit_code == 0
    lines = journal.read_bytes().splitlines()
    if how == "gone":
        journal.unlink()
    else:
        journal.write_bytes(b"".join(line + b"\n" for line in _damage(lines, how)))
    shown = call("show", str(run))
    assert shown.exit_code == 1
    assert shown.stdout.startswith("run  completed\n")
    assert "error: " in shown.stderr
    assert "journal" in shown.stderr
    assert "shoal resume" not in shown.stderr
    if how != "added to":
        # The same lines once more change nothing in the history.
        assert call("replay", str(run)).exit_code == 1


def test_the_journal_of_a_run_that_goes_on_is_longer_than_its_state_says(tmp_path: Path) -> None:
    directory = create_run(validate({**SCENARIO, "mind": {"latency": {"median_ms": 1}}}), tmp_path / "run")
    stop_after(directory, 2)
    directory.check_journal()
    state = (tmp_path / "run/run_state.json").read_bytes()
    go_on(directory)
    (tmp_path / "run/run_state.json").write_bytes(state)
    directory.check_journal()


#: Changes the database of a run and is killed in the middle of it.
_KILLED = """
import os, signal, sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("PRAGMA journal_mode=" + sys.argv[2])
database.execute("PRAGMA cache_size=1")
database.execute("BEGIN IMMEDIATE")
database.execute("UPDATE shoal_round SET actions = -1")
database.execute("CREATE TABLE more AS SELECT * FROM trace, shoal_round")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_what_a_kill_left_half_written_is_rolled_back_when_it_is_read(mode: str, tmp_path: Path) -> None:
    start(SCENARIO, tmp_path / "run")
    before = read_rounds(tmp_path / "run", "twitter")
    database = tmp_path / "run" / "twitter_simulation.db"
    subprocess.run([sys.executable, "-c", _KILLED, str(database), mode], check=False)
    left = {"DELETE": "-journal", "WAL": "-wal"}[mode]
    assert database.with_name(f"{database.name}{left}").stat().st_size > 0
    assert read_rounds(tmp_path / "run", "twitter") == before
