"""What a run's worker, the head, and its shards say to each other: both ends of the wire.

A frame is the length in four bytes, then a list of messages. They are pickled, as both ends are the same program of the
same user on one machine, the connection is a pair of sockets that no other process can open, and observations may hold
whatever a world of the user's own puts into them. What several messages of a frame share is sent once.
"""

from __future__ import annotations

import asyncio
import copyreg
import pickle
import struct
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from shoal import errors
from shoal.agents.language import PrefixShare
from shoal.engine import DecisionTimings
from shoal.errors import RunRefused, ShoalError
from shoal.models import CallSize, Pause, Spending, Usage
from shoal.runs.model_limits import CallCounts
from shoal.runs.resources import RunResources
from shoal.types import Decision, Event, Notice, Observation

#: How long a shard may take to end.
END_SECONDS = 10.0
_LENGTH = struct.Struct("!I")


def _restore_unset() -> msgspec.UnsetType:
    return msgspec.UNSET


# It does not say which module it is from, and pickle would look for it in all of them, in every frame.
copyreg.pickle(msgspec.UnsetType, lambda unset: (_restore_unset, ()))


@dataclass(frozen=True, slots=True)
class ShardPlace:
    """Which of how many shards one is, and so which agents it has."""

    number: int
    count: int

    def has(self, agent: int) -> bool:
        return agent % self.count == self.number

    @property
    def agents(self) -> slice:
        """The places of its agents in a list of all."""
        return slice(self.number, None, self.count)

    def share(self, total: int) -> int:
        """Return this shard's part of a number; the parts of all shards add up to it."""
        return total // self.count + (self.number < total % self.count)


# From the head


class ShardOrder(msgspec.Struct, frozen=True):
    """Comes first: which agents of which run the shard has, and what it may use."""

    place: ShardPlace
    directory: str
    resources: RunResources
    #: Where the user's own classes are found.
    path: list[str]


class TurnOrder(msgspec.Struct, frozen=True):
    """An agent is to decide."""

    observation: Observation


class TurnTaken(msgspec.Struct, frozen=True):
    """A person has decided in an agent's place. The agent remembers it as its own turn."""

    observation: Observation
    decision: Decision


class TraitChange(msgspec.Struct, frozen=True):
    """An intervention has changed an agent, who may be of another shard: others may take account of it."""

    world: str
    agent: int
    traits: Mapping[str, Any]


class TurnResults(msgspec.Struct, frozen=True):
    """The results of an agent's turn."""

    world: str
    round: int
    agent: int
    events: Sequence[Event]


class RoundEvents(msgspec.Struct, frozen=True):
    """What happened in a round, where minds want to know."""

    world: str
    round: int
    happened: Sequence[Event | Notice]


class ReportOrder(msgspec.Struct, frozen=True):
    """All turns of a round are carried out. The shard answers with a report."""

    world: str
    round: int


class LinesReceipt(msgspec.Struct, frozen=True):
    """The lines with this number are on disk; where they are not, why."""

    number: int
    error: PackedError | None = None


class FundsReply(msgspec.Struct, frozen=True):
    """The call with this number may begin; where the budget is reached, what it says."""

    number: int
    error: PackedError | None = None


class EndOfWaiting(msgspec.Struct, frozen=True):
    """The user asked to stop: servers that do not answer are not waited for any more."""


class ShardDismissal(msgspec.Struct, frozen=True):
    """The shard is to end, and may wait some seconds for calls that are on their way."""

    drain_seconds: float


# From a shard


class ShardReady(msgspec.Struct, frozen=True):
    """The shard has its minds and models."""


class TurnDecision(msgspec.Struct, frozen=True):
    """What an agent decided; where that failed for the whole run, why."""

    world: str
    round: int
    agent: int
    decision: Decision | PackedError


class JournalLines(msgspec.Struct, frozen=True):
    """Lines for the journal. They may be acted upon once the receipt is there."""

    number: int
    text: bytes


class FundsRequest(msgspec.Struct, frozen=True):
    """A call is to be paid from the budget of the run."""

    number: int
    size: CallSize


class FundsRelease(msgspec.Struct, frozen=True):
    """The call with this number is over. What was spent was reported before."""

    number: int
    size: CallSize
    usage: Usage | None


class RoundReport(msgspec.Struct, frozen=True):
    """What the shard's agents think after a round, and how long they took to decide."""

    world: str
    round: int
    #: Opinions on the topic and beliefs in claims, of the shard's agents alone; of None where all are as before.
    opinions: Any
    beliefs: Mapping[str, Any]
    timings: DecisionTimings
    calls: int
    prefixes: PrefixShare | None
    error: PackedError | None = None


class CallReport(msgspec.Struct, frozen=True):
    """The calls of a shard now, what it has spent since its last report, and what it waits for."""

    calls: CallCounts
    spent: Spending
    pause: Pause | None


class ShardFailure(msgspec.Struct, frozen=True):
    """The shard cannot go on."""

    error: PackedError


class PackedError(msgspec.Struct, frozen=True):
    """An error on its way to another process, whose constructor may want other arguments than it keeps."""

    kind: str
    args: tuple[Any, ...]
    state: dict[str, Any]

    @classmethod
    def pack(cls, error: BaseException) -> PackedError:
        if isinstance(error, ShoalError):
            return cls(type(error).__name__, error.args, error.__dict__)
        traceback.print_exception(error)
        why = f"a shard failed: {type(error).__name__}: {error}\nThe log of the run says where."
        return cls(ShoalError.__name__, (why,), {})

    def unpack(self) -> ShoalError:
        kind: type[ShoalError] = getattr(errors, self.kind)
        error = kind.__new__(kind, *self.args)
        error.__dict__.update(self.state)
        return error


# Both ends


class MessageStream:
    """One end of the connection. What is sent in one step of the event loop goes out as one frame."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self._unsent: list[Any] = []

    def send(self, message: object) -> None:
        if not self._unsent:
            self._loop.call_soon(self.flush)
        self._unsent.append(message)

    def flush(self) -> None:
        """Send now what would be sent soon. Where it cannot be pickled, this end reads an error."""
        unsent, self._unsent = self._unsent, []
        if not unsent:
            return
        try:
            body = pickle.dumps(unsent, pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            why = f"what agents see or decide cannot be sent to another process: {error}; run it without --shards"
            self._reader.set_exception(RunRefused(f"--shards: {why}"))
            return
        self._writer.write(_LENGTH.pack(len(body)))
        self._writer.write(body)

    async def drain(self) -> None:
        """Wait until little is unsent."""
        await self._writer.drain()

    async def read(self) -> list[Any]:
        """Read the next messages; none at the end of the connection, however it came."""
        try:
            (length,) = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
            messages: list[Any] = pickle.loads(await self._reader.readexactly(length))
        except (asyncio.IncompleteReadError, OSError):
            return []
        return messages

    def close(self) -> None:
        self.flush()
        self._writer.close()
