"""The graph of a run in one SQLite file: its tables, and how episodes become part of it."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path

from shoal.errors import SinkFailed
from shoal.sinks.narration import Entity, Fact, Narration
from shoal.sinks.sink import Position, SinkBatch

#: Raised when tables change. A graph of another version is made anew from the streams.
VERSION = 1
_SCHEMA = """
CREATE TABLE entity (
    id INTEGER PRIMARY KEY, kind TEXT NOT NULL, key TEXT NOT NULL, name TEXT NOT NULL,
    owner INTEGER,  -- the number of the person who made it
    UNIQUE (kind, key)
);
CREATE TABLE episode (
    id INTEGER PRIMARY KEY, event TEXT NOT NULL, world TEXT NOT NULL, round INTEGER NOT NULL, time TEXT NOT NULL,
    agent INTEGER, text TEXT NOT NULL
);
CREATE TABLE fact (
    id INTEGER PRIMARY KEY, world TEXT NOT NULL,
    source INTEGER NOT NULL, relation TEXT NOT NULL, target INTEGER NOT NULL, lean REAL,
    episode INTEGER NOT NULL,  -- the one that made it true
    latest INTEGER NOT NULL, times INTEGER NOT NULL DEFAULT 1,  -- the last one that said it again, and how often
    since INTEGER NOT NULL, until INTEGER, ended_by INTEGER  -- rounds, and the episode that ended it
);
CREATE INDEX fact_source ON fact (source, relation);
CREATE INDEX fact_held ON fact (target, relation, latest, source) WHERE until IS NULL;
CREATE INDEX fact_open ON fact (source, target, relation) WHERE until IS NULL;
CREATE INDEX fact_made ON fact (target) WHERE relation = 'POSTED';
CREATE INDEX episode_event ON episode (event);
CREATE INDEX entity_owner ON entity (owner) WHERE owner IS NOT NULL;
CREATE INDEX entity_name ON entity (kind, name COLLATE NOCASE);
CREATE VIRTUAL TABLE episode_text USING fts5 (
    text, people, content='', tokenize='porter unicode61 remove_diacritics 2'
);
CREATE TABLE position (world TEXT PRIMARY KEY, bytes INTEGER NOT NULL, digest TEXT NOT NULL);
"""
_TABLES = ("episode_text", "fact", "episode", "entity", "position")
#: Letters of Chinese, Japanese, Thai, Lao, Khmer and Burmese.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
#: Entities whose number is kept in memory.
_ENTITIES_KEPT = 200_000


class GraphStore:
    """The graph of a run: a sink that keeps everything in one file, and is asked with SQL and by search.

    A batch and the position after it are one transaction, so the file always holds a whole beginning of each stream.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._numbers: dict[tuple[str, str], tuple[int, int | None]] = {}
        with self._errors():
            self.database = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
            self.database.execute("PRAGMA journal_mode = WAL")
            # A graph that a power cut damages is made anew from the streams.
            self.database.execute("PRAGMA synchronous = OFF")
            if self.database.execute("PRAGMA user_version").fetchone()[0] != VERSION:
                self.clear()

    def position(self, world: str) -> Position:
        with self._errors():
            row = self.database.execute("SELECT bytes, digest FROM position WHERE world = ?", (world,)).fetchone()
        return Position() if row is None else Position(*row)

    def write(self, batch: SinkBatch) -> bool:
        with self._transaction():
            is_next = self.position(batch.world) == batch.begin
            if is_next:
                last = self.database.execute("SELECT max(id) FROM episode").fetchone()[0] or 0
                rows, terms = [], []
                for number, episode in enumerate(batch.episodes, last + 1):
                    about = {} if episode.agent is None else {episode.agent: None}
                    if episode.made is not None:
                        self._find(episode.made, episode.agent)
                    for fact in episode.facts:
                        source, _ = self._find(fact.source)
                        target, owner = self._find(fact.target)
                        person = int(fact.target.key) if fact.target.kind == "person" else owner
                        if person is not None:
                            about[person] = None
                        self._add_fact(fact, (source, target), number, episode)
                    rows.append(
                        (number, episode.id, episode.world, episode.round, episode.time, episode.agent, episode.text)
                    )
                    people = [person_term(person) for person in about]
                    people += [] if episode.agent is None else [agent_term(episode.agent)]
                    terms.append((number, space_scripts(episode.text), " ".join(people)))
                self.database.executemany("INSERT INTO episode VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
                self.database.executemany("INSERT INTO episode_text (rowid, text, people) VALUES (?, ?, ?)", terms)
                end = (batch.world, *astuple(batch.end))
                self.database.execute("INSERT OR REPLACE INTO position VALUES (?, ?, ?)", end)
        return is_next

    def close(self) -> None:
        self.database.close()

    def clear(self) -> None:
        self._numbers.clear()
        with self._transaction():
            for table in _TABLES:
                self.database.execute(f"DROP TABLE IF EXISTS {table}")
            for statement in _SCHEMA.split(";"):
                self.database.execute(statement)
            self.database.execute(f"PRAGMA user_version = {VERSION}")

    def _add_fact(self, fact: Fact, ends: tuple[int, int], episode: int, told: Narration) -> None:
        """Add what an episode makes true, end what it ends, or count it where it held already."""
        source, target = ends
        if fact.lasting or fact.ends:
            open_facts = self.database.execute(
                "SELECT id, relation FROM fact WHERE source = ? AND target = ? AND until IS NULL AND world = ?",
                (source, target, told.world),
            ).fetchall()
            held = [number for number, relation in open_facts if fact.lasting and relation == fact.relation]
            over = [
                (told.round, episode, number)
                for number, relation in open_facts
                if relation in fact.ends and number not in held
            ]
            if over:
                self.database.executemany("UPDATE fact SET until = ?, ended_by = ? WHERE id = ?", over)
            if held:
                self.database.execute(
                    "UPDATE fact SET latest = ?, times = times + 1, lean = ? WHERE id = ?",
                    (episode, fact.lean, held[0]),
                )
                return
        # What only happened is over at once, so that only what lasts is looked through for what has ended.
        until = None if fact.lasting else told.round
        self.database.execute(
            "INSERT INTO fact (world, source, relation, target, lean, episode, latest, since, until)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (told.world, source, fact.relation, target, fact.lean, episode, episode, told.round, until),
        )

    def _find(self, entity: Entity, owner: int | None = None) -> tuple[int, int | None]:
        """Return the number of an entity, new where it has none, and the number of the person who made it."""
        name = (entity.kind, entity.key)
        known = self._numbers.get(name)
        if known is None:
            row = self.database.execute("SELECT id, owner FROM entity WHERE kind = ? AND key = ?", name).fetchone()
            if row is None:
                added = self.database.execute(
                    "INSERT INTO entity (kind, key, name, owner) VALUES (?, ?, ?, ?)", (*name, entity.name, owner)
                )
                row = (added.lastrowid, owner)
            if len(self._numbers) >= _ENTITIES_KEPT:
                self._numbers.clear()
            known = self._numbers[name] = (int(row[0]), row[1])
        return known

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._errors():
            self.database.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.database.execute("COMMIT")
            except BaseException:
                # Numbers that were handed out for entities of this batch are free again.
                self._numbers.clear()
                if self.database.in_transaction:
                    self.database.execute("ROLLBACK")
                raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise SinkFailed(f"{self.path}: {error}") from error


def person_term(person: int) -> str:
    """Return the word under which every episode about a person is found."""
    return f"p{person}"


def agent_term(person: int) -> str:
    """Return the index term of the episodes in which a person acted."""
    return f"by{person}"


def space_scripts(text: str) -> str:
    """Part the letters of scripts that are written without spaces, so that words of them can be found."""
    return _UNSPACED.sub(r" \g<0> ", text) if not text.isascii() else text
