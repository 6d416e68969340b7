"""What the pages show: runs in a list, and of one run its figures, feeds, conversations and people, after any round."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query, Response

from shoal.errors import ShoalError
from shoal.runs.views import (
    MAX_POINTS,
    CommentCard,
    ConversationCard,
    FeedFilter,
    PeopleFilter,
    PeopleOrder,
    PersonCard,
    PostCard,
    RunCard,
    RunFigures,
    RunHeader,
    Sort,
    TalkTurn,
    TrendCount,
    ViewPage,
    describe_unreadable,
    list_conversations,
    read_conversation,
    read_feed,
    read_header,
    read_run_figures,
    read_talk,
    read_thread,
    read_trends,
)
from shoal.server.api.context import Context, ServerContext, answer, find_run, in_thread
from shoal.server.api.folder import IN_EXPERIMENT
from shoal.server.messages.base import Envelope, RunId, WorldName

router = APIRouter(tags=["pages"])
_log = logging.getLogger(__name__)

#: Runs of one family that are listed.
_MAX_FAMILY = 2_000

Limit = Annotated[int, Query(ge=1, le=1_000)]
PageLimit = Annotated[int, Query(ge=1, le=200)]
Offset = Annotated[int, Query(ge=0, le=10_000_000)]
Until = Annotated[
    int | None, Query(ge=0, le=1_000_000, description="As the world was after this round; default: as it is now.")
]
Before = Annotated[str | None, Query(max_length=20, description="`next` of the page before.")]
Agent = Annotated[int | None, Query(ge=0, le=2**31 - 1)]


@router.get("/overview", response_model=Envelope[ViewPage[RunCard]])
async def list_runs(
    context: Context,
    limit: Limit = 100,
    offset: Offset = 0,
    archived: Annotated[bool, Query(description="Those that were put away.")] = False,
) -> Response:
    """List the runs as pages show them, newest first."""
    names = await in_thread(context.folder.list_shown, archived)
    page = names[offset : offset + limit]
    cards = await in_thread(lambda: [_read_card(context, name) for name in page])
    return answer(ViewPage(cards, len(names), str(offset + limit) if offset + limit < len(names) else None))


@router.get("/lineage", response_model=Envelope[list[RunCard]])
async def list_lineage(context: Context, of: Annotated[RunId, Query(description="A run of the family.")]) -> Response:
    """List a run with all its forks, forks of these, and the runs that it was forked from, each parent first."""
    return answer(await in_thread(_list_family, context, (await find_run(context, of)).path.name))


def _list_family(context: ServerContext, name: str) -> list[RunCard]:
    cards = {known: _read_card(context, known) for known in context.folder.list_ids()}
    if name not in cards:
        # A run of an experiment has no forks that name it.
        return []
    seen: set[str] = set()
    while (parent := cards[name].parent) is not None and parent.id in cards and name not in seen:
        seen.add(name)
        name = parent.id
    forks: dict[str, list[RunCard]] = {}
    for card in cards.values():
        if card.parent is not None:
            forks.setdefault(card.parent.id, []).append(card)
    family: list[RunCard] = []
    waiting = [cards[name]]
    while waiting and len(family) < _MAX_FAMILY:
        card = waiting.pop()
        family.append(card)
        waiting += sorted(forks.pop(card.simulation_id, ()), key=lambda fork: fork.parent.round if fork.parent else 0)
    return family


def _read_card(context: ServerContext, name: str) -> RunCard:
    """Read the card of a run. One that cannot be read is shown with the reason."""
    try:
        return context.cards.read_known(context.folder.path / name) or context.cards.read(context.folder.find(name))
    except ShoalError as error:
        _log.warning("%s cannot be read: %s", name, error)
        return describe_unreadable(name, error)


@router.get("/{simulation_id}/overview", response_model=Envelope[RunHeader])
async def get_header(simulation_id: RunId, context: Context) -> Response:
    """Say what stands at the head of a run's page."""
    run = await find_run(context, simulation_id)
    header = await in_thread(
        lambda: read_header(run, context.cards.read(run), context.cards.list_children(simulation_id))
    )
    if IN_EXPERIMENT in simulation_id:
        # The directory of a run in an experiment is called by its seed alone.
        _, _, arm, seed = simulation_id.split(IN_EXPERIMENT)
        header = replace(header, simulation_id=simulation_id, name=f"{arm}, seed {seed}")
    return answer(header)


@router.get("/{simulation_id}/figures", response_model=Envelope[RunFigures])
async def get_figures(
    simulation_id: RunId,
    context: Context,
    since: Annotated[int, Query(ge=0, le=1_000_000, description="Begin with this round.")] = 0,
    until: Until = None,
    points: Annotated[int, Query(ge=1, le=MAX_POINTS, description="How many rounds at most.")] = MAX_POINTS,
) -> Response:
    """Return the figures of a run over its rounds."""
    return answer(await in_thread(read_run_figures, await find_run(context, simulation_id), since, until, points))


@router.get("/{simulation_id}/feed", response_model=Envelope[ViewPage[PostCard]])
async def get_feed(  # noqa: PLR0913  # each is a parameter of the query
    simulation_id: RunId,
    context: Context,
    world: WorldName,
    until: Until = None,
    before: Before = None,
    sort: Sort = "new",
    claim: Annotated[str | None, Query(max_length=200)] = None,
    agent: Agent = None,
    limit: PageLimit = 30,
) -> Response:
    """List the posts of a social platform, page by page."""
    run = await find_run(context, simulation_id)
    wanted = FeedFilter(claim, agent, sort)
    return answer(await in_thread(read_feed, run, world, wanted, until, limit, before))


@router.get("/{simulation_id}/thread", response_model=Envelope[ViewPage[CommentCard]])
async def get_thread(
    simulation_id: RunId,
    context: Context,
    world: WorldName,
    post_id: Annotated[int, Query(ge=0, le=2**62)],
    until: Until = None,
) -> Response:
    """List the comments of a post, the oldest first."""
    return answer(await in_thread(read_thread, await find_run(context, simulation_id), world, post_id, until))


@router.get("/{simulation_id}/talk", response_model=Envelope[ViewPage[TalkTurn]])
async def get_talk(  # noqa: PLR0913  # each is a parameter of the query
    simulation_id: RunId,
    context: Context,
    world: WorldName,
    until: Until = None,
    before: Before = None,
    conversation: Annotated[int | None, Query(ge=0, le=2**31 - 1, description="Only this one of a dialogue.")] = None,
    limit: PageLimit = 50,
) -> Response:
    """List what was said and done in a world, or in one conversation of it, the newest first, page by page."""
    run = await find_run(context, simulation_id)
    if conversation is not None:
        return answer(await in_thread(read_conversation, run, world, conversation, until, limit, before))
    return answer(await in_thread(read_talk, run, world, until, limit, before))


@router.get("/{simulation_id}/conversations", response_model=Envelope[ViewPage[ConversationCard]])
async def get_conversations(  # noqa: PLR0913  # each is a parameter of the query
    simulation_id: RunId,
    context: Context,
    world: WorldName,
    until: Until = None,
    agent: Agent = None,
    offset: Offset = 0,
    limit: PageLimit = 50,
) -> Response:
    """List the conversations of a world of dialogues, or those of one person."""
    run = await find_run(context, simulation_id)
    return answer(await in_thread(list_conversations, run, world, until, agent, offset, limit))


@router.get("/{simulation_id}/trends", response_model=Envelope[list[TrendCount]])
async def get_trends(simulation_id: RunId, context: Context, world: WorldName, until: Until = None) -> Response:
    """List what the latest posts speak of."""
    return answer(await in_thread(read_trends, await find_run(context, simulation_id), world, until))


@router.get("/{simulation_id}/people", response_model=Envelope[ViewPage[PersonCard]])
async def list_people(  # noqa: PLR0913  # each is a parameter of the query
    simulation_id: RunId,
    context: Context,
    query: Annotated[str, Query(max_length=200, description="Words of the name.")] = "",
    sort: PeopleOrder = "number",
    round: Until = None,
    offset: Offset = 0,
    limit: PageLimit = 50,
) -> Response:
    """List the people of a run."""
    run, wanted = await find_run(context, simulation_id), PeopleFilter(query, sort, round)
    return answer(await in_thread(context.people.read_page, run, wanted, offset, limit))
