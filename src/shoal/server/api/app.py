"""The server as one ASGI application: its routes, its guard, and how errors are answered."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

import shoal
from shoal.errors import (
    AgentMissing,
    ArgumentInvalid,
    QueryFailed,
    RunMissing,
    RunRefused,
    ScenarioInvalid,
    ShoalError,
    SinkFailed,
    StorageFailed,
    WorkerLost,
)
from shoal.preparation import PreparationShelf
from shoal.runs.launchers import Launcher, LocalLauncher
from shoal.server.api.context import ServerContext, find_guard
from shoal.server.api.experiments import ExperimentFolder
from shoal.server.api.folder import RunFolder
from shoal.server.api.guard import COOKIE, HEALTH, SESSION, Guard, RequestRefused
from shoal.server.api.last_looks import LastLooks
from shoal.server.api.pages import PageFiles
from shoal.server.api.routes import (
    bundles,
    commands,
    comparing,
    events,
    experiments,
    graph,
    lifecycle,
    observation,
    pages,
    planning,
    preparing,
    reports,
    views,
)
from shoal.server.api.routes.people import agents, network, seats, surveys
from shoal.server.api.settings import ServerSettings
from shoal.server.messages.base import ErrorAnswer, SessionRequest
from shoal.unix import FolderWatch

PREFIX = "/api/simulation"
GRAPH_PREFIX = "/api/graph"
REPORT_PREFIX = "/api/report"
EXPERIMENT_PREFIX = "/api/experiments"
#: Routes of simulations. Fixed names come before what takes any id.
_OF_RUNS = (
    events, views, bundles, commands, seats, planning, preparing, comparing, agents, surveys, network, observation,
    lifecycle,
)  # fmt: skip
_log = logging.getLogger(__name__)

_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (RunMissing, 404),
    (AgentMissing, 404),
    (ScenarioInvalid, 400),
    (ArgumentInvalid, 400),
    (QueryFailed, 400),
    (WorkerLost, 503),
    (StorageFailed, 503),
    (SinkFailed, 503),
    (RunRefused, 409),
    (ShoalError, 400),
)
_ERRORS = (400, 401, 403, 404, 405, 408, 409, 413, 429, 503, 504)

base = APIRouter()


@base.get(HEALTH)
async def health() -> dict[str, str]:
    """Say that the server is there."""
    return {"status": "ok", "service": f"shoal {shoal.__version__}"}


@base.post(SESSION)
async def open_session(body: SessionRequest, request: Request) -> Response:
    """Take the token, and give a browser a cookie for it, which its pages cannot read."""
    settings: ServerSettings = request.app.state.context.settings
    response = JSONResponse({"success": True, "data": {}})
    if settings.token is not None:
        find_guard(request).check_token(request.client.host if request.client else "", body.token)
        response.set_cookie(
            COOKIE, settings.token, httponly=True, samesite="strict", secure=request.url.scheme == "https"
        )
    return response


def build_app(settings: ServerSettings, launcher: Launcher | None = None) -> Guard:
    """Build the application behind its guard. It can be started on any server that speaks ASGI."""
    settings.check()
    launcher = launcher or LocalLauncher(settings.environ, settings.idle_seconds)
    folder = RunFolder(settings.runs, settings.key_variables, settings.model, settings.results)
    looks = LastLooks(settings.page_patience_seconds)
    results = ExperimentFolder(settings.results, settings.key_variables)
    preparations = PreparationShelf(settings.runs, settings.environ)
    context = ServerContext(settings, folder, results, launcher, looks, PageFiles(settings.pages), preparations)

    @asynccontextmanager
    async def live(app: FastAPI) -> AsyncIterator[None]:
        with FolderWatch() as watch:
            context.watch = watch
            yield

    app = FastAPI(
        title="Shoal",
        version=shoal.__version__,
        description="Runs populations of agents as experiments.",
        lifespan=live,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
    )
    app.state.context = context
    app.include_router(base)
    for module in _OF_RUNS:
        app.include_router(module.router, prefix=PREFIX)
    app.include_router(graph.router, prefix=GRAPH_PREFIX)
    app.include_router(reports.router, prefix=REPORT_PREFIX)
    for router in (experiments.router, bundles.of_experiments):
        app.include_router(router, prefix=EXPERIMENT_PREFIX)
    app.include_router(pages.router)
    _answer_errors(app, str(context.folder.path))
    vars(app)["openapi"] = lambda: _describe(app)
    guard = app.state.guard = Guard(app, settings)
    return guard


def _describe(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document. What is wrong with a request is answered with 400, not with 422."""
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        # Declared for each route, they would make the first request of a server take twice as long.
        schemas = schema["components"]["schemas"]
        schemas["ErrorAnswer"] = ErrorAnswer.model_json_schema()
        content = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorAnswer"}}}
        errors = {str(code): {"description": HTTPStatus(code).phrase, "content": content} for code in _ERRORS}
        for path in schema["paths"].values():
            for operation in path.values():
                operation["responses"].pop("422", None)
                operation["responses"].update(errors)
        app.openapi_schema = schema
    return app.openapi_schema


def _answer_errors(app: FastAPI, folder: str) -> None:
    """Answer every error with the envelope: what is wrong, where, and nothing of the server's inside."""

    def fail(status: int, text: str, field: str | None = None, headers: dict[str, str] | None = None) -> JSONResponse:
        content = ErrorAnswer(error=text.replace(f"{folder}/", ""), field=field).model_dump()
        return JSONResponse(content, status, headers=headers)

    @app.exception_handler(ShoalError)
    async def answer_ours(request: Request, error: ShoalError) -> JSONResponse:
        status = next(status for kind, status in _STATUS if isinstance(error, kind))
        return fail(status, str(error), error.argument if isinstance(error, ArgumentInvalid) else None)

    @app.exception_handler(TimeoutError)
    async def answer_timeout(request: Request, error: TimeoutError) -> JSONResponse:
        return fail(504, str(error) or "the worker did not answer in time")

    @app.exception_handler(RequestRefused)
    async def answer_refusal(request: Request, error: RequestRefused) -> JSONResponse:
        headers = {} if error.retry_after is None else {"retry-after": str(error.retry_after)}
        return fail(error.status, str(error), headers=headers)

    @app.exception_handler(RequestValidationError)
    async def answer_invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path", "header"))
        # A malformed id is answered like that of a missing simulation.
        status = 404 if first["loc"][0] == "path" else 400
        return fail(status, f"{where}: {first['msg']}" if where else str(first["msg"]), where or None)

    @app.exception_handler(HTTPException)
    async def answer_http(request: Request, error: HTTPException) -> JSONResponse:
        return fail(error.status_code, str(error.detail), headers=dict(error.headers or {}))

    @app.exception_handler(Exception)
    async def answer_bug(request: Request, error: Exception) -> JSONResponse:
        _log.error("%s %s", request.method, request.url.path, exc_info=error)
        return fail(500, "internal error; the server's log has the details")
