"""Measures influence: changes of opinion that go together with what a person reacted to in the same round."""

from __future__ import annotations

from dataclasses import dataclass, field

from shoal.runs.directory import RunDirectory
from shoal.runs.network import NetworkHistory


@dataclass(slots=True)
class Influence:
    """What moved with one person's posts."""

    agent: int
    #: How far others moved towards what the posts say, in all.
    moved: float = 0.0
    #: Person -> how far they moved, and the action that shows it.
    people: dict[int, tuple[float, str]] = field(default_factory=dict)


def measure_influence(run: RunDirectory, world: str) -> list[Influence]:
    """Sum up the influence of each author on a platform, the largest first.

    This shows what went together, not what caused what.
    """
    history = NetworkHistory(run, world)
    history.refresh()
    found: dict[int, Influence] = {}
    # Only reactions leave an action that shows what moved a person.
    for move in (move for move in history.moves if move.event):
        influence = found.setdefault(move.author, Influence(move.author))
        influence.moved += abs(move.amount)
        moved, first = influence.people.get(move.agent, (0.0, move.event))
        influence.people[move.agent] = (moved + abs(move.amount), first)
    return sorted(found.values(), key=lambda one: (-one.moved, one.agent))
