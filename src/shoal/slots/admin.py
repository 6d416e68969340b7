"""A look at the broker from outside, without taking part, and without starting one."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from shoal.errors import SlotsRefused
from shoal.slots.leases import Snapshot
from shoal.slots.location import BrokerLocation
from shoal.slots.protocol import (
    GREETING,
    BrokerMessage,
    ClientMessage,
    FrameDecoder,
    OtherVersion,
    ProtocolRefusal,
    Resize,
    Seen,
    SnapshotRequest,
    frame,
    other_version,
)

_ANSWER_SECONDS = 10.0


def look_at(place: BrokerLocation) -> Snapshot | None:
    """How the slots are doing; None: no broker is there, so nobody uses any."""
    return _ask(place, [SnapshotRequest()])


def resize_at(place: BrokerLocation, pool: str, size: int) -> Snapshot | None:
    """Give a pool a fixed size, and see what came of it; None: no broker is there."""
    return _ask(place, [Resize(pool, size), SnapshotRequest()])


def _ask(place: BrokerLocation, requests: Sequence[ClientMessage]) -> Snapshot | None:
    try:
        with socket.socket(socket.AF_UNIX) as caller:
            caller.settimeout(_ANSWER_SECONDS)
            caller.connect(str(place.socket))
            caller.sendall(GREETING + frame(requests))
            return _snapshot(caller)
    except TimeoutError as error:
        raise SlotsRefused(f"The broker at {place.socket} does not answer.") from error
    except OSError:
        return None
    except OtherVersion as error:
        raise SlotsRefused(other_version(place.socket, error)) from error


def _snapshot(caller: socket.socket) -> Snapshot | None:
    ears: FrameDecoder[BrokerMessage] = FrameDecoder.of_run()
    while data := caller.recv(1 << 16):
        for reply in ears.feed(data):
            if isinstance(reply, Seen):
                return reply.snapshot
            if isinstance(reply, ProtocolRefusal):
                raise SlotsRefused(f"The broker does not understand: {reply.why}")
    return None
