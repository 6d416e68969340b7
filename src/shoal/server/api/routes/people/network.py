"""The network of a world: ties, opinions, influence, and the paths of claims."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from shoal.runs.network import NetworkPerson, NetworkPicture, PictureRequest, draw_network, explain_person
from shoal.server.api.context import Context, answer, find_run, in_thread
from shoal.server.messages.base import Envelope, RunId, WorldName

router = APIRouter(tags=["network"])

Round = Annotated[int, Query(ge=0, le=1_000_000, description="As of the end of this round; the last one by default.")]
Claim = Annotated[
    str,
    Query(
        min_length=1, max_length=200, description="A claim, or a post as `post-12`: one of `subjects` of the answer."
    ),
]


@router.get("/{simulation_id}/network", response_model=Envelope[NetworkPicture])
async def get_network(  # noqa: PLR0913  # each is a parameter of the query
    simulation_id: RunId,
    context: Context,
    world: WorldName | None = None,
    round: Round | None = None,
    claim: Claim | None = None,
    max_nodes: Annotated[int, Query(ge=1, le=5_000)] = 5_000,
    only_state: Annotated[bool, Query(description="Leave out people and ties, which a page knows already.")] = False,
    in_parts: Annotated[
        bool, Query(description="Answer at once; influence and paths may be known up to `counted_until` only.")
    ] = False,
) -> Response:
    """Return the people of a world and their ties, with places to draw them at, and what was so after a round.

    Places stay the same over the rounds. Of more people than `max_nodes` some are drawn, and `note` says which.
    """
    run = await find_run(context, simulation_id)
    wanted = PictureRequest(round, claim, max_nodes, only_state)
    return answer(await in_thread(lambda: draw_network(context.networks.read(run, world, in_parts=in_parts), wanted)))


@router.get("/{simulation_id}/network/{agent_id}", response_model=Envelope[NetworkPerson])
async def get_network_person(
    simulation_id: RunId,
    agent_id: int,
    context: Context,
    world: WorldName | None = None,
    round: Round | None = None,
    claim: Claim | None = None,
) -> Response:
    """Explain one person in a few sentences: the part in the path of a claim, and influence."""
    run = await find_run(context, simulation_id)
    return answer(
        await in_thread(
            lambda: explain_person(context.networks.read(run, world, in_parts=True), agent_id, round, claim)
        )
    )
