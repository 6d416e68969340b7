"""The head's end: starts the shards of a run, hands out turns, and keeps what they write."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from shoal.agents.language import PrefixMeter
from shoal.errors import BudgetReached, RunRefused, ShardLost, ShoalError, StorageFailed
from shoal.journal import Journal
from shoal.models import Funds
from shoal.runs.directory import LOG, RunDirectory
from shoal.runs.resources import ModelSession, RunResources
from shoal.runs.shards.messages import (
    END_SECONDS,
    CallReport,
    EndOfWaiting,
    FundsRelease,
    FundsReply,
    FundsRequest,
    JournalLines,
    LinesReceipt,
    MessageStream,
    PackedError,
    ReportOrder,
    RoundReport,
    ShardDismissal,
    ShardFailure,
    ShardOrder,
    ShardPlace,
    ShardReady,
    TurnDecision,
)
from shoal.runs.shards.minds import ShardedDecider, ShardedMind
from shoal.scenario import Scenario, Simulation, count_people, list_own_code
from shoal.types import Decision, Observation
from shoal.unix import wait_for_exit

#: After the loss of a shard, the others wait this long for the calls that are on their way: they are paid for.
DRAIN_SECONDS = 5.0
ROOT = Path(__file__).parents[3]
# Neither the working directory nor the environment decides which Shoal is started. To look for garbage while all is
# imported takes an eighth of the time. The last argument names the run in lists of processes.
_CODE = (
    "import gc, sys; gc.disable(); sys.path.append(sys.argv[1]); from importlib import import_module; "
    "sys.exit(import_module('shoal.runs.shards.process').main(int(sys.argv[2])))"
)

Turn = tuple[str, int, int]


@dataclass(slots=True)
class Shard:
    """One process, as the head sees it."""

    place: ShardPlace
    process: subprocess.Popen[bytes]
    stream: MessageStream
    ready: asyncio.Future[None]
    #: World and round -> what the shard will report.
    reports: dict[tuple[str, int], asyncio.Future[RoundReport]] = field(default_factory=dict)
    following: asyncio.Task[None] | None = None
    #: Number of a call -> what is reserved for it.
    reserved: dict[int, Any] = field(default_factory=dict)


class ShardPool:
    """The shards of a run, from their start to their end. The first that fails ends the work of all."""

    def __init__(self, journal: Journal, models: ModelSession | None) -> None:
        self._journal = journal
        self._models = models
        #: World -> how much of the prompts of its agents repeats earlier ones.
        self._prefixes: Mapping[str, PrefixMeter] = {}
        self._shards: list[Shard] = []
        self._decisions: dict[Turn, asyncio.Future[Decision]] = {}
        self._reserving: set[asyncio.Task[None]] = set()
        self._error: ShoalError | None = None
        self._is_closing = False

    async def open(self, run: RunDirectory, resources: RunResources, count: int) -> None:
        """Start all shards. They build their minds while the head builds its worlds."""
        order = replace(resources, environ=dict(resources.environ), answer=None)
        for number in range(count):
            shard = await _open_shard(ShardPlace(number, count), run)
            shard.stream.send(ShardOrder(shard.place, str(run.path.absolute()), order, sys.path))
            shard.following = asyncio.create_task(self._follow(shard))
            self._shards.append(shard)
            # The head is about to be busy with its own worlds.
            shard.stream.flush()
        if self._models is not None:
            self._models.model.availability.watch_end(partial(self.send_to_all, EndOfWaiting()))

    async def wait_until_ready(self) -> None:
        """Wait until each shard has built its minds."""
        await asyncio.gather(*(shard.ready for shard in self._shards))

    async def close(self) -> None:
        """Let all shards end, and kill those that do not, or that have nothing to lose yet."""
        self._is_closing = True
        for shard in self._shards:
            if not shard.ready.done():
                shard.process.kill()
                shard.ready.cancel()
            shard.stream.send(ShardDismissal(DRAIN_SECONDS if isinstance(self._error, ShardLost) else 0.0))
        ends = [asyncio.create_task(wait_for_exit(shard.process.pid)) for shard in self._shards]
        if ends:
            await asyncio.wait(ends, timeout=END_SECONDS)
        for task in self._reserving:
            task.cancel()
        for shard, end in zip(self._shards, ends, strict=True):
            if not end.done():
                shard.process.kill()
            await end
            shard.process.wait()
            assert shard.following is not None
            # What the shard sent last is read to its end.
            await shard.following
            shard.stream.close()

    def build_decider(self, simulation: Simulation, world: str) -> ShardedDecider:
        self._prefixes = simulation.prefixes
        mind = ShardedMind(simulation.minds[world], world, self)
        return ShardedDecider(mind, self._journal, simulation.limits, simulation.seats)

    # What minds use

    def send(self, agent: int, message: object) -> None:
        self._shards[agent % len(self._shards)].stream.send(message)

    def send_to_all(self, message: object) -> None:
        for shard in self._shards:
            shard.stream.send(message)

    def expect_decision(self, observation: Observation) -> asyncio.Future[Decision]:
        turn = observation.world, observation.round, observation.agent
        decision: asyncio.Future[Decision] = self._expect()
        self._decisions[turn] = decision
        return decision

    async def end_round(self, end: ReportOrder) -> Sequence[tuple[ShardPlace, RoundReport]]:
        expected = []
        for shard in self._shards:
            shard.stream.send(end)
            coming: asyncio.Future[RoundReport] = self._expect()
            shard.reports[end.world, end.round] = coming
            expected.append(coming)
        reports = await asyncio.gather(*expected)
        prefixes = self._prefixes.get(end.world)
        for shard, report in zip(self._shards, reports, strict=True):
            if prefixes is not None and report.prefixes is not None:
                prefixes.elsewhere[shard.place.number] = report.prefixes
        return [(shard.place, report) for shard, report in zip(self._shards, reports, strict=True)]

    def _expect(self) -> asyncio.Future[Any]:
        """Make what will be set when a message comes; after an error none will."""
        expected: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self._error is not None:
            expected.set_exception(self._error)
        return expected

    # What shards send

    async def _follow(self, shard: Shard) -> None:
        try:
            while messages := await shard.stream.read():
                for message in messages:
                    self._receive(shard, message)
        except Exception as error:
            # Nothing else would end the wait of the engines.
            self._fail(PackedError.pack(error).unpack())
            return
        if not self._is_closing:
            await wait_for_exit(shard.process.pid)
            shard.process.wait()
            self._fail(ShardLost(_describe_end(shard)))

    def _receive(self, shard: Shard, message: object) -> None:
        match message:
            case TurnDecision(world, round, agent, decision):
                _settle(self._decisions.pop((world, round, agent), None), decision)
            case JournalLines(number, text):
                self._journal.append(text).add_done_callback(partial(_send_receipt, shard.stream, number))
                self._journal.calls += text.count(b"\n")
            case RoundReport(world, round):
                _settle(shard.reports.pop((world, round)), message.error or message)
            case CallReport():
                self._count_calls(shard.place.number, message)
            case FundsRequest() if self._models is not None:
                task = asyncio.create_task(self._reserve(self._models.model.funds, shard, message))
                self._reserving.add(task)
                task.add_done_callback(self._reserving.discard)
            case FundsRelease(number, size, usage) if self._models is not None:
                self._models.model.funds.release(shard.reserved.pop(number), size, usage)
            case ShardReady():
                _settle(shard.ready, None)
            case ShardFailure(error):
                self._fail(error.unpack())

    async def _reserve(self, funds: Funds, shard: Shard, request: FundsRequest) -> None:
        try:
            shard.reserved[request.number] = await funds.reserve(request.size)
        except BudgetReached as reached:
            shard.stream.send(FundsReply(request.number, PackedError.pack(reached)))
        else:
            shard.stream.send(FundsReply(request.number))

    def _count_calls(self, number: int, report: CallReport) -> None:
        if self._models is not None:
            self._models.limits.elsewhere[number] = report.calls
            self._models.model.spending.add(report.spent)
            self._models.model.availability.show_elsewhere(number, report.pause)

    def _fail(self, error: ShoalError) -> None:
        """Let everything that waits for a shard fail: the engines end with this error."""
        self._error = self._error or error
        expected: list[asyncio.Future[Any]] = [*self._decisions.values()]
        for shard in self._shards:
            expected += [shard.ready, *shard.reports.values()]
        for each in expected:
            if not each.done():
                each.set_exception(self._error)


def _settle(expected: asyncio.Future[Any] | None, result: object) -> None:
    """Set a result; the run may have given up waiting for it."""
    if expected is None or expected.done():
        return
    if isinstance(result, PackedError):
        expected.set_exception(result.unpack())
    else:
        expected.set_result(result)


def _send_receipt(stream: MessageStream, number: int, written: asyncio.Future[None]) -> None:
    error = None if written.cancelled() else written.exception()
    stream.send(LinesReceipt(number, None if error is None else PackedError.pack(error)))


def _describe_end(shard: Shard) -> str:
    code, which = shard.process.returncode, f"shard {shard.place.number + 1} of {shard.place.count}"
    how = f"was killed by signal {-code}, as when memory runs out" if code < 0 else f"ended with exit code {code}"
    return f"{which} {how}; `shoal resume` goes on with the run"


async def _open_shard(place: ShardPlace, run: RunDirectory) -> Shard:
    """Start a shard, and connect to it."""
    process, connection = _start_process(run)
    stream = MessageStream(*await asyncio.open_unix_connection(sock=connection))
    return Shard(place, process, stream, asyncio.get_running_loop().create_future())


def _start_process(run: RunDirectory) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start a process at the other end of a pair of sockets. It is in our group, and ends with the connection."""
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            with run.file(LOG).open("ab") as output:
                process = subprocess.Popen(
                    [sys.executable, "-P", "-c", _CODE, str(ROOT), str(theirs.fileno()), str(run.path.absolute())],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    pass_fds=[theirs.fileno()],
                )
        except OSError as error:
            ours.close()
            raise StorageFailed(f"a shard cannot be started: {error.strerror}") from error
    return process, ours


def count_shards(scenario: Scenario, resources: RunResources) -> int:
    """Return over how many processes the agents of a run are spread; RunRefused where they cannot be."""
    count = min(resources.limits.shards or 1, count_people(scenario.population), scenario.max_workers or sys.maxsize)
    if count == 1:
        return 1
    if resources.copy is not None:
        raise RunRefused("--shards: shards are processes of one machine; a run that Ray places is one process")
    if scenario.play:
        raise RunRefused("--shards: a person plays in this run, who is at one terminal; run it without --shards")
    for code in list_own_code(scenario):
        if code.place.startswith("__main__:") and code.base is not None:
            name = code.place.partition(":")[2]
            raise RunRefused(
                f"--shards: {name} is defined in a script or notebook, which other processes cannot import; "
                "put it into a module"
            )
    return count


@asynccontextmanager
async def open_shards(run: RunDirectory, resources: RunResources, pool: ShardPool) -> AsyncIterator[ShardPool | None]:
    """Open the shards of a run for as long as it is worked on; None where it is one process."""
    count = count_shards(run.scenario, resources)
    if count == 1:
        yield None
        return
    try:
        await pool.open(run, resources, count)
        yield pool
    finally:
        await pool.close()
