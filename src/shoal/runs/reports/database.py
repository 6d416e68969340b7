"""Reads the database of a world, also while a worker writes to it. Nothing is changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path

from shoal.errors import QueryFailed
from shoal.runs.directory import RunDirectory
from shoal.runs.store import database_path, open_to_read

#: What a query may do. Everything else is refused: writing, attaching other files, changing settings.
_READING = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE})
#: Pragmas that only describe the database.
_DESCRIBING = frozenset({"table_info", "table_xinfo", "table_list", "index_list", "index_info", "foreign_key_list"})
#: Steps of the database between two looks at whether Ctrl-C was pressed: some milliseconds.
_STEPS_BETWEEN_LOOKS = 100_000

_HAS_ROUNDS = "SELECT 1 FROM sqlite_master WHERE name = 'shoal_round'"


def query_database(directory: RunDirectory, world: str, sql: str) -> tuple[list[str], list[tuple[object, ...]]]:
    """Return the column names and rows that answer a query in SQL. It can only read; Ctrl-C ends it."""
    with open_database(database_path(directory.path, world)) as database:
        if database is None:
            return [], []
        database.set_authorizer(_authorize)
        # Python sees a signal only between two steps of Python code, such as this one.
        database.set_progress_handler(lambda: 0, _STEPS_BETWEEN_LOOKS)
        try:
            answer = database.execute(sql)
            if answer.description is None:
                raise QueryFailed("there is no question in this query; try: select * from trace limit 3")
            return _name_columns(column for column, *_ in answer.description), answer.fetchall()
        except (sqlite3.Error, sqlite3.Warning) as error:
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
                raise KeyboardInterrupt from None
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_AUTH:
                raise QueryFailed(f"a query can only read this one database: {error}") from error
            raise QueryFailed(f"the database does not understand this: {error}") from error


def _name_columns(columns: Iterable[str]) -> list[str]:
    """Return the names of the columns. Where two have the same, as in a join, the second one is `name_2`."""
    names: list[str] = []
    for column in columns:
        spare = (f"{column}_{n}" for n in count(2))
        names.append(column if column not in names else next(name for name in spare if name not in names))
    return names


def _authorize(action: int, first: str | None, second: str | None, *_: object) -> int:
    """Decide about one operation of a query, as SQLite asks when it compiles it."""
    if action == sqlite3.SQLITE_PRAGMA:
        allowed = str(first).lower() in _DESCRIBING
    else:
        allowed = action in _READING and not (action == sqlite3.SQLITE_FUNCTION and second == "load_extension")
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def open_world(directory: RunDirectory, world: str) -> AbstractContextManager[sqlite3.Connection | None]:
    """Open the database of one world of a run; see `open_database`."""
    return open_database(database_path(directory.path, world))


@contextmanager
def open_database(path: Path) -> Iterator[sqlite3.Connection | None]:
    """Yield the database in one consistent state, or None where no round was ever committed."""
    if not path.exists():
        yield None
        return
    with open_to_read(path) as database:
        database.execute("PRAGMA temp_store=MEMORY")
        database.execute("BEGIN")
        yield database if database.execute(_HAS_ROUNDS).fetchone() else None
