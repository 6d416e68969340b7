"""Graph memory in a file: people, posts, claims and topics, and facts about them with the time they held."""

from shoal.sinks.graph.excerpt import GraphExcerpt, GraphPerson, excerpt_graph
from shoal.sinks.graph.overview import GraphOverview, describe_graph, export_graphml
from shoal.sinks.graph.search import (
    FoundEpisode,
    FoundFact,
    GraphAnswer,
    answer_question,
    find_announcements,
    find_reacted_posts,
    find_text,
    read_events,
)
from shoal.sinks.graph.store import GraphStore
