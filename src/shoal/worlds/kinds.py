"""The kinds of world that Shoal knows. A new kind is one more folder, and one more name in `KINDS`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from shoal.types import Observation
from shoal.worlds.dialogue.kind import DIALOGUE
from shoal.worlds.rendering import ObservationRenderer
from shoal.worlds.room.kind import ROOM
from shoal.worlds.social.kind import SOCIAL
from shoal.worlds.world_kind import NOTHING, WorldKind, WorldSettings

KINDS: tuple[WorldKind, ...] = (SOCIAL, ROOM, DIALOGUE)

#: What a scenario may write under `kind`, besides a class of the user's own.
KIND_NAMES: tuple[str, ...] = tuple(name for kind in KINDS for name in kind.names)
#: The worlds of a scenario that names none.
DEFAULT_WORLDS: dict[str, WorldSettings] = {"twitter": SOCIAL.settings(kind="twitter")}
#: Kind of action -> what an agent remembers to have done.
PAST_VERBS: Mapping[str, str] = {
    card.kind: card.past for card in (*(card for kind in KINDS for card in kind.cards), NOTHING) if card.past
}

_ANY_RENDERER: ObservationRenderer[Any] = ObservationRenderer()


def kind_named(name: object) -> WorldKind | None:
    """Return the kind that a scenario calls so; None for a world of the user's own."""
    return next((kind for kind in KINDS if name in kind.names), None)


def kind_seen(observation: Observation) -> WorldKind | None:
    """Return the kind of world whose observations look like this one; None for any other."""
    return _kind_of_type(type(observation))


def renderer_for(observation: Observation) -> ObservationRenderer[Any]:
    kind = _kind_of_type(type(observation))
    return _ANY_RENDERER if kind is None else kind.renderer


@lru_cache(maxsize=64)
def _kind_of_type(seen: type[Observation]) -> WorldKind | None:
    return next((kind for kind in KINDS if issubclass(seen, kind.observation)), None)
