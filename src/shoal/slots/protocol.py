"""What runs and the broker say to one another, both ends.

A connection begins with a line from each side that names the version. After it come frames: the length in four bytes,
then a MessagePack array of messages. Everything that was said in one turn of the loop goes into one frame, so that
thousands of claims cost one write, and so do their grants.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Generic, TypeVar

import msgspec

from shoal.slots.leases import Backoff, CallOutcome, Snapshot

VERSION = 1
GREETING = b"shoal slots %d\n" % VERSION
_GREETING_WORDS = b"shoal slots "
_MAX_GREETING_BYTES = 64
#: A hundred thousand claims in one frame take a tenth of it.
_MAX_FRAME_BYTES = 1 << 26
_LENGTH = struct.Struct("!I")

Size = Annotated[int, msgspec.Meta(ge=0)]
Pools = tuple[str, ...]
T = TypeVar("T")


# from a run


class Hello(msgspec.Struct, frozen=True, array_like=True, tag=0):
    """Comes first. Who does not say it may only look and resize."""

    name: str
    pid: int
    weight: Annotated[float, msgspec.Meta(gt=0)]
    #: Pools of a fixed size, as far as the run knows; they count where the broker does not know better.
    sizes: dict[str, Size]


class Ask(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=1):
    ticket: int
    pools: Pools
    tokens: int
    first: bool = False


class Return(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=2):
    """A lease is over, or a claim is given up: whoever gives up cannot know whether its grant is on the way."""

    ticket: int
    outcome: CallOutcome


class Resume(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=3):
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
    """Answered with a snapshot."""


ClientMessage = Hello | Ask | Return | Resume | BackOff | Resize | SnapshotRequest


# from the broker


class Granted(msgspec.Struct, frozen=True, array_like=True, tag=0):
    tickets: list[int]


class Sized(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """All pools of a fixed size, so that a run can tell the next broker should this one die."""

    sizes: dict[str, int]


class Seen(msgspec.Struct, frozen=True, array_like=True, tag=2):
    snapshot: Snapshot


class ProtocolRefusal(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """What was said makes no sense; nothing comes after it."""

    why: str


BrokerMessage = Granted | Sized | Seen | ProtocolRefusal


# frames

_ENCODER = msgspec.msgpack.Encoder()


def frame(messages: Sequence[ClientMessage] | Sequence[BrokerMessage]) -> bytes:
    body = _ENCODER.encode(messages)
    return _LENGTH.pack(len(body)) + body


class OtherVersion(Exception):
    """The other side speaks another version, or something else altogether."""

    def __init__(self, greeting: bytes) -> None:
        version = greeting.removeprefix(_GREETING_WORDS).strip()
        known = greeting.startswith(_GREETING_WORDS) and version.isdigit()
        super().__init__(f"version {version.decode()}" if known else "another language")


def other_version(where: Path, error: OtherVersion) -> str:
    """For the user."""
    return (
        f"The broker at {where} speaks {error}, which this Shoal does not: another version started it.\n"
        "Wait until its runs have ended, or choose another path with SHOAL_SLOTS."
    )


class Garbled(Exception):
    """Not what this side can read."""


class FrameDecoder(Generic[T]):
    """Takes bytes as they come, and gives the messages in them."""

    def __init__(self, decoder: msgspec.msgpack.Decoder[list[T]]) -> None:
        self._decoder = decoder
        self._rest = b""
        self.greeted = False

    @classmethod
    def of_broker(cls) -> FrameDecoder[ClientMessage]:
        return FrameDecoder(msgspec.msgpack.Decoder(list[ClientMessage]))

    @classmethod
    def of_run(cls) -> FrameDecoder[BrokerMessage]:
        return FrameDecoder(msgspec.msgpack.Decoder(list[BrokerMessage]))

    def feed(self, data: bytes) -> list[T]:
        """What was said, in order. What is not complete yet is kept for the next time."""
        if self._rest:
            data = self._rest + data
        at = 0 if self.greeted else self._greet(data)
        heard: list[T] = []
        while self.greeted and (begin := at + _LENGTH.size) <= len(data):
            (length,) = _LENGTH.unpack_from(data, at)
            if length > _MAX_FRAME_BYTES:
                raise Garbled(f"a frame of {length} bytes")
            end = begin + length
            if len(data) < end:
                break
            messages = self._decode(data[begin:end])
            heard = heard + messages if heard else messages
            at = end
        self._rest = data[at:]
        return heard

    def _greet(self, data: bytes) -> int:
        """Where the frames begin."""
        end = data.find(b"\n") + 1
        if data[: len(GREETING)] == GREETING:
            self.greeted = True
        elif end or len(data) > _MAX_GREETING_BYTES:
            raise OtherVersion(data[: end or _MAX_GREETING_BYTES])
        else:
            end = 0
        return end

    def _decode(self, body: bytes) -> list[T]:
        try:
            return self._decoder.decode(body)
        except msgspec.MsgspecError as error:
            raise Garbled(str(error)) from error
