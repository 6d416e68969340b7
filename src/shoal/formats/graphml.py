"""Graphs as GraphML, written node by node, as networkx, igraph and Gephi read it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" \
xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">
"""
#: What XML 1.0 cannot hold in any spelling.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_KINDS: Mapping[type, str] = {bool: "boolean", int: "long", float: "double", str: "string"}

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Edge:
    """From one node to another, with what is known about it."""

    source: int
    target: int
    values: Values


@dataclass(frozen=True, slots=True)
class DirectedGraph:
    """A directed graph. Nodes are gone through twice: values of one name must have one type, or they become text."""

    nodes: Sequence[Values]
    edges: Iterable[Edge]
    #: The values that edges may have, and their types.
    kinds: Mapping[str, type]


def write(graph: DirectedGraph, path: Path) -> int:
    """Returns how many edges there were."""
    of_nodes = _keys("n", _kinds(graph.nodes))
    of_edges = _keys("e", {name: _KINDS[kind] for name, kind in graph.kinds.items()})
    count = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(_HEAD)
        for scope, keys in (("node", of_nodes), ("edge", of_edges)):
            file.writelines(_declaration(scope, name, *key) for name, key in keys.items())
        file.write('  <graph id="shoal" edgedefault="directed">\n')
        for number, values in enumerate(graph.nodes):
            file.write(f'    <node id="n{number}">{"".join(_values(values, of_nodes))}</node>\n')
        for edge in graph.edges:
            ends = f'source="n{edge.source}" target="n{edge.target}"'
            file.write(f"    <edge {ends}>{''.join(_values(edge.values, of_edges))}</edge>\n")
            count += 1
        file.write("  </graph>\n</graphml>\n")
    return count


#: Name of a value -> its key in the file, and its type there.
Keys = Mapping[str, tuple[str, str]]


def _keys(prefix: str, kinds: Mapping[str, str]) -> Keys:
    return {name: (f"{prefix}_{number}", kind) for number, (name, kind) in enumerate(kinds.items())}


def _kinds(nodes: Iterable[Values]) -> dict[str, str]:
    found: dict[str, set[str]] = {}
    for values in nodes:
        for name, value in values.items():
            if value is not None:
                found.setdefault(name, set()).add(_KINDS.get(type(value), "string"))
    return {name: _common(kinds) for name, kinds in found.items()}


def _common(kinds: set[str]) -> str:
    if kinds == {"long", "double"}:
        return "double"
    return next(iter(kinds)) if len(kinds) == 1 else "string"


def _declaration(scope: str, name: str, key: str, kind: str) -> str:
    return f'  <key id="{key}" for="{scope}" attr.name={quoteattr(_clean(name))} attr.type="{kind}"/>\n'


def _values(values: Values, keys: Keys) -> Iterator[str]:
    for name, value in values.items():
        if value is not None:
            yield f'<data key="{keys[name][0]}">{escape(_text(value))}</data>'


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "INF" if value > 0 else "-INF"
    return _clean(str(value))


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
