"""What every world is built from."""

from __future__ import annotations

from dataclasses import dataclass

from shoal.types import FollowGraph, Population, Versioned
from shoal.worlds.clock import Clock, TimeSettings
from shoal.worlds.lexicon import TextReader


@dataclass(frozen=True, slots=True)
class WorldContext:
    """The people, the follow graph, time and randomness of a run."""

    population: Population
    graph: FollowGraph
    time: Versioned[TimeSettings]
    clock: Clock
    seed: int
    reader: TextReader
