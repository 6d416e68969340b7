"""Serves the application with uvicorn, until it is asked to leave. Runs go on without it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import uvicorn

from shoal.event_loop import run_async
from shoal.server.api.app import build_app
from shoal.server.api.context import ServerContext
from shoal.server.api.settings import ServerSettings

#: How long requests under way have, when the server is asked to leave.
_GRACE_SECONDS = 3
_BACKLOG = 4096


class _AnnouncedServer(uvicorn.Server):
    """A server that says where it listens, and lets its event streams end when it leaves."""

    def __init__(self, config: uvicorn.Config, announce: Callable[[str], object], leave: Callable[[], object]) -> None:
        super().__init__(config)
        self._announce = announce
        self._leave = leave

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        await super().startup(sockets)  # type: ignore[arg-type]
        if self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            self._announce(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")

    async def shutdown(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        self._leave()
        await super().shutdown(sockets)  # type: ignore[arg-type]


def serve(settings: ServerSettings, announce: Callable[[str], object], lasting: float | None = None) -> None:
    """Serve until a signal ends it, or for a number of seconds. `announce` gets the address, once it is listened to."""
    guard = build_app(settings)
    context: ServerContext = guard.app.state.context
    config = uvicorn.Config(
        guard,
        host=settings.host,
        port=settings.port,
        ws="none",
        server_header=False,
        access_log=False,
        log_level=logging.WARNING,
        backlog=_BACKLOG,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        proxy_headers=False,
    )
    server = _AnnouncedServer(config, announce, context.leave)

    async def serve_for_a_while() -> None:
        if lasting is not None:
            asyncio.get_running_loop().call_later(lasting, setattr, server, "should_exit", True)
        await server.serve()

    run_async(serve_for_a_while())
