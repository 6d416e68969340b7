"""What people in a room see."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from shoal.types import Mention, Observation


class Stimulus(msgspec.Struct, frozen=True, gc=False):
    """Something that reached an agent."""

    #: `hear`, `see`, `think`, `goal`, `location`; `reach_out` when a person wants the agent's attention; `relate` when
    #: a person says what the two are to one another.
    kind: str
    content: str
    #: The person it came from; None where it came from outside.
    source_id: int | None = None
    source: str | None = None
    #: Whether it was said to this agent, and not to the room.
    addressed: bool = False
    #: What it is about, in the words of the scenario's topics.
    topics: tuple[str, ...] = ()
    #: Which way it leans, -1 to 1: the speaker's opinion, or else read from the words.
    slant: float = 0.0
    #: The speaker's stated opinion on the scenario's topic.
    opinion: float | None = None
    #: What it says of a claim.
    mention: Mention | msgspec.UnsetType = msgspec.UNSET


class Relation(msgspec.Struct, frozen=True, gc=False):
    agent_id: int
    agent: str
    relation: str


class RoomObservation(Observation, frozen=True, kw_only=True):
    """A moment in the room."""

    location: str = ""
    #: What reached the agent since its last turn, in the order in which it came.
    stimuli: tuple[Stimulus, ...] = ()
    #: The people who hear the agent when it addresses no one.
    present: tuple[str, ...] = ()
    goals: tuple[str, ...] = ()
    #: What the agent has turned its attention to.
    attention: str = ""
    relations: tuple[Relation, ...] = ()

    def sources(self) -> Iterator[tuple[int, object]]:
        """Yield what came from people, in the order in which it came."""
        for stimulus in self.stimuli:
            if stimulus.source_id is not None:
                yield stimulus.source_id, (stimulus.kind, stimulus.content)
