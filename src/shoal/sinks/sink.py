"""What a sink is: another place that committed episodes are copied to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from shoal.sinks.narration import Narration


@dataclass(frozen=True, slots=True)
class Position:
    """How far a sink has taken over the stream of a world: up to the end of a round."""

    bytes: int = 0
    #: The digest of that round, by which a stream is known again. Empty at the start.
    digest: str = ""


@dataclass(frozen=True, slots=True)
class SinkBatch:
    """Episodes of whole rounds that follow one another in the stream of a world."""

    world: str
    begin: Position
    end: Position
    episodes: Sequence[Narration]


class Sink(Protocol):
    """Receives the episodes of a run, in the order of each world's stream.

    A batch is written whole or not at all, together with the position after it. So a follower begins at `position`,
    after a kill too, and nothing is missing or there twice.
    """

    def position(self, world: str) -> Position:
        """Return how far the sink has taken over the world's stream."""
        ...

    def write(self, batch: SinkBatch) -> bool:
        """Take over a batch, or raise `SinkFailed` and take over nothing of it.

        Returns False, and takes over nothing, where the sink is not at the batch's begin: another process follows too.
        """
        ...

    def clear(self) -> None:
        """Forget everything, as the streams are not those that were followed before."""
        ...

    def close(self) -> None:
        """Close connections and files."""
        ...
