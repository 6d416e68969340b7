"""Reads what happened in a run: summaries, conversations, exports."""

from shoal.runs.reports.cascades import Cascade, SharedPost, read_all_cascades, read_cascades
from shoal.runs.reports.counts import count_agents, count_rounds, read_interviews, read_rows
from shoal.runs.reports.database import open_database, open_world, query_database
from shoal.runs.reports.export import Graphs, export_run
from shoal.runs.reports.language import detect_language
from shoal.runs.reports.outcomes import Outcome, find_opinions, read_figures, read_last_opinions, read_outcomes
from shoal.runs.reports.pages import (
    CURSOR_PATTERN,
    ActionFilter,
    ActionPage,
    PageReader,
    ReadBudget,
    format_line,
    has_failed,
    read_backwards,
)
from shoal.runs.reports.quality import CHECKS, Finding, Quality, Verdict, assess_run
from shoal.runs.reports.summary import Summary, WorldSummary, summarize
from shoal.runs.stream import is_end
