"""Reads what happened in a run: summaries, conversations, exports."""

from shoal.runs.reports.export import Graphs, export_run
from shoal.runs.reports.summary import Summary, WorldSummary, query_database, summarize

__all__ = [
    # export
    "Graphs",
    "export_run",
    # summary
    "Summary",
    "WorldSummary",
    "query_database",
    "summarize",
]
