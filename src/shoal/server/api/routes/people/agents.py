"""One agent of a run: its biography, its turns with prompts and replies, and its memory after any round."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from shoal.runs import RunDirectory
from shoal.runs.views import (
    AgentBiography,
    AgentMemory,
    TurnView,
    read_biography,
    read_memory,
    read_turns,
)
from shoal.server.api.context import Context, ServerContext, answer, find_run, in_thread
from shoal.server.messages.base import Envelope, RunId, WorldName

router = APIRouter(tags=["agents"])

Round = Annotated[int, Query(ge=0, le=1_000_000)]


@router.get("/{simulation_id}/agent/{agent_id}", response_model=Envelope[AgentBiography])
async def get_agent(simulation_id: RunId, agent_id: int, context: Context, round: Round | None = None) -> Response:
    """Describe one person after a round: persona, traits, mind, what was done; and opinions over all rounds."""
    run = await find_run(context, simulation_id)
    return answer(await in_thread(_read, context, run, agent_id, round))


@router.get("/{simulation_id}/agent/{agent_id}/memory", response_model=Envelope[AgentMemory])
async def get_memory(
    simulation_id: RunId,
    agent_id: int,
    context: Context,
    round: Round | None = None,
    about: Annotated[str, Query(max_length=500, description="Memories of this come first.")] = "",
) -> Response:
    """Return what an agent remembers after a round. The run is run again up to there."""
    run = await find_run(context, simulation_id)
    found = await in_thread(_read, context, run, agent_id)
    at = found.last_round if round is None else round
    asked = ("memory", simulation_id, agent_id, at, about)
    return answer(await context.reruns.answer(run, asked, lambda: read_memory(run, agent_id, at, about)))


@router.get("/{simulation_id}/explain", response_model=Envelope[list[TurnView]])
async def explain(
    simulation_id: RunId,
    context: Context,
    agent: Annotated[int, Query(ge=0, le=2**31 - 1)],
    round: Round,
    world: WorldName | None = None,
) -> Response:
    """Explain the turns of an agent in a round: what it saw, the prompt and the reply, the decision and the results.

    The run is run again from its journal up to that round, and compared with what was committed.
    """
    run = await find_run(context, simulation_id)
    await in_thread(_read, context, run, agent)
    asked = ("explain", simulation_id, agent, round, world)
    return answer(await context.reruns.answer(run, asked, lambda: read_turns(run, agent, round, world)))


def _read(context: ServerContext, run: RunDirectory, agent: int, round: int | None = None) -> AgentBiography:
    return read_biography(run, context.people.draw(run), agent, round)
