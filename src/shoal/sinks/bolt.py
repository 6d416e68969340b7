"""A sink for Neo4j and other servers that speak its protocol (Bolt) and its language (Cypher).

People and things become nodes `Entity`, with a second label for their kind; facts become relationships of the type of
the relation; episodes become nodes `Episode`. Everything has an `id` that begins with the run's name, so several runs
share a database, and what is written twice is there once. A batch and the position after it are one transaction.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from shoal.errors import SinkFailed
from shoal.sinks.facts import FactBook, KnownFact, list_ends, list_entities, name_entity
from shoal.sinks.narration import Narration
from shoal.sinks.sink import Position, SinkBatch

BOLT_ADDRESS = "bolt://localhost:7687"
_LABELS = ("Entity", "Episode", "Position")
_UNTYPED = re.compile(r"[^A-Z0-9_]")
#: How long the server may take to be reached, and to answer.
_CONNECT_SECONDS, _ANSWER_SECONDS = 10.0, 30.0
#: Rows of one statement, at most.
_ROWS = 1_000
#: Nodes that one statement deletes, at most.
_DELETED = 10_000

CONSTRAINT = "CREATE CONSTRAINT shoal_{name} IF NOT EXISTS FOR (n:{label}) REQUIRE n.id IS UNIQUE"
READ_POSITION = "MATCH (p:Position {id: $id}) RETURN p.bytes AS bytes, p.digest AS digest"
#: Setting a property takes the lock of the node, so that of two followers one waits for the other.
LOCK_POSITION = (
    "MERGE (p:Position {id: $id}) ON CREATE SET p.bytes = 0, p.digest = '' SET p.run = $run"
    " RETURN p.bytes AS bytes, p.digest AS digest"
)
WRITE_POSITION = "MATCH (p:Position {id: $id}) SET p.bytes = $bytes, p.digest = $digest"
WRITE_ENTITIES = "UNWIND $rows AS row MERGE (e:Entity {id: row.id}) ON CREATE SET e:{label}, e += row.values"
WRITE_EPISODES = "UNWIND $rows AS row MERGE (e:Episode {id: row.id}) SET e += row.values"
READ_HOLDING = (
    "UNWIND $rows AS row MATCH (s:Entity {id: row.source})-[f]->(t:Entity {id: row.target})"
    " WHERE f.world = row.world AND f.until IS NULL RETURN row.source AS source, row.target AS target,"
    " type(f) AS type, properties(f) AS fact"
)
WRITE_FACTS = (
    "UNWIND $rows AS row MATCH (s:Entity {id: row.source}) MATCH (t:Entity {id: row.target})"
    " MERGE (s)-[f:`{type}` {id: row.id}]->(t) SET f += row.values"
)
CLEAR = "MATCH (n:{label} {run: $run}) WITH n LIMIT $limit DETACH DELETE n RETURN count(*) AS deleted"


@dataclass(frozen=True, slots=True)
class BoltServer:
    """Where a server is, and who calls."""

    address: str = BOLT_ADDRESS
    user: str = "neo4j"
    password: str | None = field(default=None, repr=False)
    database: str | None = None


class BoltSink:
    """The graph of a run on a server that speaks Bolt."""

    def __init__(self, server: BoltServer, run: str, answer_seconds: float = _ANSWER_SECONDS) -> None:
        try:
            import neo4j  # noqa: PLC0415  # an optional extra
        except ImportError as error:
            raise SinkFailed("Neo4j needs its driver: pip install 'shoal[neo4j]'") from error
        self._server = server
        self._run = run
        self._errors = (neo4j.exceptions.Neo4jError, neo4j.exceptions.DriverError, OSError, ValueError)
        with self._map_errors():
            self._driver = neo4j.GraphDatabase.driver(
                server.address,
                auth=None if server.password is None else (server.user, server.password),
                connection_timeout=_CONNECT_SECONDS,
                connection_acquisition_timeout=_CONNECT_SECONDS,
                max_transaction_retry_time=0,
                keep_alive=True,
                telemetry_disabled=True,
                user_agent="shoal",
            )
        self._work = neo4j.unit_of_work(timeout=answer_seconds)
        try:
            with self._map_errors(), self._open_session() as session:
                for label in _LABELS:
                    session.run(CONSTRAINT.replace("{name}", label.lower()).replace("{label}", label)).consume()
        except SinkFailed:
            self.close()
            raise

    def position(self, world: str) -> Position:
        with self._map_errors(), self._open_session() as session:
            record = session.run(READ_POSITION, id=self._name(world)).single()
        return Position() if record is None else Position(record["bytes"], record["digest"])

    def write(self, batch: SinkBatch) -> bool:
        with self._map_errors(), self._open_session() as session:
            return bool(session.execute_write(self._work(lambda transaction: self._write(transaction, batch))))

    def clear(self) -> None:
        with self._map_errors(), self._open_session() as session:
            for label in _LABELS:
                statement, deleted = CLEAR.replace("{label}", label), _DELETED
                while deleted == _DELETED:
                    record = session.run(statement, run=self._run, limit=_DELETED).single()
                    deleted = 0 if record is None else record["deleted"]

    def close(self) -> None:
        self._driver.close()

    def _write(self, transaction: Any, batch: SinkBatch) -> bool:
        place = self._name(batch.world)
        held = transaction.run(LOCK_POSITION, id=place, run=self._run).single()
        if Position(held["bytes"], held["digest"]) != batch.begin:
            return False
        by_kind: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for entity, owner in list_entities(batch.episodes):
            values = {"run": self._run, "kind": entity.kind, "key": entity.key, "name": entity.name}
            made = {} if owner is None else {"owner": owner}
            by_kind[entity.kind.capitalize()].append({"id": self._name(name_entity(entity)), "values": values | made})
        for label, rows in by_kind.items():
            _write_rows(transaction, WRITE_ENTITIES.replace("{label}", label), rows)
        _write_rows(transaction, WRITE_EPISODES, [self._list_episode(episode) for episode in batch.episodes])
        book = FactBook(self._read_holding(transaction, batch.episodes))
        for episode in batch.episodes:
            book.add(episode)
        by_type: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for fact in book.changed.values():
            by_type[_UNTYPED.sub("_", fact.relation) or "_"].append(self._list_fact(fact))
        for kind, rows in by_type.items():
            _write_rows(transaction, WRITE_FACTS.replace("{type}", kind), rows)
        transaction.run(WRITE_POSITION, id=place, bytes=batch.end.bytes, digest=batch.end.digest).consume()
        return True

    def _list_episode(self, episode: Narration) -> dict[str, Any]:
        values = {
            "run": self._run,
            "event": episode.id,
            "world": episode.world,
            "round": episode.round,
            "time": episode.time,
            "agent": episode.agent,
            "text": episode.text,
        }
        return {"id": self._name(episode.id), "values": values}

    def _list_fact(self, fact: KnownFact) -> dict[str, Any]:
        values = {
            "world": fact.world,
            "relation": fact.relation,
            "first": fact.first,
            "latest": fact.latest,
            "since": fact.since,
            "times": fact.times,
            "until": fact.until,
            "ended_by": fact.ended_by,
            "lean": fact.lean,
        }
        ends = {"source": self._name(fact.source), "target": self._name(fact.target)}
        return {"id": self._name(fact.id), **ends, "values": values}

    def _read_holding(self, transaction: Any, episodes: Sequence[Narration]) -> Iterator[KnownFact]:
        """Read the facts that hold between the entities of episodes, and that these may end or repeat."""
        names = {self._name(part): part for ends in list_ends(episodes) for part in ends[:2]}
        rows = [
            {"source": self._name(source), "target": self._name(target), "world": world}
            for source, target, world in sorted(list_ends(episodes))
        ]
        for first in range(0, len(rows), _ROWS):
            for record in transaction.run(READ_HOLDING, rows=rows[first : first + _ROWS]):
                found = dict(record["fact"])
                yield KnownFact(
                    id=found["id"][len(self._name("")) :],
                    world=found["world"],
                    source=names[record["source"]],
                    relation=found["relation"],
                    target=names[record["target"]],
                    first=found["first"],
                    latest=found["latest"],
                    since=found["since"],
                    times=found["times"],
                    lean=found.get("lean"),
                )

    def _name(self, part: str) -> str:
        return f"{self._run}/{part}"

    def _open_session(self) -> Any:
        return self._driver.session(database=self._server.database)

    @contextmanager
    def _map_errors(self) -> Iterator[None]:
        try:
            yield
        except self._errors as error:
            raise SinkFailed(f"{self._server.address}: {error}") from error


def _write_rows(transaction: Any, statement: str, rows: Sequence[dict[str, Any]]) -> None:
    for first in range(0, len(rows), _ROWS):
        transaction.run(statement, rows=rows[first : first + _ROWS]).consume()
