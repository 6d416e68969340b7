"""What every world starts from."""

from __future__ import annotations

from dataclasses import dataclass

from shoal.types import FollowGraph, Population, Versioned
from shoal.worlds.clock import Clock, TimeSettings
from shoal.worlds.lexicon import TextReader


@dataclass(frozen=True, slots=True)
class WorldContext:
    """The people, how they stand to one another, time and chance."""

    population: Population
    #: Who follows whom.
    graph: FollowGraph
    time: Versioned[TimeSettings]
    clock: Clock
    seed: int
    reader: TextReader
