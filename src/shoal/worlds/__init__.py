"""What an agent sees and what an action does."""

from shoal.worlds.base import DO_NOTHING, BaseWorld
from shoal.worlds.clock import Clock, TimeSettings
from shoal.worlds.context import WorldContext
from shoal.worlds.kinds import (
    DEFAULT_WORLDS,
    KIND_NAMES,
    KINDS,
    PAST_VERBS,
    kind_named,
    kind_seen,
    play_adapter_for,
    renderer_for,
)
from shoal.worlds.lexicon import TextReader, content_words, is_cue
from shoal.worlds.names import NameIndex
from shoal.worlds.playing import NO_ACTION, Mistake
from shoal.worlds.rendering import ViewLine, find_written
from shoal.worlds.settings import WorldSettings
from shoal.worlds.world_kind import NOTHING, ActionCard, Argument, Remark, SummaryContext, WorldKind, WorldRules

__all__ = [
    # base
    "BaseWorld",
    "DO_NOTHING",
    # clock
    "Clock",
    "TimeSettings",
    # context
    "WorldContext",
    # kinds
    "DEFAULT_WORLDS",
    "KINDS",
    "KIND_NAMES",
    "PAST_VERBS",
    "kind_named",
    "kind_seen",
    "play_adapter_for",
    "renderer_for",
    # lexicon
    "TextReader",
    "content_words",
    "is_cue",
    # names
    "NameIndex",
    # playing
    "Mistake",
    "NO_ACTION",
    # rendering
    "ViewLine",
    "find_written",
    # settings
    "WorldSettings",
    # world kind
    "ActionCard",
    "Argument",
    "NOTHING",
    "Remark",
    "SummaryContext",
    "WorldKind",
    "WorldRules",
]
