"""Running one small world in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shoal.engine.decisions import Decider, DecisionLimits
from shoal.engine.engine import Engine
from shoal.engine.record import RoundRecord
from shoal.journal import Journal
from shoal.scenario.build import build
from shoal.scenario.loading import validate
from shoal.types import Mind, Versioned


class Ledger:
    """Keeps rounds in a list."""

    def __init__(self) -> None:
        self.records: list[RoundRecord] = []

    def commit(self, record: RoundRecord) -> None:
        self.records.append(record)

    @property
    def digests(self) -> list[str]:
        return [record.digest for record in self.records]


def village(names: Sequence[str], edges: Sequence[tuple[str, str]] = (), **more: Any) -> dict[str, Any]:
    """People who are always awake, on a platform that recommends nothing: what is seen is what is followed."""
    return {
        "population": [{"name": name, "activity": 1.0, "active_hours": "0-23"} for name in names],
        "time": {"daily_rhythm": False},
        "follows": {"graph": "none", "edges": [list(edge) for edge in edges]},
        "worlds": {"twitter": {"feed": {"recommendation": "none", "recommended": 0}}},
        **more,
    }


def crowd(count: int, visibility: int = 1, **more: Any) -> dict[str, Any]:
    """People drawn at random who act in every round."""
    return {
        "topic": "the old bridge",
        "population": {"count": count, "activity": 1.0, "active_hours": "0-23"},
        "time": {"daily_rhythm": False},
        "worlds": {"twitter": {"visibility": visibility}},
        "events": [{"post": "They say the old bridge will be closed for good.", "by": "most_followed"}],
        **more,
    }


async def play(
    scenario: dict[str, Any],
    journal: Path,
    mind: Mind | None = None,
    limits: DecisionLimits | None = None,
    stop: asyncio.Event | None = None,
) -> Ledger:
    """Run the first world of the scenario to its end; its own mind unless another is given."""
    simulation = build(Versioned(validate(scenario)))
    name, world = next(iter(simulation.worlds.items()))
    ledger = Ledger()
    async with Journal.open(journal) as lines:
        asking = Decider(mind or simulation.minds[name], lines, limits or simulation.limits, simulation.seats)
        await Engine(world, asking, ledger, simulation.seed, simulation.schedules[name]).run(
            simulation.rounds, stop or asyncio.Event()
        )
    return ledger
