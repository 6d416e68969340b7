"""Copies of what runs commit: who follows the streams, and the graph memory of a run."""

from shoal.runs.sinks.follower import SinkFollower, answer_from_graph, open_graph
from shoal.runs.sinks.live import start_following
from shoal.runs.sinks.opening import open_sink
