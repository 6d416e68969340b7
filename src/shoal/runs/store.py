"""Where rounds are committed: a database and a stream of lines for each world.

A round is committed with one transaction; its lines follow. The database also keeps, for every round, the digest and
how long the stream is then, so that opening a store after a crash needs to look at sizes only: a stream that is
shorter than the database says is completed as the rounds pass by again, one that is longer is cut.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from shoal.engine import STATE_INDEXES, STATE_TABLES, RoundRecord
from shoal.errors import Diverged, StorageFailed
from shoal.runs.files import database_errors, storage_errors
from shoal.runs.stream import (
    ActionStream,
    RoundEnd,
    RoundStart,
    SimulationEnd,
    SimulationExtended,
    SimulationStart,
    encode_marker,
    is_end,
)
from shoal.types import WorldProtocol

ROUNDS_TABLE = """CREATE TABLE shoal_round (round INTEGER PRIMARY KEY, digest TEXT NOT NULL, actions INTEGER NOT NULL,
    stream_bytes INTEGER NOT NULL)"""
#: Round -> how many rounds the run was to have from there on: round 0, and the first round after each extension.
RoundPlans = Mapping[int, int]

_ADD_ROUND = "INSERT INTO shoal_round VALUES (?,?,?,?)"

#: Holds for rows of the trace that belong to the history, and not for interviews from outside.
NO_INTERVIEW = "(action != 'interview' OR json_extract(info, '$.outside') IS NULL)"
#: Holds for rows of the trace in which a person did more than look on.
IS_DEED = f"action NOT IN ('sign_up', 'refresh', 'do_nothing', 'done') AND {NO_INTERVIEW}"
#: How much each agent did so far, so that a page of people need not count the whole trace. Runs of earlier versions
#: go without, also where they are continued: what they did before was not counted.
ACTION_COUNTS = "action_count"
_COUNTS_TABLE = f"CREATE TABLE {ACTION_COUNTS} (user_id INTEGER PRIMARY KEY, actions INTEGER NOT NULL)"
_LAST_TRACE = "SELECT coalesce(max(rowid), 0) FROM trace"
_COUNT_ACTIONS = f"""INSERT INTO {ACTION_COUNTS}
SELECT user_id, count(*) FROM trace WHERE rowid > ? AND {IS_DEED} GROUP BY user_id
ON CONFLICT (user_id) DO UPDATE SET actions = actions + excluded.actions"""


class Store:
    """One world's database and stream, open for writing. A `Ledger`.

    `plans` may grow while the store is open.
    """

    def __init__(self, directory: Path, world: WorldProtocol, plans: RoundPlans, agents: int, written_by: str) -> None:
        self._world = world
        self._plans = plans
        self._agents = agents
        self._written_by = written_by
        self.path = database_path(directory, world.name)
        self._stream_path = stream_path(directory, world.name)
        with storage_errors(self._stream_path):
            self._stream_path.parent.mkdir(exist_ok=True)
            self._stream = os.open(self._stream_path, os.O_RDWR | os.O_CREAT, 0o644)
        with database_errors(self.path):
            self._database = self._connect()
            rows = self._database.execute("SELECT round, digest, stream_bytes FROM shoal_round").fetchall()
            with_state = self._database.execute("SELECT DISTINCT round FROM figure").fetchall()
            self._counts_actions = has_table(self._database, ACTION_COUNTS)
        self._digests = {round: digest for round, digest, _ in rows}
        #: Rounds whose state is known. Versions before 0.3 did not record it; then it is added as they pass by again.
        self._with_state = {round for (round,) in with_state}
        #: Round -> the length of the stream after it, for rounds that were committed before.
        self._ends = {round: end for round, _, end in rows}
        #: The length of the stream up to the end of its last round.
        self._written = self._mend_stream()
        self._is_finished = False

    def commit(self, record: RoundRecord) -> None:
        """Make the round durable. A round that is committed already must be the same again; its lines are completed."""
        known = self._digests.get(record.round)
        check_digest(record, known, self._written_by)
        lines = frame_round(self._world, record, self._plans, self._agents)
        if self._is_finished:
            with storage_errors(self._stream_path):
                self._trim_stream(self._written)
            self._is_finished = False
        if known is None:
            with self._transaction() as database:
                (before,) = database.execute(_LAST_TRACE).fetchone()
                add_rows(database, record, self._written + len(lines))
                add_state(database, record)
                if self._counts_actions:
                    # What each agent did in the new rows, which are read while they are in memory.
                    database.execute(_COUNT_ACTIONS, (before,))
            self._digests[record.round] = record.digest
        elif record.round not in self._with_state:
            with self._transaction() as database:
                add_state(database, record)
        if self._ends.get(record.round, self._written + 1) > self._written:
            self._append(lines)
            self._written += len(lines)

    def finish(self, total_actions: int) -> None:
        """Complete the history with the last marker of the stream; the database gets its indexes when it is closed.

        Further rounds may be committed all the same. The marker is then taken away.
        """
        rounds = max(self._digests)
        end = SimulationEnd(self._world.name, rounds, total_actions, self._world.timestamp(rounds))
        self._append(encode_marker(end))
        self._is_finished = True

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._stream)
        # Add indexes, and go back to one file that can be read from anywhere. This fails while a reader or another
        # worker is connected, which does no harm.
        with suppress(sqlite3.Error):
            if self._is_finished:
                for indexes in (self._world.indexes, STATE_INDEXES):
                    self._database.executescript(indexes)
            self._database.execute("PRAGMA journal_mode=DELETE")
        self._database.close()

    def _connect(self) -> sqlite3.Connection:
        # A notebook works on its run from one thread after the other, never from two at once.
        database = sqlite3.connect(self.path, isolation_level=None, cached_statements=256, check_same_thread=False)
        database.execute("PRAGMA journal_mode=WAL")
        # A commit that a power cut undoes is made again by resume; the journal is what must not be lost.
        database.execute("PRAGMA synchronous=NORMAL")
        database.execute("PRAGMA cache_size=-65536")
        if not has_table(database, "shoal_round"):
            database.executescript(f"BEGIN; {self._world.schema}; {ROUNDS_TABLE}; {_COUNTS_TABLE}; COMMIT;")
        database.executescript(STATE_TABLES)
        return database

    def _mend_stream(self) -> int:
        """Cut the stream to whole committed rounds, and return its length."""
        with storage_errors(self._stream_path):
            size = os.fstat(self._stream).st_size
            whole = max((end for end in self._ends.values() if end <= size), default=0)
            self._trim_stream(whole)
        return whole

    def _trim_stream(self, length: int) -> None:
        os.ftruncate(self._stream, length)
        os.lseek(self._stream, length, os.SEEK_SET)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        database = self._database
        with database_errors(self.path):
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
                database.execute("COMMIT")
            except sqlite3.Error:
                if database.in_transaction:
                    database.execute("ROLLBACK")
                raise

    def _append(self, lines: bytes) -> None:
        with storage_errors(self._stream_path):
            view = memoryview(lines)
            while view:
                view = view[os.write(self._stream, view) :]


def frame_round(world: WorldProtocol, record: RoundRecord, plans: RoundPlans, agents: int) -> bytes:
    """Return what the stream holds of a round: its lines between the markers that readers follow."""
    round, now = record.round, world.timestamp(record.round)
    parts = [
        encode_marker(RoundStart(round, world.hours(max(round - 1, 0)), now)),
        record.lines,
        encode_marker(RoundEnd(round, record.tally.actions, record.hours, record.digest, now)),
    ]
    if round == 0:
        parts.insert(0, encode_marker(SimulationStart(world.name, plans[0], agents, now)))
    elif round in plans:
        parts.insert(0, encode_marker(SimulationExtended(world.name, round, plans[round], now)))
    return b"".join(parts)


def add_rows(database: sqlite3.Connection, record: RoundRecord, stream_end: int) -> None:
    """Add the rows of a round, and the round itself."""
    for statement, rows in record.writes.items():
        database.executemany(statement, rows)
    database.execute(_ADD_ROUND, (record.round, record.digest, record.tally.actions, stream_end))


def add_state(database: sqlite3.Connection, record: RoundRecord) -> None:
    """Add the state of the population after a round."""
    for statement, rows in record.state.items():
        database.executemany(statement, rows)


class DigestCheck:
    """Compares rounds with those that were committed, and writes nothing: the `Ledger` of a replay."""

    def __init__(self, directory: Path, world: str, written_by: str) -> None:
        self._written_by = written_by
        self._digests = read_digests(directory, world)
        #: The last committed round.
        self.rounds = max(self._digests, default=0)

    def commit(self, record: RoundRecord) -> None:
        check_digest(record, self._digests.get(record.round), self._written_by)


def read_digests(directory: Path, world: str) -> dict[int, str]:
    """Return the digest of every committed round of a world."""
    return dict(_query(directory, world, "SELECT round, digest FROM shoal_round"))


def read_last_round(directory: Path, world: str) -> int:
    """Return the last committed round of a world; 0 if none is committed yet."""
    rows = _query(directory, world, "SELECT max(round) FROM shoal_round")
    return max((round for (round,) in rows if round is not None), default=0)


def read_rounds(directory: Path, world: str) -> tuple[list[tuple[int, str, int]], bool]:
    """Return round, digest and actions of every committed round, and whether the history was then completed."""
    rows = _query(directory, world, "SELECT round, digest, actions, stream_bytes FROM shoal_round ORDER BY round")
    path, end = stream_path(directory, world), rows[-1][3] if rows else 0
    if not rows or not path.is_file():
        return [row[:3] for row in rows], False
    with path.open("rb") as stream:
        stream.seek(end)
        return [row[:3] for row in rows], is_end(stream.readline())


def open_stream(directory: Path, world: str, since: int = 0) -> ActionStream:
    """Open the stream of a world at the start of a round, or at its end where that round is not committed yet.

    The database knows where each round ends, so nothing before the round is read.
    """
    ends = _query(directory, world, f"SELECT max(stream_bytes) FROM shoal_round WHERE round < {since}") if since else []
    return ActionStream(stream_path(directory, world), next((end for (end,) in ends if end), 0))


class InterviewLog:
    """Adds interviews to the traces of a run's worlds. They are no part of its history.

    Its connections stay open: a log ahead of the database is kept meanwhile, so that an answer waits for no disk.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._databases: dict[str, sqlite3.Connection] = {}

    def add(self, world: str, traced: Sequence[tuple[int, str, str]]) -> None:
        """Add agent, time and content of some interviews to the trace of a world."""
        path = database_path(self._directory, world)
        with database_errors(path):
            if world not in self._databases:
                self._databases[world] = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
                self._databases[world].executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;")
            database = self._databases[world]
            database.execute("BEGIN IMMEDIATE")
            database.executemany("INSERT INTO trace VALUES (?,?,'interview',?)", traced)
            database.execute("COMMIT")

    def close(self) -> None:
        """Go back to one file, as `Store` does."""
        for database in self._databases.values():
            with suppress(sqlite3.Error):
                database.execute("PRAGMA journal_mode=DELETE")
            database.close()
        self._databases.clear()


def database_path(directory: Path, world: str) -> Path:
    return directory / f"{world}_simulation.db"


def stream_path(directory: Path, world: str) -> Path:
    return directory / world / "actions.jsonl"


def _query(directory: Path, world: str, sql: str) -> list[tuple[Any, ...]]:
    """Return the rows that a world's database has for a question about its rounds; none where it has no rounds yet."""
    path = database_path(directory, world)
    if not path.exists():
        return []
    with open_to_read(path) as database:
        return database.execute(sql).fetchall() if has_table(database, "shoal_round") else []


@contextmanager
def open_to_read(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database for reading only."""
    try:
        with closing(_connect_to_read(path)) as database:
            yield database
    except sqlite3.Error as error:
        raise StorageFailed(f"cannot read {path}: {error}") from error


def _connect_to_read(path: Path) -> sqlite3.Connection:
    """Connect for reading only. What a killed worker left half written is rolled back first, as no reader may do.

    The locks of the database keep that from a worker that is alive.
    """
    uri = path.absolute().as_uri()
    database = sqlite3.connect(f"{uri}?mode=ro", uri=True, isolation_level=None)
    try:
        has_table(database, "shoal_round")
    except sqlite3.Error as error:
        database.close()
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_READONLY:
            raise
        with closing(sqlite3.connect(f"{uri}?mode=rw", uri=True)) as writing:
            has_table(writing, "shoal_round")
        database = sqlite3.connect(f"{uri}?mode=ro", uri=True, isolation_level=None)
    return database


def has_table(database: sqlite3.Connection, name: str) -> bool:
    """Return whether a database has a table, which depends on the kind of world and the version that wrote it."""
    return database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)).fetchone() is not None


def check_digest(record: RoundRecord, known: str | None, written_by: str) -> None:
    """Raise Diverged if the round was committed before with another digest."""
    if known is not None and known != record.digest:
        raise Diverged(
            f"{record.world}, round {record.round}: run again, the history has digest {record.digest}, "
            f"but {known} was committed.",
            written_by=written_by,
        )
