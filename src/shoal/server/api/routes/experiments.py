"""Starts, stops and follows experiments, and answers what they found."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Query, Response
from fastapi.responses import FileResponse
from starlette.background import BackgroundTask

from shoal.errors import RunMissing, ShoalError
from shoal.experiments.comparison import export_results
from shoal.experiments.live import (
    ExperimentOptions,
    ExperimentProgress,
    continue_experiment,
    start_experiment,
    stop_experiment,
    watch_experiment,
)
from shoal.experiments.report import (
    PAGE,
    ExperimentReport,
    describe_curves,
    describe_report,
    read_curves,
    read_record,
    report_experiment,
)
from shoal.server.api.context import Context, ServerContext, answer, in_thread
from shoal.server.api.experiments import describe_design, read_change
from shoal.server.messages.base import Envelope, ListEnvelope
from shoal.server.messages.experiments import (
    CurvesAnswer,
    ExperimentAnswer,
    ExperimentInfo,
    ExperimentLimits,
    ExperimentName,
    ExperimentReportAnswer,
    ExperimentStart,
)
from shoal.slots import BrokerLocation, fetch_snapshot

router = APIRouter(tags=["experiments"])

Download = Literal["csv", "parquet", "report"]
_COUNTS = ("runs", "ended", "failed", "stopped", "passed", "judged", "calls")
_MEDIA = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}


@router.get("/list", response_model=ListEnvelope[ExperimentInfo])
async def list_experiments(
    context: Context,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    offset: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
) -> Response:
    """List the experiments, the one that was worked on last first."""
    found = await in_thread(_describe_all, context, offset, limit)
    return answer(found, count=len(found))


def _describe_all(context: ServerContext, offset: int, limit: int) -> list[dict[str, Any]]:
    """Describe some experiments. One that cannot be read is shown with the reason."""
    found = []
    for name in context.experiments.list_names()[offset : offset + limit]:
        try:
            found.append(_describe_short(name, watch_experiment(context.experiments.find(name))))
        except ShoalError as error:
            unknown = dict.fromkeys(ExperimentInfo.model_fields, 0)
            texts = {"title": name, "topic": "", "made_at": "", "updated_at": "", "cost": None}
            found.append({**unknown, **texts, "name": name, "status": "unreadable", "reason": str(error)})
    return found


@router.post("/start", response_model=Envelope[ExperimentAnswer])
async def start(body: ExperimentStart, context: Context) -> Response:
    """Start an experiment as a process that goes on when the server ends."""
    folder = await in_thread(context.experiments.create, body.text)
    try:
        await start_experiment(folder, _read_options(body), context.settings.environ)
    finally:
        await in_thread(context.experiments.remove_unstarted, folder)
    return await get_experiment(folder.name, context)


@router.post("/{name}/continue", response_model=Envelope[ExperimentAnswer])
async def continue_(name: ExperimentName, body: ExperimentLimits, context: Context) -> Response:
    """Go on with an experiment that was stopped, killed, or used up a budget. Nothing that has ended is repeated."""
    folder = await in_thread(context.experiments.find, name)
    await continue_experiment(folder, _read_options(body), context.settings.environ)
    return await get_experiment(name, context)


@router.post("/{name}/stop", response_model=Envelope[ExperimentAnswer])
async def stop(name: ExperimentName, context: Context) -> Response:
    """Stop an experiment. Its runs stop where they are, and go on there when it is continued."""
    await stop_experiment(await in_thread(context.experiments.find, name))
    return await get_experiment(name, context)


def _read_options(body: ExperimentLimits) -> ExperimentOptions:
    return ExperimentOptions(**{name: getattr(body, name) for name in ExperimentOptions.__struct_fields__})


@router.get("/{name}", response_model=Envelope[ExperimentAnswer])
async def get_experiment(name: ExperimentName, context: Context) -> Response:
    """Say how far an experiment is, run by run."""
    return answer(await in_thread(_describe, context, name))


@router.get("/{name}/report", response_model=Envelope[ExperimentReportAnswer])
async def get_report(name: ExperimentName, context: Context) -> Response:
    """Return what an experiment has found so far, with every figure of its report."""
    return answer(await _remember(context, "report", name, describe_report))


@router.get("/{name}/curves", response_model=ListEnvelope[CurvesAnswer])
async def get_curves(name: ExperimentName, context: Context) -> Response:
    """Return the metrics of every arm over rounds, with intervals over its runs."""
    return answer(await _remember(context, "curves", name, lambda report: list(describe_curves(read_curves(report)))))


async def _remember(
    context: ServerContext, kind: str, name: str, describe: Callable[[ExperimentReport], object]
) -> msgspec.Raw:
    """Describe the report of an experiment, once for the same results."""
    folder = context.experiments.find(name)

    def compute() -> object:
        return describe(report_experiment(read_record(folder)))

    return await in_thread(context.answers.recall, (kind, name), read_change(folder), compute)


@router.get("/{name}/download/{what}")
async def download(name: ExperimentName, what: Download, context: Context) -> Response:
    """Return the results as one table with a row for each run, or the report as a page."""
    folder = await in_thread(context.experiments.find, name)
    if what == "report":
        if not (folder / PAGE).is_file():
            raise RunMissing(f"{name} has no report yet; it is written when the experiment stops")
        return FileResponse(folder / PAGE, filename=f"{name}.html", media_type="application/octet-stream")
    handle, path = tempfile.mkstemp(suffix=f".{what}")
    os.close(handle)
    try:
        await in_thread(export_results, folder, Path(path), what)
    except BaseException:
        await asyncio.shield(in_thread(os.unlink, path))
        raise
    removal = BackgroundTask(os.unlink, path)
    return FileResponse(path, filename=f"{name}.{what}", media_type=_MEDIA[what], background=removal)


def _describe_short(identity: str, view: ExperimentProgress) -> dict[str, Any]:
    standing = view.standing
    return {
        "name": identity,
        **describe_design(view.design),
        "status": view.status,
        "reason": standing.state.reason if view.status == "stopped" else None,
        **{name: standing.count(name) for name in _COUNTS},
        "cost": standing.cost,
        "tiers": len(view.design.tiers),
        "arms": len(view.arms),
        "updated_at": standing.state.updated_at or view.design.made_at,
    }


def _describe(context: ServerContext, name: str) -> dict[str, Any]:
    view = watch_experiment(context.experiments.find(name))
    standing, state, tiers = view.standing, view.standing.state, {tier.name: tier for tier in view.design.tiers}
    budget = view.design.settings.get("budget") or {}
    described = []
    for tier_name, arms in groupby(view.arms, key=lambda arm: arm.standing.tier):
        tier = tiers[tier_name]
        described.append(
            {
                "name": tier_name,
                "control": tier.control,
                "inherits": tier.inherits,
                "start": state.starts.get(tier_name),
                "arms": [
                    {
                        **msgspec.to_builtins(arm.standing),
                        "is_control": arm.standing.arm == tier.control,
                        "changes": arm.changes,
                        "seeds": arm.seeds,
                        "marks": "".join(arm.marks),
                    }
                    for arm in arms
                ],
            }
        )
    return {
        **_describe_short(name, view),
        "expected_cost": standing.expected_cost,
        "max_cost": budget.get("max_cost"),
        "hours": state.hours.get("", 0.0),
        "seconds_left": standing.seconds_left if view.status == "running" else None,
        "notes": state.notes,
        "stops": msgspec.to_builtins(state.stops),
        "skipped": state.skipped,
        "spent": state.spent,
        "command": state.command,
        "limits": _list_limits(context) if view.status == "running" else [],
        "tier_list": described,
    }


def _list_limits(context: ServerContext) -> list[dict[str, Any]]:
    """Return what limits the calls of all runs of this user now, and what was learned about it."""
    snapshot = fetch_snapshot(BrokerLocation.of_user(context.settings.environ))
    return [
        {"name": pool.name, "held": pool.held, "waiting": pool.waiting, "size": pool.control.get("size")}
        for pool in (() if snapshot is None else snapshot.pools)
    ]
