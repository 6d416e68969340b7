"""The heuristic mind of each kind of world. A new kind of world adds one line here."""

from __future__ import annotations

from collections.abc import Mapping

from shoal.agents.heuristic.base import Behaviour
from shoal.agents.heuristic.dialogue import DialogueMind
from shoal.agents.heuristic.room import RoomMind
from shoal.agents.heuristic.social import SocialMind
from shoal.types import Mind, Versioned
from shoal.worlds import WorldContext, WorldKind

_MINDS: Mapping[str, type[SocialMind | RoomMind | DialogueMind]] = {
    "twitter": SocialMind,
    "reddit": SocialMind,
    "room": RoomMind,
    "dialogue": DialogueMind,
}


def build_heuristic_mind(kind: WorldKind, given: WorldContext, behaviour: Versioned[Behaviour], world: str) -> Mind:
    """Build the offline mind that suits a kind of world."""
    return _MINDS[kind.names[0]](given.population, behaviour, given.seed, world, given.reader)
