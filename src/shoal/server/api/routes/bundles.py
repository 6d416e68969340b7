"""Hands out runs and experiments as folders of static files, packed into one file."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse
from starlette.background import BackgroundTask

from shoal.server.api.bundles import write_bundle
from shoal.server.api.context import Context, ServerContext, find_run, in_thread
from shoal.server.messages.base import RunId
from shoal.server.messages.experiments import ExperimentName

router = APIRouter(tags=["bundles"])


#: Routes of experiments, under their own prefix.
of_experiments = APIRouter(tags=["bundles"])
_ZIP: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}}}
}


@router.get("/{simulation_id}/bundle", response_class=FileResponse, responses=_ZIP)
async def get_bundle(simulation_id: RunId, context: Context, request: Request) -> FileResponse:
    """Return a run as a folder of files that any browser opens without Shoal, as a zip file."""
    run = await find_run(context, simulation_id)
    return await _pack(context, request, run.path, simulation_id)


@of_experiments.get("/{name}/bundle", response_class=FileResponse, responses=_ZIP)
async def get_experiment_bundle(name: ExperimentName, context: Context, request: Request) -> FileResponse:
    """Return an experiment with its report and some of its runs as a folder of files, as a zip file."""
    return await _pack(context, request, await in_thread(context.experiments.find, name), name)


async def _pack(context: ServerContext, request: Request, source: Path, identity: str) -> FileResponse:
    work = Path(mkdtemp(prefix="shoal-bundle-"))
    name = f"{identity}-bundle"
    try:
        # In a thread with an event loop of its own: runs are run again for it, and other requests go on.
        template = context.settings.pages / "bundle"
        await in_thread(write_bundle, request.app, template, source, work / name, identity)
        packed = await in_thread(shutil.make_archive, str(work / "bundle"), "zip", work, name)
    except BaseException:
        await in_thread(shutil.rmtree, work)
        raise
    removal = BackgroundTask(shutil.rmtree, work)
    return FileResponse(packed, filename=f"{name}.zip", media_type="application/zip", background=removal)
