"""Starts workers as tasks of a Ray cluster, on whichever nodes have room.

On this machine, which keeps the runs, each has a receiver: a process that holds the run's lock and keeps what its
worker writes. So everything that works with a run works with one of these. Ray places the tasks, and repeats one whose
node or process was lost; the run then goes on from its journal. When this program ends, so do its tasks, and the runs
can be started again.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import shutil
import socket
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import ray
from ray.exceptions import GetTimeoutError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from shoal.errors import HeadLost, RunRefused
from shoal.runs.directory import RunDirectory
from shoal.runs.doctor import DoctorTarget
from shoal.runs.launchers.base import WorkerMode, WorkerProcess
from shoal.runs.launchers.fork import ForkLauncher, is_shared
from shoal.runs.remote.launching import (
    LAUNCHER_VARIABLE,
    ReceiverHello,
    ReceiverReady,
    ReceiverTerms,
    TaskEnd,
    read_line,
    write_line,
)
from shoal.runs.remote.messages import HeadAddress
from shoal.runs.remote.node import describe_node, work_on_node

#: How many nodes or processes may be lost under one run before it counts as failed.
_MOST_LOSSES = 20
#: The share of a core that a run is given: one that asks language models mostly waits.
_ASKING_CPUS, _COMPUTING_CPUS = 0.25, 1.0
_NODE_CHECK_SECONDS = 60.0
_ANSWER_SECONDS = 5.0
_END_SECONDS = 2.0
#: The port of a Ray Client server, by convention. Through it, a machine that is no node of the cluster can use it.
_CLIENT_PORT = 10001
#: Parts of Ray have no types.
_untyped_ray: Any = ray
_KEY_ENDINGS = ("_API_KEY", "_BASE_URL")


class RayLauncher:
    """Starts workers on a Ray cluster; to be used as a context, which connects to it."""

    def __init__(self, address: str, environ: Mapping[str, str], idle_seconds: float = 0.0) -> None:
        """`address` is that of a cluster, such as `10.0.0.5:6379`; empty: the one that this machine belongs to."""
        self._address = address
        self._environ = dict(environ)
        self._token = secrets.token_hex(16)
        self._folder = Path(tempfile.mkdtemp(prefix="shoal-ray-"))
        self._fork = ForkLauncher({**environ, LAUNCHER_VARIABLE: str(self._socket)}, idle_seconds)
        self._server: asyncio.Server | None = None
        self._is_ours = False
        self._host = ""
        #: How many runs a process works on before it ends -> the task; 0: any number. What a class of the user's own
        #: keeps in its module must not reach the next run.
        self._tasks: dict[int, Any] = {calls: ray.remote(max_calls=calls)(work_on_node) for calls in (0, 1)}
        #: Directory of a run -> its receiver, once that is ready.
        self._ready: dict[str, int] = {}
        self._following: set[asyncio.Task[None]] = set()

    @property
    def _socket(self) -> Path:
        return self._folder / "launcher.sock"

    async def start(self, run: RunDirectory, mode: WorkerMode = WorkerMode.WORK) -> WorkerProcess:
        """Start a worker, and return once the cluster knows of it; WorkerLost with the reason if that fails."""
        if mode is not WorkerMode.WORK:
            # It answers commands to a run that is here.
            return await self._fork.start(run, mode)
        directory = str(run.path.absolute())
        return await self._fork.start_receiver(run, lambda pid: self._ready.get(directory) == pid)

    async def __aenter__(self) -> RayLauncher:
        with self._fork:
            await asyncio.to_thread(self._connect)
            self._server = await asyncio.start_unix_server(self._accept, str(self._socket))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End all tasks of this launcher, and no others; receivers see it and end."""
        for task in self._following:
            task.cancel()
        await asyncio.gather(*self._following, return_exceptions=True)
        if self._server is not None:
            self._server.close()
        self._fork.close()
        if self._is_ours:
            await asyncio.to_thread(ray.shutdown)
        shutil.rmtree(self._folder, ignore_errors=True)

    # The cluster

    def _connect(self) -> None:
        """Connect to the cluster, unless this process is connected already, and check its nodes."""
        if not ray.is_initialized():
            address = _complete_address(self._address or self._environ.get("RAY_ADDRESS", ""))
            _check_reachable(address)
            try:
                ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, namespace="shoal")
            except (ConnectionError, ValueError) as error:
                raise RunRefused(
                    f"no Ray cluster {f'answers at {self._address}' if self._address else 'runs on this machine'}.\n"
                    "Start one with `ray start --head`, or name one: --on ray://HOST:6379."
                ) from error
            except RuntimeError as error:
                raise RunRefused(f"the Ray cluster cannot be used from here: {_first_line(error)}") from error
            self._is_ours = True
        # The address under which nodes reach this machine.
        if urlsplit(f"//{self._address}").port != _CLIENT_PORT:
            self._host = str(_untyped_ray.util.get_node_ip_address())
        else:
            parts = urlsplit(f"//{self._address}")
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                # Nothing is sent. The system chooses the way to the cluster, and with it the address of this end.
                probe.connect((parts.hostname, parts.port))
                self._host = str(probe.getsockname()[0])
        self._check_nodes()

    def _check_nodes(self) -> None:
        """Refuse nodes that run something else than this machine, before anything runs there."""
        nodes = [node for node in _untyped_ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]
        if not nodes:
            raise RunRefused("the Ray cluster has no node with a CPU to work on")
        task = ray.remote(num_cpus=0, max_retries=0)(describe_node)
        asked = {
            node["NodeManagerAddress"]: task.options(
                scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=True)
            ).remote()
            for node in nodes
        }
        here = describe_node()
        for name, answer in asked.items():
            try:
                there = ray.get(answer, timeout=_NODE_CHECK_SECONDS)
            except RayError as error:
                raise RunRefused(f"node {name} cannot run Shoal: {_explain(error)}") from error
            if tuple(there) != here:
                raise RunRefused(
                    f"node {name} has Shoal {there[0]} and Python {there[1]}, and this machine {here[0]} and "
                    f"{here[1]}: install the same on all nodes."
                )

    # One run

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        following = asyncio.create_task(self._follow(reader, writer))
        self._following.add(following)
        following.add_done_callback(self._following.discard)

    async def _follow(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one receiver: give it its terms, let Ray run its worker, and be there until it ends."""
        directory, task = "", None
        try:
            hello = await read_line(reader, ReceiverHello)
            write_line(writer, ReceiverTerms(self._host, self._token, _select_keys(self._environ)))
            ready = await read_line(reader, ReceiverReady)
            if hello is None or ready is None:
                return
            directory = hello.directory
            task = self._submit(RunDirectory(Path(directory)), ready.port)
            self._ready[directory] = hello.pid
            ended, gone = asyncio.create_task(_wait_for_task(task)), asyncio.create_task(_wait_for_close(reader))
            try:
                await asyncio.wait((ended, gone), return_when=asyncio.FIRST_COMPLETED)
                if ended.done():
                    write_line(writer, TaskEnd(ended.result()))
                    await gone
                else:
                    # The task is about to end by itself, and its process may go on with another run.
                    await asyncio.wait((ended,), timeout=_END_SECONDS)
            finally:
                ended.cancel()
                gone.cancel()
        finally:
            if task is not None:
                # What it may still do would not be kept.
                with suppress(RayError):
                    ray.cancel(task, force=True)
            self._ready.pop(directory, None)
            writer.close()

    def _submit(self, run: RunDirectory, port: int) -> Any:
        """Let Ray run the worker of a run wherever there is room, and again where that is lost."""
        (need,) = DoctorTarget.of_scenario(run.scenario).needs
        calls = 0 if is_shared(run) else 1
        task = self._tasks[calls].options(
            name=f"shoal {run.path.name}",
            num_cpus=_ASKING_CPUS if need.asks else _COMPUTING_CPUS,
            memory=need.memory_bytes,
            max_retries=_MOST_LOSSES,
            retry_exceptions=[HeadLost],
        )
        return task.remote(HeadAddress(self._host, port, self._token))


async def _wait_for_close(reader: asyncio.StreamReader) -> None:
    with suppress(OSError):
        await reader.read()


async def _wait_for_task(task: Any) -> str | None:
    """Wait until Ray is done with a task, and return why it failed; None where it did not."""
    try:
        await asyncio.wrap_future(task.future())
    except RayError as error:
        return f"Ray gave the run up: {_explain(error)}"
    return None


def _explain(error: RayError) -> str:
    """Say in a sentence what went wrong on a node."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, ModuleNotFoundError):
        return f"it has no module {cause.name}; install the same Shoal on all nodes, with the extra ray"
    if isinstance(error, GetTimeoutError):
        return f"it has not answered for {_NODE_CHECK_SECONDS:g} seconds"
    return _first_line(cause or error)


def _first_line(error: object) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _complete_address(address: str) -> str:
    """Return what Ray calls the address of a cluster."""
    if not address:
        return "auto"
    return f"ray://{address}" if urlsplit(f"//{address}").port == _CLIENT_PORT else address


def _check_reachable(address: str) -> None:
    """Refuse an address that nothing answers at. Ray itself would try for many minutes."""
    parts = urlsplit(address if "://" in address else f"//{address}")
    if parts.port is not None:
        try:
            socket.create_connection((parts.hostname, parts.port), _ANSWER_SECONDS).close()
        except OSError as error:
            raise RunRefused(
                f"no Ray cluster answers at {parts.netloc}: {error}.\n"
                "Start one with `ray start --head`, or name another: --on ray://HOST:6379."
            ) from error


def _select_keys(environ: Mapping[str, str]) -> dict[str, str]:
    """Select keys and addresses of models, and the proxies to them."""
    return {
        name: value
        for name, value in environ.items()
        if name.endswith(_KEY_ENDINGS) or name.lower() in ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
    }
