"""What an agent sees and what an action does."""

from shoal.worlds.base import DO_NOTHING, BaseWorld, EmbedTexts, WorldContext
from shoal.worlds.clauses import stem
from shoal.worlds.clock import Clock, TimeSettings
from shoal.worlds.figures import measure_inequality
from shoal.worlds.kinds import (
    DEFAULT_WORLDS,
    KIND_NAMES,
    KINDS,
    PAST_VERBS,
    kind_named,
    kind_seen,
    renderer_for,
)
from shoal.worlds.lexicon import CompareTexts, TextReader, content_words, is_cue
from shoal.worlds.names import NameIndex
from shoal.worlds.reading import StatementReader, read_attitude
from shoal.worlds.rendering import MAX_SPEECH_CHARS, NO_ACTION, Mistake, ViewLine, find_written
from shoal.worlds.world_kind import (
    NOTHING,
    ActionCard,
    Argument,
    Remark,
    SummaryContext,
    WorldKind,
    WorldRules,
    WorldSettings,
)
