"""A server on the loopback address, in a thread of the test, with a folder of its own."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from shoal.runs.directory import RunDirectory
from shoal.runs.launchers import ForkLauncher, Launcher, find_worker
from shoal.server import Client
from shoal.server.api.app import build_app
from shoal.server.api.settings import ServerSettings
from tests.runs.harness import start

SCENARIO: dict[str, Any] = {
    "name": "small",
    "topic": "the old bridge",
    "population": [{"count": 12}],
    "rounds": 6,
    "time": {"daily_rhythm": False},
    "worlds": {"twitter": None, "reddit": None},
    "seed": 4,
}
#: Ada follows Bo, who posts at the start. Both are always awake.
VILLAGE: dict[str, Any] = {
    "name": "village",
    "population": [{"name": name, "activity": 1.0, "active_hours": "0-23"} for name in ("Ada", "Bo", "Cy")],
    "time": {"daily_rhythm": False},
    "follows": {"graph": "none", "edges": [["Ada", "Bo"], ["Bo", "Ada"]]},
    "worlds": {"twitter": None},
    "events": [{"post": "The bridge is closed.", "by": "Bo"}],
    "rounds": 3,
}


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class RunningServer:
    """A server that a test talks to."""

    port: int
    folder: Path
    thread: threading.Thread
    server: uvicorn.Server
    context: Any

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(self, token: str | None = None) -> Client:
        return Client(self.url, token)

    def request(self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None) -> Answer:
        """Send a request as it is, without the care that the client takes."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        given = {**({} if content is None else {"Content-Type": "application/json"}), **(headers or {})}
        connection.request(method, path, content, given)
        response = connection.getresponse()
        answer = Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        connection.close()
        return answer

    def get(self, path: str, **headers: str) -> Answer:
        return self.request("GET", f"/api/simulation/{path}", headers=headers)

    def post(self, path: str, body: object) -> Answer:
        return self.request("POST", f"/api/simulation/{path}", body)

    def stop(self) -> None:
        self.context.leave()
        self.server.should_exit = True
        self.thread.join(30)
        assert not self.thread.is_alive()


def start_server(settings: ServerSettings, launcher: Launcher | None = None) -> RunningServer:
    guard = build_app(settings, launcher)
    config = uvicorn.Config(guard, host="127.0.0.1", port=settings.port, log_level="error", ws="none", loop="asyncio")
    server, ready = uvicorn.Server(config), threading.Event()

    async def serve() -> None:
        started = server.startup

        async def startup(sockets: Any = None) -> None:
            await started(sockets)
            ready.set()

        server.startup = startup  # type: ignore[method-assign]
        await server.serve()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(30)
    port = server.servers[0].sockets[0].getsockname()[1]
    return RunningServer(port, settings.runs, thread, server, guard.app.state.context)


Serve = Callable[..., RunningServer]


IDLE_SECONDS = 60


@pytest.fixture(scope="session")
def idle_forks() -> Iterator[ForkLauncher]:
    """Starts workers that wait for commands after their runs, without importing everything each time."""
    # Its fork server begins with the first worker, in an event loop: as a process of its own, and no fork of this one.
    launcher = ForkLauncher(os.environ, IDLE_SECONDS)
    yield launcher
    launcher.close()


@pytest.fixture
def serve(tmp_path: Path, idle_forks: ForkLauncher) -> Iterator[Serve]:
    """Starts servers on one folder. Neither they nor the workers of their runs outlive the test.

    Servers with settings for workers, and all but the first one of a test, start workers as the command does.
    """
    servers: list[RunningServer] = []

    def start_one(**settings: Any) -> RunningServer:
        usual = ServerSettings(runs=tmp_path / "runs", port=0, environ=dict(os.environ), idle_seconds=IDLE_SECONDS)
        is_plain = not servers and settings.keys().isdisjoint({"environ", "idle_seconds"})
        servers.append(start_server(replace(usual, **settings), idle_forks if is_plain else None))
        return servers[-1]

    yield start_one
    for server in servers:
        server.stop()
    for run in (tmp_path / "runs").glob("*/worker.lock"):
        if (worker := find_worker(RunDirectory(run.parent))) is not None:
            os.killpg(worker.pid, signal.SIGKILL)


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("finished") / "finished"
    start(SCENARIO, run)
    return run


@pytest.fixture
def finished(tmp_path: Path, finished_run: Path) -> str:
    """The id of a complete run in the folder of the servers."""
    return shutil.copytree(finished_run, tmp_path / "runs" / "finished").name


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)
