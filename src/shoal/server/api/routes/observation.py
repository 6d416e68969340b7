"""Says how far runs are and what happened in them, page by page."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Request, Response

from shoal.runs import RunDirectory, format_state
from shoal.runs.reports import (
    CURSOR_PATTERN,
    ActionFilter,
    PageReader,
    count_agents,
    count_rounds,
    has_failed,
    read_interviews,
    read_rows,
)
from shoal.server.api.context import Context, ServerContext, answer, find_run, in_thread, is_foreign_page
from shoal.server.messages.base import Envelope, RunId, WorldName
from shoal.server.messages.observation import (
    ActionsAnswer,
    AgentsAnswer,
    CommentsAnswer,
    InterviewHistoryAnswer,
    InterviewHistoryRequest,
    PostsAnswer,
    RunDetail,
    RunStatus,
    TimelineAnswer,
)

router = APIRouter(tags=["observation"])

_MAX_RECENT = 50
Limit = Annotated[int, Query(ge=1, le=1_000)]
Offset = Annotated[int, Query(ge=0, le=10_000_000)]
Round = Annotated[int, Query(ge=0, le=1_000_000)]
Cursor = Annotated[
    str, Query(max_length=2_000, pattern=CURSOR_PATTERN, description="`next_cursor` of the page before.")
]


@router.get("/{simulation_id}/run-status", response_model=Envelope[RunStatus])
async def get_status(simulation_id: RunId, context: Context, request: Request) -> Response:
    """Say how far a run is."""
    # A few small files: a thread would take longer than they do.
    return answer(_describe_status(context, request, context.folder.find(simulation_id)))


def _describe_status(context: ServerContext, request: Request, run: RunDirectory) -> dict[str, Any]:
    state = run.observe_state()
    if is_foreign_page(context, request):
        context.looks.hold_end(run.path.name, state)
    return format_state(state)


@router.get("/{simulation_id}/run-status/detail", response_model=Envelope[RunDetail])
async def get_detail(
    simulation_id: RunId,
    context: Context,
    request: Request,
    platform: WorldName | None = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 5_000,
    cursor: Cursor | None = None,
) -> Response:
    """Say how far a run is, with a page of its newest actions."""
    run = await find_run(context, simulation_id)
    if is_foreign_page(context, request):
        context.looks.note_look(simulation_id)
    status = _describe_status(context, request, run)
    page = await in_thread(PageReader(run).read, ActionFilter(platform), limit, 0, cursor)
    # These pages show every action as done, as MiroFish has no others.
    hides_failures = is_foreign_page(context, request)
    actions = [msgspec.Raw(action) for action in page.actions if not (hides_failures and has_failed(action))]
    by_world = {
        f"{world}_actions": [
            action for action in actions if bytes(action).startswith(b'{"platform":"%s",' % world.encode())
        ]
        for world in ("twitter", "reddit")
    }
    current = b'"round_num":%d,' % status["current_round"]
    recent = [action for action in actions[:_MAX_RECENT] if current in bytes(action)[:80]]
    return answer({**status, "all_actions": actions, **by_world, "recent_actions": recent, "next_cursor": page.cursor})


@router.get("/{simulation_id}/actions", response_model=Envelope[ActionsAnswer])
async def get_actions(  # noqa: PLR0913  # each is a parameter of the query
    simulation_id: RunId,
    context: Context,
    platform: WorldName | None = None,
    agent_id: Annotated[int | None, Query(ge=0, le=2**31 - 1)] = None,
    round_num: Round | None = None,
    limit: Limit = 100,
    offset: Offset = 0,
    cursor: Cursor | None = None,
) -> Response:
    """List actions, newest first. The cost of a page does not depend on the length of the run."""
    run = await find_run(context, simulation_id)
    wanted = ActionFilter(platform, agent_id, round_num)
    page = await in_thread(PageReader(run).read, wanted, limit, offset, cursor)
    actions = [msgspec.Raw(action) for action in page.actions]
    return answer({"count": len(actions), "actions": actions, "next_cursor": page.cursor})


@router.get("/{simulation_id}/timeline", response_model=Envelope[TimelineAnswer])
async def get_timeline(
    simulation_id: RunId,
    context: Context,
    start_round: Round = 0,
    end_round: Round | None = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 200,
) -> Response:
    """Count the actions of each round."""
    run = await find_run(context, simulation_id)
    last = max(run.read_last_rounds().values()) if end_round is None else end_round
    until = min(last, start_round + limit - 1)
    timeline = await in_thread(count_rounds, run, start_round, until)
    following = until + 1 if until < last else None
    return answer({"rounds_count": len(timeline), "timeline": timeline, "next_round": following})


@router.get("/{simulation_id}/agent-stats", response_model=Envelope[AgentsAnswer])
async def get_agent_stats(simulation_id: RunId, context: Context, limit: Limit = 1_000, offset: Offset = 0) -> Response:
    """Count the actions of each agent, the most active one first."""
    run = await find_run(context, simulation_id)
    stats = await in_thread(count_agents, run)
    return answer({"agents_count": len(stats), "stats": stats[offset : offset + limit]})


@router.get("/{simulation_id}/posts", response_model=Envelope[PostsAnswer])
async def get_posts(
    simulation_id: RunId, context: Context, platform: WorldName = "reddit", limit: Limit = 50, offset: Offset = 0
) -> Response:
    """List the rows of the table `post`, newest first."""
    run = await find_run(context, simulation_id)
    total, rows = await in_thread(read_rows, run, platform, "post", limit, offset)
    note = {} if rows else {"message": "there are no posts yet, or this world has none"}
    return answer({"platform": platform, "total": total, "count": len(rows), "posts": rows, **note})


@router.get("/{simulation_id}/comments", response_model=Envelope[CommentsAnswer])
async def get_comments(  # each is a parameter of the query
    simulation_id: RunId,
    context: Context,
    platform: WorldName = "reddit",
    post_id: Annotated[int | None, Query(ge=0, le=2**62)] = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> Response:
    """List the rows of the table `comment`, newest first."""
    run = await find_run(context, simulation_id)
    where = {} if post_id is None else {"post_id": post_id}
    _, rows = await in_thread(read_rows, run, platform, "comment", limit, offset, where)
    return answer({"count": len(rows), "comments": rows})


@router.post("/interview/history", response_model=Envelope[InterviewHistoryAnswer])
async def get_interviews(body: InterviewHistoryRequest, context: Context) -> Response:
    """List the interviews so far, newest first."""
    run = await find_run(context, body.simulation_id)
    rows = await in_thread(read_interviews, run, body.platform, body.agent_id, body.limit)
    return answer({"count": len(rows), "history": rows})
