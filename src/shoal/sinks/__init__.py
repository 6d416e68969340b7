"""Copies of what was committed, in other places; a broken sink cannot harm a run."""

from shoal.sinks.bolt import BOLT_ADDRESS, BoltServer, BoltSink
from shoal.sinks.graph import (
    FoundEpisode,
    FoundFact,
    GraphAnswer,
    GraphExcerpt,
    GraphOverview,
    GraphPerson,
    GraphStore,
    answer_question,
    describe_graph,
    excerpt_graph,
    export_graphml,
    find_announcements,
    find_reacted_posts,
    find_text,
    read_events,
)
from shoal.sinks.narration import Entity, Fact, Narration, Narrator
from shoal.sinks.sink import Position, Sink, SinkBatch
from shoal.sinks.zep import ZEP_ADDRESS, ZepServer, ZepSink
