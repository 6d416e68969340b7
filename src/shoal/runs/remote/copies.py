"""Commits the rounds of a worker on another machine where the run is kept."""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType
from typing import Any, cast

from shoal.engine import RoundRecord, Tally
from shoal.runs.directory import RunDirectory
from shoal.runs.remote.messages import NodeMessage, RoundCopy, WorldEnd, WorldOpening
from shoal.runs.store import Store
from shoal.types import WorldProtocol


class WorldTwin:
    """What a store must know of a world that is on another machine."""

    def __init__(self, opening: WorldOpening) -> None:
        self.name, self.schema, self.indexes = opening.name, opening.schema, opening.indexes
        #: Round -> its simulated time, and the hours before it.
        self._timestamps: dict[int, str] = {}
        self._hours: dict[int, float] = {}

    def know_round(self, copy: RoundCopy) -> None:
        """Know the time of the round that is committed next."""
        self._timestamps = {copy.round: copy.timestamp}
        self._hours = {max(copy.round - 1, 0): copy.hours_before, copy.round: copy.hours}

    def timestamp(self, round: int) -> str:
        return self._timestamps[round]

    def hours(self, round: int) -> float:
        return self._hours[round]


class KeptRounds:
    """The stores of a run, as long as one worker sends rounds."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run
        self._stores: dict[str, tuple[WorldTwin, Store]] = {}
        self._held = ExitStack()

    def keep(self, message: NodeMessage) -> None:
        """Open a world, commit a round of it, or complete its history."""
        if isinstance(message, WorldOpening):
            twin = WorldTwin(message)
            store = Store(
                self._run.path,
                cast(WorldProtocol, twin),
                self._run.round_plans,
                message.agents,
                self._run.config.shoal_version,
            )
            self._stores[message.name] = twin, self._held.enter_context(store)
        elif isinstance(message, RoundCopy):
            twin, store = self._stores[message.world]
            twin.know_round(message)
            store.commit(
                RoundRecord(
                    world=message.world,
                    round=message.round,
                    lines=message.lines,
                    writes=cast(dict[str, Any], dict(message.writes)),
                    digest=message.digest,
                    hours=message.hours,
                    tally=Tally(actions=message.actions),
                    state=cast(dict[str, Any], dict(message.state)),
                )
            )
        elif isinstance(message, WorldEnd):
            self._stores[message.world][1].finish(message.actions)

    def close(self) -> None:
        self._held.close()
        self._stores.clear()

    def __enter__(self) -> KeptRounds:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
