"""GraphML: nodes with names, and edges with or without a direction.

Read from parser events. A document type is refused as soon as it begins, so that no entity is ever expanded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn
from xml.parsers import expat

from shoal.errors import ScenarioInvalid
from shoal.scenario.importers.result import FieldUse

#: Attributes of a node that say who it is, best first; then its id.
IDENTITIES = ("name", "username", "label")


@dataclass(slots=True)
class GraphmlContent:
    """What the file says. An end has every name that its node has."""

    sources: list[tuple[str, ...]] = field(default_factory=list)
    targets: list[tuple[str, ...]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    uses: tuple[FieldUse, ...] = ()
    notes: tuple[str, ...] = ()


def read_graphml(content: bytes, name: str) -> GraphmlContent:
    """The graph in a file, or ScenarioInvalid with what is wrong and where."""
    reader = _GraphmlReader(name)
    try:
        reader.parser.Parse(content, True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise ScenarioInvalid([f"{name}:{error.lineno}: cannot be read as GraphML: {reason}"]) from error
    return reader.graph()


class _GraphmlReader:
    def __init__(self, name: str) -> None:
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self._name = name
        #: Keys that name nodes -> which of the identities they are.
        self._keys: dict[str, str] = {}
        self._nodes: dict[str, dict[str, str]] = {}
        self._edges: list[tuple[str, str, bool, int]] = []
        self._open: list[str] = []
        self._node: str | None = None
        self._data: str | None = None
        self._directed = [True]
        self._ignored: dict[str, int] = {}

    def graph(self) -> GraphmlContent:
        """Edges without a direction go both ways."""
        graph = GraphmlContent()
        both = 0
        for source, target, directed, line in self._edges:
            both += not directed
            for one, other in ((source, target), (target, source))[: 1 if directed else 2]:
                graph.sources.append(self._names(one))
                graph.targets.append(self._names(other))
                graph.lines.append(line)
        notes = [f"{both:,} edges have no direction: each of the two follows the other"] if both else []
        graph.notes, graph.uses = tuple(notes), tuple(self._uses())
        return graph

    def _uses(self) -> Iterator[FieldUse]:
        yield FieldUse(
            self._name, "node", "used", f"a person, found by {', '.join(IDENTITIES)} or id", len(self._nodes)
        )
        yield FieldUse(self._name, "edge", "used", "who follows whom", len(self._edges))
        for what, count in self._ignored.items():
            yield FieldUse(self._name, what, "unused", "following has no properties", count)

    def _names(self, node: str) -> tuple[str, ...]:
        known = self._nodes.get(node, {})
        return (*(known[key] for key in IDENTITIES if known.get(key)), node)

    def _refuse(self, text: str) -> NoReturn:
        raise ScenarioInvalid([f"{self._name}:{self.parser.CurrentLineNumber}: {text}"])

    def _doctype(self, *_: object) -> None:
        self._refuse("a document type (<!DOCTYPE>) is not read; GraphML needs none")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        local = tag.rpartition(" ")[2]
        if not self._open and local != "graphml":
            self._refuse(f"expected <graphml>, found <{local}>")
        self._open.append(local)
        if local == "key":
            self._key(attributes)
        elif local == "graph":
            self._directed.append(attributes.get("edgedefault", "directed") != "undirected")
        elif local == "node":
            self._node = self._required(attributes, "id", "node")
            self._nodes.setdefault(self._node, {})
        elif local == "edge":
            self._edge(attributes)
        elif local == "data":
            self._begin_data(attributes)
        elif local in ("hyperedge", "port"):
            self._ignore(local)

    def _key(self, attributes: dict[str, str]) -> None:
        name = attributes.get("attr.name", attributes.get("id", "")).casefold()
        if attributes.get("for", "all") in ("node", "all") and name in IDENTITIES:
            self._keys[self._required(attributes, "id", "key")] = name

    def _edge(self, attributes: dict[str, str]) -> None:
        ends = (self._required(attributes, end, "edge") for end in ("source", "target"))
        said = attributes.get("directed")
        directed = self._directed[-1] if said is None else said == "true"
        self._edges.append((*ends, directed, self.parser.CurrentLineNumber))  # type: ignore[arg-type]

    def _required(self, attributes: dict[str, str], key: str, tag: str) -> str:
        if key not in attributes:
            self._refuse(f"<{tag}> has no {key!r}")
        return attributes[key]

    def _begin_data(self, attributes: dict[str, str]) -> None:
        identity = self._keys.get(attributes.get("key", ""))
        if self._node is not None and identity is not None:
            self._data = identity
        else:
            around = self._open[-2] if len(self._open) > 1 else "file"
            self._ignore(f"{around}.{attributes.get('key')}")

    def _ignore(self, what: str) -> None:
        self._ignored[what] = self._ignored.get(what, 0) + 1

    def _text(self, text: str) -> None:
        if self._data is not None and self._node is not None:
            known = self._nodes[self._node]
            known[self._data] = (known.get(self._data, "") + text).strip()

    def _end(self, tag: str) -> None:
        local = self._open.pop()
        if local == "data":
            self._data = None
        elif local == "node":
            self._node = None
        elif local == "graph":
            self._directed.pop()
