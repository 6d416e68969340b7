"""Opens the launcher that a user chose by the place where runs are to work."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from importlib import import_module

from shoal.errors import ArgumentInvalid, RunRefused
from shoal.runs.launchers.base import Launcher
from shoal.runs.launchers.fork import ForkLauncher

LOCAL = "local"
_RAY = re.compile(r"ray(://(?P<address>[^/\s]+:\d+))?")


def fork_early(on: str, environ: Mapping[str, str]) -> AbstractContextManager[ForkLauncher | None]:
    """Fork this process for the workers of the local place, as it is before it has an event loop and code of the user.

    `open_launcher` starts them a second later without this. Other places need none.
    """
    return nullcontext() if read_place(on) is not None else ForkLauncher(environ, idle_seconds=0)


@asynccontextmanager
async def open_launcher(
    on: str, environ: Mapping[str, str], forks: ForkLauncher | None = None
) -> AsyncIterator[Launcher]:
    """Open a launcher for many short runs: `local`, `ray` for the cluster of this machine, or `ray://HOST:PORT`.

    `forks` is what `fork_early` returned, if it was called.
    """
    address = read_place(on)
    if address is None:
        with forks or ForkLauncher(environ, idle_seconds=0) as launcher:
            yield launcher
        return
    try:
        # An extra, which takes half a second to load.
        module = import_module("shoal.runs.launchers.ray")
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise RunRefused("--on ray needs the extra: `pip install 'shoal[ray]'`, here and on all nodes.") from error
    async with module.RayLauncher(address, environ) as launcher:
        yield launcher


def read_place(on: str) -> str | None:
    """Return the address of the Ray cluster that a place names; empty for that of this machine; None: no cluster."""
    if on == LOCAL:
        return None
    if (found := _RAY.fullmatch(on)) is None:
        raise ArgumentInvalid("on", f"expected local, ray, or ray://HOST:PORT, found {on!r}.")
    return found["address"] or ""
