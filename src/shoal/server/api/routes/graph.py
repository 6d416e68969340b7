"""The graph memory of runs, under the routes and in the fields of MiroFish's graph panel."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from shoal.errors import RunMissing
from shoal.runs import RunDirectory
from shoal.runs.network import place_nodes
from shoal.runs.sinks import answer_from_graph, open_graph
from shoal.scenario import sample
from shoal.server.api.context import Context, answer, in_thread
from shoal.server.api.folder import RunFolder
from shoal.server.messages.base import Envelope, RunId
from shoal.server.messages.graph import GraphAnswerData, GraphData, ProjectInfo
from shoal.sinks import GraphExcerpt, GraphPerson, excerpt_graph

router = APIRouter(tags=["graph"])

GRAPH_COMPLETED = "graph_completed"


@router.get("/project/{project_id}", response_model=Envelope[ProjectInfo])
async def get_project(project_id: RunId, context: Context) -> Response:
    """Describe the project of a simulation. There are no projects here: a simulation stands for its own."""
    run = await in_thread(_find_by_note, context.folder, "project_id", project_id)
    notes = run.scenario.notes
    return answer(
        {
            "project_id": project_id,
            "name": run.scenario.name,
            "status": GRAPH_COMPLETED,
            "graph_id": notes.get("graph_id") or run.path.name,
            "simulation_requirement": str(
                notes.get("simulation_requirement") or run.scenario.topic or run.scenario.name
            ),
            "created_at": run.config.generated_at or None,
            "updated_at": run.config.generated_at or None,
            "files": [],
            "ontology": None,
            "error": None,
        }
    )


@router.get("/data/{graph_id}", response_model=Envelope[GraphData])
async def get_graph(
    graph_id: RunId,
    context: Context,
    max_nodes: Annotated[int, Query(ge=1, le=5_000)] = 200,
    max_edges: Annotated[int, Query(ge=1, le=20_000)] = 600,
    places: Annotated[bool, Query(description="Say for each node where to draw it, from 0 to 1.")] = False,
) -> Response:
    """Return the part of a simulation's graph that can be drawn, as it is now."""
    run = await in_thread(_find_by_note, context.folder, "graph_id", graph_id)
    excerpt = await in_thread(_excerpt, run, max_nodes, max_edges)
    counts = {"node_count": len(excerpt.nodes), "edge_count": len(excerpt.edges)}
    whole = {"entities": excerpt.entities, "facts": excerpt.facts}
    found = {"graph_id": graph_id, "nodes": excerpt.nodes, "edges": excerpt.edges, **counts, **whole}
    if places:
        positions = {node.uuid: at for at, node in enumerate(excerpt.nodes)}
        ends = [(positions[edge.source_node_uuid], positions[edge.target_node_uuid]) for edge in excerpt.edges]
        found["places"] = await in_thread(place_nodes, len(positions), ends)
    return answer(found)


@router.get("/ask/{graph_id}", response_model=Envelope[GraphAnswerData])
async def ask_graph(
    graph_id: RunId,
    context: Context,
    question: Annotated[str, Query(min_length=1, max_length=2_000)],
    limit: Annotated[int, Query(ge=1, le=100)] = 8,
) -> Response:
    """Answer a question from a simulation's graph, with the episodes that show the answer."""
    run = await in_thread(_find_by_note, context.folder, "graph_id", graph_id)
    return answer(await in_thread(answer_from_graph, run, question, limit))


def _excerpt(run: RunDirectory, max_nodes: int, max_edges: int) -> GraphExcerpt:
    with open_graph(run) as graph:
        people = sample(run.scenario)
        found = {}
        for number in range(min(max_nodes, len(people))):
            person = people[number]
            traits = {"persona": person.persona, "username": person.username, **person.traits}
            attributes = {name: value for name, value in traits.items() if isinstance(value, str | int)}
            label = str(person.traits.get("entity_type") or "Person")
            found[number] = GraphPerson(person.name, label, person.bio or person.persona, attributes)
        return excerpt_graph(graph, run.path.name, max_nodes, max_edges, found)


def _find_by_note(folder: RunFolder, note: str, identity: str) -> RunDirectory:
    """Find the simulation of this id, or the newest one that MiroFish gave the id as a note."""
    try:
        return folder.find(identity)
    except RunMissing:
        for name in folder.list_ids():
            run = folder.find(name)
            if run.scenario.notes.get(note) == identity:
                return run
        raise
