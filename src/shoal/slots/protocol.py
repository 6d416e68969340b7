"""The protocol between runs and the broker, both ends.

A connection begins with a line from each side that names the version. After it come frames: the length in four bytes,
then a MessagePack array of messages. All messages of one turn of the event loop go into one frame, so that thousands of
claims cost one write, and so do their grants.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Generic, TypeVar

import msgspec

from shoal.slots.leases import Backoff, CallOutcome, Snapshot

VERSION = 2
GREETING = b"shoal slots %d\n" % VERSION
_GREETING_WORDS = b"shoal slots "
_MAX_GREETING_BYTES = 64
#: A hundred thousand claims in one frame take a tenth of it.
_MAX_FRAME_BYTES = 1 << 26
_LENGTH = struct.Struct("!I")
#: How often a run shows that it is alive, and the broker with its answer.
BEAT_SECONDS = 0.3
#: A broker that has not answered for this long is given up.
BROKER_SILENCE_SECONDS = 1.0
#: A run that was not heard of for this long loses its slots. One that did not run itself for half of this cannot know
#: whether it did, and asks again.
RUN_SILENCE_SECONDS = 7.0

Size = Annotated[int, msgspec.Meta(ge=0)]
Pools = tuple[str, ...]
T = TypeVar("T")


# from a run


class Hello(msgspec.Struct, frozen=True, array_like=True, tag=0):
    """Registers the sender as a holder. Comes first; without it only snapshots and resizing are allowed."""

    name: str
    pid: int
    weight: Annotated[float, msgspec.Meta(gt=0)]
    #: Sizes of fixed pools as the run knows them; they hold where the broker has no size yet.
    sizes: dict[str, Size]


class Ask(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=1):
    ticket: int
    pools: Pools
    tokens: int
    first: bool = False


class Return(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=2):
    """Sent for a finished lease and for a cancelled claim alike, as the grant may already be in flight."""

    ticket: int
    outcome: CallOutcome


class Resume(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=3):
    """Registers a lease that another broker granted."""

    ticket: int
    pools: Pools
    tokens: int


class BackOff(msgspec.Struct, frozen=True, array_like=True, tag=4):
    label: str
    backoff: Backoff | None


class Resize(msgspec.Struct, frozen=True, array_like=True, tag=5):
    pool: str
    size: Size


class SnapshotRequest(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """Answered with a `SnapshotReply`."""


class Beat(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """Shows that the sender is alive. A run sends it every `BEAT_SECONDS`, and the broker answers with the same."""


ClientMessage = Hello | Ask | Return | Resume | BackOff | Resize | SnapshotRequest | Beat


# from the broker


class Grants(msgspec.Struct, frozen=True, array_like=True, tag=0):
    tickets: list[int]


class PoolSizes(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """The sizes of all fixed pools, so that a run can pass them to the next broker if this one dies."""

    sizes: dict[str, int]


class SnapshotReply(msgspec.Struct, frozen=True, array_like=True, tag=2):
    snapshot: Snapshot


class ProtocolRefusal(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """The last message on a connection that sent something invalid."""

    why: str


BrokerMessage = Grants | PoolSizes | SnapshotReply | ProtocolRefusal | Beat


# frames

_ENCODER = msgspec.msgpack.Encoder()


def encode_frame(messages: Sequence[ClientMessage] | Sequence[BrokerMessage]) -> bytes:
    """Encode messages as one frame."""
    body = _ENCODER.encode(messages)
    return _LENGTH.pack(len(body)) + body


class OtherVersion(Exception):
    """The other side speaks another version of this protocol, or another protocol."""

    def __init__(self, greeting: bytes) -> None:
        version = greeting.removeprefix(_GREETING_WORDS).strip()
        known = greeting.startswith(_GREETING_WORDS) and version.isdigit()
        super().__init__(f"version {version.decode()}" if known else "another language")

    def explain(self, socket: Path) -> str:
        """Say to the user what to do about the broker at this socket."""
        return (
            f"The broker at {socket} speaks {self}, which this Shoal does not: another version started it.\n"
            "Wait until its runs have ended, or choose another path with SHOAL_SLOTS."
        )


class BrokerSilent(Exception):
    """The broker is connected and says nothing."""


class InvalidFrame(Exception):
    """Bytes that are no frame of this protocol."""


class FrameDecoder(Generic[T]):
    """Turns received bytes into messages, however they are cut."""

    def __init__(self, decoder: msgspec.msgpack.Decoder[list[T]]) -> None:
        self._decoder = decoder
        self._rest = b""
        #: Whether the other side's greeting has arrived, and names this version.
        self.is_greeted = False

    @classmethod
    def of_broker(cls) -> FrameDecoder[ClientMessage]:
        return FrameDecoder(msgspec.msgpack.Decoder(list[ClientMessage]))

    @classmethod
    def of_run(cls) -> FrameDecoder[BrokerMessage]:
        return FrameDecoder(msgspec.msgpack.Decoder(list[BrokerMessage]))

    def feed(self, data: bytes) -> list[T]:
        """Return the complete messages in order, and keep the incomplete rest for the next call."""
        if self._rest:
            data = self._rest + data
        at = 0 if self.is_greeted else self._read_greeting(data)
        received: list[T] = []
        while self.is_greeted and (begin := at + _LENGTH.size) <= len(data):
            (length,) = _LENGTH.unpack_from(data, at)
            if length > _MAX_FRAME_BYTES:
                raise InvalidFrame(f"a frame of {length} bytes")
            end = begin + length
            if len(data) < end:
                break
            try:
                messages = self._decoder.decode(data[begin:end])
            except msgspec.MsgspecError as error:
                raise InvalidFrame(str(error)) from error
            received = received + messages if received else messages
            at = end
        self._rest = data[at:]
        return received

    def _read_greeting(self, data: bytes) -> int:
        """Return where the frames begin; 0 while the greeting is incomplete."""
        if data[: len(GREETING)] == GREETING:
            self.is_greeted = True
            return len(GREETING)
        end = data.find(b"\n") + 1
        if end or len(data) > _MAX_GREETING_BYTES:
            raise OtherVersion(data[: end or _MAX_GREETING_BYTES])
        return 0
