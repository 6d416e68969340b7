"""Rounds as they are committed: their lines, rows, digest and counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Protocol

import msgspec

from shoal.engine.metrics import Step
from shoal.types import Event, Notice, Writes

_encoder = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of what happened in a round."""

    acting: int = 0
    actions: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    rejected: int = 0
    errors: int = 0
    timeouts: int = 0
    #: Decisions that were asked for outside, as the journal did not hold them.
    calls: int = 0


@dataclass(frozen=True, slots=True)
class RoundRecord:
    """One round of one world: lines for the stream, rows for the database, and the digest of the history so far."""

    world: str
    round: int
    lines: bytes
    writes: Writes
    digest: str
    hours: float
    tally: Tally
    #: Whether the world's history ends here.
    last: bool = False
    #: How long it took, if that is measured.
    step: Step | None = None
    #: Rows about the state of the population, which are no part of the history.
    state: Writes = field(default_factory=dict)


class Ledger(Protocol):
    """Where rounds are committed."""

    def commit(self, record: RoundRecord) -> None:
        """Make the round durable, or compare it with what is already there."""
        ...


class RoundBuffer:
    """Collects what happens in a round as encoded lines and counts. Keeps what happened too, if `keeps_all`."""

    def __init__(self, keeps_all: bool = False) -> None:
        self._keeps_all = keeps_all
        self.happened: list[Event | Notice] = []
        self._parts: list[bytes] = []
        self._kinds: Counter[str] = Counter()
        #: Turns without a decision, by what went wrong.
        self.failures: Counter[str] = Counter()
        self._acted = 0

    def add(self, events: Sequence[Event | Notice]) -> None:
        self._parts.append(_encoder.encode_lines(events))
        acts = [event for event in events if isinstance(event, Event)]
        self._acted += len(acts)
        self._kinds.update([event.action_type for event in acts if event.success])
        if self._keeps_all:
            self.happened += events

    def add_failures(self, failures: Iterable[str]) -> None:
        """Count turns without a decision."""
        self.failures.update(failures)

    def lines(self) -> bytes:
        return b"".join(self._parts)

    def tally(self, acting: int, calls: int) -> Tally:
        done, failed, timeouts = self._kinds.total(), self.failures.total(), self.failures["timeout"]
        return Tally(
            acting=acting,
            actions=done,
            kinds=self._kinds,
            rejected=self._acted - done - failed,
            errors=failed - timeouts,
            timeouts=timeouts,
            calls=calls,
        )


def chain_digest(before: str, lines: bytes) -> str:
    """Compute the digest of a history from the digest before this round and the lines of this round."""
    return blake2b(before.encode() + lines, digest_size=16).hexdigest()
