"""Rooms as a kind of world, and their rules for language models."""

from __future__ import annotations

from shoal.worlds.base import DO_NOTHING
from shoal.worlds.room.observations import RoomObservation
from shoal.worlds.room.render import RoomRenderer
from shoal.worlds.room.settings import RoomSettings
from shoal.worlds.room.summary import summarise
from shoal.worlds.room.world import CARDS, STIMULI, Room
from shoal.worlds.world_kind import WorldKind

_PLACE = """\
# The place
People who meet in person, in a room or in several places. Whoever is where you are hears you when you talk. All speak
as people do aloud: a few sentences at a time, in plain words, to the point of what was said before. You need not talk
in every turn, and you answer when somebody speaks to you."""

_BRIEF_PLACE = """\
# The place
People in a room. Whoever is with you hears you TALK. Speak in a sentence or two, and answer when spoken to."""

ROOM = WorldKind(
    places={"room": _PLACE},
    brief_places={"room": _BRIEF_PLACE},
    settings=RoomSettings,
    observation=RoomObservation,
    build=Room,
    actions={**Room.actions, DO_NOTHING: ()},
    events=frozenset({*STIMULI, "join", "leave"}),
    cards=CARDS,
    renderer=RoomRenderer(),
    summarise=summarise,
)
