"""Graphs that any reader of GraphML understands."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from shoal.formats.graphml import DirectedGraph, Edge, read_graphml, write_graphml

NS = {"g": "http://graphml.graphdrawing.org/xmlns"}
READ: dict[str, Any] = {"string": str, "long": int, "double": float, "boolean": lambda text: text == "true"}


def parse_file(path: Path) -> tuple[dict[str, dict[str, Any]], list[tuple[str, str, dict[str, Any]]]]:
    """Nodes and edges with their values, read as the keys declare them."""
    root = ElementTree.parse(path).getroot()
    keys = {
        key.attrib["id"]: (key.attrib["attr.name"], READ[key.attrib["attr.type"]]) for key in root.findall("g:key", NS)
    }

    def values(element: ElementTree.Element) -> dict[str, Any]:
        found = [(keys[data.attrib["key"]], data.text or "") for data in element.findall("g:data", NS)]
        return {name: read(text) for (name, read), text in found}

    graph = root.find("g:graph", NS)
    assert graph is not None
    assert graph.attrib["edgedefault"] == "directed"
    nodes = {node.attrib["id"]: values(node) for node in graph.findall("g:node", NS)}
    edges = [(edge.attrib["source"], edge.attrib["target"], values(edge)) for edge in graph.findall("g:edge", NS)]
    return nodes, edges


def test_nodes_and_edges_are_read_back_with_their_values(tmp_path: Path) -> None:
    nodes: list[dict[str, Any]] = [
        {"name": "Ada", "age": 30, "stance": 0.5, "keen": True},
        {"name": "Ben", "age": None, "stance": -1.0},
    ]
    edges = [Edge(0, 1, {"weight": 3, "like_post": 2}), Edge(1, 0, {"weight": 1})]
    assert write_graphml(DirectedGraph(nodes, edges, {"weight": int, "like_post": int}), tmp_path / "g") == 2
    assert parse_file(tmp_path / "g") == (
        {"n0": nodes[0], "n1": {"name": "Ben", "stance": -1.0}},
        [("n0", "n1", {"weight": 3, "like_post": 2}), ("n1", "n0", {"weight": 1})],
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("A & B <c> \"d\" 'e'", "A & B <c> \"d\" 'e'"),
        ("bell\x07 and \x00", "bell\ufffd and \ufffd"),
        ("half a letter \ud800", "half a letter \ufffd"),
        ("Zoë 🌊", "Zoë 🌊"),
        ("]]>", "]]>"),
    ],
)
def test_names_with_anything_in_them_make_valid_xml(tmp_path: Path, name: str, expected: str) -> None:
    write_graphml(DirectedGraph([{"name": name, name: 1}], [], {}), tmp_path / "g")
    nodes, _ = parse_file(tmp_path / "g")
    assert nodes == {"n0": {"name": expected, expected: 1}}


def test_values_of_different_kinds_under_one_name_become_wide_enough(tmp_path: Path) -> None:
    nodes: list[dict[str, Any]] = [{"a": 1, "b": 1}, {"a": 0.5, "b": "one"}, {"a": float("inf"), "b": True}]
    write_graphml(DirectedGraph(nodes, [], {}), tmp_path / "g")
    read, _ = parse_file(tmp_path / "g")
    assert [node["a"] for node in read.values()] == [1.0, 0.5, float("inf")]
    assert [node["b"] for node in read.values()] == ["1", "one", "true"]


def test_the_reader_returns_the_nodes_and_edges_that_were_written(tmp_path: Path) -> None:
    graph = DirectedGraph([{"name": "Ada"}, {"name": "Ben & Co"}], [Edge(1, 0, {"weight": 2})], {"weight": int})
    write_graphml(graph, tmp_path / "g")
    content = read_graphml((tmp_path / "g").read_bytes(), "g", ["name"])
    assert content.nodes == {"n0": {"name": "Ada"}, "n1": {"name": "Ben & Co"}}
    assert [edge[:3] for edge in content.edges] == [("n1", "n0", True)]
    assert content.ignored == {"edge.e_0": 1}
