"""Conversations of two, many of them side by side."""

from shoal.worlds.dialogue.observations import DialogueObservation, LineView
from shoal.worlds.dialogue.pair import half
from shoal.worlds.dialogue.summary import Conversations
