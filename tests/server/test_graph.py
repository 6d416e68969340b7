"""The graph of a run over HTTP, as MiroFish's graph panel asks for it."""

from __future__ import annotations

from typing import Any

from tests.server.conftest import SCENARIO, Answer, RunningServer, Serve

NODE_FIELDS = {"uuid", "name", "labels", "summary", "attributes"}
EDGE_FIELDS = {
    "uuid",
    "source_node_uuid",
    "target_node_uuid",
    "name",
    "fact",
    "fact_type",
    "created_at",
    "valid_at",
    "episodes",
}


def get(server: RunningServer, path: str) -> Answer:
    return server.request("GET", path)


def read(server: RunningServer, path: str) -> dict[str, Any]:
    answered = get(server, path)
    assert answered.status == 200, answered.body
    data: dict[str, Any] = answered.json["data"]
    return data


def test_the_panel_finds_the_graph_through_the_project_of_a_simulation(serve: Serve, finished: str) -> None:
    server = serve()
    simulation = read(server, f"/api/simulation/{finished}")
    project = read(server, f"/api/graph/project/{simulation['project_id']}")
    graph = read(server, f"/api/graph/data/{project['graph_id']}")
    assert set(graph["nodes"][0]) == NODE_FIELDS
    assert set(graph["edges"][0]) >= EDGE_FIELDS
    known = {node["uuid"] for node in graph["nodes"]}
    assert len(known) == graph["node_count"] > 5
    assert all({edge["source_node_uuid"], edge["target_node_uuid"]} <= known for edge in graph["edges"])
    again = read(server, f"/api/graph/data/{project['graph_id']}")
    assert again == graph


def test_a_picture_has_at_most_as_many_nodes_as_asked_for(serve: Serve, finished: str) -> None:
    server = serve()
    graph = read(server, f"/api/graph/data/{finished}?max_nodes=4&max_edges=3")
    assert (graph["node_count"], graph["edge_count"]) <= (4, 3)
    assert graph["entities"] > 4


def test_nodes_have_places_where_that_is_asked_for(serve: Serve, finished: str) -> None:
    server = serve()
    graph = read(server, f"/api/graph/data/{finished}?places=true")
    assert len(graph["places"]) == graph["node_count"]
    assert all(0 <= value <= 1 for place in graph["places"] for value in place)
    assert len({tuple(place) for place in graph["places"]}) == graph["node_count"]


def test_a_question_is_answered_over_http(serve: Serve, finished: str) -> None:
    server = serve()
    found = read(server, f"/api/graph/ask/{finished}?question=who%20opposes%20the%20bridge")
    assert found["words"] == ["bridge"]
    assert set(found["views"]) == {SCENARIO["topic"]}


def test_what_does_not_exist_is_not_found_and_a_question_is_needed(serve: Serve, finished: str) -> None:
    server = serve()
    assert get(server, "/api/graph/project/nobody").status == 404
    assert get(server, "/api/graph/data/..%2f..").status == 404
    refused = get(server, f"/api/graph/ask/{finished}")
    assert (refused.status, refused.json["field"]) == (400, "question")
