"""GraphML files: a reader that returns plain nodes and edges, and a writer for networkx, igraph and Gephi."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from shoal.errors import ScenarioInvalid

# reading


@dataclass(slots=True)
class GraphmlContent:
    """The nodes and edges of a GraphML file."""

    #: Id of a node -> those of its attributes that were asked for.
    nodes: dict[str, dict[str, str]] = field(default_factory=dict)
    #: Source, target, whether the edge has a direction, and its line in the file.
    edges: list[tuple[str, str, bool, int]] = field(default_factory=list)
    #: How often something occurred that was not read, for example `edge.d1` or `hyperedge`.
    ignored: Counter[str] = field(default_factory=Counter)


def read_graphml(content: bytes, name: str, attributes: Collection[str]) -> GraphmlContent:
    """Read nodes with the named attributes, and edges. Raise ScenarioInvalid with the line of what is wrong.

    A document type is refused as soon as it begins, so that no entity is ever expanded.
    """
    reader = _GraphmlReader(name, attributes)
    try:
        reader.parser.Parse(content, True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise ScenarioInvalid([f"{name}:{error.lineno}: cannot be read as GraphML: {reason}"]) from error
    return reader.content


class _GraphmlReader:
    """Collects nodes and edges from the events of an XML parser."""

    def __init__(self, name: str, attributes: Collection[str]) -> None:
        self.content = GraphmlContent()
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = lambda *_: self._refuse(
            "a document type (<!DOCTYPE>) is not read; GraphML needs none"
        )
        self.parser.StartElementHandler = self.start_element
        self.parser.EndElementHandler = self.end_element
        self.parser.CharacterDataHandler = self.add_text
        self._name = name
        self._wanted = attributes
        #: Key of a wanted attribute -> its name.
        self._keys: dict[str, str] = {}
        self._open: list[str] = []
        self._node: str | None = None
        #: The wanted attribute whose text is being read.
        self._attribute: str | None = None
        self._directed = [True]

    def start_element(self, tag: str, attributes: dict[str, str]) -> None:
        element = tag.rpartition(" ")[2]
        if not self._open and element != "graphml":
            self._refuse(f"expected <graphml>, found <{element}>")
        self._open.append(element)
        if element == "key":
            attribute = attributes.get("attr.name", attributes.get("id", "")).casefold()
            if attributes.get("for", "all") in ("node", "all") and attribute in self._wanted:
                self._keys[self._require(attributes, "id", "key")] = attribute
        elif element == "graph":
            self._directed.append(attributes.get("edgedefault", "directed") != "undirected")
        elif element == "node":
            self._node = self._require(attributes, "id", "node")
            self.content.nodes.setdefault(self._node, {})
        elif element == "edge":
            source, target = (self._require(attributes, end, "edge") for end in ("source", "target"))
            directed = attributes["directed"] == "true" if "directed" in attributes else self._directed[-1]
            self.content.edges.append((source, target, directed, self.parser.CurrentLineNumber))
        elif element == "data":
            key = attributes.get("key")
            if self._node is not None and key in self._keys:
                self._attribute = self._keys[key]
            else:
                parent = self._open[-2] if len(self._open) > 1 else "file"
                self.content.ignored[f"{parent}.{key}"] += 1
        elif element in ("hyperedge", "port"):
            self.content.ignored[element] += 1

    def add_text(self, text: str) -> None:
        if self._attribute is not None and self._node is not None:
            node = self.content.nodes[self._node]
            node[self._attribute] = (node.get(self._attribute, "") + text).strip()

    def end_element(self, tag: str) -> None:
        element = self._open.pop()
        if element == "data":
            self._attribute = None
        elif element == "node":
            self._node = None
        elif element == "graph":
            self._directed.pop()

    def _require(self, attributes: dict[str, str], key: str, tag: str) -> str:
        if key not in attributes:
            self._refuse(f"<{tag}> has no {key!r}")
        return attributes[key]

    def _refuse(self, text: str) -> NoReturn:
        raise ScenarioInvalid([f"{self._name}:{self.parser.CurrentLineNumber}: {text}"])


# writing

_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" \
xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">
"""
#: Characters that XML 1.0 cannot hold, even escaped.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_TYPE_NAMES: Mapping[type, str] = {bool: "boolean", int: "long", float: "double", str: "string"}

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge from one node to another, with its values."""

    source: int
    target: int
    values: Values


@dataclass(frozen=True, slots=True)
class DirectedGraph:
    """A directed graph. Nodes are iterated twice, because values of one name that differ in type become text."""

    nodes: Sequence[Values]
    edges: Iterable[Edge]
    #: The values that edges may have, and their types.
    kinds: Mapping[str, type]


def write_graphml(graph: DirectedGraph, path: Path) -> int:
    """Write a graph node by node and return the number of edges."""
    found: dict[str, set[str]] = {}
    for values in graph.nodes:
        for name, value in values.items():
            if value is not None:
                found.setdefault(name, set()).add(_TYPE_NAMES.get(type(value), "string"))
    # The type of each attribute that is wide enough for all nodes.
    node_types = {
        name: types.pop() if len(types) == 1 else "double" if types == {"long", "double"} else "string"
        for name, types in found.items()
    }
    edge_types = {name: _TYPE_NAMES[kind] for name, kind in graph.kinds.items()}
    node_keys = {name: f"n_{number}" for number, name in enumerate(node_types)}
    edge_keys = {name: f"e_{number}" for number, name in enumerate(edge_types)}
    count = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(_HEAD)
        for scope, keys, types in (("node", node_keys, node_types), ("edge", edge_keys, edge_types)):
            for name, key in keys.items():
                label = quoteattr(_replace_forbidden(name))
                file.write(f'  <key id="{key}" for="{scope}" attr.name={label} attr.type="{types[name]}"/>\n')
        file.write('  <graph id="shoal" edgedefault="directed">\n')
        for number, values in enumerate(graph.nodes):
            file.write(f'    <node id="n{number}">{_render_data(values, node_keys)}</node>\n')
        for edge in graph.edges:
            ends = f'source="n{edge.source}" target="n{edge.target}"'
            file.write(f"    <edge {ends}>{_render_data(edge.values, edge_keys)}</edge>\n")
            count += 1
        file.write("  </graph>\n</graphml>\n")
    return count


def _render_data(values: Values, keys: Mapping[str, str]) -> str:
    data = []
    for name, value in values.items():
        if value is None:
            continue
        if isinstance(value, bool):
            text = "true" if value else "false"
        elif isinstance(value, float) and not math.isfinite(value):
            text = "NaN" if math.isnan(value) else "INF" if value > 0 else "-INF"
        else:
            text = _replace_forbidden(str(value))
        data.append(f'<data key="{keys[name]}">{escape(text)}</data>')
    return "".join(data)


def _replace_forbidden(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
