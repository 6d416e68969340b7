"""Rooms as a kind of world, and their rules for language models."""

from __future__ import annotations

from shoal.worlds.base import DO_NOTHING
from shoal.worlds.room.observations import RoomObservation
from shoal.worlds.room.play import RoomPlay
from shoal.worlds.room.render import RoomRenderer
from shoal.worlds.room.settings import RoomSettings
from shoal.worlds.room.summary import summarise
from shoal.worlds.room.world import STIMULI, Room
from shoal.worlds.world_kind import ActionCard, Argument, WorldKind, WorldRules

_PLACE = """\
# The place
People who meet in person, in a room or in several places. Whoever is where you are hears you when you talk. All speak
as people do aloud: a few sentences at a time, in plain words, to the point of what was said before. You need not talk
in every turn, and you answer when somebody speaks to you."""

_CONTENT = Argument("content")
_TARGET = Argument("target", names="person")

CARDS = (
    ActionCard(
        "TALK",
        (_CONTENT, Argument("target", is_needed=False, names="person")),
        "speak to everybody who hears you, or only to target (a name)",
        "said",
    ),
    ActionCard("THINK", (_CONTENT,), "think something that nobody hears", "thought"),
    ActionCard("REACH_OUT", (_TARGET,), "ask for somebody's attention"),
    ActionCard("ATTEND", (_CONTENT,), "turn your attention to something", "turned to"),
    ActionCard("RELATE", (_TARGET, Argument("relation")), "say what you and somebody are to one another"),
    ActionCard("MOVE_TO", (Argument("location"),), "go to another place"),
    ActionCard("DONE", (), "end your turn"),
)


def describe_room(settings: RoomSettings) -> WorldRules:
    allowed = settings.actions
    return WorldRules(_PLACE, tuple(card for card in CARDS if allowed is None or card.kind in (*allowed, "DONE")))


ROOM = WorldKind(
    names=("room",),
    settings=RoomSettings,
    observation=RoomObservation,
    build=Room,
    actions={**Room.actions, DO_NOTHING: ()},
    events=frozenset(STIMULI),
    cards=CARDS,
    rules=describe_room,
    renderer=RoomRenderer(),
    play=RoomPlay(),
    summarise=summarise,
)
