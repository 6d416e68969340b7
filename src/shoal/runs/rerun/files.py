"""Compares the streams and tables of a run with the history that its journal gives."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path

from shoal.engine import RoundRecord
from shoal.errors import RunChanged
from shoal.runs.store import (
    NO_INTERVIEW,
    ROUNDS_TABLE,
    RoundPlans,
    add_rows,
    database_path,
    frame_round,
    open_to_read,
    stream_path,
)
from shoal.runs.stream import is_end
from shoal.text import clip
from shoal.types import WorldProtocol

_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
_MAX_ROW_CHARS = 200


class FileCheck:
    """Compares one world's files with its rounds, as they are made again. Raises RunChanged where they differ.

    Each round must stand in the stream byte by byte. Its rows go into a temporary database, which is compared with that
    of the run at the end.
    """

    def __init__(self, folder: Path, world: WorldProtocol, plans: RoundPlans, agents: int, is_whole: bool) -> None:
        self._folder = folder
        self._world = world
        self._plans = plans
        self._agents = agents
        #: Whether the run came to its end. The stream of any other may lack the last rounds.
        self._is_whole = is_whole
        self._path = stream_path(folder, world.name)
        self._offset = 0
        self._made = sqlite3.connect("", isolation_level=None)
        self._made.executescript("PRAGMA synchronous=OFF; PRAGMA journal_mode=OFF; PRAGMA cache_size=-65536;")
        self._made.executescript(f"{world.schema}; {ROUNDS_TABLE};")
        # One transaction for all: nothing of it is kept.
        self._made.execute("BEGIN")

    def add_round(self, record: RoundRecord) -> None:
        """Compare a round with the stream, and add its rows."""
        lines = frame_round(self._world, record, self._plans, self._agents)
        found = self._read(len(lines))
        is_short = len(found) < len(lines) and lines.startswith(found)
        if found != lines and (self._is_whole or not is_short):
            at = next((n for n, pair in enumerate(zip(found, lines, strict=False)) if pair[0] != pair[1]), len(found))
            raise RunChanged(self._path, f"in round {record.round}, at byte {self._offset + at:,}")
        self._offset += len(lines)
        add_rows(self._made, record, self._offset)

    def finish(self) -> None:
        """Compare the end of the stream, and all tables."""
        rest = self._read()
        if self._is_whole and not (is_end(rest) and rest.count(b"\n") == 1 and rest.endswith(b"\n")):
            raise RunChanged(self._path, f"after its last round, at byte {self._offset:,}")
        path = database_path(self._folder, self._world.name)
        with open_to_read(path) as committed:
            for (table,) in self._made.execute(_TABLES).fetchall():
                # In the order in which rows were written, and not in that of an index.
                sql = f'SELECT * FROM "{table}" NOT INDEXED'
                if table == "trace":
                    sql += f" WHERE {NO_INTERVIEW}"
                try:
                    pairs = zip_longest(committed.execute(sql), self._made.execute(sql))
                    different = next(((n, *pair) for n, pair in enumerate(pairs, 1) if pair[0] != pair[1]), None)
                except sqlite3.Error as error:
                    raise RunChanged(path, f"in table {table}: {error}") from error
                if different is not None:
                    number, found, made = different
                    raise RunChanged(
                        path,
                        f"in table {table}, row {number:,}: it holds {clip(str(found), _MAX_ROW_CHARS)}, "
                        f"and the history {clip(str(made), _MAX_ROW_CHARS)}",
                    )

    def _read(self, size: int = -1) -> bytes:
        try:
            with self._path.open("rb") as stream:
                stream.seek(self._offset)
                return stream.read(size)
        except FileNotFoundError:
            return b""

    def close(self) -> None:
        self._made.close()


@contextmanager
def check_files(
    folder: Path, worlds: dict[str, WorldProtocol], plans: RoundPlans, agents: int, is_whole: bool
) -> Iterator[dict[str, FileCheck]]:
    """Open the checks of all worlds. Where the rounds were all made again, compare what is left at the end."""
    checks = {name: FileCheck(folder, world, plans, agents, is_whole) for name, world in worlds.items()}
    try:
        yield checks
        for check in checks.values():
            check.finish()
    finally:
        for check in checks.values():
            check.close()
