"""Shows preparations of requirements and documents, and their results."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from shoal.errors import RunMissing, RunRefused
from shoal.preparation import PreparationFolder, describe_preparation_request, describe_result
from shoal.server.api.context import Context, ServerContext, answer, in_thread
from shoal.server.messages.base import Envelope, ListEnvelope, RunId
from shoal.server.messages.preparation import PreparationInfo, PreparationResult

router = APIRouter(tags=["preparing"])


@router.get("/preparations", response_model=ListEnvelope[PreparationInfo])
async def list_preparations(context: Context, limit: Annotated[int, Query(ge=1, le=100)] = 5) -> Response:
    """List what was asked to be prepared, newest first, with where it stands."""
    found = await in_thread(lambda: [_describe(context, folder) for folder in context.preparations.list_newest(limit)])
    return answer(found, count=len(found))


def _describe(context: ServerContext, folder: PreparationFolder) -> dict[str, Any]:
    """Describe a preparation, and whether it has become a run."""
    try:
        context.folder.find(folder.path.name)
    except RunMissing:
        return describe_preparation_request(folder, is_run=False)
    return describe_preparation_request(folder, is_run=True)


@router.get("/{simulation_id}/preparation", response_model=Envelope[PreparationInfo])
async def get_preparation(simulation_id: RunId, context: Context) -> Response:
    """Say what was asked to be prepared, and where it stands."""
    folder = await in_thread(context.preparations.find, simulation_id)
    return answer(await in_thread(_describe, context, folder))


@router.get("/{simulation_id}/preparation/result", response_model=Envelope[PreparationResult])
async def get_result(simulation_id: RunId, context: Context) -> Response:
    """Say who was found in the documents and on which sentences, and give the scenario as one text."""
    folder = await in_thread(context.preparations.find, simulation_id)
    if not folder.is_ready:
        raise RunRefused(f"{simulation_id} is not prepared yet; POST prepare does that")
    return answer(await in_thread(describe_result, folder))
