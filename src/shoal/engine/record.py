"""A round as it is committed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Protocol

import msgspec

from shoal.types import Event, Notice, Writes

_encoder = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class Tally:
    """What happened in a round, counted."""

    acting: int = 0
    actions: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    rejected: int = 0
    errors: int = 0
    timeouts: int = 0
    #: Decisions that were asked for outside, and were not in the journal.
    calls: int = 0
    #: Wall time of the round, and of its decisions summed; these never enter the history.
    seconds: float = 0.0
    deciding_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Record:
    """One round of one world: lines for the stream, rows for the database, and the digest of the history so far."""

    world: str
    round: int
    lines: bytes
    writes: Writes
    digest: str
    hours: float
    tally: Tally


class Ledger(Protocol):
    """Where rounds are committed."""

    def commit(self, record: Record) -> None:
        """Make the round durable, or compare it with what is already there."""
        ...


def encode(events: Iterable[Event | Notice]) -> bytes:
    """Lines of the stream."""
    return _encoder.encode_lines(events)


def chain(before: str, lines: bytes) -> str:
    """The digest of a history: that of the rounds before, and what was applied in this one, in order."""
    return blake2b(before.encode() + lines, digest_size=16).hexdigest()
