"""A part of a graph that is small enough to be drawn: the most connected entities, and the facts between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from uuid import NAMESPACE_URL, uuid5

import msgspec

from shoal.sinks.graph.store import GraphStore
from shoal.text import clip

_NAME_CHARS = 60
#: What people made stands for them here: a like of a post is drawn between two people.
_ENDS = (
    "SELECT f.id, s.id, coalesce(p.id, t.id) FROM fact AS f JOIN entity AS s ON s.id = f.source"
    " JOIN entity AS t ON t.id = f.target"
    " LEFT JOIN entity AS p ON p.kind = 'person' AND p.key = CAST(t.owner AS TEXT)"
    " AND t.kind IN ('post', 'comment') ORDER BY f.latest DESC LIMIT ?"
)
_NODES = "SELECT id, kind, key, name FROM entity WHERE id = ?"
_EDGE = (
    "SELECT relation, first.time, first.text, ended.time, first.event, last.event, times, lean FROM fact"
    " JOIN episode AS first ON first.id = fact.episode JOIN episode AS last ON last.id = fact.latest"
    " LEFT JOIN episode AS ended ON ended.id = fact.ended_by WHERE fact.id = ?"
)


class GraphPerson(msgspec.Struct, frozen=True):
    """What is known of a person from the start, whether or not it has acted."""

    name: str
    #: What kind of person or institution it is.
    label: str
    summary: str
    attributes: dict[str, str | int]


class GraphNode(msgspec.Struct, frozen=True):
    """An entity as it is drawn."""

    uuid: str
    name: str
    labels: tuple[str, ...]
    summary: str
    attributes: dict[str, str | int]


class GraphEdge(msgspec.Struct, frozen=True):
    """A fact as it is drawn. Times are simulated time."""

    uuid: str
    source_node_uuid: str
    target_node_uuid: str
    source_node_name: str
    target_node_name: str
    name: str
    fact_type: str
    fact: str
    created_at: str
    valid_at: str
    invalid_at: str | None
    episodes: tuple[str, ...]
    attributes: dict[str, str | int | float]


class GraphExcerpt(msgspec.Struct, frozen=True):
    """Nodes and edges of a picture, and how much the whole graph has."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    entities: int
    facts: int


def excerpt_graph(
    store: GraphStore,
    name: str,
    max_nodes: int = 200,
    max_edges: int = 600,
    people: Mapping[int, GraphPerson] = MappingProxyType({}),
) -> GraphExcerpt:
    """Choose the entities with most of the latest facts, and those facts; `name` tells graphs apart in their ids.

    `people`, by their numbers, are there before they act, where there is room for them.
    """
    database = store.database
    ends = database.execute(_ENDS, (max_edges * 20,)).fetchall()
    counts = Counter(entity for _, source, target in ends for entity in (source, target))
    chosen = {entity for entity, _ in counts.most_common(max_nodes)}
    nodes = {}
    for entity in sorted(chosen):
        number, kind, key, title = database.execute(_NODES, (entity,)).fetchone()
        nodes[number] = _describe_node(name, kind, key, people) or GraphNode(
            uuid=_identify(name, kind, key),
            name=clip(title, _NAME_CHARS),
            labels=(kind.capitalize(),),
            summary=title,
            attributes={"kind": kind, "key": key, "facts": counts[entity]},
        )
    edges: list[GraphEdge] = []
    for fact, source, target in ends:
        if source in chosen and target in chosen and len(edges) < max_edges:
            edges.append(_read_edge(store, name, fact, nodes[source], nodes[target]))
    drawn = {node.uuid for node in nodes.values()}
    waiting = (_describe_node(name, "person", str(number), people) for number in people)
    quiet = [node for node in waiting if node is not None and node.uuid not in drawn][: max_nodes - len(nodes)]
    (entities,) = database.execute("SELECT count(*) FROM entity").fetchone()
    (facts,) = database.execute("SELECT count(*) FROM fact").fetchone()
    return GraphExcerpt((*nodes.values(), *quiet), tuple(edges), entities, facts)


def _describe_node(graph: str, kind: str, key: str, people: Mapping[int, GraphPerson]) -> GraphNode | None:
    """Return a person as it is known from the start; None for anything else."""
    person = people.get(int(key)) if kind == "person" else None
    if person is None:
        return None
    labels = ("Entity", person.label)
    return GraphNode(_identify(graph, kind, key), person.name, labels, person.summary, person.attributes)


def _read_edge(store: GraphStore, name: str, fact: int, source: GraphNode, target: GraphNode) -> GraphEdge:
    row = store.database.execute(_EDGE, (fact,)).fetchone()
    relation, since, text, until, first, last, times, lean = row
    attributes: dict[str, str | int | float] = {"times": times, **({} if lean is None else {"lean": lean})}
    return GraphEdge(
        uuid=_identify(name, "edge", str(fact)),
        source_node_uuid=source.uuid,
        target_node_uuid=target.uuid,
        source_node_name=source.name,
        target_node_name=target.name,
        name=relation,
        fact_type=relation,
        fact=text,
        created_at=since,
        valid_at=since,
        invalid_at=until,
        episodes=tuple(dict.fromkeys((first, last))),
        attributes=attributes,
    )


def _identify(graph: str, kind: str, key: str) -> str:
    return str(uuid5(NAMESPACE_URL, f"shoal:{graph}:{kind}:{key}"))
