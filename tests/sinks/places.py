"""Sinks of every kind with what a test needs of each: how it is opened, and what it holds."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shoal.sinks import BoltServer, BoltSink, GraphStore, Sink, ZepServer, ZepSink
from tests.sinks.bolt_server import BoltServerPeer, serve_bolt
from tests.sinks.zep_server import KEY, ZepServerPeer, serve_zep

PASSWORD = "secret"
GRAPH_ID = "mirofish 1"


@dataclass
class SinkPlace:
    """A place that a run is copied to."""

    kind: str
    folder: Path
    bolt: BoltServerPeer | None = None
    zep: ZepServerPeer | None = None
    opened: list[Sink] = field(default_factory=list)

    def open(self, run: str = "run", seconds: float = 30.0) -> Sink:
        """Open the sink, as another process would."""
        sink: Sink
        if self.bolt is not None:
            sink = BoltSink(BoltServer(self.bolt.address, "neo4j", PASSWORD), run, seconds)
        elif self.zep is not None:
            server = ZepServer(GRAPH_ID, KEY, self.zep.address)
            sink = ZepSink(server, run, self.folder / f"{run}.json", seconds)
        else:
            sink = GraphStore(self.folder / f"{run}.db")
        self.opened.append(sink)
        return sink

    def list_texts(self, run: str = "run") -> list[str]:
        """List the sentences in the order in which they were taken over."""
        if self.bolt is not None:
            found = [node for node in self.bolt.graph.nodes if "Episode" in node.labels]
            return [node.values["text"] for node in found if node.values["run"] == run]
        if self.zep is not None:
            mine = [each for each in self.zep.episodes if each["source_description"].split()[1] == run]
            return [line for each in mine for line in each["data"].split("\n")]
        with sqlite3.connect(self.folder / f"{run}.db") as database:
            return [text for (text,) in database.execute("SELECT text FROM episode ORDER BY id")]

    def list_facts(self, run: str = "run") -> list[tuple[Any, ...]] | None:
        """List the facts with all that is known of them, in no order; None where the place makes its own."""
        if self.zep is not None:
            return None
        if self.bolt is not None:
            names = ("since", "until", "times", "lean", "first", "latest", "ended_by", "world")
            return sorted(
                (
                    (
                        *(f"{end.values['kind']}:{end.values['key']}" for end in (each.source, each.target)),
                        each.kind,
                        *(each.values.get(name) for name in names),
                    )
                    for each in self.bolt.graph.relationships
                    if each.source.values["run"] == run
                ),
                key=repr,
            )
        with sqlite3.connect(self.folder / f"{run}.db") as database:
            rows = database.execute(
                "SELECT s.kind || ':' || s.key, t.kind || ':' || t.key, relation, since, until, times, lean,"
                " first.event, last.event, ended.event, fact.world FROM fact JOIN entity AS s ON s.id = source"
                " JOIN entity AS t ON t.id = target JOIN episode AS first ON first.id = fact.episode"
                " JOIN episode AS last ON last.id = latest LEFT JOIN episode AS ended ON ended.id = ended_by"
            ).fetchall()
        return sorted(rows, key=repr)

    def list_people(self, run: str = "run") -> set[tuple[str, str]]:
        """List the people by number and name."""
        if self.bolt is not None:
            nodes = [node for node in self.bolt.graph.nodes if "Person" in node.labels and node.values["run"] == run]
            return {(node.values["key"], node.values["name"]) for node in nodes}
        with sqlite3.connect(self.folder / f"{run}.db") as database:
            return set(database.execute("SELECT key, name FROM entity WHERE kind = 'person'"))


@contextmanager
def make_place(kind: str, folder: Path) -> Iterator[SinkPlace]:
    """Make a place of a kind, with its server."""
    if kind == "neo4j":
        with serve_bolt(PASSWORD) as bolt:
            yield from _close_after(SinkPlace(kind, folder, bolt=bolt))
    elif kind == "zep":
        with serve_zep() as zep:
            yield from _close_after(SinkPlace(kind, folder, zep=zep))
    else:
        yield from _close_after(SinkPlace(kind, folder))


def _close_after(place: SinkPlace) -> Iterator[SinkPlace]:
    yield place
    for sink in place.opened:
        sink.close()
