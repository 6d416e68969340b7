"""What all routes of a server use: its runs, its launcher, and how answers and errors are written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

import msgspec
from fastapi import Depends, Request
from fastapi.responses import Response

from shoal.preparation import PreparationShelf
from shoal.runs import RunDirectory
from shoal.runs.launchers import Launcher
from shoal.runs.views import CardReader, PeopleReader
from shoal.server.api.caches.networks import NetworkShelf
from shoal.server.api.caches.reruns import BoundedReruns, RememberedAnswers
from shoal.server.api.experiments import ExperimentFolder
from shoal.server.api.folder import RunFolder
from shoal.server.api.guard import Guard
from shoal.server.api.last_looks import LastLooks
from shoal.server.api.pages import PageFiles
from shoal.server.api.settings import ServerSettings
from shoal.server.api.surveys import SurveyShelf
from shoal.unix import FolderWatch

T = TypeVar("T")

_encode = msgspec.json.Encoder(enc_hook=str).encode


@dataclass(slots=True)
class ServerContext:
    """The parts of one server. It knows no run by heart: what it tells is read when it is asked."""

    settings: ServerSettings
    folder: RunFolder
    experiments: ExperimentFolder
    launcher: Launcher
    looks: LastLooks
    pages: PageFiles
    preparations: PreparationShelf
    #: What was read of runs, kept for as long as their files stay the same.
    cards: CardReader = field(default_factory=CardReader)
    people: PeopleReader = field(default_factory=PeopleReader)
    networks: NetworkShelf = field(default_factory=NetworkShelf)
    answers: RememberedAnswers = field(default_factory=RememberedAnswers)
    reruns: BoundedReruns = field(default_factory=BoundedReruns)
    surveys: SurveyShelf = field(init=False)
    #: Set when the server starts, in its event loop.
    watch: FolderWatch | None = None
    #: One for each event stream that is open, set when it has to look.
    streams: set[asyncio.Event] = field(default_factory=set)
    is_leaving: bool = False

    def __post_init__(self) -> None:
        self.surveys = SurveyShelf(self.folder.path, self.settings.environ)

    def leave(self) -> None:
        """Let the event streams and surveys end. Clients of streams come back to the next server."""
        self.is_leaving = True
        self.surveys.close()
        for stream in self.streams:
            stream.set()


def find_context(request: Request) -> ServerContext:
    context: ServerContext = request.app.state.context
    return context


def find_guard(request: Request) -> Guard:
    guard: Guard = request.app.state.guard
    return guard


Context = Annotated[ServerContext, Depends(find_context)]


def is_foreign_page(context: ServerContext, request: Request) -> bool:
    """Return whether a page of another origin asks, which was allowed to by its name."""
    return request.headers.get("origin") in context.settings.origins


def answer(data: object, **more: object) -> Response:
    """Answer with the usual envelope. It is not validated once more: a page of actions is answered as it was read."""
    return Response(_encode({"success": True, "data": data, **more}), media_type="application/json")


async def in_thread(work: Callable[..., T], *args: Any) -> T:
    """Do what may read many bytes without holding up other requests."""
    return await asyncio.to_thread(work, *args)


async def find_run(context: ServerContext, identity: str) -> RunDirectory:
    """Find a run by its id; RunMissing, which is answered with 404, for another id."""
    return await in_thread(context.folder.find, identity)
