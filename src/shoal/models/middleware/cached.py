"""The response cache: answers of earlier runs, so that the same question to the same server is not paid for twice."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Protocol

from shoal.errors import StorageFailed
from shoal.models.base import Answer, Model, Question
from shoal.models.costs import Spending
from shoal.models.openai.endpoints import Endpoint

_log = logging.getLogger(__name__)

LOCK_SECONDS = 30
_TABLE = """
CREATE TABLE IF NOT EXISTS answers (
    key BLOB PRIMARY KEY, model TEXT NOT NULL, text TEXT NOT NULL, made TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
) WITHOUT ROWID
"""


class ReplyCache(Protocol):
    """Answers of earlier runs."""

    async def get(self, key: bytes) -> str | None: ...

    def put(self, key: bytes, model: str, text: str) -> None: ...


class Cache:
    """A table on disk that all runs of a user share.

    Reads never wait. Writes happen in a thread, in batches.
    """

    def __init__(self, path: Path, reading: sqlite3.Connection, writing: sqlite3.Connection) -> None:
        self._path = path
        self._reading = reading
        self._writing = writing
        self._waiting: list[tuple[bytes, str, str]] = []
        self._flusher: asyncio.Task[None] | None = None
        self._works = True

    async def get(self, key: bytes) -> str | None:
        try:
            row = self._reading.execute("SELECT text FROM answers WHERE key = ?", (key,)).fetchone()
        except sqlite3.Error as error:
            self._give_up(error)
            return None
        return row[0] if row else None

    def put(self, key: bytes, model: str, text: str) -> None:
        if not self._works:
            return
        self._waiting.append((key, model, text))
        if self._flusher is None:
            self._flusher = asyncio.create_task(self._flush())

    async def close(self) -> None:
        """Wait for answers that are being written: they were paid for."""
        if self._flusher is not None:
            await self._flusher

    async def _flush(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                await asyncio.to_thread(self._insert, batch)
        except sqlite3.Error as error:
            self._give_up(error)
        finally:
            self._flusher = None

    def _insert(self, batch: list[tuple[bytes, str, str]]) -> None:
        with self._writing:
            self._writing.executemany("INSERT OR IGNORE INTO answers (key, model, text) VALUES (?, ?, ?)", batch)

    def _give_up(self, error: sqlite3.Error) -> None:
        """Stop using the cache. The run goes on, since its journal has every answer that it needs."""
        if self._works:
            _log.warning("the response cache %s is not used any more by this run: %s", self._path, error)
        self._works = False
        self._waiting = []


@asynccontextmanager
async def open_cache(path: Path) -> AsyncIterator[Cache]:
    try:
        _make_private(path)
        reading, writing = _connect(path), _connect(path)
    except (OSError, sqlite3.Error) as error:
        raise StorageFailed(
            f"the response cache {path} cannot be opened: {error}\nDelete it, or run with --no-cache."
        ) from error
    with closing(reading), closing(writing):
        cache = Cache(path, reading, writing)
        try:
            yield cache
        finally:
            await cache.close()


def _make_private(path: Path) -> None:
    """Make the file, or let only the user read the one that is there: it holds what agents were told and said.

    SQLite gives the files beside it the same mode. The folder is made private where it is Shoal's own.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if path.parent.name == "shoal":
        path.parent.chmod(0o700)
    path.touch(mode=0o600)
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        with suppress(FileNotFoundError):
            path.with_name(name).chmod(0o600)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=LOCK_SECONDS, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    # A crash of the machine may lose the latest answers, which can be asked for again.
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(_TABLE)
    connection.commit()
    return connection


class Cached:
    """Answers from the cache. Only complete answers are stored: none that failed, were cut off or refused."""

    def __init__(self, inner: Model, cache: ReplyCache, endpoints: Mapping[str, Endpoint], spending: Spending) -> None:
        self._inner = inner
        self._cache = cache
        # An answer belongs to the server that gave it, so that a rehearsal never answers for the model it imitates.
        self._servers = {name: f"{at.server} {at.model} ".encode() for name, at in endpoints.items()}
        self._spending = spending

    async def answer(self, question: Question) -> Answer:
        server = self._servers.get(question.model, b"")
        key = blake2b(server + question.digest.encode(), digest_size=16).digest()
        text = await self._cache.get(key)
        if text is not None:
            self._spending.cache_hits += 1
            # No usage: this run did not pay for it.
            return Answer(text)
        answer = await self._inner.answer(question)
        if answer.finish == "stop":
            self._cache.put(key, question.model, answer.text)
        return answer
