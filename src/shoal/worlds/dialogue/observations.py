"""What the two in a conversation see."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from shoal.types import Observation

#: The partner of an agent that is in no pair.
NOBODY = -1


class LineView(msgspec.Struct, frozen=True, gc=False):
    """One thing that was said."""

    speaker_id: int
    speaker: str
    content: str
    topics: tuple[str, ...] = ()
    #: Which way it leans, -1 to 1: the speaker's stated opinion, or else read from the words.
    slant: float = 0.0


class DialogueObservation(Observation, frozen=True, kw_only=True):
    """A moment in a conversation."""

    partner_id: int = NOBODY
    partner: str = ""
    #: What the partner's profile says.
    partner_bio: str = ""
    #: Scenes and turns are counted from 1.
    scene: int = 0
    setting: str = ""
    #: The event in the middle of this scene; None before that.
    turning_point: str | None = None
    turn: int = 0
    turns: int = 0
    #: The last lines of this scene, oldest first.
    lines: tuple[LineView, ...] = ()
    #: News since the agent's last turn.
    announcements: tuple[str, ...] = ()
    #: Whether the scene is over and the agent is asked to RATE it.
    rating: bool = False

    def sources(self) -> Iterator[tuple[int, object]]:
        """Yield each line with its speaker."""
        for line in self.lines:
            yield line.speaker_id, line.content
