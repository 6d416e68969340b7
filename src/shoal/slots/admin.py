"""Looks at a running broker and resizes its pools, without taking part and without starting one."""

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
    SnapshotReply,
    SnapshotRequest,
    encode_frame,
)

_ANSWER_SECONDS = 10.0


def fetch_snapshot(place: BrokerLocation) -> Snapshot | None:
    """Return the state of the broker; None if no broker is running, so that no slots are in use."""
    return _exchange(place, [SnapshotRequest()])


def resize_pool(place: BrokerLocation, pool: str, size: int) -> Snapshot | None:
    """Give a pool a fixed size and return the state after it; None if no broker is running."""
    return _exchange(place, [Resize(pool, size), SnapshotRequest()])


def _exchange(place: BrokerLocation, requests: Sequence[ClientMessage]) -> Snapshot | None:
    decoder: FrameDecoder[BrokerMessage] = FrameDecoder.of_run()
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_ANSWER_SECONDS)
            connection.connect(str(place.socket))
            connection.sendall(GREETING + encode_frame(requests))
            while data := connection.recv(1 << 16):
                for reply in decoder.feed(data):
                    if isinstance(reply, SnapshotReply):
                        return reply.snapshot
                    if isinstance(reply, ProtocolRefusal):
                        raise SlotsRefused(f"The broker does not understand: {reply.why}")
            return None
    except TimeoutError as error:
        raise SlotsRefused(f"The broker at {place.socket} does not answer.") from error
    except OSError:
        return None
    except OtherVersion as error:
        raise SlotsRefused(error.explain(place.socket)) from error
