"""Hands out runs and experiments as folders of static files, packed into one file."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import mkdtemp

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse
from starlette.background import BackgroundTask

from shoal.server.api.bundles import write_bundle
from shoal.server.api.context import Context, find_run, in_thread
from shoal.server.messages.base import RunId

router = APIRouter(tags=["bundles"])


@router.get(
    "/{simulation_id}/bundle",
    response_class=FileResponse,
    responses={200: {"content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}}}},
)
async def get_bundle(simulation_id: RunId, context: Context, request: Request) -> FileResponse:
    """Return a run as a folder of files that any browser opens without Shoal, as a zip file."""
    run = await find_run(context, simulation_id)
    work = Path(mkdtemp(prefix="shoal-bundle-"))
    name = f"{simulation_id}-bundle"
    try:
        # In a thread with an event loop of its own: the run is run again for it, and other requests go on.
        template = context.settings.pages / "bundle"
        await in_thread(write_bundle, request.app, template, run.path, work / name, simulation_id)
        packed = await in_thread(shutil.make_archive, str(work / "bundle"), "zip", work, name)
    except BaseException:
        await in_thread(shutil.rmtree, work)
        raise
    removal = BackgroundTask(shutil.rmtree, work)
    return FileResponse(packed, filename=f"{name}.zip", media_type="application/zip", background=removal)
