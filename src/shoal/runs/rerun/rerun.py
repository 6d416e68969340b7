"""Listening in on a run while it is run again: what was seen, what was decided, and what came of it."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from typing import Protocol

import msgspec

from shoal.agents.wrappers import WrapperMind
from shoal.engine.record import RoundRecord
from shoal.errors import QueryFailed
from shoal.runs.directory import RunDirectory
from shoal.runs.reports.summary import committed_rounds
from shoal.runs.worker import Rerun
from shoal.types import Decision, Event, Mind, Notice, Observation

_event = msgspec.json.Decoder(Event).decode
_notice = msgspec.json.Decoder(Notice).decode
_NOTICE = b'{"event_type"'


class TurnObserver(Protocol):
    """Receives every turn of a rerun."""

    def before(self, mind: Mind, observation: Observation) -> None:
        """Receive an observation just before the mind decides about it."""
        ...

    def after(self, observation: Observation, decision: Decision) -> None:
        """Receive the decision."""
        ...


class ObservedMind(WrapperMind):
    """Wraps a mind and reports every turn to an observer."""

    def __init__(self, inner: Mind, observer: TurnObserver) -> None:
        super().__init__(inner)
        self._observer = observer

    async def settle(self, observation: Observation) -> None:
        """Report the turn of an agent that journals its own calls: it decides again, from the same replies."""
        await super().settle(observation)
        self._observer.before(self.inner, observation)

    def request(self, observation: Observation) -> object:
        """Report the turn of an agent whose decision is in the journal."""
        if not self.journals(observation.agent):
            self._observer.before(self.inner, observation)
        return super().request(observation)

    def decide(self, observation: Observation) -> Decision | Awaitable[Decision]:
        """Report the turn of an agent that decides without the journal."""
        if not self.journals(observation.agent):
            self._observer.before(self.inner, observation)
        return super().decide(observation)

    def absorb(self, observation: Observation, decision: Decision) -> None:
        super().absorb(observation, decision)
        self._observer.after(observation, decision)


def open_rerun(directory: RunDirectory) -> Rerun:
    """The run, to be run again; QueryFailed where there is nothing yet to ask about."""
    rounds = committed_rounds(directory)
    if not any(rounds.values()) or not all(directory.file(f"{world}_simulation.db").exists() for world in rounds):
        raise QueryFailed(f"no round of {directory.path} has been committed yet; `shoal resume` it first")
    return Rerun(directory)


def committed_lines(record: RoundRecord) -> Iterator[Event | Notice]:
    """What happened in a round, in order. Fields are written in a fixed order, so the first one tells which it is."""
    for line in record.lines.splitlines():
        yield _notice(line) if line.startswith(_NOTICE) else _event(line)


def is_own(event: Event) -> bool:
    """Whether somebody did this, and it was not made to happen in their name."""
    return event.id.rpartition("-")[2].isdigit()
