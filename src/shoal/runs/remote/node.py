"""The task that works on a run on a node of a cluster."""

from __future__ import annotations

import asyncio
import os
import platform
import sys
from contextlib import closing, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import shoal
from shoal.errors import HeadLost, ShoalError, Stopped
from shoal.event_loop import run_async
from shoal.runs.commands.serving import RunServing
from shoal.runs.directory import LOG, RunDirectory
from shoal.runs.launchers.process import record_failure
from shoal.runs.remote.messages import HeadAddress, Purpose
from shoal.runs.remote.sender import RunSender, connect_to_head
from shoal.runs.resources import RunResources
from shoal.slots import RemoteBroker


def work_on_node(address: HeadAddress) -> None:
    """Work on the run that is kept at an address, from wherever it is; HeadLost where that machine cannot be reached.

    Repeating this is harmless, as the run goes on from its journal.
    """
    if "" not in sys.path:
        # Users' own worlds and minds are also looked for in the folder that the task was started in.
        sys.path.append("")
    run_async(work_on_run_at(address))


def describe_node() -> tuple[str, str]:
    """Return the versions of Shoal and Python that a node has."""
    return shoal.__version__, ".".join(platform.python_version_tuple()[:2])


async def work_on_run_at(address: HeadAddress) -> None:
    """Work on the run that is kept at an address until nothing is left to do, or until it is to stop."""
    sender = await connect_to_head(address)
    with closing(sender), TemporaryDirectory(prefix="shoal-node-") as folder:
        run, order = await sender.fetch_input(Path(folder))
        resources = RunResources(
            environ={**os.environ, **order.environ},
            cache=sender,
            slots=RemoteBroker(address.host, address.port, address.greet(Purpose.BROKER)),
            copy=sender,
        )
        with run.file(LOG).open("a") as log, redirect_stdout(log), redirect_stderr(log):
            async with sender.following(run):
                await _work_while_connected(run, resources, sender)


async def _work_while_connected(run: RunDirectory, resources: RunResources, sender: RunSender) -> None:
    working = asyncio.create_task(RunServing(run, resources=resources).work(sender.stop))
    try:
        await asyncio.wait((working, sender.ended), return_when=asyncio.FIRST_COMPLETED)
    finally:
        working.cancel()
        await asyncio.wait((working,))
    try:
        with suppress(Stopped, asyncio.CancelledError):
            working.result()
    except HeadLost:
        return
    except Exception as error:
        record_failure(run, error)
        if not isinstance(error, ShoalError):
            sys.excepthook(*sys.exc_info())
