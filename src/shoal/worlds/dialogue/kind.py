"""Conversations of two as a kind of world, and their rules for language models."""

from __future__ import annotations

from shoal.worlds.base import DO_NOTHING
from shoal.worlds.dialogue.observations import DialogueObservation
from shoal.worlds.dialogue.render import DialogueRenderer
from shoal.worlds.dialogue.settings import DialogueSettings
from shoal.worlds.dialogue.summary import summarise
from shoal.worlds.dialogue.world import CARDS, Dialogue
from shoal.worlds.world_kind import WorldKind

_PLACE = """\
# The place
A conversation of two, face to face, in one or more scenes. The two take turns. Say what you would say aloud in one go,
mostly one to three sentences, in reply to what your partner said last, and move the conversation on. When a scene is
over you are asked how it went: then, and only then, RATE it."""

_BRIEF_PLACE = """\
# The place
A conversation of two. SAY one to three sentences in reply to your partner. When you are asked to, RATE it."""

DIALOGUE = WorldKind(
    places={"dialogue": _PLACE},
    brief_places={"dialogue": _BRIEF_PLACE},
    settings=DialogueSettings,
    observation=DialogueObservation,
    build=Dialogue,
    actions={**Dialogue.actions, DO_NOTHING: ()},
    events=frozenset(),
    cards=CARDS,
    renderer=DialogueRenderer(),
    summarise=summarise,
    ending_actions=frozenset({"LEAVE"}),
)
