"""A look at the broker from outside, without taking part, and without starting one."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from shoal.errors import SlotsRefused
from shoal.slots.place import Place
from shoal.slots.snapshot import Snapshot
from shoal.slots.wire import (
    GREETING,
    Ears,
    Look,
    OtherVersion,
    Refused,
    Reply,
    Request,
    Resize,
    Seen,
    frame,
    other_version,
)

_ANSWER_SECONDS = 10.0


def look_at(place: Place) -> Snapshot | None:
    """How the slots are doing; None: no broker is there, so nobody uses any."""
    return _ask(place, [Look()])


def resize_at(place: Place, pool: str, size: int) -> Snapshot | None:
    """Give a pool a fixed size, and see what came of it; None: no broker is there."""
    return _ask(place, [Resize(pool, size), Look()])


def _ask(place: Place, requests: Sequence[Request]) -> Snapshot | None:
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
    ears: Ears[Reply] = Ears.of_run()
    while data := caller.recv(1 << 16):
        for reply in ears.feed(data):
            if isinstance(reply, Seen):
                return reply.snapshot
            if isinstance(reply, Refused):
                raise SlotsRefused(f"The broker does not understand: {reply.why}")
    return None
