"""Runs in a temporary directory."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import Stopped
from shoal.journal import read_journal
from shoal.runs.directory import RunDirectory
from shoal.runs.operations import create_run, fork_run, plan_fork
from shoal.runs.progress import RunProgress
from shoal.runs.rerun.rerun import replay
from shoal.runs.state import RunOutcome
from shoal.runs.store import ACTION_COUNTS, IS_DEED, has_table
from shoal.runs.worker import work_on_run
from shoal.scenario.loading import validate


def start(scenario: dict[str, Any], path: Path) -> RunOutcome:
    return go_on(create_run(validate(scenario), path))


def go_on(directory: RunDirectory) -> RunOutcome:
    return asyncio.run(work_on_run(directory, asyncio.Event()))


def stop_after(directory: RunDirectory, round: int) -> None:
    """Work on a run until a round of a world is committed, then stop."""
    stop = asyncio.Event()
    progress = RunProgress.of(directory, lambda record: stop.set() if record.round == round else None)
    with pytest.raises(Stopped):
        asyncio.run(work_on_run(directory, stop, progress))


def repeat(directory: RunDirectory) -> RunOutcome:
    return asyncio.run(replay(directory, asyncio.Event()))


def branch(
    parent: Path, path: Path, at: int, sets: Sequence[str] = (), injected: Sequence[dict[str, Any]] = ()
) -> RunOutcome:
    plan = plan_fork(RunDirectory(parent), at, changes=sets, events=injected)
    return go_on(fork_run(plan, path))


def read_lines(path: Path) -> list[dict[str, Any]]:
    """All whole lines of a stream."""
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def list_asked(path: Path) -> set[str]:
    """What the run itself asked for."""
    return {
        line.key for line in read_journal(path / "journal.jsonl")[0] if line.inherited is None and line.event is None
    }


def check_consistency(run: Path, *, finished: bool) -> None:
    """The database and the stream of every world agree with each other, and with their own digests."""
    lines = read_journal(run / "journal.jsonl")[0]
    keys = Counter(line.key for line in lines if not line.conditional)
    assert not [key for key, count in keys.items() if count > 1], "asked twice for the same"
    for database in run.glob("*_simulation.db"):
        world = database.name.removesuffix("_simulation.db")
        _check_world(database, run / world / "actions.jsonl", finished=finished)


def _check_world(database: Path, stream: Path, *, finished: bool) -> None:
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name='shoal_round'").fetchone():
            return
        committed = dict(connection.execute("SELECT round, digest FROM shoal_round"))
        traces = connection.execute("SELECT count(*) FROM trace WHERE action != 'sign_up'").fetchone()[0]
        if has_table(connection, ACTION_COUNTS):
            traced = connection.execute(f"SELECT user_id, count(*) FROM trace WHERE {IS_DEED} GROUP BY user_id")
            assert connection.execute(f"SELECT * FROM {ACTION_COUNTS}").fetchall() == traced.fetchall()
    assert sorted(committed) == list(range(len(committed)))
    ends = list(_round_ends(stream))
    assert all(committed[round] == digest for round, digest, _ in ends), "the stream has a round the database has not"
    if finished:
        assert len(ends) == len(committed)
    if len(ends) == len(committed):
        assert sum(done for _, _, done in ends) == traces


def _round_ends(stream: Path) -> Iterator[tuple[int, str, int]]:
    """Round, digest and successful actions of every complete round; the digests are computed anew."""
    if not stream.exists():
        return
    digest, applied, done = "", b"", 0
    for text in stream.read_bytes().split(b"\n")[:-1]:
        line = json.loads(text)
        match line.get("event_type"):
            case "round_end":
                digest = blake2b(digest.encode() + applied, digest_size=16).hexdigest()
                assert line["digest"] == digest
                yield line["round"], digest, done
                applied, done = b"", 0
            case "simulation_start" | "simulation_extended" | "round_start" | "simulation_end":
                pass
            case _:
                applied += text + b"\n"
                done += bool(line.get("success"))
