"""Makes simulations, starts and stops them, and says what they are."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from shoal.errors import ArgumentInvalid, RunMissing, RunRefused, ShoalError
from shoal.preparation import (
    PreparationFolder,
    PreparationRequest,
    describe_config,
    describe_prepared_simulation,
    describe_profiles,
    describe_task,
    name_apart,
    parse_document,
)
from shoal.runs import RunDirectory, archive_run, extend_run, plan_resume
from shoal.runs.launchers import find_worker, restart_run, start_run, stop_run
from shoal.scenario import ExampleScenario, TextProblem, list_examples
from shoal.server.api import describing
from shoal.server.api.context import Context, ServerContext, answer, find_run, in_thread, is_foreign_page
from shoal.server.messages.base import Envelope, ListEnvelope, RunId, RunRequest, WorldName
from shoal.server.messages.lifecycle import (
    ArchiveRequest,
    ForkBody,
    HistoryInfo,
    MirofishBody,
    PrepareAnswer,
    PrepareRequest,
    PrepareStatusRequest,
    ScenarioBody,
    SimulationInfo,
    StartAnswer,
    StartRequest,
    TextBody,
)
from shoal.server.messages.observation import ProfilesAnswer, RunStatus
from shoal.server.messages.preparation import PreparationBody

router = APIRouter(tags=["lifecycle"])
_log = logging.getLogger(__name__)

#: MiroFish's name for all platforms at once.
_ALL_WORLDS = "parallel"
Limit = Annotated[int, Query(ge=1, le=1_000)]
Offset = Annotated[int, Query(ge=0, le=10_000_000)]


@router.post("/create", response_model=Envelope[SimulationInfo])
async def create(body: ScenarioBody | TextBody | MirofishBody | PreparationBody, context: Context) -> Response:
    """Make a simulation of a scenario, or of what MiroFish prepared. It can be started at once.

    One of a requirement in plain words and documents has to be prepared first.
    """
    if isinstance(body, PreparationBody):
        folder = await in_thread(_begin_preparation, context, body)
        return answer(describe_prepared_simulation(folder))
    run = await in_thread(context.folder.create, body)
    return answer(await in_thread(describing.describe_simulation, run))


@router.get("/examples", response_model=Envelope[list[ExampleScenario]])
async def get_examples() -> Response:
    """List scenarios to start from."""
    return answer(await in_thread(list_examples))


@router.post("/check", response_model=Envelope[list[TextProblem]])
async def check(body: TextBody, context: Context) -> Response:
    """List every mistake in the text of a scenario, with its line; none: it can be created."""
    return answer(await in_thread(context.folder.check, body.text))


@router.post("/fork", response_model=Envelope[SimulationInfo])
async def fork(body: ForkBody, context: Context) -> Response:
    """Branch a simulation at a round: with other settings, with events, or without some people.

    The fork has the same past before that round, for nothing. It can be started at once.
    """
    run = await in_thread(context.folder.fork, body)
    return answer(await in_thread(describing.describe_simulation, run))


@router.post("/archive", response_model=Envelope[SimulationInfo])
async def archive(body: ArchiveRequest, context: Context) -> Response:
    """Put a simulation away, or list it again. Nothing of it is moved or deleted."""
    run = await find_run(context, body.simulation_id)
    await in_thread(archive_run, run, body.archived)
    return answer(await in_thread(describing.describe_simulation, run))


def _begin_preparation(context: ServerContext, body: PreparationBody) -> PreparationFolder:
    """Keep what is to be prepared. Documents are the texts that were sent; no file of this machine is read."""
    documents = name_apart(parse_document(each.name, each.text.encode()) for each in body.documents)
    tables = tuple((f"{number}-table.csv", each.text) for number, each in enumerate(body.marginals, 1))
    settings = body.model_dump(exclude={"requirement", "documents", "marginals", "worlds", "model"})
    worlds = None if body.worlds is None else tuple(body.worlds)
    model = body.model or context.settings.model
    request = PreparationRequest.of(body.requirement, documents, tables=tables, worlds=worlds, model=model, **settings)
    return context.preparations.begin(request)


@router.post("/prepare", response_model=Envelope[PrepareAnswer])
async def prepare(body: PrepareRequest, context: Context) -> Response:
    """Let a process prepare a simulation, or go on with it. One that is prepared stays as it is."""
    run = await _find_prepared(context, body.simulation_id)
    if run is not None:
        return answer(await in_thread(describing.describe_preparation, run))
    folder = await in_thread(context.preparations.find, body.simulation_id)
    if await in_thread(context.preparations.count_working) >= context.settings.max_workers:
        raise RunRefused("as many simulations are prepared as this server allows at once; wait for one")
    task = await context.preparations.start(folder)
    return answer(
        {
            "simulation_id": body.simulation_id,
            "task_id": task,
            "status": "preparing",
            "message": "the preparation goes on; ask prepare/status how far it is",
            "already_prepared": False,
            "expected_entities_count": folder.read_state().entities,
            "entity_types": [],
        }
    )


@router.post("/prepare/status", response_model=Envelope[PrepareAnswer])
async def prepare_status(body: PrepareStatusRequest, context: Context) -> Response:
    """Answer how far the preparation is, by the simulation or by its task."""
    if body.simulation_id is None and body.task_id is None:
        raise ArgumentInvalid("simulation_id", "name a simulation, or the task that prepares it")
    identity = body.simulation_id
    if identity is None:
        identity = (await in_thread(context.preparations.find_task, body.task_id)).path.name
    run = await _find_prepared(context, identity)
    if run is not None:
        return answer(await in_thread(describing.describe_preparation, run))
    task = await in_thread(describe_task, await in_thread(context.preparations.find, identity))
    # The process may have made the run, and ended, since it was looked for: that is no interruption.
    if task["status"] == "failed" and (run := await _find_prepared(context, identity)) is not None:
        return answer(await in_thread(describing.describe_preparation, run))
    return answer(task)


async def _find_prepared(context: ServerContext, identity: str) -> RunDirectory | None:
    """Find a run; None where it is only to be prepared. RunMissing where there is neither."""
    try:
        return await find_run(context, identity)
    except RunMissing:
        await in_thread(context.preparations.find, identity)
        return None


@router.post("/start", response_model=Envelope[StartAnswer])
async def start(body: StartRequest, context: Context, request: Request) -> Response:
    """Start a simulation, or continue one that was stopped, failed or interrupted.

    With `force` it starts over, and what it had written is moved to `archive/N/`.
    """
    run = await _find_prepared(context, body.simulation_id)
    if run is None:
        raise ArgumentInvalid("simulation_id", f"{body.simulation_id} is not prepared yet; POST prepare does that")
    if body.platform != _ALL_WORLDS and (body.platform,) != run.worlds:
        raise ArgumentInvalid("platform", f"the worlds of this simulation are {', '.join(run.worlds)}: use parallel")
    await in_thread(_check_room, context)
    shorten = None if body.max_rounds is None else partial(_shorten, max_rounds=body.max_rounds)
    if body.force:
        await restart_run(run, context.launcher, change=shorten)
    else:
        if shorten is not None:
            await in_thread(shorten, run)
        await start_run(run, context.launcher)
    if is_foreign_page(context, request):
        context.looks.note_start(body.simulation_id)
    # Opened again: its journal may be another one now.
    status = await in_thread(describing.describe_status, await find_run(context, body.simulation_id))
    applied: dict[str, Any] = {} if body.max_rounds is None else {"max_rounds_applied": body.max_rounds}
    if body.enable_graph_memory_update:
        applied["graph_id"] = run.scenario.notes.get("graph_id") or run.path.name
    enabled = body.enable_graph_memory_update
    return answer({**status, **applied, "force_restarted": body.force, "graph_memory_update_enabled": enabled})


def _check_room(context: ServerContext) -> None:
    """Raise RunRefused where as many workers are alive as this server may have."""
    alive = sum(find_worker(RunDirectory(context.folder.path / name)) is not None for name in context.folder.list_ids())
    if alive >= context.settings.max_workers:
        raise RunRefused(f"{alive} simulations run already, which is the most that this server starts; stop one first")


def _shorten(run: RunDirectory, max_rounds: int) -> None:
    """Let a run end earlier. It is never made longer, as MiroFish's clients expect."""
    if max_rounds < run.scenario.rounds:
        plan = plan_resume(run, max_rounds)
        if plan.extension is not None:
            extend_run(run, plan.extension)


@router.post("/stop", response_model=Envelope[RunStatus])
async def stop(body: RunRequest, context: Context) -> Response:
    """Stop a simulation. It can be started again, and continues then."""
    run = await find_run(context, body.simulation_id)
    await stop_run(run)
    return answer(await in_thread(describing.describe_status, run))


@router.get("/list", response_model=ListEnvelope[SimulationInfo])
async def list_simulations(context: Context, limit: Limit = 100, offset: Offset = 0) -> Response:
    """List the simulations, newest first."""
    found = await in_thread(_describe_all, context, describing.describe_simulation, offset, limit)
    return answer(found, count=len(found))


def _describe_all(
    context: ServerContext, describe: Callable[[RunDirectory], dict[str, Any]], offset: int, limit: int
) -> list[dict[str, Any]]:
    """Describe some simulations. One that cannot be read is left out: asked for by its id, it says why."""
    found = []
    for name in context.folder.list_ids()[offset : offset + limit]:
        try:
            found.append(describe(context.folder.find(name)))
        except ShoalError as error:
            _log.warning("%s cannot be read: %s", name, error)
    return found


@router.get("/history", response_model=ListEnvelope[HistoryInfo])
async def history(context: Context, limit: Limit = 20, offset: Offset = 0) -> Response:
    """List past simulations with what the overview shows of them."""
    found = await in_thread(_describe_all, context, describing.describe_history, offset, limit)
    return answer(found, count=len(found))


@router.get("/{simulation_id}", response_model=Envelope[SimulationInfo])
async def get_simulation(simulation_id: RunId, context: Context) -> Response:
    """Describe a simulation."""
    run = await _find_prepared(context, simulation_id)
    if run is None:
        return answer(await in_thread(describe_prepared_simulation, context.preparations.find(simulation_id)))
    return answer(await in_thread(describing.describe_simulation, run))


@router.get("/{simulation_id}/config", response_model=Envelope[dict[str, object]])
async def get_config(simulation_id: RunId, context: Context) -> Response:
    """Return the frozen input of a simulation."""
    return answer(await in_thread(describing.read_config_file, await find_run(context, simulation_id)))


@router.get("/{simulation_id}/config/realtime", response_model=Envelope[dict[str, object]])
async def get_config_as_it_is_made(simulation_id: RunId, context: Context) -> Response:
    """Return the frozen input with the fields by which MiroFish's pages follow its preparation."""
    run = await _find_prepared(context, simulation_id)
    if run is None:
        return answer(await in_thread(describe_config, context.preparations.find(simulation_id)))
    return answer(
        {
            "simulation_id": simulation_id,
            "file_exists": True,
            "file_modified_at": run.config.generated_at,
            "is_generating": False,
            "generation_stage": "completed",
            "config_generated": True,
            "config": await in_thread(describing.read_config_file, run),
        }
    )


@router.get("/{simulation_id}/profiles", response_model=Envelope[ProfilesAnswer])
@router.get("/{simulation_id}/profiles/realtime", response_model=Envelope[ProfilesAnswer])
async def get_profiles(
    simulation_id: RunId, context: Context, platform: WorldName = "reddit", limit: Limit = 1_000, offset: Offset = 0
) -> Response:
    """List the people of a simulation, in the order of their numbers."""
    run = await _find_prepared(context, simulation_id)
    if run is None:
        return answer(await in_thread(_describe_growing, context.preparations.find(simulation_id), platform))
    total, profiles = await in_thread(describing.describe_people, run, offset, limit)
    realtime = {"simulation_id": simulation_id, "total_expected": total, "is_generating": False, "file_exists": True}
    count = {"platform": platform, "count": len(profiles), "total": total, "profiles": profiles}
    return answer({**realtime, "file_modified_at": run.config.generated_at, **count})


def _describe_growing(folder: PreparationFolder, platform: str) -> dict[str, Any]:
    """Return the people who are made so far."""
    profiles, state = describe_profiles(folder), folder.read_state()
    count = {"platform": platform, "count": len(profiles), "total": len(profiles), "profiles": profiles}
    growing = {"total_expected": state.entities, "is_generating": state.status == "preparing", "file_exists": False}
    return {"simulation_id": folder.path.name, "file_modified_at": state.updated_at or None, **growing, **count}
