"""What is in a graph as a whole: counts for people, and nodes and edges for other tools."""

from __future__ import annotations

from pathlib import Path

import msgspec

from shoal.formats import DirectedGraph, Edge, write_graphml
from shoal.sinks.graph.store import GraphStore

_EDGES = (
    "SELECT source, target, relation, fact.world, since, until, times, lean, first.text FROM fact"
    " JOIN episode AS first ON first.id = fact.episode ORDER BY fact.id"
)
_EDGE_VALUES: dict[str, type] = {
    "relation": str,
    "world": str,
    "since": int,
    "until": int,
    "times": int,
    "lean": float,
    "text": str,
}


class GraphOverview(msgspec.Struct, frozen=True):
    """How much a graph holds."""

    episodes: int
    facts: int
    #: Facts that hold now.
    holding: int
    #: Kind of entity -> how many.
    entities: dict[str, int]
    #: Relation -> how many facts, the most frequent first.
    relations: dict[str, int]


def describe_graph(store: GraphStore) -> GraphOverview:
    """Count what is in the graph."""
    database = store.database
    (episodes,) = database.execute("SELECT count(*) FROM episode").fetchone()
    facts, holding = database.execute("SELECT count(*), count(*) FILTER (WHERE until IS NULL) FROM fact").fetchone()
    entities = dict(database.execute("SELECT kind, count(*) FROM entity GROUP BY kind ORDER BY kind"))
    relations = dict(database.execute("SELECT relation, count(*) FROM fact GROUP BY relation ORDER BY 2 DESC, 1"))
    return GraphOverview(episodes, facts, holding, entities, relations)


def export_graphml(store: GraphStore, path: Path) -> int:
    """Write the graph as GraphML, with the rounds in which each fact held, and return the number of edges."""
    columns = ("kind", "key", "name", "owner")
    numbers, nodes = {}, []
    for number, (entity, *values) in enumerate(
        store.database.execute("SELECT id, kind, key, name, owner FROM entity ORDER BY id")
    ):
        numbers[entity] = number
        nodes.append(dict(zip(columns, values, strict=True)))
    edges = (
        Edge(numbers[source], numbers[target], dict(zip(_EDGE_VALUES, values, strict=True)))
        for source, target, *values in store.database.execute(_EDGES)
    )
    return write_graphml(DirectedGraph(nodes, edges, _EDGE_VALUES), path)
