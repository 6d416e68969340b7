"""Listening in on a run while it is run again: what was seen, what was decided, and what came of it."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol

import msgspec

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
    """Is told of every turn."""

    def before(self, mind: Mind, observation: Observation) -> None:
        """Somebody is about to decide."""
        ...

    def after(self, observation: Observation, decision: Decision) -> None:
        """And has decided."""
        ...


class ObservedMind(Mind):
    """Any mind, with an ear at its door. Whether a decision comes from outside is up to the mind, agent by agent."""

    outside: ClassVar[bool] = True

    def __init__(self, inner: Mind, ear: TurnObserver) -> None:
        self._inner = inner
        self._ear = ear

    def asks(self, agent: int) -> bool:
        return self._inner.asks(agent)

    def journals(self, agent: int) -> bool:
        return self._inner.journals(agent)

    async def settle(self, observation: Observation) -> None:
        """Those who journal what they ask decide again, from the same replies; listen before they do."""
        await self._inner.settle(observation)
        self._ear.before(self._inner, observation)

    def request(self, observation: Observation) -> object:
        if not self.journals(observation.agent):
            self._ear.before(self._inner, observation)
        return self._inner.request(observation)

    def decide(self, observation: Observation) -> Decision | Awaitable[Decision]:
        """For those who need nothing from outside, or journal it themselves; all other decisions are in the journal."""
        if not self.journals(observation.agent):
            self._ear.before(self._inner, observation)
        return self._inner.decide(observation)

    def absorb(self, observation: Observation, decision: Decision) -> None:
        self._inner.absorb(observation, decision)
        self._ear.after(observation, decision)

    def change(self, agent: int, traits: Mapping[str, Any]) -> None:
        self._inner.change(agent, traits)

    def opinions(self) -> Sequence[float]:
        return self._inner.opinions()

    async def close(self) -> None:
        await self._inner.close()


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
