"""Conversations of two as a kind of world, and their rules for language models."""

from __future__ import annotations

from shoal.worlds.base import DO_NOTHING
from shoal.worlds.dialogue.observations import DialogueObservation
from shoal.worlds.dialogue.play import DialoguePlay
from shoal.worlds.dialogue.render import DialogueRenderer
from shoal.worlds.dialogue.settings import DialogueSettings
from shoal.worlds.dialogue.summary import summarise
from shoal.worlds.dialogue.world import LEAVE, Dialogue
from shoal.worlds.world_kind import ActionCard, Argument, WorldKind, WorldRules

_PLACE = """\
# The place
A conversation of two, face to face, in one or more scenes. The two take turns. Say what you would say aloud in one go,
mostly one to three sentences, in reply to what your partner said last, and move the conversation on. When a scene is
over you are asked how it went: then, and only then, RATE it."""

_CONTENT = Argument("content")

CARDS = (
    ActionCard("SAY", (_CONTENT,), "say something to your partner", "said"),
    ActionCard("THINK", (_CONTENT,), "think something that your partner does not hear", "thought"),
    ActionCard("LEAVE", (), "end the scene"),
    ActionCard(
        "RATE",
        (Argument("score", int), Argument("reason", is_needed=False)),
        "when you are asked to: how the scene went for you, from 0 (very badly) to 10 (very well)",
        "rated the scene",
    ),
)


def describe_dialogue(settings: DialogueSettings) -> WorldRules:
    return WorldRules(_PLACE, CARDS)


DIALOGUE = WorldKind(
    names=("dialogue",),
    settings=DialogueSettings,
    observation=DialogueObservation,
    build=Dialogue,
    actions={**Dialogue.actions, DO_NOTHING: ()},
    events=frozenset(),
    cards=CARDS,
    rules=describe_dialogue,
    renderer=DialogueRenderer(),
    play=DialoguePlay(),
    summarise=summarise,
    ending_actions=frozenset({LEAVE}),
)
