"""Graphs of what is known after a run."""

from __future__ import annotations

from typing import Any

from shoal.server.messages.base import AnswerModel


class ProjectInfo(AnswerModel):
    """The project of a simulation, as far as pages of MiroFish read it."""

    project_id: str
    name: str
    status: str
    graph_id: str
    simulation_requirement: str
    created_at: str | None
    updated_at: str | None
    files: list[dict[str, Any]]
    ontology: dict[str, Any] | None
    error: str | None


class GraphData(AnswerModel):
    """The part of a graph that can be drawn, and how much the whole graph has."""

    graph_id: str
    nodes: list[dict[str, Any]]
    edges: list[dict[str, Any]]
    node_count: int
    edge_count: int
    entities: int
    facts: int
    #: Where to draw each node, from 0 to 1, if that was asked for.
    places: list[list[float]] | None = None


class GraphAnswerData(AnswerModel):
    """What a graph knows about a question."""

    question: str
    people: list[str]
    words: list[str]
    facts: list[dict[str, Any]]
    episodes: list[dict[str, Any]]
    views: dict[str, dict[str, int]]
    notes: list[str]
