"""Commands to the worker of a run: interviews, events, pause and continue, and its end."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Response

from shoal.agents import LanguageSettings
from shoal.errors import RunLocked
from shoal.runs import RunDirectory, wall_clock
from shoal.runs.commands import CommandType, call_worker
from shoal.runs.launchers import Launcher, find_worker
from shoal.server.api.context import Context, ServerContext, answer, find_run
from shoal.server.messages.base import Envelope, RunRequest
from shoal.server.messages.commands import (
    BatchRequest,
    CloseRequest,
    CommandAnswer,
    EnvironmentAnswer,
    InjectRequest,
    InterviewAllRequest,
    InterviewBody,
)

router = APIRouter(tags=["commands"])


async def _call(
    run: RunDirectory, launcher: Launcher | None, command_type: CommandType, args: dict[str, Any], seconds: float
) -> dict[str, Any]:
    result = await call_worker(run, launcher, command_type, args, seconds)
    return {"success": True, "result": result, "timestamp": wall_clock()}


def _choose_model(context: ServerContext, run: RunDirectory, model: str | None) -> str | None:
    """Return the model to ask: the one that is asked for, the run's own, or else the server's."""
    has_own = isinstance(run.scenario_versions.latest.mind, LanguageSettings)
    return model if model is not None or has_own else context.settings.model


@router.post("/interview", response_model=Envelope[CommandAnswer])
async def interview(body: InterviewBody, context: Context) -> Response:
    """Ask an agent. A copy of it answers, so nothing in the run changes. A worker is revived where none is alive."""
    run = await find_run(context, body.simulation_id)
    args = {name: getattr(body, name) for name in ("agent_id", "prompt", "platform", "context")}
    args["model"] = _choose_model(context, run, body.model)
    found = await _call(run, context.launcher, CommandType.INTERVIEW, args, body.timeout)
    return answer({"agent_id": body.agent_id, "prompt": body.prompt, **found})


@router.post("/interview/batch", response_model=Envelope[CommandAnswer])
async def interview_batch(body: BatchRequest, context: Context) -> Response:
    """Ask several agents side by side."""
    run = await find_run(context, body.simulation_id)
    items = [item.model_dump(exclude_none=True) for item in body.interviews]
    args = {"interviews": items, "platform": body.platform, "model": _choose_model(context, run, body.model)}
    found = await _call(run, context.launcher, CommandType.INTERVIEW_BATCH, args, body.timeout)
    return answer({"interviews_count": len(items), **found})


@router.post("/interview/all", response_model=Envelope[CommandAnswer])
async def interview_all(body: InterviewAllRequest, context: Context) -> Response:
    """Ask every agent the same."""
    run = await find_run(context, body.simulation_id)
    args = {"prompt": body.prompt, "platform": body.platform, "model": _choose_model(context, run, body.model)}
    found = await _call(run, context.launcher, CommandType.INTERVIEW_ALL, args, body.timeout)
    return answer({"interviews_count": found["result"]["interviews_count"], **found})


@router.post("/inject", response_model=Envelope[CommandAnswer])
async def inject(body: InjectRequest, context: Context) -> Response:
    """Let an event happen in a run that goes on, in its next round or in a later one."""
    run = await find_run(context, body.simulation_id)
    return answer(await _call(run, None, CommandType.INJECT, {"event": body.event}, body.timeout))


@router.post("/pause", response_model=Envelope[CommandAnswer])
async def pause(body: CloseRequest, context: Context) -> Response:
    """Let a run begin no more rounds."""
    run = await find_run(context, body.simulation_id)
    return answer(await _call(run, None, CommandType.PAUSE, {}, body.timeout))


@router.post("/continue", response_model=Envelope[CommandAnswer])
async def continue_(body: CloseRequest, context: Context) -> Response:
    """Let a paused run go on."""
    run = await find_run(context, body.simulation_id)
    return answer(await _call(run, None, CommandType.CONTINUE, {}, body.timeout))


@router.post("/env-status", response_model=Envelope[EnvironmentAnswer])
async def get_environment(body: RunRequest, context: Context) -> Response:
    """Say whether a worker takes commands now. Interviews need none: one is revived for them."""
    run = await find_run(context, body.simulation_id)
    alive = find_worker(run) is not None and run.read_env_status().get("status") == "alive"
    return answer(
        {
            "simulation_id": body.simulation_id,
            "env_alive": alive,
            **{f"{world}_available": alive and world in run.worlds for world in ("twitter", "reddit")},
            "message": "a worker takes commands" if alive else "no worker is alive; an interview revives one",
        }
    )


@router.post("/close-env", response_model=Envelope[CommandAnswer])
async def close(body: CloseRequest, context: Context) -> Response:
    """Ask a worker that waits for commands to leave. Where there is none, nothing is to be done."""
    run = await find_run(context, body.simulation_id)
    worker = find_worker(run)
    try:
        found = await _call(run, None, CommandType.CLOSE, {}, body.timeout)
        if worker is not None and not run.read_state().runner_status.is_working:
            async with asyncio.timeout(body.timeout):
                await worker.wait()
    except RunLocked:
        found = {"success": True, "result": {"message": "no worker is alive"}, "timestamp": wall_clock()}
    return answer(found)
