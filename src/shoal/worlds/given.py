"""What every world starts from."""

from __future__ import annotations

from dataclasses import dataclass

from shoal.types import Graph, Population, Timeline
from shoal.worlds.clock import Clock, TimeSettings
from shoal.worlds.words import Reader


@dataclass(frozen=True, slots=True)
class Given:
    """The people, how they stand to one another, time and chance."""

    population: Population
    #: Who follows whom.
    graph: Graph
    time: Timeline[TimeSettings]
    clock: Clock
    seed: int
    reader: Reader
