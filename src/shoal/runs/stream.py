"""The stream of a world, `<world>/actions.jsonl`: its markers, its reader and its follower.

Every committed round stands between `round_start` and `round_end`. Bytes of a committed round never change, so an
offset stays valid while the run goes on, is killed and resumed, or is extended.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import msgspec

from shoal.types import Event, Notice

_BUFFER_BYTES = 1 << 16
_POLL_SECONDS = 0.2


class _Marker(msgspec.Struct, frozen=True, gc=False, tag_field="event_type"):
    pass


class SimulationStart(_Marker, frozen=True, gc=False, tag="simulation_start"):
    """The first line of a stream."""

    platform: str
    total_rounds: int
    agents_count: int
    timestamp: str


class SimulationExtended(_Marker, frozen=True, gc=False, tag="simulation_extended"):
    """The line before the first round that a run was not planned with: it is to go on to another last round."""

    platform: str
    round: int
    total_rounds: int
    timestamp: str


class RoundStart(_Marker, frozen=True, gc=False, tag="round_start"):
    """The line before a round."""

    round: int
    #: Simulated hours gone by when the round begins.
    simulated_hour: float
    timestamp: str


class RoundEnd(_Marker, frozen=True, gc=False, tag="round_end"):
    """The line after a round."""

    round: int
    #: Actions that succeeded.
    actions_count: int
    simulated_hours: float
    digest: str
    timestamp: str


class SimulationEnd(_Marker, frozen=True, gc=False, tag="simulation_end"):
    """The last line of a complete run. It is taken away when the run is extended."""

    platform: str
    total_rounds: int
    total_actions: int
    timestamp: str


Marker = SimulationStart | SimulationExtended | RoundStart | RoundEnd | SimulationEnd
StreamLine = Event | Notice | Marker

_decode_event = msgspec.json.Decoder(Event).decode
_decode_notice = msgspec.json.Decoder(Notice).decode
_decode_marker = msgspec.json.Decoder(Marker).decode
_encode = msgspec.json.Encoder().encode

#: How lines begin that are not actions.
_TYPED = b'{"event_type":"'
_ROUND_START = _TYPED + b'round_start"'
_SIMULATION_END = _TYPED + b'simulation_end"'
_MARKERS = (
    _TYPED + b'simulation_start"',
    _TYPED + b'simulation_extended"',
    _ROUND_START,
    _TYPED + b'round_end"',
    _SIMULATION_END,
)


def encode_marker(marker: Marker) -> bytes:
    """Return the marker's line."""
    return _encode(marker) + b"\n"


def parse_line(text: bytes) -> StreamLine:
    """Parse one whole line of a stream."""
    if not text.startswith(_TYPED):
        return _decode_event(text)
    return _decode_marker(text) if text.startswith(_MARKERS) else _decode_notice(text)


def is_end(text: bytes) -> bool:
    """Return whether this is the line that ends the stream of a complete run."""
    return text.startswith(_SIMULATION_END)


def is_own(event: Event) -> bool:
    """Return whether the agent decided on this action; False for a post that an event makes in the agent's name."""
    return event.id.rpartition("-")[2].isdigit()


class ActionStream:
    """A position in the stream of one world, from which on lines are read or followed.

    `offset` is the byte after the last line that was read. It stays before `simulation_end`, because rounds that are
    added to a complete run begin there.
    """

    def __init__(self, path: Path, offset: int = 0) -> None:
        self.path = path
        self.offset = offset

    def size(self) -> int:
        """Return how many bytes the stream has now."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def read(self, until: int | None = None) -> Iterator[StreamLine]:
        """Read all lines from the offset on, up to the end of a round where one is given.

        A last line without its line end is still being written and is left for the next call.
        """
        return map(parse_line, self.read_texts(until))

    def read_actions(self, until: int | None = None, agent: int | None = None) -> Iterator[Event]:
        """Read only actions, of one agent where it is given; other lines are not even decoded."""
        mark = None if agent is None else f',"agent_id":{agent},'.encode()
        for text in self.read_texts(until):
            if not text.startswith(_TYPED) and (mark is None or mark in text[:60]):
                event = _decode_event(text)
                if agent is None or event.agent_id == agent:
                    yield event

    def read_notices(self, until: int | None = None, event_type: str = "") -> Iterator[Notice]:
        """Read only notices, of one type where it is given."""
        prefix = _TYPED + (f'{event_type}"'.encode() if event_type else b"")
        for text in self.read_texts(until):
            if text.startswith(prefix) and not text.startswith(_MARKERS):
                yield _decode_notice(text)

    async def follow(
        self, until: int | None = None, *, is_live: Callable[[], bool], poll_seconds: float = _POLL_SECONDS
    ) -> AsyncIterator[StreamLine]:
        """Read lines as they are written, up to `simulation_end` or the end of a round.

        Ends also when `is_live` says that there is no writer any more, and everything written has been read.
        """
        while True:
            was_live = is_live()
            for line in self.read(until):
                yield line
                if isinstance(line, SimulationEnd) or (isinstance(line, RoundEnd) and line.round == until):
                    return
            if not was_live:
                return
            await asyncio.sleep(poll_seconds)

    def read_texts(self, until: int | None = None) -> Iterator[bytes]:
        """Read whole lines as they are, from the offset on."""
        try:
            file = self.path.open("rb", buffering=_BUFFER_BYTES)
        except FileNotFoundError:  # Nothing is committed yet.
            return
        with file:
            file.seek(self.offset)
            for text in file:
                if not text.endswith(b"\n"):
                    return
                if until is not None and text.startswith(_ROUND_START):
                    start = _decode_marker(text)
                    assert isinstance(start, RoundStart)
                    if start.round > until:
                        return
                if not text.startswith(_SIMULATION_END):
                    self.offset += len(text)
                yield text
